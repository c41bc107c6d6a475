"""A whole run under `ros2 launch`: its nodes, a third-party stack, its shutdown, its report."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch.actions import (
    ExecuteProcess,
    GroupAction,
    IncludeLaunchDescription,
    LogInfo,
    RegisterEventHandler,
)
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.launch_description_sources import AnyLaunchDescriptionSource
from launch_ros.actions import Node, SetParameter, SetRemap

from launch import Action, LaunchContext
from osmabench_ros.base.contract import CLOCK, TF, TF_STATIC
from osmabench_ros.base.strict import read_model
from osmabench_ros.bringup import definition
from osmabench_ros.bringup.launching.launch_interrupts import interrupts
from osmabench_ros.bringup.launching.launch_nodes import end_launch, launch_nodes
from osmabench_ros.errors import MissingDependencyError, ParticipantError, RunError
from osmabench_ros.mappers.live_method import IncludedLaunch, LiveMethod
from osmabench_ros.reports.matrix import write_matrix_report
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.report_model import RunReport
from osmabench_ros.sequences.ground_truth import read_ground_truth


def launch_stack(method: LiveMethod) -> list[LaunchDescriptionEntity]:
    """Return what starts a filled-in stack; MissingDependencyError if it is not installed."""
    if method.launch is not None:
        return [_include_launch_file(method.launch, method)]
    if method.program is not None:
        program = ExecuteProcess(
            cmd=list(method.program.command),
            cwd=method.program.directory,
            name=method.name,
            output='screen',
        )
        return [_watch_process(program, method.name), program]
    actions: list[LaunchDescriptionEntity] = []
    for item in method.nodes:
        _share_directory(item.package, method)
        node = Node(
            package=item.package,
            executable=item.executable,
            exec_name=item.executable,
            name=item.name,
            namespace=item.namespace,
            arguments=list(item.arguments),
            parameters=[item.parameters],
            remappings=list(item.remappings.items()),
            output='screen',
        )
        actions += [_watch_process(node, item.name), node]
    return actions


def _include_launch_file(launch: IncludedLaunch, method: LiveMethod) -> GroupAction:
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


def _share_directory(package: str, method: LiveMethod) -> Path:
    try:
        return Path(get_package_share_directory(package))
    except PackageNotFoundError as error:
        remedy = ' '.join(method.install)
        raise MissingDependencyError(
            f'method {method.name} needs the package {package}, which is not installed. {remedy}'
        ) from error


def _watch_process(process: Action, name: str) -> RegisterEventHandler:
    def on_exit(event: ProcessExited, context: LaunchContext) -> None:
        if event.returncode and not (context.is_shutdown or interrupts.heard):
            raise ParticipantError(f'"{name}" ended with exit code {event.returncode}')

    return RegisterEventHandler(OnProcessExit(target_action=process, on_exit=on_exit))


def launch_run(plan: RunPlan, namespace: str = '') -> list[LaunchDescriptionEntity]:
    """Return the actions of a prepared run, which ends with the verdict of the evaluator."""
    resources = ExitStack()
    work = resources.enter_context(definition.stack_folder(plan))
    stack = []
    if plan.mapper.stack:
        labels = read_ground_truth(plan.ground_truth_directory).label_set
        values = definition.values_of_stack(plan, work)
        stack = launch_stack(definition.prepare_stack(plan.mapper.stack, work, values, labels))

    def finish(exit_code: int) -> list[LaunchDescriptionEntity]:
        resources.close()
        if not plan.report_file.exists():
            raise RunError(f'the evaluator ended with exit code {exit_code} and without a report')
        report = read_model(RunReport, plan.report_file)
        written = write_matrix_report(plan.config, [plan], [report], plan.root)
        if exit_code:
            raise RunError(f'the evaluator ended with exit code {exit_code}; see {plan.root}')
        verdict = written.verdict(plan.config.requirements)
        return [LogInfo(msg=f'{verdict}; {plan.root / "report.html"}'), *end_launch(exit_code)]

    specs = [spec for spec in definition.nodes_of_run(plan, work) if spec.ours]
    own = {topic: topic[1:] for topic in (CLOCK, TF, TF_STATIC)} if namespace else {}
    return [*stack, *launch_nodes(specs, finish, namespace=namespace, remappings=own)]
