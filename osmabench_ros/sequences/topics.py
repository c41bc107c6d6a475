"""Poses, trajectories and frames from messages: any objects with the fields; needs no ROS."""

from collections import deque
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from osmabench_ros.base.contract import TF_STATIC
from osmabench_ros.errors import ContractError, errors_as
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.geometry.transform_tree import StampedTransform, TransformTree

PATH_TYPE = 'nav_msgs/msg/Path'
# More than any map projection has.
MAX_POSITION_M = 1e9


def stamp_ns_of(stamp: Any) -> int:
    """Return a builtin_interfaces/Time in nanoseconds."""
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


def pose_of(message: Any, topic: str) -> Pose:
    """Return a geometry_msgs/Pose; ContractError if not finite, or its quaternion not unit."""
    return _pose(message.position, message.orientation, topic)


# Where messages have position and orientation.
_POSES = {
    'geometry_msgs/msg/PoseStamped': ('pose.position', 'pose.orientation'),
    'geometry_msgs/msg/PoseWithCovarianceStamped': ('pose.pose.position', 'pose.pose.orientation'),
    'nav_msgs/msg/Odometry': ('pose.pose.position', 'pose.pose.orientation'),
    'geometry_msgs/msg/TransformStamped': ('transform.translation', 'transform.rotation'),
}

# Types of topics that a trajectory can be read from, except TF.
TRAJECTORY_TYPES = (*_POSES, PATH_TYPE)


def trajectory_of(messages: Iterable[Any], message_type: str, topic: str) -> StampedTrajectory:
    """Return the trajectory of one topic, of a type in `TRAJECTORY_TYPES`, by header stamps.

    Messages may come in any order. Of nav_msgs/Path the last counts, since a stack sends the whole
    path again when it has corrected it. Raises ContractError if there is no pose, one is
    malformed, or the frame changes midway.
    """
    if message_type == PATH_TYPE:
        last = deque(messages, maxlen=1)
        messages = last[0].poses if last else []
        message_type = next(iter(_POSES))
    if message_type not in _POSES:
        known = ', '.join(TRAJECTORY_TYPES)
        raise ContractError(f'topic "{topic}": {message_type} holds no poses; expected {known}')
    stamped = []
    frames = set()
    for message in messages:
        place, turn = attrgetter(*_POSES[message_type])(message)
        stamped.append((stamp_ns_of(message.header.stamp), _pose(place, turn, topic)))
        frames.add((message.header.frame_id, getattr(message, 'child_frame_id', '')))
    if len(frames) > 1:
        raise ContractError(f'topic "{topic}": its poses are in several frames, {sorted(frames)}')
    with errors_as(ContractError, f'topic "{topic}"', ValueError):
        return StampedTrajectory.from_poses(stamped, *next(iter(frames), ('', '')))


def transform_tree_of(messages: Iterable[tuple[str, Any]]) -> TransformTree:
    """Return the TF tree; transforms on topics that end with tf_static are static."""
    return TransformTree(read_transforms(messages))


def read_transforms(messages: Iterable[tuple[str, Any]]) -> Iterator[StampedTransform]:
    """Yield the transforms of TF messages with their topics; errors as of `pose_of`."""
    for topic, message in messages:
        is_static = topic.endswith(TF_STATIC)
        for item in message.transforms:
            names = (item.header.frame_id, item.child_frame_id)
            parent, child = (name.lstrip('/') for name in names)
            if not parent or not child:
                raise ContractError(f'topic "{topic}": a transform from "{parent}" to "{child}"')
            pose = _pose(item.transform.translation, item.transform.rotation, topic)
            yield StampedTransform(parent, child, stamp_ns_of(item.header.stamp), pose, is_static)


def _pose(place: Any, turn: Any, topic: str) -> Pose:
    with errors_as(ContractError, f'topic "{topic}"', ValueError):
        if any(abs(value) > MAX_POSITION_M for value in (place.x, place.y, place.z)):
            raise ValueError(f'a position is beyond {MAX_POSITION_M:g} m; positions are metres')
        if any(abs(value) > 2 for value in (turn.x, turn.y, turn.z, turn.w)):
            raise ValueError('a quaternion is not of unit length')
        return Pose.from_quaternion((turn.x, turn.y, turn.z, turn.w), (place.x, place.y, place.z))
