"""How a command talks to nodes: clients that wait for their servers, and the lifecycle."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from osmabench_ros.base.processes import AttentiveClock, signals_held
from osmabench_ros.errors import ParticipantError


class CommandExecutor(SingleThreadedExecutor):
    """Raises the exception of a signal handler after `spin_once`, never during it.

    rclpy's C code calls Python to make messages. An exception that a handler raises there comes
    out as another one, or not at all.
    """

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for a callback and run it; signals wait until then."""
        with signals_held():
            super().spin_once(timeout_sec)


@contextmanager
def command_node(
    name: str, *, domain: int | None = None, arguments: Sequence[str] = (), **options: Any
) -> Iterator[tuple[Node, CommandExecutor]]:
    """Yield a node in a separate ROS context, and an executor that spins it.

    Ctrl-C stays Python's, so that it ends the command and through it all that it has started.
    """
    context = rclpy.Context()
    rclpy.init(
        context=context,
        args=list(arguments),
        domain_id=domain,
        signal_handler_options=SignalHandlerOptions.NO,
    )
    try:
        node = Node(name, context=context, **options)
        executor = CommandExecutor(context=context)
        executor.add_node(node)
        try:
            yield node, executor
        finally:
            # Otherwise others see it until Python collects its garbage.
            executor.shutdown()
            node.destroy_node()
    finally:
        context.try_shutdown()


# How long a probe may stay unanswered; a busy node loses nothing by being asked twice.
ASK_AGAIN_S = 2.0


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


LAST_WORDS_S = 3.0
# To ask whether DDS has matched, which wakes no executor.
MATCH_EVERY_S = 0.02

# Called again and again while waiting; raises if waiting has become pointless.
Check = Callable[[], None]


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
            what = f'refused lifecycle transition {transition}'
            raise ParticipantError(f'node "{name}" {what}; see its log')

    def _wait(
        self, name: str, waiting: AttentiveClock, check: Check, at_most_s: float = 0.05
    ) -> None:
        check()
        self._executor.spin_once(timeout_sec=at_most_s)
        if waiting.now_s() > self._timeout_s:
            what = f'did not change its lifecycle state within {self._timeout_s:g} s'
            raise ParticipantError(f'node "{name}" {what}; see its log')

    def _give_time_to_die(self, check: Check) -> None:
        """Wait for the process to end by itself: its own error says more than a timeout."""
        waiting = AttentiveClock()
        while waiting.now_s() < LAST_WORDS_S:
            check()
            self._executor.spin_once(timeout_sec=0.05)
