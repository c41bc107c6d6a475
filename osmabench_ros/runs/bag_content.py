"""Content of a bag other than its map: recorder, labels, frames, poses and times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import COMPRESSED_IMAGE, IMAGE, TF_TYPE, TYPES
from osmabench_ros.errors import ConfigError, SequenceError, errors_as
from osmabench_ros.geometry.transform_tree import TransformTree
from osmabench_ros.metrics.message_timing import (
    MessageTiming,
    Staleness,
    StalenessMeter,
    message_timing,
)
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.semantics.labels import LabelClass, LabelSet, normalised_name
from osmabench_ros.sequences.bags.bag import Bag
from osmabench_ros.sequences.pose_topics import stamp_ns_of, transform_tree_of

RUN_INFO, LABEL_INFO = TYPES[topics.RUN_INFO], TYPES[topics.LABEL_INFO]
VISION_LABELS = 'vision_msgs/msg/LabelInfo'
CLOCK = TYPES[topics.CLOCK]
_KEPT = (RUN_INFO, LABEL_INFO, VISION_LABELS, TF_TYPE, CLOCK)
_IMAGES = (IMAGE, COMPRESSED_IMAGE)


@dataclass(frozen=True, eq=False)
class TopicTimes:
    """When messages of a topic were recorded, and their header stamps or None; each (N,)."""

    message_type: str
    log_ns: NDArray[np.int64]
    stamps_ns: NDArray[np.int64] | None


@dataclass(frozen=True, eq=False)
class BagContent:
    """A bag after one pass: the times of its topics, and the messages that describe it."""

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
        """The osmabench_ros/RunInfo of the recording; None if it was no run of the benchmark."""
        found = self.kept.get(RUN_INFO, [])
        return found[-1][1] if found else None

    @cached_property
    def label_set(self) -> LabelSet | None:
        """Label set of the bag's LabelInfo, of either package; None if it has none."""
        for kind, classes in ((LABEL_INFO, _own_classes), (VISION_LABELS, _vision_classes)):
            for topic, message in self.kept.get(kind, [])[-1:]:
                with errors_as(SequenceError, f'topic "{topic}"', ConfigError):
                    name = getattr(message, 'name', '') or 'recorded'
                    found = sorted(classes(message), key=lambda item: item.id)
                    return LabelSet(name, tuple(found))
        return None

    @cached_property
    def transforms(self) -> TransformTree:
        """The frames of TF, empty if it was not recorded; ContractError if it is not a tree."""
        return transform_tree_of(self.kept.get(TF_TYPE, []))

    @cached_property
    def _clock(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        for topic, times in self.topics.items():
            if times.message_type == CLOCK:
                values = [
                    stamp_ns_of(item.clock) for name, item in self.kept[CLOCK] if name == topic
                ]
                return times.log_ns, np.array(values, np.int64)
        return None

    def timings(self) -> dict[str, MessageTiming]:
        """Return the timing of every topic, by name."""
        return {
            topic: message_timing(times.log_ns, times.stamps_ns, self._clock)
            for topic, times in sorted(self.topics.items())
        }

    def staleness(self, map_topic: str) -> Staleness | None:
        """Return the staleness of the map; None without images or stamped maps."""
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
        meter = StalenessMeter()
        for at, is_map, stamp in sorted(events):
            (meter.mapped if is_map else meter.published)(stamp, at / 1e9)
        return meter.result()


def read_content(bag: Bag, types: Collection[str] | None = None) -> BagContent:
    """Read a bag in one pass, or only topics of some types; raises SequenceError if empty."""
    log: dict[str, list[int]] = defaultdict(list)
    stamps: dict[str, list[int | None]] = defaultdict(list)
    found: dict[str, str] = {}
    kept: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    wanted = None
    if types is not None:
        wanted = {item.topic for item in bag.connections if item.message_type in types}
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
_OF_MAP = {'rate_hz': True, 'latency_p50_s': False, 'latency_p95_s': False}
_OF_TOPIC = {
    'rate_hz': True,
    'longest_interval_s': False,
    'gaps': False,
    'latency_p50_s': False,
    'latency_p95_s': False,
    'latency_max_s': False,
}
"""Values of the timing of a topic, and whether higher is better."""


def timing_records(content: BagContent, map_topic: str) -> list[MetricRecord]:
    """Return the timing records of the map and of every topic, and the staleness of the map."""
    timings, staleness = content.timings(), content.staleness(map_topic)
    of_map = timings[map_topic]
    records = [_record('map_updates', of_map.count, '', of_map.count, True)]
    records += _records(of_map, _OF_MAP, '', 'map_')
    for metric in ('mean_s', 'max_s'):
        value = None if staleness is None else getattr(staleness, metric)
        records.append(_record(f'map_staleness_{metric}', value, '', of_map.count, False))
    for topic, timing in timings.items():
        records.append(_record('messages', timing.count, topic, timing.count, True))
        records += _records(timing, _OF_TOPIC, topic)
    return records


def _records(
    timing: MessageTiming, metrics: Mapping[str, bool], topic: str, prefix: str = ''
) -> list[MetricRecord]:
    return [
        _record(prefix + metric, getattr(timing, metric), topic, timing.count, better)
        for metric, better in metrics.items()
    ]


def _record(
    metric: str, value: float | None, topic: str, count: int, better: bool
) -> MetricRecord:
    return MetricRecord(TIMING_SUITE, '', metric, topic, value, n=count, higher_is_better=better)


def _stamps(found: list[int | None]) -> NDArray[np.int64] | None:
    known = [stamp for stamp in found if stamp is not None]
    return np.array(known, np.int64) if len(known) == len(found) else None


def _pairs(log_ns: NDArray[np.int64], stamps_ns: NDArray[np.int64]) -> list[tuple[int, int]]:
    return list(zip(log_ns.tolist(), stamps_ns.tolist(), strict=True))


def _own_classes(message: Any) -> list[LabelClass]:
    return [
        LabelClass(int(item.id), normalised_name(item.name), bool(item.structure))
        for item in message.classes
    ]


def _vision_classes(message: Any) -> list[LabelClass]:
    return [
        LabelClass(int(item.class_id), normalised_name(item.class_name))
        for item in message.class_map
    ]
