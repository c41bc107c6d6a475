"""Nodes of this package, and RViz, as actions of `ros2 launch`; nodes start by themselves."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch.actions import EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.launch_description_entity import LaunchDescriptionEntity
from launch_ros.actions import Node

from launch import LaunchContext
from osmabench_ros.base.configuration import config_path
from osmabench_ros.bringup import isolation
from osmabench_ros.bringup.definition import PACKAGE, NodeSpec
from osmabench_ros.bringup.launching.launch_arguments import AUTO_DOMAIN, DOMAIN_VARIABLE
from osmabench_ros.bringup.launching.launch_interrupts import error_if_interrupted, interrupts
from osmabench_ros.errors import MissingDependencyError, ParticipantError, RunError
from osmabench_ros.ros.node.parameters import AUTOSTART

# Takes the exit code of the node that ends the run; returns actions, or raises.
Verdict = Callable[[int], list[LaunchDescriptionEntity]]

# A recorder may have a map or a bag to finish when it is asked to end.
STOP_S = '30'


_held: isolation.Claims = {}


def claim_nodes(context: LaunchContext, names: Iterable[str], namespace: str = '') -> None:
    """Make sure that no other launch has nodes of some names in its domain; or RunError."""
    domain = int(context.environment.get(DOMAIN_VARIABLE) or 0)
    wanted = [isolation.full_name(namespace, name) for name in names]
    others = interrupts.cut_off(lambda: isolation.claim_nodes(_held, domain, wanted))
    if others:
        space = ', namespace:=NAME' if 'namespace' in context.launch_configurations else ''
        raise RunError(
            f'ROS domain {domain} has {", ".join(others)} of another launch already. End that '
            f'one, or keep apart by domain:={AUTO_DOMAIN}{space} or another {DOMAIN_VARIABLE}. '
            '(A node that was killed is seen for some 20 s more.)'
        )


def launch_nodes(
    specs: Sequence[NodeSpec],
    verdict: Verdict,
    *,
    namespace: str = '',
    remappings: Mapping[str, str] | None = None,
) -> list[LaunchDescriptionEntity]:
    """Return the actions that start nodes, and fail if one ends early.

    `ros2 launch` returns 0 whatever its nodes return, unless a handler raises. So this one raises
    when a node ends before the one that ends the run; `verdict` takes the exit code of that one.
    The namespace holds for their topics too; remappings are from the names of the contract.
    """
    folder = TemporaryDirectory(prefix='osmabench_launch_')
    atexit.register(folder.cleanup)
    over: list[NodeSpec] = []

    def on_exit(
        spec: NodeSpec, event: ProcessExited, context: LaunchContext
    ) -> list[LaunchDescriptionEntity]:
        # A terminal sends Ctrl-C to nodes too, and they may end before launch handles it.
        if over or context.is_shutdown or interrupts.heard:
            return []
        over.append(spec)
        if not spec.ends_run:
            raise ParticipantError(
                f'node "{spec.name}" ended before the run with exit code {event.returncode}'
            )
        return verdict(event.returncode)

    actions: list[LaunchDescriptionEntity] = []
    # Ctrl-C ends a bag, a bridge or a player; it is an error where a result is due.
    if any(spec.ends_run and getattr(spec.settings, 'exit_when_done', False) for spec in specs):
        actions += error_if_interrupted(lambda: bool(over))
    names = [spec.name for spec in specs]
    actions.append(OpaqueFunction(function=claim_nodes, args=[names, namespace]))
    for spec in specs:
        node = _make_node(
            spec.executable,
            name=spec.name,
            namespace=namespace,
            parameters=[{**spec.parameters(Path(folder.name)), AUTOSTART.name: True}],
            remappings=list((remappings or {}).items()),
            sigterm_timeout=STOP_S,
        )
        handler = OnProcessExit(target_action=node, on_exit=partial(on_exit, spec))
        actions += [RegisterEventHandler(handler), node]
    return actions


def _make_node(executable: str, package: str = PACKAGE, **more: Any) -> Node:
    """Return the action that starts an executable, and shows its output by its name."""
    return Node(
        package=package, executable=executable, exec_name=executable, output='screen', **more
    )


def end_launch(exit_code: int) -> list[LaunchDescriptionEntity]:
    """End the launch with its last node; raise RunError if that failed."""
    if exit_code:
        raise RunError(f'the run ended with exit code {exit_code}; see the messages above')
    return [EmitEvent(event=Shutdown(reason='the run is over'))]


VIEWER = 'map_viewer'


def launch_viewer(
    *,
    map_directory: str = '',
    ground_truth_directory: str = '',
    rviz: bool = False,
    namespace: str = '',
) -> list[LaunchDescriptionEntity]:
    """Return the viewer and, if wanted, RViz; their end ends nothing."""
    if rviz:
        # A launch that fails half-way leaves the processes that it has started.
        try:
            get_package_prefix('rviz2')
        except PackageNotFoundError as error:
            raise MissingDependencyError(
                'rviz2 is not installed; apt install ros-$ROS_DISTRO-rviz2, or rviz:=false'
            ) from error
    folders = {'map_directory': map_directory, 'ground_truth_directory': ground_truth_directory}
    given = {name: str(Path(folder).absolute()) for name, folder in folders.items() if folder}
    parameters = [{AUTOSTART.name: True, **given}]
    viewer = _make_node(f'{VIEWER}_node', name=VIEWER, namespace=namespace, parameters=parameters)
    if not rviz:
        return [viewer]
    drawn = ['-d', str(config_path('rviz', 'osmabench.rviz'))]
    return [viewer, _make_node('rviz2', 'rviz2', namespace=namespace, arguments=drawn)]
