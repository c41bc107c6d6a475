"""Nodes of this package as actions of `ros2 launch`, with lifecycle management."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from launch.actions import EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.logging import get_logger
from launch_ros.actions import LifecycleNode
from launch_ros.ros_adapters import get_ros_node
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState

from launch import LaunchContext
from osmabench_ros.bringup.launching.launch_domain import claim_nodes
from osmabench_ros.bringup.launching.launch_interrupts import error_if_interrupted, interrupts
from osmabench_ros.bringup.spec.isolation import launch_environment
from osmabench_ros.bringup.spec.node_spec import PACKAGE, NodeSpec
from osmabench_ros.errors import ParticipantError, RunError
from osmabench_ros.ros.wire.matched_client import MatchedClient

LOOK_S = 0.5
"""How often to look whether the launch has been shut down meanwhile."""
READY_PERIOD_S = 0.05


def bring_up(node: LifecycleNode) -> OpaqueFunction:
    """Return the action that configures and then activates a node started before it.

    launch_ros activates at an event that is volatile: a launch that has not discovered the node
    yet never gets to know, and the node stays inactive for ever. The service that was asked
    answers.
    """

    def start(context: LaunchContext) -> None:
        name = node.node_name
        client = MatchedClient(get_ros_node(context), ChangeState, f'{name}/change_state', name)
        done = context.asyncio_loop.run_in_executor(None, _bring_up, node, client, context)
        context.add_completion_future(done)

    return OpaqueFunction(function=start)


def _bring_up(node: LifecycleNode, client: MatchedClient, context: LaunchContext) -> None:
    """Request the transitions one after the other, in a thread, until the launch shuts down."""
    try:
        for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
            request = ChangeState.Request(transition=Transition(id=transition))
            if not _ask(client, request, context):
                return
    except Exception as error:
        # At a shutdown the client's node is destroyed under it.
        if not context.is_shutdown:
            get_logger(__name__).error(f'{node.node_name} cannot be brought up: {error}')


def _ask(client: MatchedClient, request: ChangeState.Request, context: LaunchContext) -> bool:
    """Request a transition; return whether it succeeded. A node that refuses logs why and ends."""
    while not client.ready():
        if context.is_shutdown:
            return False
        time.sleep(READY_PERIOD_S)
    answered = threading.Event()
    future = client.call(request)
    future.add_done_callback(lambda _future: answered.set())
    while not answered.wait(LOOK_S):
        if context.is_shutdown:
            return False
    return bool(future.result().success)


Verdict = Callable[[int], list[LaunchDescriptionEntity]]
"""Takes the exit code of the node that ends the run; returns actions, or raises."""

STOP_S = '30'
"""A recorder may have a map or a bag to finish when it is asked to end."""


class ManagedNodes:
    """Starts, configures and activates nodes, and fails if one ends early.

    `ros2 launch` returns 0 whatever its nodes return, unless a handler raises. So this one raises
    when a node ends before the one whose end is the end of the run, on whose exit code the verdict
    decides. The namespace is also that of their topics; remappings are from the names of the topic
    contract.
    """

    def __init__(
        self,
        specs: Sequence[NodeSpec],
        verdict: Verdict,
        *,
        namespace: str = '',
        remappings: Mapping[str, str] | None = None,
    ) -> None:
        self._specs, self._verdict, self._namespace = specs, verdict, namespace
        self._remappings = list((remappings or {}).items())
        self._over = False
        self._folder = TemporaryDirectory(prefix='osmabench_launch_')

    def actions(self) -> list[LaunchDescriptionEntity]:
        """Return everything that a launch description needs."""
        # Ctrl-C is how a bag, a bridge or a player ends; not so what was to end with a result.
        owed = any(
            spec.ends_run and getattr(spec.settings, 'exit_when_done', False)
            for spec in self._specs
        )
        actions: list[LaunchDescriptionEntity] = (
            error_if_interrupted(lambda: self._over) if owed else []
        )
        actions.append(OpaqueFunction(function=self._claim))
        for spec in self._specs:
            node = self._node(spec)
            actions += [self._exit_handler(spec, node), node, bring_up(node)]
        return actions

    def _claim(self, context: LaunchContext) -> None:
        claim_nodes(context, [spec.name for spec in self._specs], self._namespace)

    def _node(self, spec: NodeSpec) -> LifecycleNode:
        return LifecycleNode(
            package=PACKAGE,
            executable=spec.executable,
            name=spec.name,
            namespace=self._namespace,
            parameters=[spec.parameters(Path(self._folder.name))],
            remappings=self._remappings,
            additional_env=launch_environment(),
            sigterm_timeout=STOP_S,
            output='screen',
        )

    def _exit_handler(self, spec: NodeSpec, node: LifecycleNode) -> RegisterEventHandler:
        def on_exit(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
            # A terminal sends Ctrl-C to nodes too, and they may end before launch handles it.
            if self._over or context.is_shutdown or interrupts.heard:
                return []
            self._over = True
            if not spec.ends_run:
                raise ParticipantError(
                    f'node "{spec.name}" ended before the run with exit code {event.returncode}'
                )
            return self._verdict(event.returncode)

        return RegisterEventHandler(OnProcessExit(target_action=node, on_exit=on_exit))


def ended(exit_code: int) -> list[LaunchDescriptionEntity]:
    """End the launch with its last node; raise RunError if that failed."""
    if exit_code:
        raise RunError(f'the run ended with exit code {exit_code}; see the messages above')
    return [EmitEvent(event=Shutdown(reason='the run is over'))]
