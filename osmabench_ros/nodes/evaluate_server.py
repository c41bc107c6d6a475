"""The `evaluate` action: goals become jobs of the evaluator's queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.task import Future

from osmabench_ros.action import Evaluate
from osmabench_ros.base import contract as topics
from osmabench_ros.errors import OsmabenchError
from osmabench_ros.msg import EvaluationReport
from osmabench_ros.ros.node.lifecycle import shortened
from osmabench_ros.runs.evaluate.evaluation_job import EvaluationJob, EvaluationQueue

MAX_QUEUED = 8
"""Evaluations that run or wait; a goal beyond is rejected."""

JobMaker = Callable[[Any, Callable[[EvaluationJob], None]], EvaluationJob]
"""Makes the job of a goal, which calls back when it is over; raises GoalError."""


class GoalError(OsmabenchError):
    """A goal that cannot be evaluated; `error_code` is one of Evaluate.Result."""

    def __init__(self, error_code: int, reason: str) -> None:
        super().__init__(reason)
        self.error_code = error_code


class EvaluateServer:
    """Serves the action without blocking; goals wait, one that cannot be is aborted at once."""

    def __init__(
        self,
        node: Node,
        queue: EvaluationQueue,
        *,
        is_open: Callable[[], bool],
        make_job: JobMaker,
        make_report: Callable[[Any], EvaluationReport],
    ) -> None:
        self._logger = node.get_logger()
        self._queue = queue
        self._is_open = is_open
        self._make_job = make_job
        self._make_report = make_report
        self._goals: dict[EvaluationJob, tuple[Any, tuple[str, float] | None]] = {}
        self._server = ActionServer(
            node,
            Evaluate,
            topics.EVALUATE,
            self._execute,
            goal_callback=self._on_goal,
            cancel_callback=lambda _goal: CancelResponse.ACCEPT,
        )

    @property
    def idle(self) -> bool:
        """Whether every goal has its result."""
        return not self._goals

    def follow(self) -> None:
        """Pass on cancellations, and send feedback on progress."""
        for job, (goal, reported) in list(self._goals.items()):
            if goal.is_cancel_requested and not job.done:
                job.cancel()
            if job.at != reported and not job.done:
                self._goals[job] = (goal, job.at)
                stage, fraction = job.at
                goal.publish_feedback(Evaluate.Feedback(stage=stage, fraction=fraction))

    def _on_goal(self, _request: object) -> GoalResponse:
        if not self._is_open():
            self._logger.warning('goal rejected: the evaluator is not active')
            return GoalResponse.REJECT
        if len(self._queue) >= MAX_QUEUED:
            self._logger.warning(f'goal rejected: {MAX_QUEUED} evaluations are waiting')
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    async def _execute(self, goal: Any) -> Any:
        ended = Future()
        try:
            job = self._make_job(goal.request, ended.set_result)
        except OsmabenchError as error:
            goal.abort()
            code = getattr(error, 'error_code', Evaluate.Result.ERROR_FAILED)
            return Evaluate.Result(error_code=code, error_msg=shortened(error))
        self._goals[job] = (goal, None)
        self._queue.submit(job)
        await ended
        del self._goals[job]
        return self._result(goal, job)

    def _result(self, goal: Any, job: EvaluationJob) -> Any:
        if job.error is None:
            goal.succeed()
            return Evaluate.Result(report=self._make_report(job))
        if goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        code = Evaluate.Result.ERROR_CANCELLED if job.cancelled else Evaluate.Result.ERROR_FAILED
        return Evaluate.Result(error_code=code, error_msg=shortened(job.error))
