"""Serialised subscriptions to the topics to record."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile

from osmabench_ros.base.contract import TF_STATIC
from osmabench_ros.errors import ContractError
from osmabench_ros.ros.messages.message_definitions import (
    definition_of,
    has_header,
    hash_of,
    message_class,
)
from osmabench_ros.ros.wire.qos import (
    offered_from_profile,
    profile_for_recording,
    repeated_messages,
)
from osmabench_ros.sequences.bags.bag_types import stamp_at
from osmabench_ros.sequences.bags.recording_report import RecordedTopic

HEADER_PLACE = 4
TF_STATIC_REPEATED = 100
"""Every publisher of static transforms has its own, and a subscriber cannot separate them."""

Sink = Callable[[str, int, int, bytes], None]
"""Gets topic, time of receipt, header stamp (or that time) and data."""


@dataclass(frozen=True)
class TopicChoice:
    """Which topics to record: absolute names, or all not hidden; `exclude` is searched for."""

    names: tuple[str, ...]
    every: bool = False
    exclude: str = ''

    def includes(self, topic: str) -> bool:
        """Return whether a topic is to be recorded."""
        hidden = any(part.startswith('_') for part in topic.split('/'))
        chosen = topic in self.names or (self.every and not hidden)
        return chosen and not (self.exclude and re.search(self.exclude, topic))


def steady_time_ns() -> Callable[[], int]:
    """Return a clock that starts at system time and stays steady when that is set."""
    begin_ns = time.time_ns() - time.monotonic_ns()
    return lambda: begin_ns + time.monotonic_ns()


class TopicRecorder:
    """Subscribes to chosen topics, also to those that come later; announces, then hands on."""

    def __init__(
        self,
        node: Node,
        choice: TopicChoice,
        announce: Callable[[RecordedTopic], None],
        sink: Sink,
    ) -> None:
        self._node, self._choice = node, choice
        self._announce, self._sink = announce, sink
        self._clock_ns = steady_time_ns()
        self.topics: dict[str, RecordedTopic] = {}
        self.received: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        """Messages that the middleware says it lost."""
        self.skipped: dict[str, str] = {}
        """Reasons by topic."""

    def subscribe(self, topic: str, kind: str, profile: QoSProfile, *, latched: bool) -> None:
        """Subscribe to a topic of the contract, whether or not it exists yet."""
        if topic not in self.topics and self._choice.includes(topic):
            self._subscribe(topic, kind, profile, repeat=1 if latched else 0)

    def discover(self) -> None:
        """Subscribe to new topics, and note new publishers."""
        for topic, kinds in self._node.get_topic_names_and_types():
            if not self._choice.includes(topic) or topic in self.skipped:
                continue
            infos = self._node.get_publishers_info_by_topic(topic)
            if not infos:
                continue
            if topic in self.topics:
                self._update(topic, [info.qos_profile for info in infos])
            elif len(kinds) > 1:
                self._skip(topic, f'it has several types: {", ".join(kinds)}')
            else:
                profiles = [info.qos_profile for info in infos]
                try:
                    self._subscribe(topic, kinds[0], profile_for_recording(profiles))
                except ContractError as error:
                    self._skip(topic, str(error))
                else:
                    self._update(topic, profiles)

    def _subscribe(self, topic: str, kind: str, profile: QoSProfile, *, repeat: int = 0) -> None:
        recorded = RecordedTopic(topic, kind, definition_of(kind), hash_of(kind), (), repeat)
        self.topics[topic] = recorded
        self._announce(recorded)
        self._node.create_subscription(
            message_class(kind),
            topic,
            self._listener(topic, stamped=has_header(kind)),
            profile,
            raw=True,
            event_callbacks=SubscriptionEventCallbacks(
                message_lost=lambda event: self._count_lost(topic, event),
                incompatible_qos=lambda event: self._warn(topic, event),
            ),
        )
        self._node.get_logger().info(f'recording {topic} ({kind})')

    def _listener(self, topic: str, *, stamped: bool) -> Callable[[bytes], None]:
        def on_message(data: bytes) -> None:
            log_ns = self._clock_ns()
            stamp_ns = stamp_at(data, HEADER_PLACE) if stamped else None
            self.received[topic] += 1
            # MCAP has no negative times.
            publish_ns = stamp_ns if stamp_ns is not None and stamp_ns >= 0 else log_ns
            self._sink(topic, log_ns, publish_ns, data)

        guard: Callable[[Any], Any] = getattr(self._node, 'guarded', lambda function: function)
        return guard(on_message)  # type: ignore[no-any-return]

    def _update(self, topic: str, profiles: Sequence[QoSProfile]) -> None:
        """Update the QoS of the publishers, including those that left."""
        before = self.topics[topic]
        offered = tuple(dict.fromkeys([*before.qos, *map(offered_from_profile, profiles)]))
        if offered == before.qos:
            return
        latched = repeated_messages(offered)
        repeat = TF_STATIC_REPEATED if topic == TF_STATIC else max(before.repeat, latched)
        self.topics[topic] = RecordedTopic(
            topic, before.message_type, before.definition, before.type_hash, offered, repeat
        )
        self._announce(self.topics[topic])

    def _count_lost(self, topic: str, event: Any) -> None:
        self.lost[topic] += event.total_count_change
        self._node.get_logger().warning(
            f'{topic}: the middleware lost {event.total_count_change} messages'
        )

    def _warn(self, topic: str, event: Any) -> None:
        del event
        self._node.get_logger().warning(
            f'{topic}: a publisher offers less than this recorder asks for; '
            'its messages are not recorded. Start the recorder after that publisher'
        )

    def _skip(self, topic: str, reason: str) -> None:
        self.skipped[topic] = reason
        self._node.get_logger().warning(f'{topic} is not recorded: {reason}')
