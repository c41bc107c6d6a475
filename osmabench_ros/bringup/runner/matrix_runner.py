"""Runs a matrix, or mappers in realtime at several speeds: the missing runs, and the report."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from osmabench_ros.base.files import Existing, check_folder, move_aside
from osmabench_ros.base.log import log_to
from osmabench_ros.base.progress import Progress, share
from osmabench_ros.bringup.preflight import check_config
from osmabench_ros.bringup.runner.cluster import Cluster, use_cluster
from osmabench_ros.bringup.runner.dispatch import Dispatcher, check_gpus, find_resources, jobs_here
from osmabench_ros.bringup.runner.node_processes import NodeProcesses
from osmabench_ros.bringup.runner.one_run import run_one, without_figures
from osmabench_ros.bringup.runner.workers import use_workers
from osmabench_ros.errors import OsmabenchError, RunError
from osmabench_ros.reports import matrix
from osmabench_ros.reports.sweep import write_sweep_report
from osmabench_ros.runs import matrix_on_disk
from osmabench_ros.runs.config import MatrixConfig, PacingMode, SweepConfig
from osmabench_ros.runs.evaluation import versions
from osmabench_ros.runs.identity import RunIdentity
from osmabench_ros.runs.matrix_on_disk import make_derived_matrices
from osmabench_ros.runs.plan import RunPlan, config_digest
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.report_model import MatrixReport, RunReport, Status
from osmabench_ros.runs.run_manifest import find_extra_work, lock_folder
from osmabench_ros.runs.sweep import (
    SweepPoint,
    SweepReport,
    SweepSeries,
    point_of,
    search,
    tries_of,
)
from osmabench_ros.runs.timings import TIMINGS, read_measurements


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
    here = find_resources()
    if cluster is None:
        check_gpus(config, here)
    with ExitStack() as stack:
        plans = stack.enter_context(_claim_runs(config, root, preparation, progress, fresh=fresh))
        stack.enter_context(log_to(root))
        if nodes is None:
            nodes = stack.enter_context(closing(NodeProcesses()))
        at_once = min(jobs_here(here) if jobs is None else jobs, len(plans))
        if cluster is not None:
            with use_cluster(cluster, plans, preparation) as back_end:
                ended = Dispatcher(plans, back_end, progress).run()
        elif at_once > 1:
            with use_workers(at_once, here) as back_end:
                ended = Dispatcher(plans, back_end, progress).run()
        else:
            ended = _run_one_by_one(plans, preparation, nodes, progress)
        missing: list[str] = []
        for derived in make_derived_matrices(plans):
            report = run_matrix(
                derived,
                root.parent,
                fresh=fresh,
                jobs=jobs,
                cluster=cluster,
                nodes=nodes,
                progress=progress,
            )
            missing += (item.run_id for item in report.runs if item.status is not Status.COMPLETE)
        progress('writing the report', 1.0)
        return _write_report(config, plans, ended, missing)


@contextmanager
def _claim_runs(
    config: MatrixConfig,
    root: Path,
    preparation: Preparation,
    progress: Progress,
    *,
    fresh: bool,
    sweep: bool = False,
) -> Iterator[list[RunPlan]]:
    """Yield the plans of a configuration while their folder is locked and has only their results.

    Kept results that lack questions or scores of more suites are made to go on with them.
    """
    plans = preparation.plans(config, root)
    with lock_folder(root):
        extra = matrix_on_disk.claim(
            root, config, plans, preparation.digest_of, fresh=fresh, sweep=sweep
        )
        preparation.prepare_extra_work(extra, progress)
        yield plans


def _write_report(
    config: MatrixConfig, plans: list[RunPlan], ended: list[RunReport], missing: Sequence[str]
) -> MatrixReport:
    """Write the report of all runs; `missing` are runs next to them that did not complete."""
    try:
        reports = _with_figures(config, plans, ended)
        return matrix.write_matrix_report(config, plans, reports, plans[0].root, missing)
    except OsmabenchError as error:
        # The report would name these errors, and cannot be written.
        failed = (f'{item.run_id}: {item.error}' for item in ended if item.error)
        raise RunError('. Before that: '.join((str(error), *failed))) from error


def _with_figures(
    config: MatrixConfig, plans: list[RunPlan], ended: list[RunReport]
) -> Iterator[RunReport]:
    """Read the reports of runs, one at a time; a run that failed has no metrics."""
    results = matrix_on_disk.MatrixOnDisk(plans[0].root)
    many = len(plans) > matrix.MOST_ON_ONE_PAGE
    classes = matrix.list_required_metrics(config) if many else None
    for run, report in zip(results.runs(), ended, strict=True):
        # A full disk may lack the report of a failure.
        yield results.report(run, classes) or report


def _run_one_by_one(
    plans: list[RunPlan], preparation: Preparation, nodes: NodeProcesses, progress: Progress
) -> list[RunReport]:
    reports = []
    for number, plan in enumerate(plans):
        label = f'[{number + 1}/{len(plans)}] {plan.identity.run_id}: '
        part = share(progress, number / len(plans), (number + 1) / len(plans), label)
        reports.append(without_figures(run_one(plan, preparation, nodes, part)))
    return reports


def run_sweep(
    config: MatrixConfig,
    out: Path,
    sweep: SweepConfig,
    *,
    fresh: bool = False,
    progress: Progress,
) -> SweepReport:
    """Run every scene, condition and mapper in realtime at several speeds.

    Runs that are done stay done, unless `fresh` moves them to ``previous/``; requirements are left
    aside. Results go to ``<name>_sweep`` in `out`.
    """
    root = sweep_folder(config, out)
    check_folder(root, Existing.MERGE)
    preparation = check_config(config, out)
    paceless = at_speed(config, 1.0)
    with (
        _claim_runs(paceless, root, preparation, progress, fresh=fresh, sweep=True) as plans,
        log_to(root),
        closing(NodeProcesses()) as nodes,
    ):

        def measure(number: int, speed: float, part: Progress) -> SweepPoint:
            plan = preparation.plans(at_speed(config, speed), root)[number]
            timings = plan.directory / TIMINGS
            if plan.directory.exists() and not timings.exists():
                # It was cut off before it was timed, and a run without timings is useless here.
                move_aside(plan.directory)
            preparation.prepare_extra_work(find_extra_work([plan], preparation.digest_of), part)
            report = run_one(plan, preparation, nodes, part)
            return point_of(speed, report, read_measurements(timings))

        series = []
        for number, plan in enumerate(plans):
            label = f'[{number + 1}/{len(plans)}] {plan.identity.mapper}'
            part = share(progress, number / len(plans), (number + 1) / len(plans), label)
            series.append(_try_speeds(sweep, plan.identity, partial(measure, number), part))
        report = SweepReport(
            name=config.name,
            max_loss=sweep.max_loss,
            series=tuple(series),
            verdicts=tuple(f'{item.title}: {item.verdict}' for item in series),
            versions=versions(),
            hashes={'config': config_digest(paceless)},
        )
        progress('writing the report', 1.0)
        write_sweep_report(report, root)
    return report


def sweep_folder(config: MatrixConfig, out: Path) -> Path:
    """Return the folder of results of a sweep."""
    return out / f'{config.name}_sweep'


def at_speed(config: MatrixConfig, speed_factor: float) -> MatrixConfig:
    """Return a configuration in realtime at a speed."""
    pacing = config.pacing.model_copy(
        update={'mode': PacingMode.REALTIME, 'speed_factor': speed_factor}
    )
    return config.model_copy(update={'pacing': pacing, 'requirements': ()})


def _try_speeds(
    sweep: SweepConfig,
    identity: RunIdentity,
    measure: Callable[[float, Progress], SweepPoint],
    progress: Progress,
) -> SweepSeries:
    """Run one mapper on one scene under one condition at several speeds."""
    points: dict[float, SweepPoint] = {}
    tries = len(sweep.speeds) or tries_of(sweep.grid)

    def follow(speed: float) -> bool:
        tried = min(len(points), tries - 1)
        part = share(progress, tried / tries, (tried + 1) / tries, f' at {speed:g}: ')
        points[speed] = measure(speed, part)
        return points[speed].follows(sweep.max_loss)

    for speed in sweep.speeds:
        follow(speed)
    if not sweep.speeds:
        search(sweep.grid, follow)
    return SweepSeries(
        **vars(identity.scene_key),
        method_seed=identity.method_seed,
        condition=identity.condition,
        mapper=identity.mapper,
        max_loss=sweep.max_loss,
        points=tuple(points[speed] for speed in sorted(points)),
    )
