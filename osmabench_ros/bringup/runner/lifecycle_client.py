"""Takes nodes through their lifecycle from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.executors import Executor
from rclpy.node import Node

from osmabench_ros.base.attentive_clock import AttentiveClock
from osmabench_ros.errors import ParticipantError
from osmabench_ros.ros.wire.matched_client import MatchedClient

LAST_WORDS_S = 3.0
MATCH_EVERY_S = 0.02
"""To ask whether DDS has matched, which wakes no executor."""

Check = Callable[[], None]
"""Called again and again while waiting; raises if waiting has become pointless."""


class LifecycleClient:
    """Requests lifecycle transitions, each within `timeout_s`, including the node's start-up."""

    def __init__(self, node: Node, executor: Executor, timeout_s: float) -> None:
        self._node = node
        self._executor = executor
        self._timeout_s = timeout_s

    def bring_up(self, names: list[str], check: Check) -> None:
        """Configure all nodes in order, then activate all; ParticipantError if one refuses."""
        with ExitStack() as stack:
            # DDS matches all of them at once.
            clients = {name: stack.enter_context(closing(self._client(name))) for name in names}
            for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
                for name in names:
                    self._change(name, clients, transition, check)

    def change(self, name: str, transition: int, check: Check) -> None:
        """Take one node through one transition; raises as `bring_up`."""
        with closing(self._client(name)) as client:
            self._change(name, {name: client}, transition, check)

    def _client(self, name: str) -> MatchedClient:
        return MatchedClient(self._node, ChangeState, f'{name}/change_state', name)

    def _change(
        self, name: str, clients: Mapping[str, MatchedClient], transition: int, check: Check
    ) -> None:
        waiting = AttentiveClock()
        # Those of the others go on to match meanwhile.
        while name not in [other for other, client in clients.items() if client.ready()]:
            self._wait(name, waiting, check, MATCH_EVERY_S)
        answer = clients[name].call(ChangeState.Request(transition=Transition(id=transition)))
        while not answer.done():
            self._wait(name, waiting, check)
        if not answer.result().success:
            self._give_time_to_die(check)
            raise ParticipantError(
                f'node "{name}" refused lifecycle transition {transition}; see its log'
            )

    def _wait(
        self, name: str, waiting: AttentiveClock, check: Check, at_most_s: float = 0.05
    ) -> None:
        check()
        self._executor.spin_once(timeout_sec=at_most_s)
        if waiting.now_s() > self._timeout_s:
            raise ParticipantError(
                f'node "{name}" did not change its lifecycle state within {self._timeout_s:g} s; '
                'see its log'
            )

    def _give_time_to_die(self, check: Check) -> None:
        """Wait for the process to end by itself: its own error says more than a timeout."""
        waiting = AttentiveClock()
        while waiting.now_s() < LAST_WORDS_S:
            check()
            self._executor.spin_once(timeout_sec=0.05)
