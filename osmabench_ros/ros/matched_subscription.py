"""Subscribes to a topic of a stranger with the QoS that the stranger offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.subscription import Subscription

from osmabench_ros.errors import ContractError
from osmabench_ros.ros.checked_subscription import create_checked_subscription
from osmabench_ros.ros.offered_qos import profile_for_recording


class MatchedSubscription:
    """A subscription that is made by `look`, called from a timer, once there is a publisher.

    An OsmabenchError from `callback` is a failure of the node.
    """

    def __init__(
        self,
        node: Node,
        message_type: type[Any],
        type_name: str,
        topic: str,
        callback: Callable[[Any], None],
        max_bytes: int,
    ) -> None:
        self._node, self._type, self._type_name = node, message_type, type_name
        self._topic = node.resolve_topic_name(topic)
        self._callback, self._max_bytes = callback, max_bytes
        self._subscription: Subscription | None = None

    @property
    def matched(self) -> bool:
        """Whether there was a publisher when `look` was called."""
        return self._subscription is not None

    def look(self) -> None:
        """Subscribe if there is a publisher by now; ContractError if it publishes another type."""
        publishers = self._node.get_publishers_info_by_topic(self._topic)
        if self._subscription is not None or not publishers:
            return
        for info in publishers:
            if info.topic_type != self._type_name:
                raise ContractError(
                    f'topic "{self._topic}": node {info.node_name} publishes {info.topic_type}, '
                    f'not {self._type_name}; say so in the configuration of the method'
                )
        self._subscription = create_checked_subscription(
            self._node,
            self._type,
            self._topic,
            self._callback,
            profile_for_recording([info.qos_profile for info in publishers]),
            max_bytes=self._max_bytes,
        )
