"""Takes nodes through their lifecycle from outside."""

from __future__ import annotations

import time
from collections.abc import Callable

from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.client import Client
from rclpy.executors import Executor
from rclpy.node import Node

from osmabench_ros.errors import ParticipantError

LOST_AFTER_S = 3.0
"""Without an answer for so long, the node is asked for its state."""

GOALS = {
    Transition.TRANSITION_CONFIGURE: State.PRIMARY_STATE_INACTIVE,
    Transition.TRANSITION_ACTIVATE: State.PRIMARY_STATE_ACTIVE,
    Transition.TRANSITION_DEACTIVATE: State.PRIMARY_STATE_INACTIVE,
    Transition.TRANSITION_CLEANUP: State.PRIMARY_STATE_UNCONFIGURED,
    Transition.TRANSITION_UNCONFIGURED_SHUTDOWN: State.PRIMARY_STATE_FINALIZED,
    Transition.TRANSITION_INACTIVE_SHUTDOWN: State.PRIMARY_STATE_FINALIZED,
    Transition.TRANSITION_ACTIVE_SHUTDOWN: State.PRIMARY_STATE_FINALIZED,
}

Check = Callable[[], None]
"""Called again and again while waiting; raises if waiting has become pointless."""


class LifecycleClient:
    """Asks lifecycle nodes to change their state.

    Parameters
    ----------
    node : Node
        Client node.
    executor : Executor
        Spins the client node.
    timeout_s : float
        For one transition, the start of the process included.
    """

    def __init__(self, node: Node, executor: Executor, timeout_s: float) -> None:
        self._node = node
        self._executor = executor
        self._timeout_s = timeout_s

    def bring_up(self, names: list[str], check: Check) -> None:
        """Configure all nodes, then activate all.

        Parameters
        ----------
        names : list of str
            Node names in order.
        check : callable
            Raises if one of the processes has died.

        Raises
        ------
        ParticipantError
            If a node does not answer in time or refuses.
        """
        for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
            for name in names:
                self.change(name, transition, check)

    def change(self, name: str, transition: int, check: Check) -> None:
        """Take one node through one transition; raises as `bring_up`."""
        client = self._node.create_client(ChangeState, f'{name}/change_state')
        deadline = time.monotonic() + self._timeout_s
        try:
            while not client.service_is_ready():
                self._wait(name, deadline, check)
            request = ChangeState.Request(transition=Transition(id=transition))
            if not self._call(client, request, name, deadline, check):
                self._give_time_to_die(check)
                raise ParticipantError(
                    f'node "{name}" refused lifecycle transition {transition}; see its log'
                )
        finally:
            self._node.destroy_client(client)

    def _call(
        self,
        client: Client,
        request: ChangeState.Request,
        name: str,
        deadline: float,
        check: Check,
    ) -> bool:
        """Return whether the node did it; an answer that is lost on the way is looked up.

        DDS may match the two ends of a service one after the other, so that a request arrives and
        its answer does not.
        """
        future = client.call_async(request)
        asked_s = time.monotonic()
        while not future.done():
            self._wait(name, deadline, check)
            if time.monotonic() - asked_s > LOST_AFTER_S:
                asked_s = time.monotonic()
                if self._state(name, deadline, check) == GOALS[request.transition.id]:
                    return True
        return bool(future.result().success)

    def _state(self, name: str, deadline: float, check: Check) -> int | None:
        """Return the state a node says it is in, None if it does not answer soon."""
        client = self._node.create_client(GetState, f'{name}/get_state')
        until_s = min(deadline, time.monotonic() + LOST_AFTER_S)
        try:
            while not client.service_is_ready() and time.monotonic() < until_s:
                self._wait(name, deadline, check)
            future = client.call_async(GetState.Request())
            while not future.done() and time.monotonic() < until_s:
                self._wait(name, deadline, check)
            return int(future.result().current_state.id) if future.done() else None
        finally:
            self._node.destroy_client(client)

    def _wait(self, name: str, deadline: float, check: Check) -> None:
        check()
        self._executor.spin_once(timeout_sec=0.05)
        if time.monotonic() > deadline:
            raise ParticipantError(
                f'node "{name}" did not change its lifecycle state within {self._timeout_s:g} s; '
                'see its log'
            )

    def _give_time_to_die(self, check: Check) -> None:
        """Wait for the process to tell its own reason, which is better than ours."""
        deadline = time.monotonic() + 3.0
        while time.monotonic() < deadline:
            check()
            self._executor.spin_once(timeout_sec=0.05)
