"""Metrics of Hypo3D that need more runs than a matrix: changed scenes, changes halfway."""

from collections.abc import Iterator, Sequence

from osmabench_ros.base.strict import read_model
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.reports.content import read_dialogue
from osmabench_ros.runs.evaluate.evaluation import OVER_TIME, ReportOverTime
from osmabench_ros.runs.matrix_on_disk import LIVE, REMAPPED, runs_beside
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.report_model import RunReport, Status, join_run
from osmabench_ros.runs.shared_path import driven_trajectory
from osmabench_ros.simulation.schedule import Moment
from osmabench_ros.suites.hypo3d import suite
from osmabench_ros.suites.hypo3d.generation import SUITE, Hypo3DRun

UPDATED = 0.5
"""A map knows a change if more than this share of the answers that it changes are right."""


def with_changed_scenes(
    reports: Sequence[RunReport], plans: Sequence[RunPlan]
) -> tuple[RunReport, ...]:
    """Return reports with `accuracy_remapped`, `imagination_gap` and the metrics of live maps."""
    by_id = {plan.identity.run_id: plan for plan in plans}
    return tuple(_with_own(report, by_id.get(report.run_id)) for report in reports)


def _with_own(report: RunReport, plan: RunPlan | None) -> RunReport:
    options = None if plan is None else suite.hypo3d_options(plan.config.suites)
    if plan is None or report.status is not Status.COMPLETE or options is None or options.before:
        return report
    own = join_run(plan.identity, (*_score_remapped(plan), *_score_live(plan)))
    return report.model_copy(update={'metrics': (*report.metrics, *own)})


def _score_remapped(plan: RunPlan) -> Iterator[MetricRecord]:
    found = [read_dialogue(other.directory) for other in runs_beside(plan, REMAPPED)]
    questions = [item for dialogue in found for item in dialogue.questions]
    verdicts = [item for dialogue in found for item in dialogue.verdicts]
    if questions:
        yield from suite.accuracies(questions, verdicts)
        own = read_dialogue(plan.directory)
        yield from suite.imagination_gap(
            suite.judged(own.questions, own.verdicts, Hypo3DRun.TOLD),
            suite.judged(questions, verdicts, Hypo3DRun.REMAPPED),
        )


def _score_live(plan: RunPlan) -> Iterator[MetricRecord]:
    """Yield how far the map of a run in which the scene changed came, and how soon.

    `accuracy_live` is the accuracy of the last map over the answers that the change changes,
    `frames_until_updated` how many frames after the change its maps begin to have more than half
    of them right for good; not applicable if they never do.
    """
    for other in runs_beside(plan, LIVE):
        report = read_model(ReportOverTime, other.directory / OVER_TIME)
        seen = [
            (moment.frames, record)
            for moment in report.moments
            for record in moment.metrics
            if (record.suite, record.metric, record.class_name) == (SUITE, suite.AFFECTED, '')
        ]
        first = _find_first_changed_frame(other)
        if not seen or first is None:
            continue
        _, last = seen[-1]
        yield MetricRecord(SUITE, '', 'accuracy_live', '', last.value, last.low, last.high, last.n)
        late = [frames for frames, record in seen if (record.value or 0.0) <= UPDATED]
        after = [frames for frames, _ in seen if frames > max((first, *late))]
        frames = after[0] - first if after else None
        yield MetricRecord(
            SUITE, '', 'frames_until_updated', '', frames, n=last.n, higher_is_better=False
        )


def _find_first_changed_frame(plan: RunPlan) -> int | None:
    """Return the number of frames before the scene of a run changes, None if it does not."""
    change = plan.condition.scene_change
    if change is None:
        return None
    for number, item in enumerate(driven_trajectory(plan).frames):
        if change.span.contains(Moment(item.segment, item.segment_progress, item.time_s)):
            return number
    return None
