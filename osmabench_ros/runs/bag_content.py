"""Content of a bag other than its map: recorder, labels, frames, poses and times.

Trajectories are named by TUM files, topics of bags and chains of TF.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base import contract as topics
from osmabench_ros.errors import ConfigError, SequenceError, errors_as, suggestion
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory, read_tum
from osmabench_ros.geometry.transform_tree import TransformTree
from osmabench_ros.metrics import message_timing
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.semantics.labels import LabelClass, LabelSet, normalised_name
from osmabench_ros.sequences.bags.bag import Bag, open_bag
from osmabench_ros.sequences.bags.bag_storage import is_bag
from osmabench_ros.sequences.topics import (
    TRAJECTORY_TYPES,
    read_transforms,
    stamp_ns_of,
    trajectory_of,
)

RUN_INFO = topics.TYPES[topics.RUN_INFO]
LABEL_INFO = topics.TYPES[topics.LABEL_INFO]
VISION_LABELS = 'vision_msgs/msg/LabelInfo'
CLOCK = topics.TYPES[topics.CLOCK]
_KEPT = (RUN_INFO, LABEL_INFO, VISION_LABELS, topics.TF_TYPE, CLOCK)
_IMAGES = (topics.IMAGE, topics.COMPRESSED_IMAGE)


@dataclass(frozen=True, eq=False)
class TopicTimes:
    """When messages of a topic were recorded, and their header stamps or None; each (N,)."""

    message_type: str
    log_ns: NDArray[np.int64]
    stamps_ns: NDArray[np.int64] | None


@dataclass(frozen=True, eq=False)
class BagContent:
    """A bag after one pass: the times of its topics, and the messages that describe it.

    `kept` has topics and messages by message type, `cut_off` says in words where a damaged bag
    ends, `start_ns` is the first log time.
    """

    topics: Mapping[str, TopicTimes]
    kept: Mapping[str, list[tuple[str, Any]]]
    cut_off: str
    start_ns: int

    @property
    def types(self) -> dict[str, str]:
        """Message types by topic."""
        return {topic: times.message_type for topic, times in self.topics.items()}

    @property
    def run_info(self) -> Any | None:
        """The osmabench_ros/RunInfo of the recording; None if it was no run of ours.

        Of several it is the last.
        """
        found = self.kept.get(RUN_INFO, [])
        return found[-1][1] if found else None

    @cached_property
    def label_set(self) -> LabelSet | None:
        """Label set of the bag's LabelInfo, of either package; None if it has none."""
        for kind in (LABEL_INFO, VISION_LABELS):
            for topic, message in self.kept.get(kind, [])[-1:]:
                with errors_as(SequenceError, f'topic "{topic}"', ConfigError):
                    name = getattr(message, 'name', '') or 'recorded'
                    return LabelSet(name, tuple(_read_classes(message)))
        return None

    @cached_property
    def transforms(self) -> TransformTree:
        """The frames of TF, empty if it was not recorded; ContractError if it is not a tree."""
        return TransformTree(read_transforms(self.kept.get(topics.TF_TYPE, [])))

    @cached_property
    def _clock(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        for topic, times in self.topics.items():
            if times.message_type == CLOCK:
                values = [
                    stamp_ns_of(item.clock) for name, item in self.kept[CLOCK] if name == topic
                ]
                return times.log_ns, np.array(values, np.int64)
        return None

    def timings(self) -> dict[str, message_timing.MessageTiming]:
        """Return the timing of every topic, by name."""
        return {
            topic: message_timing.message_timing(times.log_ns, times.stamps_ns, self._clock)
            for topic, times in sorted(self.topics.items())
        }

    def staleness(self, map_topic: str) -> message_timing.Staleness | None:
        """Return the staleness of the map in seconds of log time, None without images or stamps.

        The images are from the topic with most messages.
        """
        maps = self.topics[map_topic]
        frames = [
            times
            for times in self.topics.values()
            if times.message_type in _IMAGES and times.stamps_ns is not None
        ]
        if not frames or maps.stamps_ns is None:
            return None
        camera = max(frames, key=lambda times: len(times.log_ns))
        assert camera.stamps_ns is not None
        events = [(at, 0, stamp) for at, stamp in _pairs(camera.log_ns, camera.stamps_ns)]
        events += [(at, 1, stamp) for at, stamp in _pairs(maps.log_ns, maps.stamps_ns)]
        meter = message_timing.StalenessMeter()
        for at, is_map, stamp in sorted(events):
            (meter.mapped if is_map else meter.published)(stamp, at / 1e9)
        return meter.result()


def read_content(bag: Bag, types: Collection[str] | None = None) -> BagContent:
    """Read a bag in one pass, or only topics of `types`; raises SequenceError if it is empty."""
    log: dict[str, list[int]] = defaultdict(list)
    stamps: dict[str, list[int | None]] = defaultdict(list)
    found: dict[str, str] = {}
    kept: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    wanted = types and {item.topic for item in bag.connections if item.message_type in types}
    for message in bag.messages(wanted):
        topic = message.topic
        found[topic] = message.message_type
        log[topic].append(message.log_ns)
        stamps[topic].append(message.header_stamp_ns)
        if message.message_type in _KEPT:
            kept[message.message_type].append((topic, message.deserialise()))
    if not log:
        raise SequenceError(
            f'{bag.path} holds no message; {bag.cut_off or "nothing was recorded"}'
        )
    topics = {
        topic: TopicTimes(found[topic], np.array(times, np.int64), _stamps(stamps[topic]))
        for topic, times in log.items()
    }
    start_ns = min(int(times.log_ns.min()) for times in topics.values())
    return BagContent(topics, kept, bag.cut_off, start_ns)


TIMING_SUITE = 'bag_timing'
# Values of `MessageTiming`.
_OF_MAP = ('rate_hz', 'latency_p50_s', 'latency_p95_s')
_OF_TOPIC = (*_OF_MAP, 'longest_interval_s', 'gaps', 'latency_max_s')


def timing_records(content: BagContent, map_topic: str) -> list[MetricRecord]:
    """Return the timing records of the map and of every topic, and the staleness of the map."""
    timings = content.timings()
    staleness = content.staleness(map_topic)
    of_map = timings[map_topic]

    def record(metric: str, value: float | None, count: int, topic: str = '') -> MetricRecord:
        better = metric.endswith(('updates', 'rate_hz', 'messages'))
        return MetricRecord(
            TIMING_SUITE, '', metric, topic, value, n=count, higher_is_better=better
        )

    records = [record('map_updates', of_map.count, of_map.count)]
    records += [record(f'map_{name}', getattr(of_map, name), of_map.count) for name in _OF_MAP]
    for name in ('mean_s', 'max_s'):
        value = None if staleness is None else getattr(staleness, name)
        records.append(record(f'map_staleness_{name}', value, of_map.count))
    for topic, timing in timings.items():
        records.append(record('messages', timing.count, timing.count, topic))
        records += [record(name, getattr(timing, name), timing.count, topic) for name in _OF_TOPIC]
    return records


def _stamps(found: list[int | None]) -> NDArray[np.int64] | None:
    known = [stamp for stamp in found if stamp is not None]
    return np.array(known, np.int64) if len(known) == len(found) else None


def _pairs(log_ns: NDArray[np.int64], stamps_ns: NDArray[np.int64]) -> list[tuple[int, int]]:
    return list(zip(log_ns.tolist(), stamps_ns.tolist(), strict=True))


def _read_classes(message: Any) -> Iterator[LabelClass]:
    """Yield the classes of a LabelInfo, of this package or of vision_msgs."""
    for item in getattr(message, 'classes', ()):
        yield LabelClass(int(item.id), normalised_name(item.name), bool(item.structure))
    for item in getattr(message, 'class_map', ()):
        yield LabelClass(int(item.class_id), normalised_name(item.class_name))


TF_PREFIX = '/tf:'
# The topics of the bridge, below any namespace.
REFERENCE_TOPICS = (topics.CAMERA_POSE, topics.ODOMETRY)


def read_trajectory(name: str) -> StampedTrajectory:
    """Return a trajectory by its name: a TUM file, ``BAG:TOPIC`` or ``BAG:/tf:PARENT.CHILD``."""
    path, topic = _split_name(name)
    if topic:
        with open_bag(path) as bag:
            return bag_trajectory(
                bag, read_content(bag, (*TRAJECTORY_TYPES, topics.TF_TYPE)), topic
            )
    if is_bag(path):
        with open_bag(path) as bag:
            found = pose_topics({item.topic: item.message_type for item in bag.connections})
        problem = f'{path} is a bag; name a topic of it, such as {path}:{(found or ["/odom"])[0]}'
        raise ConfigError(f'{problem}. {suggestion("", [*found, "/tf:PARENT.CHILD"])}')
    return read_tum(path)


def _split_name(name: str) -> tuple[Path, str]:
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
    """Return the trajectory of a topic, or of a TF chain ``/tf:PARENT.CHILD``.

    PARENT ends at the first dot.
    """
    topic = f'/{topic.lstrip("/")}'
    if topic.startswith(TF_PREFIX):
        parent, _, child = topic.removeprefix(TF_PREFIX).partition('.')
        if not parent or not child:
            raise ConfigError(f'"{topic}" names no frames; write {TF_PREFIX}PARENT.CHILD')
        return content.transforms.trajectory(parent.lstrip('/'), child.lstrip('/'))
    kind = content.types.get(topic, '')
    if kind not in TRAJECTORY_TYPES:
        problem = f'holds {kind}, which are not poses' if kind else 'is not in the bag'
        raise ConfigError(
            f'topic "{topic}" {problem}. {suggestion(topic, pose_topics(content.types))}'
        )
    messages = (message.deserialise() for message in bag.messages((topic,)))
    return trajectory_of(messages, kind, topic)


def reference_topic(content: BagContent, estimate: StampedTrajectory) -> str:
    """Return the topic with true poses of the camera, of the base for other frames, '' if none.

    A camera has "camera" in its frame id; poses without a frame id are taken for its poses.
    """
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
