"""Trajectories named on the command line: TUM files, topics and TF chains of bags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from osmabench_ros.base.contract import CAMERA_POSE, ODOMETRY, TF_TYPE
from osmabench_ros.errors import ConfigError, suggestion
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory, read_tum
from osmabench_ros.runs.bag_content import BagContent, read_content
from osmabench_ros.sequences.bags.bag import Bag, open_bag
from osmabench_ros.sequences.bags.bag_metadata import is_bag
from osmabench_ros.sequences.pose_topics import TRAJECTORY_TYPES, trajectory_of

TF_PREFIX = '/tf:'
REFERENCE_TOPICS = (CAMERA_POSE, ODOMETRY)
"""What the bridge publishes, below any namespace."""


def read_trajectory(name: str) -> StampedTrajectory:
    """Return a trajectory by its name: a TUM file, ``BAG:TOPIC`` or ``BAG:/tf:PARENT.CHILD``."""
    path, topic = _parted(name)
    if topic:
        with open_bag(path) as bag:
            return bag_trajectory(bag, read_content(bag, (*TRAJECTORY_TYPES, TF_TYPE)), topic)
    if is_bag(path):
        with open_bag(path) as bag:
            found = pose_topics({item.topic: item.message_type for item in bag.connections})
        raise ConfigError(
            f'{path} is a bag; name a topic of it, such as {path}:{(found or ["/odom"])[0]}. '
            f'{suggestion("", [*found, "/tf:PARENT.CHILD"])}'
        )
    return read_tum(path)


def _parted(name: str) -> tuple[Path, str]:
    """Return path and topic, separated by the first colon after an existing path."""
    path = Path(name)
    if not path.exists():
        for place, letter in enumerate(name):
            if letter == ':' and name[:place] and Path(name[:place]).exists():
                return Path(name[:place]), name[place + 1 :]
    return path, ''


def pose_topics(types: Mapping[str, str]) -> list[str]:
    """Return the topics that trajectories can be read from, sorted."""
    return sorted(topic for topic, kind in types.items() if kind in TRAJECTORY_TYPES)


def bag_trajectory(bag: Bag, content: BagContent, topic: str) -> StampedTrajectory:
    """Return the trajectory of a topic, or of a TF chain ``/tf:PARENT.CHILD``."""
    topic = f'/{topic.lstrip("/")}'
    if topic.startswith(TF_PREFIX):
        parent, _, child = topic.removeprefix(TF_PREFIX).partition('.')
        if not parent or not child:
            raise ConfigError(f'"{topic}" names no frames; write {TF_PREFIX}PARENT.CHILD')
        return content.transforms.trajectory(parent.lstrip('/'), child.lstrip('/'))
    kind = content.types.get(topic, '')
    if kind not in TRAJECTORY_TYPES:
        problem = f'holds {kind}, which are no poses' if kind else 'is not in the bag'
        raise ConfigError(
            f'topic "{topic}" {problem}. {suggestion(topic, pose_topics(content.types))}'
        )
    messages = (message.deserialise() for message in bag.messages((topic,)))
    return trajectory_of(messages, kind, topic)


def reference_topic(content: BagContent, estimate: StampedTrajectory) -> str:
    """Return the topic of true poses that moves with the same frame as an estimate, or ''."""
    found = {
        end: topic
        for end in REFERENCE_TOPICS
        for topic in content.types
        if topic.endswith(f'/{end}')
    }
    camera, odometry = (found.get(end, '') for end in REFERENCE_TOPICS)
    if odometry and estimate.child_frame_id and 'camera' not in estimate.child_frame_id:
        return odometry
    return camera or odometry
