"""How well runs side by side use the cores, and what a run costs next to mapping and metrics.

    python benchmarks/matrix.py
    python benchmarks/matrix.py --conditions 2

Twelve small runs (an apartment, six conditions, two mappers, 12 frames of 64 x 48 pixels) are made
one by one and by two jobs. The scene is prepared before. Processor time is that of this program
and of all processes that it starts:

    bound     processor time / 2: no schedule of the same work on two cores is faster
    ratio     bound / wall time; on a machine that others use too it says little, so next to it
    used      processor time / (2 x wall time - what other programs took), for two cores in all
    overhead  processor time of a run without mapping and metrics

The cost of a further run is the difference between many runs and few of one job, divided by how
many more they are, so that what is done once (starting, the report) does not count. Mapping and
metrics are measured apart, in this process, on the same frames and maps. The exit code is 0 if
the ratio reaches --ratio and the overhead stays below --overhead.
"""

import os
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import psutil
import typer
from measuring import console
from rich.table import Table

from osmabench_ros.base.progress import silent
from osmabench_ros.bringup.definition import bridge_settings
from osmabench_ros.bringup.runner.matrix_runner import run_matrix
from osmabench_ros.mappers.mapper import make_mapper
from osmabench_ros.nodes.frame_player import open_source
from osmabench_ros.runs.config import MatrixConfig, parse_config
from osmabench_ros.runs.evaluation import EvaluationInputs, evaluate_run
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.report_model import Status

CONDITIONS = ('baseline', 'nominal', 'camera', 'daytime', 'flicker', 'camera_headlight')
MAPPERS = ('oracle', 'appearance')
JOBS = 2


@dataclass(frozen=True)
class Cost:
    """What a matrix took; `others_s` is the processor time of all other programs meanwhile."""

    runs: int
    wall_s: float
    processor_s: float
    others_s: float

    @property
    def bound_s(self) -> float:
        """Shortest time in which the jobs can do it."""
        return self.processor_s / JOBS

    @property
    def ratio(self) -> float:
        """Share of the bound that was reached."""
        return self.bound_s / self.wall_s

    @property
    def used(self) -> float:
        """Share of the processor time that others left."""
        return self.processor_s / max(JOBS * self.wall_s - self.others_s, self.processor_s)


def configuration(conditions: int) -> MatrixConfig:
    """Return small runs; those of a repeat of a condition differ in nothing but its name."""
    data = {
        'name': 'matrix',
        'scenes': [{'reference': 'apartment', 'seed': 3}],
        'conditions': list(CONDITIONS[:conditions]),
        'mappers': [{'name': name} for name in MAPPERS],
        'camera': {'width': 64, 'height': 48},
        'trajectory': {'goals': 2, 'frame_rate_hz': 1.0, 'max_frames': 12},
        'suites': [{'name': 'map_geometry'}],
    }
    return parse_config(data, 'benchmark')


def own_processor_s() -> float:
    """Return the processor time of this process and of all that have ended below it."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def busy_s() -> float:
    """Return the processor time of the whole machine."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


def measured(out: Path, conditions: int, jobs: int = JOBS) -> Cost:
    """Run a matrix whose scene is prepared; SystemExit if a run fails."""
    config = configuration(conditions)
    Preparation().prepare_all(config, out / config.name, silent)
    start_s, own_s, all_s = time.monotonic(), own_processor_s(), busy_s()
    report = run_matrix(config, out, jobs=jobs, progress=silent)
    wall_s, spent_s = time.monotonic() - start_s, own_processor_s() - own_s
    failed = [item.error for item in report.runs if item.status is not Status.COMPLETE]
    if failed:
        raise SystemExit(f'{len(failed)} runs failed: {failed[0]}')
    others_s = max(busy_s() - all_s - spent_s, 0.0)
    console.print(f'{len(report.runs)} runs took {wall_s:.1f} s, {spent_s:.1f} s of a processor')
    return Cost(len(report.runs), wall_s, spent_s, others_s)


def further_run_s(many: Cost, few: Cost) -> float:
    """Return the processor time of one run more."""
    return (many.processor_s - few.processor_s) / (many.runs - few.runs)


def mapping_s(plan: RunPlan) -> float:
    """Return the processor time of a mapper on the frames of a run."""
    frames = open_source(bridge_settings(plan)).frames
    mapper = make_mapper(
        plan.mapper.bundled, label_set=frames.label_set, seed=plan.scene.seed, options={}
    )
    spent_s = 0.0
    try:
        for index in range(len(frames)):
            frame = frames.frame(index).frame
            start_s = time.process_time()
            mapper.integrate(frame)
            spent_s += time.process_time() - start_s
    finally:
        frames.close()
    start_s = time.process_time()
    mapper.semantic_map(final=True)
    return spent_s + time.process_time() - start_s


def metrics_s(plan: RunPlan, folder: Path) -> float:
    """Return the processor time of scoring the map of a run."""
    inputs = replace(
        EvaluationInputs.of_plan(plan), output_directory=folder / plan.identity.run_id
    )
    start_s = time.process_time()
    evaluate_run(inputs, list(plan.config.suites))
    return time.process_time() - start_s


def work_s(out: Path, conditions: int) -> tuple[float, float]:
    """Return the mean processor time of mapping and of metrics in the runs of a matrix."""
    config = configuration(conditions)
    plans = Preparation().plans(config, out / config.name)
    with tempfile.TemporaryDirectory() as folder:
        # What is imported and compiled at the first call is not work of a run.
        mapping_s(plans[0])
        metrics_s(plans[0], Path(folder) / 'first')
        mapping = [mapping_s(plan) for plan in plans]
        metrics = [metrics_s(plan, Path(folder)) for plan in plans]
    return sum(mapping) / len(plans), sum(metrics) / len(plans)


def print_costs(costs: dict[str, Cost]) -> None:
    """Print what the matrices took."""
    table = Table(
        'matrix', 'runs', 'wall, s', 'processor, s', 'others, s', 'bound, s', 'ratio', 'used'
    )
    for name, cost in costs.items():
        table.add_row(
            name, str(cost.runs), f'{cost.wall_s:.1f}', f'{cost.processor_s:.1f}',
            f'{cost.others_s:.1f}', f'{cost.bound_s:.1f}', f'{cost.ratio:.0%}', f'{cost.used:.0%}',
        )  # fmt: skip
    console.print(table)


def main(
    conditions: Annotated[int, typer.Option(min=2, max=len(CONDITIONS), help='two runs each')] = 6,
    ratio: Annotated[float, typer.Option(help='of the bound')] = 0.85,
    overhead: Annotated[float, typer.Option(help='seconds')] = 2.5,
) -> None:
    """Measure, print, and judge."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix='osmabench_matrix_') as name:
        folder = Path(name)
        few = measured(folder / 'few', 1, jobs=1)
        many = measured(folder / 'many', conditions, jobs=1)
        two = measured(folder / 'several', conditions)
        mapping, metrics = work_s(folder / 'several', conditions)
    print_costs({'one job': few, 'one job ': many, f'{JOBS} jobs': two})
    whole = further_run_s(many, few)
    beyond = whole - mapping - metrics
    console.print(
        f'a further run: {whole:.2f} s of processor time, of which mapping {mapping:.2f}, metrics '
        f'{metrics:.2f}, overhead {beyond:.2f} (at most {overhead:g}); all that is '
        f'done once included: {two.processor_s / two.runs - mapping - metrics:.2f} s a run'
    )
    console.print(
        f'{JOBS} jobs reach {two.ratio:.0%} of the bound (at least {ratio:.0%}), and '
        f'used {two.used:.0%} of what others left; load average {load:.1f} before, '
        f'{os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores'
    )
    sys.exit(two.ratio < ratio or beyond >= overhead)


if __name__ == '__main__':
    typer.run(main)
