"""A whole run under `ros2 launch`: its nodes, its end, its report."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from launch.actions import LogInfo
from launch.launch_description_entity import LaunchDescriptionEntity

from osmabench_ros.base.files import read_json
from osmabench_ros.bringup.definition import nodes_of_run
from osmabench_ros.bringup.launch_nodes import ManagedNodes, ended
from osmabench_ros.bringup.launch_stack import stack_actions
from osmabench_ros.bringup.mapping_nodes import values_of_stack
from osmabench_ros.bringup.stack_values import STACK_FOLDER, prepare_stack, stack_folder
from osmabench_ros.errors import RunError
from osmabench_ros.reports.matrix import write_matrix_report
from osmabench_ros.ros.topics import CLOCK, TF, TF_STATIC
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.preparation import GROUND_TRUTH_FOLDER
from osmabench_ros.runs.report_model import RunReport
from osmabench_ros.sequences.ground_truth import read_ground_truth


class RunLaunch:
    """Starts the nodes of a run whose shared folder is ready; ends with the evaluator's verdict.

    The namespace is of /tf and /clock too: a second bridge owns another tree and time.
    """

    def __init__(self, plan: RunPlan, namespace: str = '') -> None:
        self._plan, self._resources = plan, ExitStack()
        self._namespace = namespace

    def actions(self) -> list[LaunchDescriptionEntity]:
        """Return everything that a launch description needs."""
        work = None
        if self._plan.mapper.stack:
            folder = stack_folder(self._plan.directory / STACK_FOLDER)
            work = self._resources.enter_context(folder)
        specs = [spec for spec in nodes_of_run(self._plan, work) if spec.managed]
        own = {topic: topic[1:] for topic in (CLOCK, TF, TF_STATIC)} if self._namespace else {}
        nodes = ManagedNodes(specs, self._finish, namespace=self._namespace, remappings=own)
        return [*self._stack(work), *nodes.actions()]

    def _stack(self, work: Path | None) -> list[LaunchDescriptionEntity]:
        plan = self._plan
        if work is None:
            return []
        labels = read_ground_truth(plan.shared_directory / GROUND_TRUTH_FOLDER).label_set
        values = values_of_stack(plan, work)
        return stack_actions(prepare_stack(plan.mapper.stack, work, values, labels))

    def _finish(self, exit_code: int) -> list[LaunchDescriptionEntity]:
        self._resources.close()
        if not self._plan.report_file.exists():
            raise RunError(f'the evaluator ended with exit code {exit_code} and without a report')
        report = RunReport.model_validate(read_json(self._plan.report_file))
        root = self._plan.root
        write_matrix_report(self._plan.config, [self._plan], [report], root)
        if exit_code:
            raise RunError(f'the evaluator ended with exit code {exit_code}; see {root}')
        return [LogInfo(msg=f'passed; {root / "report.html"}'), *ended(exit_code)]
