"""One run of a matrix, from what is not done yet to its report."""

from __future__ import annotations

from contextlib import ExitStack, suppress

from osmabench_ros.base.files import write_json
from osmabench_ros.base.owned_folder import remove_ours, remove_what_was_left
from osmabench_ros.base.progress import Progress
from osmabench_ros.base.strict import read_model
from osmabench_ros.bringup.runner.live_run import run_live
from osmabench_ros.bringup.runner.node_processes import NodeProcesses
from osmabench_ros.bringup.spec.definition import nodes_of_run
from osmabench_ros.bringup.spec.mapping_nodes import STACK_FOLDER, stack_folder
from osmabench_ros.bringup.spec.run_recording import check_bag, make_room_for_bag
from osmabench_ros.errors import IncompleteError, OsmabenchError, RunError
from osmabench_ros.runs.evaluate.evaluation import (
    INCOMPLETE,
    EvaluationInputs,
    evaluate_run,
    incomplete_report,
)
from osmabench_ros.runs.evaluate.over_time import score_over_time
from osmabench_ros.runs.finished_run import finish_run, read_finished
from osmabench_ros.runs.matrix_on_disk import FAILURE
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.prepare.preparation import GROUND_TRUTH_FOLDER, QUESTIONS_FILE, Preparation
from osmabench_ros.runs.results.report_model import RunReport, Status
from osmabench_ros.runs.results.run_manifest import write_run_manifest
from osmabench_ros.runs.results.timings import TIMINGS, timings_of
from osmabench_ros.runs.run_warnings import run_warnings

STALL_MARGIN_S = 120.0
"""For a participant that never comes, the bridge itself gives up first."""


def run_one(
    plan: RunPlan,
    preparation: Preparation,
    nodes: NodeProcesses,
    progress: Progress,
    *,
    runs_at_once: int = 1,
) -> RunReport:
    """Run the remaining stages of a run; if it fails, its report holds the error.

    `runs_at_once` is how many share the machine, this one included.
    """
    try:
        report = _run(plan, preparation, nodes, progress, runs_at_once)
        check_bag(plan)
        if report.status is Status.COMPLETE and plan.config.evaluation.map_every_frames:
            score_over_time(
                _inputs(plan), list(plan.config.suites), plan.snapshots_directory, progress
            )
        if report.status is Status.COMPLETE:
            finish_run(plan)
        remove_ours(plan.directory / FAILURE)
        return report
    except (OsmabenchError, OSError) as error:
        return failed(plan, str(error))


def failed(plan: RunPlan, error: str) -> RunReport:
    """Return the report of a run that failed, which is in its folder too."""
    report = RunReport(run_id=plan.identity.run_id, status=Status.FAILED, error=error)
    remove_what_was_left(plan.directory)  # by nodes that had to be killed
    with suppress(RunError):  # on a full disk the first error is the one to report
        write_json(plan.directory / FAILURE, report.model_dump(mode='json'))
    return report


def without_figures(report: RunReport) -> RunReport:
    """Return what need not be read again of a report: that of thousands fits into memory."""
    return report.model_copy(update={'metrics': ()})


def _run(
    plan: RunPlan,
    preparation: Preparation,
    nodes: NodeProcesses,
    progress: Progress,
    runs_at_once: int,
) -> RunReport:
    if plan.report_file.exists():
        return read_finished(plan)
    preparation.prepare(plan, progress)
    found = run_warnings(plan, preparation)
    write_run_manifest(plan, preparation.digest_of(plan), found)
    preparation.write_true_trajectory(plan)
    if plan.map_directory.exists():
        # A map is complete or not there: the run was cut off while it was evaluated.
        progress('evaluating', 0.9)
        with suppress(IncompleteError):
            return evaluate_run(_inputs(plan), list(plan.config.suites), plan.config.requirements)
        return read_model(RunReport, plan.directory / INCOMPLETE)
    make_room_for_bag(plan)
    remove_ours(plan.directory / INCOMPLETE)
    with ExitStack() as resources:
        work = None
        if plan.mapper.stack:
            work = resources.enter_context(stack_folder(plan.directory / STACK_FOLDER))
        result = run_live(
            nodes_of_run(plan, work),
            plan.directory / 'logs',
            nodes,
            pacing=plan.pacing.value,
            stall_timeout_s=plan.config.pacing.ack_timeout_s + STALL_MARGIN_S,
            timeout_after_frames_s=plan.config.pacing.evaluation_timeout_s,
            runs_at_once=runs_at_once,
            progress=progress,
        )
    write_json(plan.directory / TIMINGS, timings_of(plan.identity, result.measured))
    incomplete = incomplete_report(plan.directory)
    if incomplete is None and not plan.report_file.exists():
        raise RunError(f'node "evaluator" wrote no report: {result.reason or "no reason given"}')
    return incomplete or read_finished(plan)


def _inputs(plan: RunPlan) -> EvaluationInputs:
    return EvaluationInputs(
        identity=plan.identity,
        map_directory=plan.map_directory,
        ground_truth_directory=plan.shared_directory / GROUND_TRUTH_FOLDER,
        questions_file=plan.shared_directory / QUESTIONS_FILE,
        output_directory=plan.directory,
        text_features=plan.config.text_features,
        allow_partial=plan.mapper.allow_partial,
    )
