"""Runs mappers in realtime at several speeds, and finds the fastest each can keep up with."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from osmabench_ros.base.owned_folder import Existing, check_folder, move_aside
from osmabench_ros.base.progress import Progress
from osmabench_ros.bringup.doctor.run_preflight import check_run
from osmabench_ros.bringup.runner.node_processes import NodeProcesses
from osmabench_ros.bringup.runner.one_run import run_one
from osmabench_ros.reports.sweep import write_sweep_report
from osmabench_ros.runs.config import MatrixConfig, PacingMode, SweepConfig
from osmabench_ros.runs.evaluate.evaluation import versions
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.inputs import input_digests
from osmabench_ros.runs.plan import RunPlan, config_digest
from osmabench_ros.runs.prepare.preparation import Preparation
from osmabench_ros.runs.results.results_folder import check_results, claim, held
from osmabench_ros.runs.results.timings import TIMINGS, read_measurements
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
    preparation = Preparation()
    preparation.check_names(config)
    check_run(config, out)
    preparation.check_mappers(config)
    paceless = at_speed(config, 1.0)
    nodes = NodeProcesses()
    with held(root), closing(nodes):
        claim(root, paceless, input_digests(paceless, preparation.digests(config)), fresh=fresh)
        check_results(root, ())
        count = len(preparation.plans(paceless, root))
        series = [
            _Series(config, sweep, preparation, nodes, root, number, count, progress).run()
            for number in range(count)
        ]
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


class _Series:
    """One mapper on one scene under one condition."""

    def __init__(
        self,
        config: MatrixConfig,
        sweep: SweepConfig,
        preparation: Preparation,
        nodes: NodeProcesses,
        root: Path,
        number: int,
        count: int,
        progress: Progress,
    ) -> None:
        self._config, self._sweep, self._root = config, sweep, root
        self._preparation, self._nodes = preparation, nodes
        self._number, self._count, self._progress = number, count, progress
        self._points: dict[float, SweepPoint] = {}
        self._tries = len(sweep.speeds) or tries_of(sweep.grid)

    def run(self) -> SweepSeries:
        speeds: Sequence[float] = self._sweep.speeds
        for speed in speeds:
            self._follows(speed)
        if not speeds:
            search(self._sweep.grid, self._follows)
        identity = self._plan(1.0).identity
        key: SceneKey = identity.scene_key
        return SweepSeries(
            dataset=key.dataset,
            scene=key.scene,
            seed=key.seed,
            path_seed=key.path_seed,
            method_seed=identity.method_seed,
            condition=identity.condition,
            mapper=identity.mapper,
            max_loss=self._sweep.max_loss,
            points=tuple(self._points[speed] for speed in sorted(self._points)),
        )

    def _plan(self, speed: float) -> RunPlan:
        return self._preparation.plans(at_speed(self._config, speed), self._root)[self._number]

    def _follows(self, speed: float) -> bool:
        plan, tried = self._plan(speed), len(self._points)
        label = f'[{self._number + 1}/{self._count}] {plan.identity.mapper} at {speed:g}'

        def show(text: str, fraction: float) -> None:
            done = min(1.0, (tried + fraction) / self._tries)
            self._progress(f'{label}: {text}', (self._number + done) / self._count)

        timings = plan.directory / TIMINGS
        if plan.directory.exists() and not timings.exists():
            # It was cut off before it was timed, and a run without timings is useless here.
            move_aside(plan.directory)
        report = run_one(plan, self._preparation, self._nodes, show)
        point = point_of(speed, report, read_measurements(timings))
        self._points[speed] = point
        return point.follows(self._sweep.max_loss)
