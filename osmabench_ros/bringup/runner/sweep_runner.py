"""Runs mappers in realtime at several speeds, and finds the fastest each can keep up with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from osmabench_ros.base.files import Existing, check_folder, move_aside
from osmabench_ros.base.progress import Progress, share
from osmabench_ros.bringup.doctor.run_preflight import check_config
from osmabench_ros.bringup.runner.node_processes import NodeProcesses
from osmabench_ros.bringup.runner.one_run import run_one
from osmabench_ros.reports.sweep import write_sweep_report
from osmabench_ros.runs.config import MatrixConfig, PacingMode, SweepConfig
from osmabench_ros.runs.evaluate.evaluation import versions
from osmabench_ros.runs.matrix_on_disk import check_results, claim
from osmabench_ros.runs.plan import RunPlan, config_digest
from osmabench_ros.runs.results.report_model import RunReport
from osmabench_ros.runs.results.results_folder import held
from osmabench_ros.runs.results.timings import TIMINGS, read_measurements
from osmabench_ros.runs.run_manifest import find_growth
from osmabench_ros.runs.sweep import (
    SweepPoint,
    SweepReport,
    SweepSeries,
    point_of,
    search,
    tries_of,
)


def run_sweep(
    config: MatrixConfig,
    out: Path,
    sweep: SweepConfig | None = None,
    *,
    fresh: bool = False,
    progress: Progress,
) -> SweepReport:
    """Run every scene, condition and mapper in realtime at several speeds.

    Runs that are done stay done, unless `fresh` moves them to ``previous/``; requirements are left
    aside. Results go to ``<name>_sweep`` in `out`.
    """
    sweep = sweep or config.sweep
    root = sweep_folder(config, out)
    check_folder(root, Existing.MERGE)
    preparation = check_config(config, out)
    paceless = at_speed(config, 1.0)
    nodes = NodeProcesses()
    with held(root), closing(nodes):
        plans = preparation.plans(paceless, root)
        growth = claim(root, paceless, plans, preparation.digest_of, fresh=fresh, sweep=True)
        check_results(root, ())
        preparation.grow(growth, progress)

        def plans_at(speed: float) -> list[RunPlan]:
            return preparation.plans(at_speed(config, speed), root)

        def run(plan: RunPlan, part: Progress) -> RunReport:
            preparation.grow(find_growth([plan], preparation.digest_of), part)
            return run_one(plan, preparation, nodes, part)

        series = []
        for number, plan in enumerate(plans):
            label = f'[{number + 1}/{len(plans)}] {plan.identity.mapper}'
            part = share(progress, number / len(plans), (number + 1) / len(plans), label)
            series.append(_try_speeds(sweep, plans_at, number, run, part))
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
    plans_at: Callable[[float], list[RunPlan]],
    number: int,
    run: Callable[[RunPlan, Progress], RunReport],
    progress: Progress,
) -> SweepSeries:
    """Run one mapper on one scene under one condition at several speeds."""
    points: dict[float, SweepPoint] = {}
    tries = len(sweep.speeds) or tries_of(sweep.grid)

    def follow(speed: float) -> bool:
        plan, tried = plans_at(speed)[number], min(len(points), tries - 1)
        timings = plan.directory / TIMINGS
        if plan.directory.exists() and not timings.exists():
            # It was cut off before it was timed, and a run without timings is useless here.
            move_aside(plan.directory)
        part = share(progress, tried / tries, (tried + 1) / tries, f' at {speed:g}: ')
        points[speed] = point_of(speed, run(plan, part), read_measurements(timings))
        return points[speed].follows(sweep.max_loss)

    for speed in sweep.speeds:
        follow(speed)
    if not sweep.speeds:
        search(sweep.grid, follow)
    identity = plans_at(1.0)[number].identity
    key = identity.scene_key
    return SweepSeries(
        dataset=key.dataset,
        scene=key.scene,
        seed=key.seed,
        path_seed=key.path_seed,
        method_seed=identity.method_seed,
        condition=identity.condition,
        mapper=identity.mapper,
        max_loss=sweep.max_loss,
        points=tuple(points[speed] for speed in sorted(points)),
    )
