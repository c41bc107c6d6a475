"""Runs a matrix: prepares shared data, runs what is not done yet, and reports on all runs."""

from __future__ import annotations

from contextlib import ExitStack, closing, suppress
from pathlib import Path

from osmabench_ros.base.files import write_json
from osmabench_ros.base.owned_folder import (
    refuse_foreign,
    remove_ours,
    remove_what_was_left,
    settle,
)
from osmabench_ros.base.progress import Progress, share
from osmabench_ros.base.strict import read_model
from osmabench_ros.bringup.doctor.run_preflight import check_run
from osmabench_ros.bringup.runner.live_run import run_live
from osmabench_ros.bringup.runner.node_processes import NodeProcesses
from osmabench_ros.bringup.spec.definition import nodes_of_run
from osmabench_ros.bringup.spec.mapping_nodes import STACK_FOLDER, stack_folder
from osmabench_ros.bringup.spec.run_recording import check_bag, make_room_for_bag
from osmabench_ros.errors import IncompleteError, OsmabenchError, RunError
from osmabench_ros.reports.matrix import write_matrix_report
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.evaluate.evaluation import (
    INCOMPLETE,
    EvaluationInputs,
    evaluate_run,
    incomplete_report,
)
from osmabench_ros.runs.evaluate.over_time import score_over_time
from osmabench_ros.runs.finished_run import finish_run, read_finished
from osmabench_ros.runs.inputs import input_digests
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.prepare.preparation import GROUND_TRUTH_FOLDER, QUESTIONS_FILE, Preparation
from osmabench_ros.runs.results.report_model import MatrixReport, RunReport, Status
from osmabench_ros.runs.results.results_folder import claim, held, refuse_foreign_results
from osmabench_ros.runs.results.run_manifest import write_run_manifest
from osmabench_ros.runs.results.timings import TIMINGS, timings_of
from osmabench_ros.runs.run_warnings import run_warnings

FAILURE = 'failure.json'
STALL_MARGIN_S = 120.0
"""For a participant that never comes, the bridge itself gives up first."""


def run_matrix(
    config: MatrixConfig, out: Path, *, fresh: bool = False, progress: Progress
) -> MatrixReport:
    """Run every run of a configuration and write the report of all.

    Parameters
    ----------
    config : MatrixConfig
        What to run.
    out : Path
        Parent of the matrix' folder, which has the name of the configuration.
    fresh : bool
        Delete what is there. Otherwise stages that are done stay done.
    progress : callable
        Gets what is going on and the fraction done.

    Returns
    -------
    MatrixReport
        Also in report.json and report.html of the folder. A run that failed is in it with its
        error; the others go on.

    Raises
    ------
    ConfigError
        If a name in the configuration is unknown; before any minute is spent.
    RunError
        If the folder is in use, holds results of another configuration or of inputs that
        changed since, or cannot be written to.
    """
    root = out / config.name
    refuse_foreign([root], folders=True)
    preparation = Preparation()
    preparation.check_names(config)
    check_run(config, out)
    preparation.check_mappers(config)
    with held(root):
        claim(root, config, input_digests(config, preparation.digests(config)), fresh=fresh)
        plans = preparation.plans(config, root)
        refuse_foreign_results(root, plans)
        with closing(NodeProcesses(config.node_processes.runs_each)) as nodes:
            report = _run_all(config, plans, preparation, nodes, progress)
        settle(root)
        return report


def _run_all(
    config: MatrixConfig,
    plans: list[RunPlan],
    preparation: Preparation,
    nodes: NodeProcesses,
    progress: Progress,
) -> MatrixReport:
    reports = []
    for number, plan in enumerate(plans):
        label = f'[{number + 1}/{len(plans)}] {plan.identity.run_id}: '
        part = share(progress, number / len(plans), (number + 1) / len(plans), label)
        reports.append(run_one(plan, preparation, nodes, part))
    progress('writing the report', 1.0)
    try:
        return write_matrix_report(config, plans, reports, plans[0].root)
    except OsmabenchError as error:
        # What cannot be written would say it.
        failed = (f'{item.run_id}: {item.error}' for item in reports if item.error)
        raise RunError('. Before that: '.join((str(error), *failed))) from error


def run_one(
    plan: RunPlan, preparation: Preparation, nodes: NodeProcesses, progress: Progress
) -> RunReport:
    """Run the remaining stages of a run; if it fails, its report holds the error."""
    failure = plan.directory / FAILURE
    try:
        report = _run(plan, preparation, nodes, progress)
        check_bag(plan)
        if report.status is Status.COMPLETE and plan.config.evaluation.map_every_frames:
            score_over_time(
                _inputs(plan), list(plan.config.suites), plan.snapshots_directory, progress
            )
        if report.status is Status.COMPLETE:
            finish_run(plan)
        remove_ours(failure)
        return report
    except (OsmabenchError, OSError) as error:
        report = RunReport(run_id=plan.identity.run_id, status=Status.FAILED, error=str(error))
        remove_what_was_left(plan.directory)  # by nodes that had to be killed
        with suppress(RunError):  # on a full disk the first error is the one to report
            write_json(failure, report.model_dump(mode='json'))
        return report


def _run(
    plan: RunPlan, preparation: Preparation, nodes: NodeProcesses, progress: Progress
) -> RunReport:
    if plan.report_file.exists():
        return read_finished(plan)
    preparation.prepare(plan, progress)
    found = run_warnings(plan, preparation)
    write_run_manifest(plan, preparation.digest_of(plan), found)
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
