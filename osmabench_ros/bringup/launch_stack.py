"""A mapping stack of another project as actions of `ros2 launch`."""

from __future__ import annotations

from pathlib import Path

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch.actions import (
    ExecuteProcess,
    GroupAction,
    IncludeLaunchDescription,
    RegisterEventHandler,
)
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.launch_description_sources import AnyLaunchDescriptionSource
from launch_ros.actions import Node, SetParameter, SetRemap

from launch import Action, LaunchContext
from osmabench_ros.bringup.isolation import transport_environment
from osmabench_ros.bringup.launch_interrupts import interrupts
from osmabench_ros.errors import MissingDependencyError, ParticipantError
from osmabench_ros.mappers.live_method import IncludedLaunch, LiveMethod, StackNode


def stack_actions(method: LiveMethod) -> list[LaunchDescriptionEntity]:
    """Return what starts a stack in which every ``${...}`` is replaced.

    Raises MissingDependencyError, with how to install it, if its package is not installed.
    """
    if method.launch is not None:
        return [_included(method.launch, method)]
    if method.program is not None:
        program = ExecuteProcess(
            cmd=list(method.program.command),
            cwd=method.program.directory,
            name=method.name,
            additional_env=dict(transport_environment()),
            output='screen',
        )
        return [_watched(program, method.name), program]
    actions: list[LaunchDescriptionEntity] = []
    for item in method.nodes:
        node = _node(item, method)
        actions += [_watched(node, item.name), node]
    return actions


def _included(launch: IncludedLaunch, method: LiveMethod) -> GroupAction:
    share = _share_directory(launch.package, method)
    files = (share / 'launch' / launch.file, share / launch.file)
    file = next((path for path in files if path.exists()), None)
    if file is None:
        raise MissingDependencyError(
            f'method {method.name}: package {launch.package} has no launch file {launch.file} in '
            f'{share}; its version differs from the one that config/methods/live describes'
        )
    return GroupAction(
        [
            *(SetParameter(name, value) for name, value in launch.parameters.items()),
            *(SetRemap(source, target) for source, target in launch.remappings.items()),
            IncludeLaunchDescription(
                AnyLaunchDescriptionSource(str(file)), launch_arguments=launch.arguments.items()
            ),
        ]
    )


def _node(item: StackNode, method: LiveMethod) -> Node:
    _share_directory(item.package, method)
    return Node(
        package=item.package,
        executable=item.executable,
        name=item.name,
        namespace=item.namespace,
        arguments=list(item.arguments),
        parameters=[item.parameters],
        remappings=list(item.remappings.items()),
        additional_env=dict(transport_environment()),
        output='screen',
    )


def _share_directory(package: str, method: LiveMethod) -> Path:
    try:
        return Path(get_package_share_directory(package))
    except PackageNotFoundError as error:
        remedy = ' '.join(method.install)
        raise MissingDependencyError(
            f'method {method.name} needs the package {package}, which is not installed. {remedy}'
        ) from error


def _watched(process: Action, name: str) -> RegisterEventHandler:
    def on_exit(event: ProcessExited, context: LaunchContext) -> None:
        if event.returncode and not (context.is_shutdown or interrupts.heard):
            raise ParticipantError(f'"{name}" ended with exit code {event.returncode}')

    return RegisterEventHandler(OnProcessExit(target_action=process, on_exit=on_exit))
