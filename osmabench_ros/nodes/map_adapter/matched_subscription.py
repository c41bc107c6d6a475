"""Subscribes to a foreign topic with the QoS that its publisher offers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.subscription import Subscription

from osmabench_ros.errors import ContractError
from osmabench_ros.ros.wire.checked_subscription import create_checked_subscription
from osmabench_ros.ros.wire.offered_qos import profile_for_recording

_TIME = 'builtin_interfaces/Time'


def content_digest(message: Any) -> bytes:
    """Return a digest of all fields but times, equal for the same map published again."""
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, message)
    return digest.digest()


def _feed(digest: Any, value: Any) -> None:
    if hasattr(value, 'get_fields_and_field_types'):
        for name, kind in value.get_fields_and_field_types().items():
            if kind != _TIME:
                _feed(digest, getattr(value, name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            _feed(digest, item)
    else:
        # Arrays of numbers, and with them nearly all bytes of a map, are buffers.
        digest.update(value if hasattr(value, 'itemsize') else repr(value).encode())


class MatchedSubscription:
    """A subscription that `look`, called by a timer, makes once there is a publisher."""

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
