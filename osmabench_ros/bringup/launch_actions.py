"""The nodes of a run as actions of `ros2 launch`; the only file that imports launch."""

from __future__ import annotations

from launch.actions import EmitEvent, LogInfo, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown, matches_action
from launch.events.process import ProcessExited
from launch.launch_description_entity import LaunchDescriptionEntity
from launch_ros.actions import LifecycleNode
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from lifecycle_msgs.msg import Transition

from launch import LaunchContext
from osmabench_ros.bringup.definition import nodes_of_run
from osmabench_ros.bringup.isolation import transport_environment
from osmabench_ros.bringup.node_spec import PACKAGE, NodeSpec
from osmabench_ros.errors import ParticipantError, RunError
from osmabench_ros.reports.matrix import write_matrix_report
from osmabench_ros.runs.files import read_json
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.report_model import RunReport


class RunLaunch:
    """Starts the nodes of a run, takes them through their lifecycle, ends when the run ends.

    `ros2 launch` returns 0 whatever its nodes return, unless a handler raises. So this one
    raises when a node ends early or the evaluator's verdict is not 0.

    Parameters
    ----------
    plan : RunPlan
        A run whose shared folder is prepared.
    """

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan
        self._over = False

    def actions(self) -> list[LaunchDescriptionEntity]:
        """Return everything that a launch description needs."""
        actions: list[LaunchDescriptionEntity] = []
        for spec in nodes_of_run(self._plan):
            node = self._node(spec)
            actions += [self._exit_handler(spec, node), *_activation(node), node]
            actions.append(_transition(node, Transition.TRANSITION_CONFIGURE))
        return actions

    def _node(self, spec: NodeSpec) -> LifecycleNode:
        return LifecycleNode(
            package=PACKAGE,
            executable=spec.executable,
            name=spec.name,
            namespace='',
            parameters=[dict(spec.parameters)],
            additional_env=dict(transport_environment()),
            output='screen',
        )

    def _exit_handler(self, spec: NodeSpec, node: LifecycleNode) -> RegisterEventHandler:
        def on_exit(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
            if self._over or context.is_shutdown:
                return []
            self._over = True
            if not spec.ends_run:
                raise ParticipantError(
                    f'node "{spec.name}" ended before the run with exit code {event.returncode}'
                )
            return self._finish(event.returncode)

        return RegisterEventHandler(OnProcessExit(target_action=node, on_exit=on_exit))

    def _finish(self, exit_code: int) -> list[LaunchDescriptionEntity]:
        if not self._plan.report_file.exists():
            raise RunError(f'the evaluator ended with exit code {exit_code} and without a report')
        report = RunReport.model_validate(read_json(self._plan.report_file))
        root = self._plan.root
        write_matrix_report(self._plan.config, [self._plan], [report], root)
        if exit_code:
            raise RunError(f'the evaluator ended with exit code {exit_code}; see {root}')
        return [
            LogInfo(msg=f'passed; {root / "report.html"}'),
            EmitEvent(event=Shutdown(reason='the run is over')),
        ]


def _activation(node: LifecycleNode) -> list[LaunchDescriptionEntity]:
    return [
        RegisterEventHandler(
            OnStateTransition(
                target_lifecycle_node=node,
                start_state='configuring',
                goal_state='inactive',
                entities=[_transition(node, Transition.TRANSITION_ACTIVATE)],
            )
        )
    ]


def _transition(node: LifecycleNode, transition: int) -> EmitEvent:
    return EmitEvent(
        event=ChangeState(lifecycle_node_matcher=matches_action(node), transition_id=transition)
    )
