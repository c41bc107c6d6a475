"""Publishes the serialised messages of a bag as they were published when it was recorded."""

from __future__ import annotations

from collections.abc import Collection

from builtin_interfaces.msg import Time
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock

from osmabench_ros.base import contract as topics
from osmabench_ros.errors import ConfigError, ContractError, suggestion
from osmabench_ros.ros.messages.message_definitions import hash_of, message_class
from osmabench_ros.ros.messages.poses import SECOND_NS
from osmabench_ros.ros.wire.offered_qos import profile_for_playing
from osmabench_ros.ros.wire.qos import clock_profile
from osmabench_ros.sequences.bags.bag import Bag, BagMessage
from osmabench_ros.sequences.bags.bag_storage import BagTopic
from osmabench_ros.sequences.bags.playback import timing_topics


class BagPublishers:
    """A publisher for each chosen topic of a bag (all if empty) that is installed, and a clock."""

    def __init__(self, node: Node, bag: Bag, chosen: Collection[str], *, clock: bool) -> None:
        self._node = node
        self._publishers: dict[str, Publisher] = {}
        self.skipped: dict[str, str] = {}
        """Reasons by topic."""
        for item in self._chosen(bag, chosen):
            if clock or item.topic != topics.CLOCK:
                self._add(bag, item)
        self._clock = None
        if clock and topics.CLOCK not in self._publishers:
            self._clock = node.create_publisher(Clock, topics.CLOCK, clock_profile())
        self._timing = timing_topics(bag, self._publishers)
        self._newest_ns = -1

    @property
    def topics(self) -> frozenset[str]:
        """Names of the topics that are played."""
        return frozenset(self._publishers)

    def publish(self, message: BagMessage) -> None:
        """Publish a message, and the clock before it if its stamp is the newest."""
        if self._clock is not None:
            self._tick(message)
        self._publishers[message.topic].publish(message.data)

    def forget_time(self) -> None:
        """Reset the clock, after going back to the start."""
        self._newest_ns = -1

    def wait_until_delivered(self, timeout_s: float) -> None:
        """Wait until reliable subscribers have received everything, or a timeout."""
        for publisher in self._publishers.values():
            publisher.wait_for_all_acked(Duration(seconds=timeout_s))

    def _chosen(self, bag: Bag, chosen: Collection[str]) -> list[BagTopic]:
        present = bag.connections_by_topic
        names = [self._node.resolve_topic_name(name, only_expand=True) for name in chosen]
        for name in names:
            if name not in present:
                raise ConfigError(f'{bag.path} has no topic "{name}". {suggestion(name, present)}')
        return [present[name] for name in names or sorted(present)]

    def _add(self, bag: Bag, item: BagTopic) -> None:
        try:
            kind = message_class(item.message_type)
        except ContractError as error:
            self._skip(item.topic, str(error))
            return
        installed = hash_of(item.message_type)
        if item.definition and installed and bag.types.type_hash(item.message_type) != installed:
            self._skip(
                item.topic, f'{item.message_type} was recorded in another version than installed'
            )
            return
        self._publishers[item.topic] = self._node.create_publisher(
            kind, item.topic, profile_for_playing(item.topic, item.qos)
        )

    def _skip(self, topic: str, reason: str) -> None:
        self.skipped[topic] = reason
        self._node.get_logger().warning(f'{topic} is not played: {reason}')

    def _tick(self, message: BagMessage) -> None:
        stamp_ns = message.header_stamp_ns if message.topic in self._timing else None
        if stamp_ns is not None and stamp_ns > self._newest_ns:
            self._newest_ns = stamp_ns
            assert self._clock is not None
            seconds, nanoseconds = divmod(stamp_ns, SECOND_NS)
            self._clock.publish(Clock(clock=Time(sec=seconds, nanosec=nanoseconds)))
