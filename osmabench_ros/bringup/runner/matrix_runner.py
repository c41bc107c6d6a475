"""Runs a matrix: prepares shared data, does the missing runs, and reports on all runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from osmabench_ros.base.files import Existing, check_folder
from osmabench_ros.base.progress import Progress, share
from osmabench_ros.bringup.doctor.run_preflight import check_config
from osmabench_ros.bringup.runner.admission import Capacity, capacity_here, jobs_here
from osmabench_ros.bringup.runner.cluster import Cluster, use_cluster
from osmabench_ros.bringup.runner.dispatch import Dispatcher
from osmabench_ros.bringup.runner.node_processes import NodeProcesses
from osmabench_ros.bringup.runner.one_run import run_one, without_figures
from osmabench_ros.bringup.runner.workers import use_workers
from osmabench_ros.errors import OsmabenchError, RunError
from osmabench_ros.reports.matrix import (
    MOST_ON_ONE_PAGE,
    Origin,
    required_figures,
    write_matrix_report,
)
from osmabench_ros.runs.changed_scenes import matrices_beside
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.matrix_on_disk import (
    MatrixOnDisk,
    RunOnDisk,
    RunState,
    check_results,
    claim,
)
from osmabench_ros.runs.plan import RunPlan, config_digest
from osmabench_ros.runs.prepare.preparation import Preparation
from osmabench_ros.runs.results.report_model import MatrixReport, RunReport, Status
from osmabench_ros.runs.results.results_folder import held


def run_matrix(
    config: MatrixConfig,
    out: Path,
    *,
    fresh: bool = False,
    jobs: int | None = 1,
    cluster: Cluster | None = None,
    nodes: NodeProcesses | None = None,
    progress: Progress,
) -> MatrixReport:
    """Run every run of a configuration and write the report of all, which is returned.

    Results go to a folder of `out` with the name of the configuration; stages that are done stay
    done, also of a configuration that had less in it, unless `fresh` moves them to ``previous/``.
    `jobs` bounds the runs at once, None for as many as cores and memory allow; on a `cluster`, Ray
    decides. A run that failed is in the report with its error; the others go on. Runs that go one
    after another take `nodes` that earlier matrices left, and leave theirs there.

    Raises ConfigError, before any minute is spent, if a name in the configuration is unknown;
    RunError if the folder is in use, cannot be written to, or
    holds results of these runs that were made with other settings or inputs.
    """
    root = (out.absolute() if cluster else out) / config.name
    check_folder(root, Existing.MERGE)
    preparation = check_config(config, out)
    capacity = capacity_here()
    if cluster is None:
        capacity.check(config)
    plans = preparation.plans(config, root)
    with ExitStack() as stack:
        stack.enter_context(held(root))
        if nodes is None:
            nodes = NodeProcesses()
            stack.enter_context(closing(nodes))
        growth = claim(root, config, plans, preparation.digest_of, fresh=fresh)
        check_results(root, plans)
        preparation.grow(growth, progress)
        return _run_all(
            config, plans, preparation, capacity, jobs, cluster, nodes, progress, fresh=fresh
        )


def _run_all(
    config: MatrixConfig,
    plans: list[RunPlan],
    preparation: Preparation,
    capacity: Capacity,
    jobs: int | None,
    cluster: Cluster | None,
    nodes: NodeProcesses,
    progress: Progress,
    *,
    fresh: bool,
) -> MatrixReport:
    at_once = min(jobs_here(capacity) if jobs is None else jobs, len(plans))
    if cluster is not None:
        with use_cluster(cluster, plans, preparation) as back_end:
            ended = Dispatcher(plans, back_end, progress).run()
    elif at_once > 1:
        with use_workers(at_once, capacity) as back_end:
            ended = Dispatcher(plans, back_end, progress).run()
    else:
        ended = _one_by_one(plans, preparation, nodes, progress)
    missing = _run_beside(plans, jobs, cluster, nodes, progress, fresh=fresh)
    progress('writing the report', 1.0)
    try:
        origin = Origin(config_digest(config), missing)
        reports = _with_figures(config, plans, ended)
        return write_matrix_report(config, plans, reports, plans[0].root, origin)
    except OsmabenchError as error:
        # The report would name these errors, and cannot be written.
        failed = (f'{item.run_id}: {item.error}' for item in ended if item.error)
        raise RunError('. Before that: '.join((str(error), *failed))) from error


def _run_beside(
    plans: list[RunPlan],
    jobs: int | None,
    cluster: Cluster | None,
    nodes: NodeProcesses,
    progress: Progress,
    *,
    fresh: bool,
) -> tuple[str, ...]:
    """Run more matrices that suites ask for; return the runs that did not complete."""
    missing: list[str] = []
    for config in matrices_beside(plans):
        out = plans[0].root.parent
        report = run_matrix(
            config, out, fresh=fresh, jobs=jobs, cluster=cluster, nodes=nodes, progress=progress
        )
        missing += (item.run_id for item in report.runs if item.status is not Status.COMPLETE)
    return tuple(missing)


def _with_figures(
    config: MatrixConfig, plans: list[RunPlan], ended: list[RunReport]
) -> Iterator[RunReport]:
    """Read the reports of runs, one at a time; a run that failed has no metrics."""
    matrix = MatrixOnDisk(plans[0].root)
    classes = required_figures(config) if len(plans) > MOST_ON_ONE_PAGE else None
    for report in ended:
        state = STATES.get(report.status)
        found = state and matrix.report(RunOnDisk(report.run_id, state), classes)
        yield found or report


STATES = {Status.COMPLETE: RunState.DONE, Status.INCOMPLETE: RunState.INCOMPLETE}


def _one_by_one(
    plans: list[RunPlan], preparation: Preparation, nodes: NodeProcesses, progress: Progress
) -> list[RunReport]:
    reports = []
    for number, plan in enumerate(plans):
        label = f'[{number + 1}/{len(plans)}] {plan.identity.run_id}: '
        part = share(progress, number / len(plans), (number + 1) / len(plans), label)
        reports.append(without_figures(run_one(plan, preparation, nodes, part)))
    return reports
