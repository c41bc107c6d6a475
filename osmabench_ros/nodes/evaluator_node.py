"""Scores the recorded map and publishes the report."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlparse

import yaml
from rclpy.duration import Duration

from osmabench_ros.errors import ConfigError, OsmabenchError, RequirementError
from osmabench_ros.msg import EvaluationReport, MetricValue, RecordedMap, RunInfo
from osmabench_ros.ros import topics
from osmabench_ros.ros.checked_subscription import create_checked_subscription
from osmabench_ros.ros.lifecycle import BenchmarkNode, run_node
from osmabench_ros.ros.parameters import ParameterSpec
from osmabench_ros.ros.qos import latched_profile
from osmabench_ros.runs.config import Requirement, SuiteConfig
from osmabench_ros.runs.evaluation import EvaluationInputs, evaluate_run
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.report_model import Record, RunReport

_Data = TypeVar('_Data', list[Any], dict[str, Any])

PARAMETERS = (
    ParameterSpec('ground_truth_directory', '', 'Ground truth of the scene, as prepared.'),
    ParameterSpec('questions_file', '', 'Questions about the scene, JSON lines.'),
    ParameterSpec('output_directory', '', 'Folder that gets report.json and the answers.'),
    ParameterSpec('suites', '[]', 'Suites to run, a YAML list of {name, options}.'),
    ParameterSpec('requirements', '[]', 'Thresholds, a YAML list as in a configuration.'),
    ParameterSpec('text_features', '{}', 'YAML mapping: encoder of a map to .npy of its text.'),
    ParameterSpec('device', 'auto', 'Where to compute.', choices=('auto', 'cpu', 'cuda')),
    ParameterSpec('exit_when_done', False, 'End with the verdict as exit code after one map.'),
)


class EvaluatorNode(BenchmarkNode):
    """Waits for a final map on disk, evaluates it in a thread, publishes and writes the report."""

    def __init__(self) -> None:
        super().__init__('evaluator', PARAMETERS)
        self._identity: RunIdentity | None = None
        self._recorded: RecordedMap | None = None
        self._work: Future[RunReport] | None = None
        self._pool = ThreadPoolExecutor(1)

    def configure(self) -> None:
        """Read what to evaluate, and subscribe."""
        for name in ('ground_truth_directory', 'output_directory'):
            if not self.parameter[name]:
                raise ConfigError(f'node evaluator: parameter "{name}" is empty; name a folder')
        self._suites = [SuiteConfig(**item) for item in self._yaml('suites', list)]
        self._requirements = tuple(
            Requirement(**item) for item in self._yaml('requirements', list)
        )
        files = self._yaml('text_features', dict)
        self._text_features = {str(name): Path(file) for name, file in files.items()}
        self._publisher = self.create_publisher(
            EvaluationReport, topics.EVALUATION, latched_profile()
        )
        create_checked_subscription(
            self, RunInfo, topics.RUN_INFO, self._on_run_info, latched_profile()
        )
        create_checked_subscription(
            self, RecordedMap, topics.RECORDED_MAP, self._on_recorded_map, latched_profile()
        )
        self.create_timer(0.1, self.guarded(self._collect))

    def cleanup(self) -> None:
        """Let a running evaluation end unheard."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _yaml(self, name: str, kind: type[_Data]) -> _Data:
        try:
            data = yaml.safe_load(self.parameter[name])
        except yaml.YAMLError as error:
            raise ConfigError(
                f'node evaluator: parameter "{name}" is not YAML: {error}'
            ) from error
        if not isinstance(data, kind):
            what = 'list' if kind is list else 'mapping'
            raise ConfigError(f'node evaluator: parameter "{name}" must be a YAML {what}')
        return data

    def _on_run_info(self, info: RunInfo) -> None:
        key = SceneKey(info.dataset, info.scene, info.seed)
        realtime = info.pacing == RunInfo.PACING_REALTIME
        self._identity = RunIdentity(
            key,
            info.condition,
            info.mapper,
            info.simulator,
            info.speed_factor if realtime else None,
        )
        self._start()

    def _on_recorded_map(self, message: RecordedMap) -> None:
        if message.is_final:
            self._recorded = message
            self._start()

    def _start(self) -> None:
        if self._identity is None or self._recorded is None or self._work is not None:
            return
        questions = self.parameter['questions_file']
        inputs = EvaluationInputs(
            identity=self._identity,
            map_directory=Path(unquote(urlparse(self._recorded.uri).path)),
            ground_truth_directory=Path(self.parameter['ground_truth_directory']),
            questions_file=Path(questions) if questions else None,
            output_directory=Path(self.parameter['output_directory']),
            device=self.parameter['device'],
            text_features=self._text_features,
        )
        self._work = self._pool.submit(evaluate_run, inputs, self._suites, self._requirements)

    def _collect(self) -> None:
        if self._work is None or not self._work.done():
            return
        work, self._work = self._work, None
        try:
            report = work.result()
        except OsmabenchError as error:
            self._publish_error(error)
            raise
        self._publish(report)
        self._recorded = None
        if self.parameter['exit_when_done']:
            self._exit_with_verdict(report)

    def _exit_with_verdict(self, report: RunReport) -> None:
        self._publisher.wait_for_all_acked(Duration(seconds=1))
        if report.failed_requirements:
            raise RequirementError('; '.join(report.failed_requirements))
        self.finish(0)

    def _publish_error(self, error: OsmabenchError) -> None:
        self._publisher.publish(EvaluationReport(error=str(error)))
        self._publisher.wait_for_all_acked(Duration(seconds=1))

    def _publish(self, report: RunReport) -> None:
        assert self._recorded is not None
        path = Path(self.parameter['output_directory']).absolute() / 'report.json'
        self._publisher.publish(
            EvaluationReport(
                header=self._recorded.header,
                run_id=report.run_id,
                passed=not report.failed_requirements,
                failed_requirements=list(report.failed_requirements),
                metrics=[_metric_message(record) for record in report.metrics],
                report_uri=path.as_uri(),
            )
        )


def _metric_message(record: Record) -> MetricValue:
    def number(value: float | None) -> float:
        return float('nan') if value is None else value

    return MetricValue(
        suite=record.suite,
        mode=record.mode or MetricValue.MODE_NONE,
        metric=record.metric,
        class_name=record.class_name,
        value=number(record.value),
        low=number(record.low),
        high=number(record.high),
        n=record.n,
        higher_is_better=record.higher_is_better,
        applicable=record.applicable,
    )


def main() -> int:
    """Run the node."""
    return run_node(EvaluatorNode)


if __name__ == '__main__':
    raise SystemExit(main())
