"""How long and dear large matrices are on a cluster of many nodes, by simulation.

    python benchmarks/cluster.py runs/mine

Measured here: what the one writer of results needs for a run, by how many are there already, and
how the times of the finished runs in a folder OUT/NAME spread. Simulated with that: the full
OSMa-Bench matrix and 100,000 runs on 1 to 1,000 nodes. Runs last --run-s in the mean; each is a
straggler with --stragglers probability, and takes --slower times as long; --overhead-s is what a
node needs beside a run; nodes fail at random, every --mtbf-h hours, and are back after --repair-s.
A node makes one run at a time and costs --price an hour until the last run ends.
"""

from __future__ import annotations

import argparse
import heapq
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from osmabench_ros.base.files import Existing, filled_folder
from osmabench_ros.base.ledger import Entry, Kind, Ledger
from osmabench_ros.base.scratch import scratch_in
from osmabench_ros.runs.evaluate.evaluation import TRUE_TRAJECTORY

FILES_EACH = 40
"""Files and folders of a run in the list of results."""
MATRICES = {'OSMa-Bench, 30 scenes x 5 conditions x 10 methods x 5 seeds': 7_500, 'large': 100_000}
NODES = (1, 10, 100, 1_000)
console = Console(width=None if sys.stdout.isatty() else 99)


def adopting_s(there: int, repeats: int = 20) -> float:
    """Return the time to put a delivered run beside others."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / 'matrix'
        root.mkdir()
        runs = [f'run_{number}' for number in range(there)]
        files = [f'{run}/file_{number}' for run in runs for number in range(FILES_EACH)]
        Ledger.create(root, [Entry(run, Kind.FOLDER) for run in runs] + [*map(Entry, files)])
        for run in runs:
            (root / run).mkdir()
        taken_s = 0.0
        with scratch_in(root) as incoming:
            for number in range(repeats):
                (incoming / str(number)).mkdir()
                for index in range(FILES_EACH):
                    (incoming / str(number) / f'file_{index}').touch()
                start_s = time.monotonic()
                with filled_folder(root / f'new_{number}', Existing.REPLACE) as draft:
                    draft.rmdir()
                    (incoming / str(number)).rename(draft)
                # The first reads the whole list, once for a command.
                taken_s += time.monotonic() - start_s if number else 0.0
    return taken_s / (repeats - 1)


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


@dataclass(frozen=True)
class World:
    """What happens to nodes and runs beside work; by default nothing."""

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


def told(lengths_s: np.ndarray, world: World, arguments: argparse.Namespace) -> None:
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
    for name, default in (
        ('--run-s', 600.0), ('--overhead-s', 5.0), ('--stragglers', 0.02), ('--slower', 3.0),
        ('--mtbf-h', 500.0), ('--repair-s', 600.0), ('--price', 1.0),
    ):  # fmt: skip
        parser.add_argument(name, type=float, default=default, help=f'default: {default:g}')
    arguments = parser.parse_args()
    adopting = {there: adopting_s(there) for there in (0, 1_000, 10_000)}
    for there, taken_s in adopting.items():
        console.print(f'a run is put beside {there:,} others in {taken_s * 1000:.1f} ms')
    lengths = lengths_in(arguments.results)
    console.print(
        f'{len(lengths)} runs measured: {lengths.mean():.1f} s, standard deviation '
        f'{lengths.std() / lengths.mean():.0%} of the mean'
    )
    world = World(
        arguments.overhead_s,
        adopting[10_000],
        arguments.stragglers,
        arguments.slower,
        arguments.mtbf_h * 3600,
        arguments.repair_s,
    )
    told(lengths / lengths.mean(), world, arguments)
    return 0


if __name__ == '__main__':
    sys.exit(main())
