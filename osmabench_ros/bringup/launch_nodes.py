"""Nodes of this package as actions of `ros2 launch`, each taken through its lifecycle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from launch.actions import EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.launch_description_entity import LaunchDescriptionEntity
from launch_ros.actions import LifecycleNode

from launch import LaunchContext
from osmabench_ros.bringup.isolation import launch_environment
from osmabench_ros.bringup.launch_domain import claim_nodes
from osmabench_ros.bringup.launch_interrupts import error_if_interrupted, interrupts
from osmabench_ros.bringup.launch_lifecycle import bring_up
from osmabench_ros.bringup.node_spec import PACKAGE, NodeSpec
from osmabench_ros.errors import ParticipantError, RunError
from osmabench_ros.ros.token_variable import VARIABLE, new_token, token_of_shell

Verdict = Callable[[int], list[LaunchDescriptionEntity]]
"""Gets the exit code of the node that ends the run; returns what to do, or raises."""

STOP_S = '30'
"""A recorder may have a map or a bag to finish when it is asked to end."""


class ManagedNodes:
    """Starts nodes, configures and activates them, and watches that none ends early.

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
        self._specs = specs
        self._verdict = verdict
        self._namespace = namespace
        self._remappings = list((remappings or {}).items())
        self._over = False
        # A node alone has nobody to be told from strangers by.
        self._token = token_of_shell() or (new_token() if len(specs) > 1 else '')

    def actions(self) -> list[LaunchDescriptionEntity]:
        """Return everything that a launch description needs."""
        # Ctrl-C is how a bag, a bridge or a player ends; not so what was to end with a result.
        owed = any(spec.ends_run and spec.parameters.get('exit_when_done') for spec in self._specs)
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
            parameters=[dict(spec.parameters)],
            remappings=self._remappings,
            additional_env={**launch_environment(), VARIABLE: self._token},
            sigterm_timeout=STOP_S,
            output='screen',
        )

    def _exit_handler(self, spec: NodeSpec, node: LifecycleNode) -> RegisterEventHandler:
        def on_exit(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
            # A terminal tells Ctrl-C to nodes too, and they may end before launch comes to it.
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
