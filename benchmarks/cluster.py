"""How long and dear large matrices are on a cluster of many nodes, measured and by simulation.

    python benchmarks/cluster.py runs/mine
    python benchmarks/cluster.py runs/mine --real 10000

With --real, tasks of known length go through the scheduler of `osmabench run --cluster` to nodes
of Ray on this machine: what a task costs next to its length, and the share of time in which nodes
idle. Then fewer tasks, of which some last long and some kill their worker, go the same way, and
through the simulation, which must agree.

Measured too: how the times of the finished runs in a folder OUT/NAME spread. Simulated with that:
the full OSMa-Bench matrix and 100,000 runs on 1 to 1,000 nodes. Runs last --run-s in the mean;
each is a straggler with --stragglers probability, and takes --slower times as long; a node needs
--overhead-s more for a run, and the command --driver-s; nodes fail at random, every --mtbf-h
hours, and are back after --repair-s. A node makes one run at a time and costs --price an hour
until the last run ends.
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
from rich.console import Console
from rich.table import Table

from osmabench_ros.base.progress import silent
from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.evaluate.evaluation import TRUE_TRAJECTORY
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.report_model import RunReport, Status

MATRICES = {'OSMa-Bench, 30 scenes x 5 conditions x 10 methods x 5 seeds': 7_500, 'large': 100_000}
NODES = (1, 10, 100, 1_000)
console = Console(width=None if sys.stdout.isatty() else 99)


def lengths_in(folder: Path) -> np.ndarray:
    """Return how long the runs of a folder of results took, from the times of their files."""
    pairs = [(item / TRUE_TRAJECTORY, item / 'report.json') for item in folder.iterdir()]
    found = [
        end.stat().st_mtime - start.stat().st_mtime
        for start, end in pairs
        if start.exists() and end.exists()
    ]
    if len(found) < 2:
        raise SystemExit(f'{folder} has fewer than two finished runs; name OUT/NAME of a matrix')
    return np.array(found)


class Measured(NamedTuple):
    """Of tasks of known length: the time until all are done, and what went into it."""

    makespan_s: float
    worked_s: float
    slots: int
    driver_s: float
    """Of processor time, in the command."""
    lost: int
    start_s: float
    """Until the first tasks were done, for which workers had to start."""

    def idle_s(self) -> float:
        """Return the time of all slots in which none slept for a task that was done."""
        return self.makespan_s * self.slots - self.worked_s

    def verdict(self, tasks: int) -> str:
        """Return what a task costs and how long nodes idle."""
        return (
            f'{tasks:,} tasks of {self.worked_s / tasks:.3f} s on {self.slots} slots took '
            f'{self.makespan_s:.1f} s: {self.idle_s() / tasks * 1000:.1f} ms of a slot a task '
            f'beside its length, idle {self.idle_s() / self.makespan_s / self.slots:.1%}, '
            f'{self.driver_s / tasks * 1000:.1f} ms of processor in the command'
        )


def through_ray(
    nodes: Sequence[int], lengths_s: Sequence[float], mtbf_s: float = math.inf
) -> Measured:
    """Send tasks that sleep to a cluster of this machine, `nodes` with so many processors each.

    Tasks kill their worker at random, every `mtbf_s` of its time.
    """
    os.environ.update(RAY_USAGE_STATS_ENABLED='0', RAY_worker_niceness='0')
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix='ray', dir='/tmp')))
        os.environ['RAY_TMPDIR'] = str(folder)
        (folder / 'ray').mkdir()
        from ray.cluster_utils import Cluster as RayCluster

        from osmabench_ros.bringup.runner.cluster import Cluster, RayBackEnd, connect
        from osmabench_ros.bringup.runner.dispatch import Dispatcher, Result

        def sleeping(fails: bool) -> type[RayBackEnd]:
            def sleeps(order: Any, _queue: Any, name: str) -> Result:
                number, number_of_try = map(int, name.removeprefix('run-').split('.'))
                random = np.random.default_rng((number, number_of_try))
                if fails and (until_s := random.exponential(mtbf_s)) < lengths_s[number]:
                    time.sleep(until_s)
                    os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(lengths_s[number])
                run_id = order.plan.identity.run_id
                return Result(RunReport(run_id=run_id, status=Status.COMPLETE))

            return type('Sleeping', (RayBackEnd,), {'task': staticmethod(sleeps)})

        data: dict[str, Any] = {
            'name': 'sleeping',
            'mappers': [{'name': 'oracle'}],
            'seeds': {'method': list(range(len(lengths_s)))},
        }
        preparation, root = Preparation(), folder / 'sleeping'
        plans = preparation.plans(parse_config(data, 'sleeping'), root)
        plans[0].shared_directory.mkdir(parents=True)
        small = {'object_store_memory': 80 * 2**20, 'memory': 2**40}
        head = {'num_cpus': 0, 'include_dashboard': False, **small}
        ray_cluster = RayCluster(initialize_head=True, head_node_args=head)
        stack.callback(ray_cluster.shutdown)
        for processors in nodes:
            ray_cluster.add_node(num_cpus=processors, **small)
        ray = stack.enter_context(connect(ray_cluster.address))
        cluster = Cluster(ray_cluster.address, tries=100)

        def run(count: int, fails: bool) -> tuple[float, list[RunReport]]:
            start_s = time.monotonic()
            back_end = sleeping(fails)(ray, cluster, plans[:count], preparation)
            reports = Dispatcher(plans[:count], back_end, silent).run()
            return time.monotonic() - start_s, reports

        start_s, _ = run(sum(nodes), fails=False)
        with catch_warnings(record=True) as warned:
            simplefilter('always', OsmabenchWarning)
            before_s = time.process_time()
            makespan_s, reports = run(len(plans), math.isfinite(mtbf_s))
            driver_s = time.process_time() - before_s
        if any(item.status is not Status.COMPLETE for item in reports):
            raise SystemExit(f'a task failed: {next(filter(None, (x.error for x in reports)))}')
        lost = sum(issubclass(item.category, OsmabenchWarning) for item in warned)
    return Measured(makespan_s, float(sum(lengths_s)), sum(nodes), driver_s, lost, start_s)


@dataclass(frozen=True)
class World:
    """What happens to nodes and runs next to work; by default nothing."""

    overhead_s: float = 0.0
    driver_s: float = 0.0
    stragglers: float = 0.0
    slower: float = 1.0
    mtbf_s: float = math.inf
    repair_s: float = 0.0


@dataclass(frozen=True)
class Foretold:
    """When the last run ends, and what of the nodes' time was lost."""

    makespan_s: float
    idle: float
    lost_runs: int


def foretell(lengths_s: Sequence[float] | np.ndarray, slots: int, world: World) -> Foretold:
    """Simulate runs in their order on slots, each taken by the first that is free.

    The driver hands out and takes back one at a time. A node that fails loses its run, which is
    made again; failures have no memory, so each try draws its own.
    """
    random = np.random.default_rng(0)
    free_s = [0.0] * slots
    driver_s = worked_s = end_s = 0.0
    lost = 0
    for length_s in lengths_s:
        slow = random.random() < world.stragglers
        needed_s = float(length_s) * (world.slower if slow else 1.0)
        while True:
            driver_s = max(driver_s, heapq.heappop(free_s)) + world.driver_s
            fails_s = random.exponential(world.mtbf_s) if math.isfinite(world.mtbf_s) else math.inf
            if fails_s >= needed_s + world.overhead_s:
                break
            lost += 1
            heapq.heappush(free_s, driver_s + fails_s + world.repair_s)
        done_s = driver_s + world.overhead_s - world.driver_s + needed_s
        end_s, worked_s = max(end_s, done_s), worked_s + needed_s
        heapq.heappush(free_s, done_s)
    return Foretold(end_s, 1 - worked_s / (end_s * slots), lost)


def real(tasks: int) -> None:
    """Measure tasks on four nodes; then let the simulation foretell what some others take."""
    nodes, random = (2, 2, 2, 2), np.random.default_rng(2)
    many = through_ray(nodes, random.uniform(0.1, 0.3, tasks))
    console.print(many.verdict(tasks))
    mtbf_s, lengths_s = 20.0, np.where(random.random(200) < 0.05, 4.0, 1.0)
    repair_s = through_ray((1,), [0.1]).start_s
    found = through_ray(nodes, lengths_s, mtbf_s)
    world = World(many.idle_s() / tasks, many.driver_s / tasks, mtbf_s=mtbf_s, repair_s=repair_s)
    foretold = foretell(lengths_s, sum(nodes), world)
    console.print(
        f'{len(lengths_s)} tasks of 1 s, one in twenty of 4 s, a node lost every {mtbf_s:.0f} s '
        f'and back after {repair_s:.1f} s: {found.makespan_s:.1f} s with {found.lost} tries lost; '
        f'simulated: {foretold.makespan_s:.1f} s with {foretold.lost_runs}'
    )


def print_lengths(lengths_s: np.ndarray, world: World, arguments: argparse.Namespace) -> None:
    """Print what whole matrices take."""
    table = Table('matrix', 'runs', 'nodes', 'days', 'idle', 'runs lost', 'cost')
    for name, runs in MATRICES.items():
        drawn = np.random.default_rng(1).choice(lengths_s, runs) * arguments.run_s
        for nodes in NODES:
            found = foretell(drawn, nodes, world)
            days = found.makespan_s / 86_400
            cost = found.makespan_s / 3600 * nodes * arguments.price
            table.add_row(
                name, f'{runs:,}', f'{nodes:,}', f'{days:.2f}', f'{found.idle:.1%}',
                f'{found.lost_runs:,}', f'{cost:,.0f}',
            )  # fmt: skip
    console.print(table)


def main() -> int:
    """Measure, simulate, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('results', type=Path, help='a folder OUT/NAME of finished runs')
    parser.add_argument('--real', type=int, metavar='TASKS', help='go through Ray first')
    for name, default in (
        ('--run-s', 600.0), ('--overhead-s', 5.0), ('--driver-s', 0.01), ('--stragglers', 0.02),
        ('--slower', 3.0), ('--mtbf-h', 500.0), ('--repair-s', 600.0), ('--price', 1.0),
    ):  # fmt: skip
        parser.add_argument(name, type=float, default=default, help=f'default: {default:g}')
    arguments = parser.parse_args()
    if arguments.real:
        real(arguments.real)
    lengths = lengths_in(arguments.results)
    console.print(
        f'{len(lengths)} runs measured: {lengths.mean():.1f} s, standard deviation '
        f'{lengths.std() / lengths.mean():.0%} of the mean'
    )
    world = World(
        arguments.overhead_s,
        arguments.driver_s,
        arguments.stragglers,
        arguments.slower,
        arguments.mtbf_h * 3600,
        arguments.repair_s,
    )
    print_lengths(lengths / lengths.mean(), world, arguments)
    return 0


if __name__ == '__main__':
    sys.exit(main())
