"""Asks a stack to complete its map, through whatever service it has for that."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from osmabench_ros.errors import ConfigError, MissingDependencyError, ParticipantError
from osmabench_ros.ros.interfaces import interface_class


class FinishCall:
    """One call of a service, without waiting in a callback.

    From the first look on, it has `timeout_s` to appear and to answer. Raises
    MissingDependencyError if the type is not installed, ConfigError if the request has no such
    field.
    """

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
        """Go on with the call, and return whether it was answered.

        Raises ParticipantError if there is no service or answer in time, or it says that it
        failed.
        """
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
        """Forget the call; an answer that comes later is not looked at."""
        self._node.destroy_client(self._client)
