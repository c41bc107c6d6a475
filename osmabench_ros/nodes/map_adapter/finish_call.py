"""Asks a stack to complete its map, by a service of the stack."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from osmabench_ros.errors import ConfigError, MissingDependencyError, ParticipantError
from osmabench_ros.ros.messages.message_definitions import interface_class


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
