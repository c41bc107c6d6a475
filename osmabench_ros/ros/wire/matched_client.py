"""What a command talks to nodes with: an executor, and a client that waits until it is heard."""

from __future__ import annotations

import time
from typing import Any

from lifecycle_msgs.srv import GetState
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future

from osmabench_ros.base.processes import signals_held


class CommandExecutor(SingleThreadedExecutor):
    """Raises what a signal handler raises after `spin_once`, never during it.

    rclpy's C code calls Python to make messages. An exception that a handler raises there comes
    out as another one, or not at all.
    """

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for a callback and run it; signals wait until then."""
        with signals_held():
            super().spin_once(timeout_sec)


ASK_AGAIN_S = 2.0
"""How long a probe may stay unanswered; a busy node loses nothing by being asked twice."""


class MatchedClient:
    """Client of a service with side effects, so that a request must not be repeated.

    DDS matches the ends of a service one after the other, each side on its own: the client may
    know the server before the server knows the client, and then a request, or the answer to it, is
    lost silently. So a second client, made after the first, asks the lifecycle node `server` for
    its state until it is answered. Discovery keeps the order in which a participant made its
    endpoints: where the later one is known, the earlier one is.
    """

    def __init__(self, node: Node, kind: type[Any], name: str, server: str) -> None:
        self._node = node
        self._client = node.create_client(kind, name)
        self._probe = node.create_client(GetState, f'{server}/get_state')
        self._probed: Future | None = None
        self._probed_s = 0.0
        self._matched = False

    def ready(self) -> bool:
        """Continue the matching; return whether a request will arrive and be answered."""
        if self._matched:
            return True
        if not (self._client.service_is_ready() and self._probe.service_is_ready()):
            return False
        if self._probed is not None and self._probed.done():
            self._matched = True
        elif self._probed is None or time.monotonic() - self._probed_s > ASK_AGAIN_S:
            self._probed_s = time.monotonic()
            self._probed = self._probe.call_async(GetState.Request())
        return self._matched

    def call(self, request: Any) -> Future:
        """Send a request; to be called once `ready`."""
        return self._client.call_async(request)

    def close(self) -> None:
        """Destroy the client."""
        for client in (self._client, self._probe):
            self._node.destroy_client(client)
