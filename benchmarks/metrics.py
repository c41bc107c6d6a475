"""Speed and memory of the metrics beside the straightforward way of published code.

Both are measured in one run. What would take minutes is measured on fewer points and scaled in
proportion, which the table says; where the straightforward way grows faster than that, the ratio
is an understatement.

    python benchmarks/metrics.py                 everything but the largest scene
    python benchmarks/metrics.py scene huge      some cases
    python benchmarks/metrics.py --quick         small sizes, for a look
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from large_scene import ground_truth, semantic_map, surface
from numpy.typing import NDArray
from published_ways import (
    broadcast_ranking,
    brute_force_nearest,
    double_loop_confusion,
    per_point_frequency,
    plain_tree_nearest,
)
from rich.console import Console
from rich.table import Table

from osmabench_ros.metrics.confusion import confusion_matrix
from osmabench_ros.metrics.device import resolve_device
from osmabench_ros.metrics.matching import NeighbourIndex, Neighbours
from osmabench_ros.metrics.openlex3d import PointFeatures, top_n_frequency
from osmabench_ros.metrics.similarity import best_prompts
from osmabench_ros.metrics.tiers import TieredObject, tiers_by_id
from osmabench_ros.suites.map_geometry import MapGeometrySuite
from osmabench_ros.suites.matches import Matches
from osmabench_ros.suites.osma_segmentation import OsmaSegmentationSuite
from osmabench_ros.suites.suite import SuiteContext

PROMPTS, DIMENSIONS = 3_500, 1_024


@dataclass(frozen=True)
class Timing:
    """How long something took, and how long the processors worked at it."""

    wall_s: float
    processor_s: float

    def scaled(self, factor: float) -> Timing:
        """Return the timing of so many times the work."""
        return Timing(self.wall_s * factor, self.processor_s * factor)


@dataclass(frozen=True)
class Row:
    """A line of the result."""

    case: str
    size: str
    device: str
    ours: Timing
    published: Timing | None = None
    measured_on: str = ''
    matching_s: float | None = None
    peak_gib: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times faster than the published way by the clock on the wall."""
        return None if self.published is None else self.published.wall_s / self.ours.wall_s

    @property
    def work_ratio(self) -> float | None:
        """The same in time of processors, which other programs disturb less."""
        if self.published is None or self.device != 'cpu':
            return None
        return self.published.processor_s / self.ours.processor_s


def timed(call: Callable[[], object], repeats: int = 1) -> Timing:
    """Return the least times of some calls."""
    timings = []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        call()
        timings.append((time.perf_counter() - wall, time.process_time() - processor))
    walls, processors = zip(*timings, strict=True)
    return Timing(min(walls), max(min(processors), 1e-6))


def confusion_case(device: str, quick: bool) -> Iterator[Row]:
    """Count confusion matrices."""
    rng = np.random.default_rng(0)
    for points in (100_000,) if quick else (1_000_000, 4_000_000, 10_000_000):
        for classes in (53, 132):
            truth, predicted = rng.integers(0, classes, (2, points), np.int32)
            few = min(points, 100_000)
            count = partial(confusion_matrix, truth, predicted, range(classes), device=device)
            loop = partial(double_loop_confusion, truth[:few], predicted[:few], classes)
            yield Row(
                'confusion',
                f'{points:,} points, {classes} classes',
                device,
                timed(count, 3),
                timed(loop).scaled(points / few),
                f'{few:,} points',
            )


def matching_case(device: str, quick: bool) -> Iterator[Row]:
    """Find the nearest map point of every true point."""
    sizes = [(50_000, 20_000)] if quick else [(1_000_000, 300_000), (4_000_000, 2_000_000)]
    for n, m in sizes:
        truth, predicted = surface(n, 53, 0).points, surface(m, 53, 1).points
        ours = timed(partial(match, truth, predicted, device))
        size = f'{n:,} to {m:,} points'
        tree = timed(partial(plain_tree_nearest, truth, predicted))
        yield Row('matching, plain k-d tree', size, device, ours, tree)
        brute = timed(partial(brute_force_nearest, truth[:50], predicted)).scaled(n / 50)
        yield Row('matching, brute force', size, device, ours, brute, '50 queries')


def match(truth: NDArray[np.float32], predicted: NDArray[np.float32], device: str) -> Neighbours:
    """Build an index of the map and ask it for every true point."""
    return NeighbourIndex(predicted, device).query(truth)


def ranking_case(device: str, quick: bool) -> Iterator[Row]:
    """Find the five prompts most like each feature."""
    rng = np.random.default_rng(0)
    prompts = rng.normal(size=(PROMPTS, DIMENSIONS)).astype(np.float32)
    for n in (1_000,) if quick else (1_000, 20_000, 200_000):
        features = rng.standard_normal((n, DIMENSIONS), np.float32)
        ours = timed(
            partial(best_prompts, features, prompts, 5, device=device), 3 if n < 10_000 else 1
        )
        broadcast = timed(partial(broadcast_ranking, features[:16], prompts)).scaled(n / 16)
        size = f'{n:,} x {PROMPTS:,} x {DIMENSIONS:,}'
        yield Row('prompt ranking', size, device, ours, broadcast, '16 features')


def top_n_case(_device: str, quick: bool) -> Iterator[Row]:
    """Compute Top-5 frequencies, given the best words of each feature."""
    rng = np.random.default_rng(0)
    objects, rows = 200, 1_000
    names = [f'word {i}' for i in range(PROMPTS)]
    words = [frozenset(rng.integers(0, PROMPTS, 5).tolist()) for _ in range(objects)]
    tiers = tiers_by_id(
        TieredObject(i, tuple(names[j] for j in sorted(own))) for i, own in enumerate(words)
    )
    best = rng.integers(0, PROMPTS, (rows, 5))
    for points in (100_000,) if quick else (1_000_000, 4_000_000):
        ids, own = rng.integers(0, objects, points), rng.integers(0, rows, points)
        features = PointFeatures(ids, own, np.zeros(points, np.float32))
        ours = timed(partial(top_n_frequency, features, best, tiers, names), 3)
        few = 20_000
        loop = timed(partial(per_point_frequency, ids[:few], own[:few], best, words))
        size = f'{points:,} points'
        scaled = loop.scaled(points / few)
        yield Row('top-n frequency', size, 'cpu', ours, scaled, f'{few:,} points')


def scene_case(device: str, quick: bool) -> Iterator[Row]:
    """Score a scene: segmentation compat and strict, and all of geometry."""
    sizes = [(200_000, 50_000)] if quick else [(1_000_000, 1_000_000), (4_000_000, 1_000_000)]
    for n, m in sizes:
        yield in_own_process(n, m, device)


def huge_case(device: str, quick: bool) -> Iterator[Row]:
    """Score a scene as large as those of HM3D, in chunks."""
    yield in_own_process(*((500_000, 100_000) if quick else (25_000_000, 2_000_000)), device)


def in_own_process(n: int, m: int, device: str) -> Row:
    """Score a scene in a process of its own, so that its peak of memory is its own."""
    with multiprocessing.get_context('spawn').Pool(1) as pool:
        return pool.apply(score_scene, (n, m, device))


def score_scene(n: int, m: int, device: str) -> Row:
    """Score n true surface points and n fused ones against a map of m points."""
    resolve_device(device)
    truth = ground_truth(n, 53)
    context = SuiteContext('large', semantic_map(m, truth), truth, device)
    suites = OsmaSegmentationSuite(options={}), MapGeometrySuite(options={})
    start, processor = time.perf_counter(), time.process_time()
    matching = timed(partial(match_scene, context.matches))
    for suite in suites:
        suite.evaluate(context)
    return Row(
        'scene, compat, strict, geometry',
        f'{n:,} + {n:,} true, {m:,} map points',
        device,
        Timing(time.perf_counter() - start, time.process_time() - processor),
        matching_s=matching.wall_s,
        peak_gib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    )


def match_scene(matches: Matches) -> None:
    """Do all the matching that the suites share."""
    _ = matches.fused_to_map, matches.surface_to_map, matches.map_to_truth


CASES: dict[str, Callable[[str, bool], Iterator[Row]]] = {
    'confusion': confusion_case,
    'matching': matching_case,
    'ranking': ranking_case,
    'top_n': top_n_case,
    'scene': scene_case,
    'huge': huge_case,
}
ON_DEVICES = ('confusion', 'matching', 'ranking')


def bandwidth_row() -> Row:
    """Measure how long a GPU takes to read 1 GB and write it, the bound of counting."""
    import torch

    block = torch.zeros(250_000_000, device='cuda')

    def copy() -> None:
        block.clone()
        torch.cuda.synchronize()

    return Row('copy, bound by memory bandwidth', '1 GB', 'cuda', timed(copy, 5))


def table_of(rows: list[Row]) -> Table:
    """Lay the rows out."""
    table = Table(title=f'metrics on {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}')
    for heading in (
        *('case', 'size', 'device', 'ours s', 'published s', 'measured on', 'faster'),
        *('processor s', 'less work', 'matching s', 'peak GiB'),
    ):
        table.add_column(heading)
    for row in rows:
        table.add_row(
            row.case,
            row.size,
            row.device,
            _text(row.ours.wall_s),
            _text(row.published and row.published.wall_s),
            row.measured_on,
            _text(row.ratio, 'x'),
            _text(row.ours.processor_s),
            _text(row.work_ratio, 'x'),
            _text(row.matching_s),
            _text(row.peak_gib),
        )
    return table


def _text(figure: float | None, unit: str = '') -> str:
    return '' if figure is None else f'{figure:.3g}{unit}'


def main() -> None:
    """Run the cases that were asked for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('cases', nargs='*', choices=[[], *CASES], default=[])
    parser.add_argument('--quick', action='store_true', help='small sizes')
    parser.add_argument('--out', type=Path, help='write the rows as JSON')
    arguments = parser.parse_args()
    chosen = arguments.cases or [name for name in CASES if name != 'huge']
    has_gpu = resolve_device('auto').type == 'cuda'
    rows = [bandwidth_row()] if has_gpu else []
    for name in chosen:
        rows += CASES[name]('cpu', arguments.quick)
        if has_gpu and name in ON_DEVICES:
            rows += CASES[name]('cuda', arguments.quick)
    Console(width=200).print(table_of(rows))
    if arguments.out:
        found = [{**asdict(row), 'ratio': row.ratio, 'work_ratio': row.work_ratio} for row in rows]
        arguments.out.write_text(json.dumps(found, indent=1) + '\n')


if __name__ == '__main__':
    main()
