"""The ends of a foreign stack: the topic with its map, and the service that finishes it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from rclpy.subscription import Subscription

from osmabench_ros.errors import (
    ConfigError,
    ContractError,
    MissingDependencyError,
    ParticipantError,
)
from osmabench_ros.ros.messages.message_definitions import interface_class
from osmabench_ros.ros.wire.checked_subscription import create_checked_subscription
from osmabench_ros.ros.wire.qos import profile_for_recording

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


class FinishCall:
    """One call of a service without waiting in a callback; it has `timeout_s` to answer."""

    def __init__(
        self,
        node: Node,
        service: str,
        type_name: str,
        request: Mapping[str, Any],
        timeout_s: float,
    ) -> None:
        kind = interface_class(type_name)
        if kind is None:
            raise MissingDependencyError(
                f'service "{service}" has type {type_name}, which is not installed; build or '
                'source the package that holds it'
            )
        try:
            self._request = kind.Request(**request)
        except (AssertionError, TypeError, AttributeError) as error:
            raise ConfigError(f'service "{service}": the request is wrong: {error}') from error
        self._node, self._service, self._timeout_s = node, service, timeout_s
        self._client = node.create_client(kind, service)
        self._answer: Any = None
        self._started_s: float | None = None
        self.answered = False
        """Whether the stack has answered, and did not say that it failed."""

    def done(self) -> bool:
        """Go on with the call; return whether it was answered, ParticipantError if it failed."""
        if self._started_s is None:
            self._started_s = time.monotonic()
        if self._answer is None and self._client.service_is_ready():
            self._answer = self._client.call_async(self._request)
        if self._answer is not None and self._answer.done():
            response = self._answer.result()
            if getattr(response, 'success', True) is False:
                reason = getattr(response, 'message', '') or 'no reason given'
                raise ParticipantError(f'service "{self._service}" failed: {reason}')
            self.close()
            self.answered = True
            return True
        if time.monotonic() - self._started_s > self._timeout_s:
            what = 'is not there' if self._answer is None else 'gave no answer'
            raise ParticipantError(
                f'service "{self._service}" {what} within {self._timeout_s:g} s; see the log of '
                'the stack'
            )
        return False

    def close(self) -> None:
        """Drop the call; a later answer is ignored."""
        self._node.destroy_client(self._client)
