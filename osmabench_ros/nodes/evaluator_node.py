"""Scores recorded maps, by itself or when asked, and publishes the reports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.duration import Duration
from rclpy.task import Future

from osmabench_ros.action import Evaluate
from osmabench_ros.base import contract as topics
from osmabench_ros.base.files import Existing, check_folder, claim_folder
from osmabench_ros.base.progress import Progress
from osmabench_ros.errors import MapError, OsmabenchError, RequirementError
from osmabench_ros.msg import EvaluationReport, RecordedMap, RunInfo
from osmabench_ros.ros.messages.evaluation_messages import (
    check_run_info,
    path_from_uri,
    report_message,
)
from osmabench_ros.ros.node.diagnostics import Health, Level
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.node_process import run_node
from osmabench_ros.ros.node.participants import check_publishers
from osmabench_ros.ros.node.settings import EvaluatorSettings
from osmabench_ros.ros.qos import latched_profile
from osmabench_ros.runs import evaluation
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.runs.evaluation import EvaluationJob, EvaluationQueue
from osmabench_ros.runs.identity import RunIdentity
from osmabench_ros.runs.report_model import RunReport

# Below the output directory; gets a numbered folder for each goal of the action.
EVALUATIONS_FOLDER = 'evaluations'


FOLLOW_PERIOD_S = 0.1
ACK_TIMEOUT = Duration(seconds=1)

# Evaluations that run or wait; a goal beyond is rejected.
MAX_QUEUED = 8


@dataclass(eq=False)
class _MapJob(EvaluationJob):
    """The evaluation of one map, with the message about it."""

    output_directory: Path
    recorded: RecordedMap
    # The progress that the client of a goal knows.
    reported: tuple[str, float] | None = None

    def message(self) -> EvaluationReport:
        """Return the report of a successful evaluation."""
        assert self.report is not None
        return report_message(
            self.report, self.output_directory / evaluation.REPORT, self.recorded.header
        )


class EvaluatorNode(BenchmarkNode[EvaluatorSettings]):
    """Evaluates in a thread, one map at a time: the final one, and maps of goals."""

    def __init__(self) -> None:
        super().__init__('evaluator', EvaluatorSettings)
        self._queue = EvaluationQueue()
        self._forget()
        self._goals: dict[_MapJob, Any] = {}
        ActionServer(
            self,
            Evaluate,
            topics.EVALUATE,
            self._execute,
            goal_callback=self._on_goal,
            cancel_callback=lambda _goal: CancelResponse.ACCEPT,
        )
        self.create_timer(
            FOLLOW_PERIOD_S,
            self.guarded(self._follow),
            callback_group=MutuallyExclusiveCallbackGroup(),
        )
        # A client that waits for a result must get it, even if the node is cleaned up meanwhile.
        self.keep_entities()

    def _forget(self) -> None:
        self._identity: RunIdentity | None = None
        self.recorded: RecordedMap | None = None
        self._automatic: _MapJob | None = None
        self._verdict: RunReport | None = None
        self._completed = 0
        self._trouble = ''
        self._reported = ''

    def configure(self) -> None:
        """Read the settings, and subscribe."""
        self._forget()
        self._last_number = 0
        self._ground_truth = self.required('ground_truth_directory')
        self._output = self.required('output_directory')
        check_folder(self._output, Existing.MERGE)
        self._publisher = self.create_publisher(
            EvaluationReport, topics.EVALUATION, latched_profile()
        )
        self.subscribe(RunInfo, topics.RUN_INFO, self._on_run_info)
        self.subscribe(RecordedMap, topics.RECORDED_MAP, self._on_recorded_map)

    def cleanup(self) -> None:
        """Cancel running evaluations; clients that wait get a cancelled result."""
        self._automatic = None
        self._queue.stop()

    def owes_result(self) -> bool:
        """Return whether an evaluation runs, or the node has to exit with a verdict."""
        return bool(self._queue) or self.settings.exit_when_done

    def health(self) -> Health:
        """Return the current evaluation and its progress."""
        job = self._queue.current
        stage, fraction = ('', 0.0) if job is None else job.at
        values: dict[str, float | str] = {
            'stage': stage,
            'fraction': float(fraction),
            'queued': max(len(self._queue) - 1, 0),
            'evaluations': self._completed,
        }
        if job is not None:
            return Health(Level.OK, f'evaluating: {stage}', values)
        if self._trouble:
            return Health(Level.WARN, f'the last evaluation failed: {self._trouble}', values)
        done = f'{self._completed} evaluations done' if self._completed else 'waiting for a map'
        return Health(Level.OK, done, values)

    def _on_run_info(self, info: RunInfo) -> None:
        if not self.settings.use_run_info:
            return
        check_run_info(info)
        self._identity = RunIdentity.of_info(info)
        self._start()

    def _on_recorded_map(self, message: RecordedMap) -> None:
        check_publishers(self, [topics.RECORDED_MAP])
        if message.is_final and message != self.recorded:
            self.recorded = message
            self._verdict = None
            self._start()

    def _start(self) -> None:
        """Evaluate the final map once it and the identity of its run are known."""
        known = self._identity is not None or not self.settings.use_run_info
        begun = self._automatic is not None or self._verdict is not None
        if self.recorded is None or not known or begun:
            return
        directory = path_from_uri(self.recorded.uri, f'topic "{topics.RECORDED_MAP}": uri')
        work = self._evaluation(directory, self._output, self._identity, self.settings.suites)
        self._automatic = _MapJob(work, self._on_final_map_evaluated, self._output, self.recorded)
        self._queue.submit(self._automatic)

    def _evaluation(
        self,
        map_directory: Path,
        output_directory: Path,
        identity: RunIdentity | None,
        suites: Sequence[SuiteConfig],
    ) -> Callable[[Progress], RunReport]:
        """Return the evaluation of a map, to be called in another thread."""
        value, names = self.settings, {suite.name for suite in suites}
        # Requirements of suites that a goal leaves out do not count.
        every = suites is value.suites
        required = [item for item in value.requirements if every or item.suite in names]
        # A goal may be about a map that the method had on the way.
        aside = output_directory != self._output
        questions = value.questions_file
        if identity is None and questions is not None and not questions.exists():
            questions = None
        inputs = evaluation.EvaluationInputs(
            identity
            or evaluation.identify_unnamed_run(
                value.seed, value.condition, value.mapper, value.simulator
            ),
            map_directory,
            self._ground_truth,
            output_directory,
            questions,
            value.device,
            value.text_features,
            value.settling.allow_partial or aside,
        )

        def evaluate(progress: Progress) -> RunReport:
            # The folder of a goal is below it.
            claim_folder(self._output)
            if identity is None:
                return evaluation.evaluate_map(
                    inputs, suites, required, replace=True, progress=progress
                )
            return evaluation.evaluate_run(inputs, suites, required, progress)

        return evaluate

    def _free_directory(self) -> Path:
        """Return a separate folder for a goal, so that the report of the run stays."""
        folder = self._output / EVALUATIONS_FOLDER
        taken = [int(path.name) for path in folder.glob('*') if path.name.isdigit()]
        self._last_number = max([*taken, self._last_number]) + 1
        return folder / f'{self._last_number:04d}'

    def _job_of_goal(self, goal: Any, on_done: Callable[[EvaluationJob], None]) -> _MapJob:
        recorded = self.recorded or RecordedMap()
        uri = goal.map_uri or recorded.uri
        if not uri:
            raise MapError('no map was recorded yet; name a map_uri')
        directory = path_from_uri(uri, 'map_uri')
        configured = {suite.name: suite for suite in self.settings.suites}
        chosen = tuple(configured.get(name) or SuiteConfig(name=name) for name in goal.suites)
        evaluation.make_suites(chosen)
        if not directory.is_dir():
            raise MapError(f'there is no map in {directory}')
        output, own = self._free_directory(), uri == recorded.uri
        identity = self._identity if own else None
        work = self._evaluation(directory, output, identity, chosen or self.settings.suites)
        return _MapJob(work, on_done, output, recorded if own else RecordedMap())

    def _follow(self) -> None:
        self._queue.poll(start=self.active)
        self._follow_goals()
        self._report_news()
        idle = not self._queue and not self._goals
        if self._verdict is not None and self.settings.exit_when_done and idle:
            self._publisher.wait_for_all_acked(ACK_TIMEOUT)
            if failed := self._verdict.failed_requirements:
                raise RequirementError('; '.join(failed))
            self.finish(0)

    def _follow_goals(self) -> None:
        """Pass on cancellations, and send feedback on progress."""
        for job, goal in self._goals.items():
            if goal.is_cancel_requested and not job.done:
                job.cancel()
            if job.at != job.reported and not job.done:
                job.reported = stage, fraction = job.at
                goal.publish_feedback(Evaluate.Feedback(stage=stage, fraction=fraction))

    def _on_goal(self, _request: object) -> GoalResponse:
        if not self.active:
            self.get_logger().warning('goal rejected: the evaluator is not active')
            return GoalResponse.REJECT
        if len(self._queue) >= MAX_QUEUED:
            self.get_logger().warning(f'goal rejected: {MAX_QUEUED} evaluations are waiting')
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    async def _execute(self, goal: Any) -> Any:
        ended = Future()
        try:
            job = self._job_of_goal(goal.request, ended.set_result)
        except OsmabenchError as error:
            goal.abort()
            result = Evaluate.Result(error_msg=str(error))
            no_map = isinstance(error, MapError)
            result.error_code = result.ERROR_NO_MAP if no_map else result.ERROR_BAD_GOAL
            return result
        self._goals[job] = goal
        self._queue.submit(job)
        await ended
        self._note(job)
        del self._goals[job]
        if job.error is None:
            goal.succeed()
            return Evaluate.Result(report=job.message())
        if goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        code = Evaluate.Result.ERROR_CANCELLED if job.cancelled else Evaluate.Result.ERROR_FAILED
        return Evaluate.Result(error_code=code, error_msg=str(job.error))

    def _report_news(self) -> None:
        job, before = self._queue.current, self._reported
        stage = '' if job is None else job.at[0]
        if stage == before:
            return
        self._reported = stage
        self.publish_health()
        name = stage.split(':')[0]
        if name and name != before.split(':')[0]:
            self.get_logger().info(f'evaluating: {name}')

    def _note(self, job: EvaluationJob) -> None:
        self._completed += job.error is None
        self._trouble = '' if job.error is None or job.cancelled else str(job.error)

    def _on_final_map_evaluated(self, job: EvaluationJob) -> None:
        if self._automatic is None or job is not self._automatic:
            return
        final, self._automatic = self._automatic, None
        self._note(final)
        if final.error is not None:
            self._publisher.publish(EvaluationReport(error=str(final.error)))
            self._publisher.wait_for_all_acked(ACK_TIMEOUT)
            raise final.error
        self._publisher.publish(final.message())
        if final.recorded is self.recorded:
            self._verdict = final.report
        else:
            # The run was reset meanwhile, and what counts is its new map.
            self._start()


main = partial(run_node, EvaluatorNode)

if __name__ == '__main__':
    raise SystemExit(main())
