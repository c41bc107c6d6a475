"""Topics of a robot: settings to read its bag, matched stamps, poses of messages; needs no ROS.

Messages are any objects with the fields.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.base import contract
from osmabench_ros.base.documents import parse_yaml, read_yaml
from osmabench_ros.base.strict import FilePath, Strict, validated
from osmabench_ros.errors import ConfigError, ContractError, errors_as
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.geometry.transform_tree import StampedTransform

PATH_TYPE = 'nav_msgs/msg/Path'
# More than any map projection has.
MAX_POSITION_M = 1e9


def stamp_ns_of(stamp: Any) -> int:
    """Return a builtin_interfaces/Time in nanoseconds."""
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


def pose_of(message: Any, topic: str) -> Pose:
    """Return a geometry_msgs/Pose; ContractError if not finite, or its quaternion not unit.

    `Pose.from_quaternion` has the tolerance.
    """
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
        message_type = 'geometry_msgs/msg/PoseStamped'
    if message_type not in _POSES:
        known = ', '.join(TRAJECTORY_TYPES)
        raise ContractError(f'topic "{topic}": {message_type} holds no poses; expected {known}')
    stamped = []
    frames = set()
    for message in messages:
        position, orientation = attrgetter(*_POSES[message_type])(message)
        stamped.append((stamp_ns_of(message.header.stamp), _pose(position, orientation, topic)))
        frames.add((message.header.frame_id, getattr(message, 'child_frame_id', '')))
    if len(frames) > 1:
        raise ContractError(f'topic "{topic}": its poses are in several frames, {sorted(frames)}')
    with errors_as(ContractError, f'topic "{topic}"', ValueError):
        return StampedTrajectory.from_poses(stamped, *next(iter(frames), ('', '')))


def read_transforms(messages: Iterable[tuple[str, Any]]) -> Iterator[StampedTransform]:
    """Yield the transforms of TF messages with their topics; errors as of `pose_of`.

    Those on topics that end with tf_static are static.
    """
    for topic, message in messages:
        is_static = topic.endswith(contract.TF_STATIC)
        for item in message.transforms:
            names = (item.header.frame_id, item.child_frame_id)
            parent, child = (name.lstrip('/') for name in names)
            if not parent or not child:
                raise ContractError(f'topic "{topic}": a transform from "{parent}" to "{child}"')
            pose = _pose(item.transform.translation, item.transform.rotation, topic)
            yield StampedTransform(parent, child, stamp_ns_of(item.header.stamp), pose, is_static)


def _pose(position: Any, orientation: Any, topic: str) -> Pose:
    place_m = attrgetter('x', 'y', 'z')(position)
    quaternion = attrgetter('x', 'y', 'z', 'w')(orientation)
    with errors_as(ContractError, f'topic "{topic}"', ValueError):
        if any(abs(value) > MAX_POSITION_M for value in place_m):
            raise ValueError(f'a position is beyond {MAX_POSITION_M:g} m; positions are metres')
        if any(abs(value) > 2 for value in quaternion):
            raise ValueError('a quaternion is not of unit length')
        return Pose.from_quaternion(quaternion, place_m)


# As the topic of the pose: look it up in /tf and /tf_static.
TF = 'tf'


def match_stamps(
    stamps_ns: Mapping[str, Collection[int]], reference: str, tolerance_ns: int
) -> list[dict[str, int]]:
    """Match messages of `reference` with the nearest of each topic, at most `tolerance_ns` away.

    Returns the stamps in nanoseconds by topic of each match, in order. A message of `reference`
    that has no match, or only with messages of an earlier one, is left out.
    """
    ordered = {topic: np.unique(list(items)) for topic, items in stamps_ns.items()}
    if any(len(items) == 0 for items in ordered.values()):
        return []
    centres = ordered[reference]
    nearest = np.stack([items[_nearest(items, centres)] for items in ordered.values()], axis=1)
    near = (np.abs(nearest - centres[:, None]) <= tolerance_ns).all(axis=1)
    found: list[dict[str, int]] = []
    for row in nearest[near].tolist():
        match = dict(zip(ordered, row, strict=True))
        # A message is in one match.
        if not found or found[-1].items().isdisjoint(match.items()):
            found.append(match)
    return found


def _nearest(items: NDArray[np.int64], centres: NDArray[np.int64]) -> NDArray[np.intp]:
    after = np.clip(np.searchsorted(items, centres), 0, len(items) - 1)
    before = np.clip(after - 1, 0, len(items) - 1)
    earlier = np.abs(items[before] - centres) <= np.abs(items[after] - centres)
    return np.where(earlier, before, after)


class SequenceReading(Strict):
    """Settings of a configuration or a YAML file for the frames of a bag.

    Parameters
    ----------
    color, depth, camera_info : str
        Images, and the camera of the depth image, which is registered to colour.
    pose : str
        Camera or a body that carries it (PoseStamped, Odometry …), or 'tf' to look it up in TF. A
        pose message without child frame is the pose of the camera's optical frame.
    semantic, instance : str
        Optional in the bag.
    world : str
        Fixed frame for 'tf'; empty for the root of the tree.
    namespace : str
        Of relative topics, such as '/robot'.
    tolerance_s : float
        Largest difference from the stamp of the colour image; 0 for equal stamps. Above 0 poses
        are interpolated at that stamp.
    msg_paths : tuple of Path
        Message definitions that the bag lacks.
    """

    color: str = Field(contract.COLOR, min_length=1)
    depth: str = Field(contract.DEPTH, min_length=1)
    camera_info: str = Field(contract.DEPTH_INFO, min_length=1)
    pose: str = Field(contract.CAMERA_POSE, min_length=1)
    semantic: str = Field(contract.SEMANTIC, min_length=1)
    instance: str = Field(contract.INSTANCE, min_length=1)
    world: str = ''
    namespace: str = ''
    tolerance_s: float = Field(0.0, ge=0.0, le=10.0)
    msg_paths: tuple[FilePath, ...] = ()

    @property
    def images(self) -> dict[str, str]:
        """Names of topics in the contract by the absolute ones of the bag."""
        names = {
            contract.COLOR: self.color,
            contract.DEPTH: self.depth,
            contract.DEPTH_INFO: self.camera_info,
            contract.SEMANTIC: self.semantic,
            contract.INSTANCE: self.instance,
        }
        return {self._absolute(name): part for part, name in names.items()}

    @property
    def pose_topic(self) -> str:
        """Absolute name of the topic of the pose, empty for TF."""
        return '' if self.pose == TF else self._absolute(self.pose)

    def _absolute(self, name: str) -> str:
        space = self.namespace.strip('/')
        return name if name.startswith('/') else f'/{space}/{name}' if space else f'/{name}'


# Topics of docs/topics.md, equal stamps.
AS_IN_THE_CONTRACT = SequenceReading()


def reading_from_text(text: str) -> SequenceReading:
    """Return the settings of a YAML mapping, a YAML file's path, or '' (the contract).

    Such a mapping is ``{color: /cam/rgb, pose: tf, tolerance_s: 0.02}``. Relative `msg_paths` of a
    file count from its folder, in a mapping from the working directory. Raises ConfigError,
    which names the file, key or value.
    """
    source, folder = 'sequence_topics', Path()
    data: Any = parse_yaml(text, source, ConfigError) if text.strip() else {}
    if isinstance(data, str):
        source, folder = f'{source} {data}', Path(data).parent
        data = read_yaml(data, ConfigError)
    reading = validated(SequenceReading, data, source)
    paths = tuple(folder / path for path in reading.msg_paths)
    return reading.model_copy(update={'msg_paths': paths})
