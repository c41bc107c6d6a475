"""Speed and memory of the metrics next to the straightforward way of published code.

Both are measured in one run. What would take minutes is measured on fewer points and scaled in
proportion, which the table says; where the straightforward way grows faster than that, the ratio
is an understatement. Where both give the same kind of answer, the answers must be equal. Beside
the times stand the bounds of the hardware that were measured in the same run (the plain matrix
product; on a GPU, reading and writing memory), and how the cost grows with the size.

    python benchmarks/metrics.py                 everything but the largest scene
    python benchmarks/metrics.py scene huge      some cases
    python benchmarks/metrics.py --quick         small sizes, for a look
"""

import argparse
import multiprocessing
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import published_ways
from large_scene import ground_truth, semantic_map, surface
from metric_rows import Row, Timing, growth_of, table_of, timed
from numpy.typing import NDArray
from rich.console import Console

from osmabench_ros.base.device import resolve_device
from osmabench_ros.base.files import check_file, write_json
from osmabench_ros.metrics.confusion import confusion_matrix
from osmabench_ros.metrics.nearest_neighbours import NeighbourIndex, Neighbours
from osmabench_ros.metrics.openlex3d import PointFeatures, top_n_frequency
from osmabench_ros.metrics.similarity import find_best_prompts
from osmabench_ros.metrics.tiers import TieredObject, collect_tiers
from osmabench_ros.suites.map_geometry import MapGeometrySuite
from osmabench_ros.suites.osma_segmentation import OsmaSegmentationSuite
from osmabench_ros.suites.suite import Correspondences, SuiteContext

PROMPTS, DIMENSIONS = 3_500, 1_024
RANKED_BY_PUBLISHED_WAY = 200


def must_agree(case: str, ours: NDArray[np.integer], published: NDArray[np.integer]) -> None:
    """End the benchmark if the two ways do not compute the same."""
    if not np.array_equal(ours, published):
        raise SystemExit(f'{case}: our answer differs from that of the published way')


def confusion_case(device: str, quick: bool) -> Iterator[Row]:
    """Count confusion matrices."""
    rng = np.random.default_rng(0)
    for points in (100_000,) if quick else (1_000_000, 4_000_000, 10_000_000):
        for classes in (53, 132):
            truth, predicted = rng.integers(0, classes, (2, points), np.int32)
            few = min(points, 100_000)
            count = partial(confusion_matrix, truth, predicted, range(classes), device=device)
            loop = partial(
                published_ways.double_loop_confusion, truth[:few], predicted[:few], classes
            )
            part = confusion_matrix(truth[:few], predicted[:few], range(classes), device=device)
            must_agree('confusion', part.counts[:-1, :-1], loop())
            yield Row(
                'confusion',
                f'of {classes} classes',
                points,
                'points',
                device,
                timed(count, 3),
                timed(loop).scaled(points / few),
                '' if few == points else f'{few:,} points',
                **memory_bound(device, truth.nbytes + predicted.nbytes),
            )


def matching_case(device: str, quick: bool) -> Iterator[Row]:
    """Find the nearest map point of every true point."""
    sizes = [(50_000, 20_000)] if quick else [(1_000_000, 300_000), (4_000_000, 2_000_000)]
    for n, m in sizes:
        truth, predicted = surface(n, 53, 0).points, surface(m, 53, 1).points
        ours = timed(partial(match, truth, predicted, device))
        bound = memory_bound(device, truth.nbytes + predicted.nbytes + 12 * n)
        unit = f'points to {m:,}'
        tree = timed(partial(published_ways.plain_tree_nearest, truth, predicted))
        yield Row('matching', 'beside a k-d tree', n, unit, device, ours, tree, **bound)
        few = partial(published_ways.brute_force_nearest, truth[:50], predicted)
        must_agree('matching', match(truth[:50], predicted, device).indices, few())
        brute = timed(few).scaled(n / 50)
        yield Row(
            'matching', 'beside brute force', n, unit, device, ours, brute, '50 queries', **bound
        )


def match(truth: NDArray[np.float32], predicted: NDArray[np.float32], device: str) -> Neighbours:
    """Build an index of the map and ask it for every true point."""
    return NeighbourIndex(predicted, device).query(truth)


def ranking_case(device: str, quick: bool) -> Iterator[Row]:
    """Find the five prompts most like each feature."""
    rng = np.random.default_rng(0)
    prompts = rng.normal(size=(PROMPTS, DIMENSIONS)).astype(np.float32)
    few = rng.standard_normal((RANKED_BY_PUBLISHED_WAY, DIMENSIONS), np.float32)
    ranking = published_ways.broadcast_ranking(few, prompts, 5)
    must_agree('prompt ranking', find_best_prompts(few, prompts, 5, device=device), ranking)
    # The call above has warmed up the allocator, whose first pages cost several times as much.
    published = timed(partial(published_ways.broadcast_ranking, few, prompts, 5), 2)
    a_feature = plain_product(prompts, device) / RANKED_BY_PUBLISHED_WAY
    for n in (1_000,) if quick else (1_000, 20_000, 200_000):
        features = rng.standard_normal((n, DIMENSIONS), np.float32)
        ours = timed(
            partial(find_best_prompts, features, prompts, 5, device=device),
            3 if n < 100_000 else 1,
        )
        yield Row(
            'prompt ranking',
            '',
            n,
            f'x {PROMPTS:,} x {DIMENSIONS:,}',
            device,
            ours,
            published.scaled(n / len(few)),
            f'{len(few)} features',
            bound_s=a_feature * n,
            bound='product',
        )
        if device != 'cpu':
            bound = memory_bound(device, features.nbytes + prompts.nbytes + 20 * n)
            yield Row('prompt ranking', '', n, 'features', device, ours, **bound)


def plain_product(prompts: NDArray[np.float32], device: str) -> float:
    """Return the seconds that the matrix product of some features and all prompts takes alone."""
    import torch

    batches = 10
    text = torch.from_numpy(prompts).T.contiguous().to(device)
    features = torch.ones(RANKED_BY_PUBLISHED_WAY * batches, DIMENSIONS, device=device)
    product = torch.empty(len(features), PROMPTS, device=device)

    def multiply() -> None:
        torch.mm(features, text, out=product)
        product[0, 0].item()

    multiply()
    return timed(multiply, 5).wall_s / batches


def top_n_case(_device: str, quick: bool) -> Iterator[Row]:
    """Compute Top-5 frequencies, given the best words of each feature."""
    rng = np.random.default_rng(0)
    objects, rows = 200, 1_000
    names = [f'word {i}' for i in range(PROMPTS)]
    words = [frozenset(rng.integers(0, PROMPTS, 5).tolist()) for _ in range(objects)]
    named = (tuple(names[j] for j in sorted(own)) for own in words)
    tiers = collect_tiers(TieredObject(i, own) for i, own in enumerate(named))
    best = rng.integers(0, PROMPTS, (rows, 5))
    for points in (100_000,) if quick else (1_000_000, 4_000_000):
        ids, own = rng.integers(0, objects, points), rng.integers(0, rows, points)
        features = PointFeatures(ids, own, np.zeros(points, np.float32))
        ours = timed(partial(top_n_frequency, features, best, tiers, names), 3)
        few = 20_000
        way = partial(published_ways.per_point_frequency, ids[:few], own[:few], best, words)
        loop = timed(way)
        scaled = loop.scaled(points / few)
        yield Row('top-n frequency', '', points, 'points', 'cpu', ours, scaled, f'{few:,} points')


def scene_case(device: str, quick: bool) -> Iterator[Row]:
    """Score a scene: segmentation compat and strict, and all of geometry."""
    for n in (200_000,) if quick else (1_000_000, 4_000_000, 10_000_000):
        yield in_own_process(n, n // 4 if quick else 1_000_000, device)


def huge_case(device: str, quick: bool) -> Iterator[Row]:
    """Score a scene as large as those of HM3D, in chunks."""
    yield in_own_process(*((500_000, 100_000) if quick else (25_000_000, 2_000_000)), device)


def in_own_process(n: int, m: int, device: str) -> Row:
    """Score a scene in its own process, so that its peak of memory is its own."""
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
        'scene: compat, strict, geometry',
        f'against {m:,} map points',
        n,
        'surface and as many fused points',
        device,
        Timing(time.perf_counter() - start, time.process_time() - processor),
        matching_s=matching.wall_s,
        peak_gib=peak_gib(),
    )


def peak_gib() -> float:
    """Return the most memory this program held; getrusage would count its parent's, too."""
    found = re.search(r'VmHWM:\s+(\d+) kB', Path('/proc/self/status').read_text())
    assert found is not None
    return int(found[1]) / 2**20


def match_scene(matches: Correspondences) -> None:
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


def memory_bound(device: str, least_bytes: int) -> dict[str, Any]:
    """Return how long a GPU takes to move what must be moved at the least, measured here.

    A read and a written byte count alike. What it takes to bring arrays to the GPU is not counted.
    """
    if device == 'cpu':
        return {}
    return {'bound_s': least_bytes / copy_bandwidth(), 'bound': 'memory'}


@cache
def copy_bandwidth() -> float:
    """Return the bytes a GPU reads and writes in a second, from copies of 1 GB."""
    import torch

    block = torch.zeros(250_000_000, device='cuda')

    def copy() -> None:
        block.clone()
        torch.cuda.synchronize()

    copy()
    return 2 * block.nbytes / timed(copy, 5).wall_s


def main() -> None:
    """Run the cases that were asked for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('cases', nargs='*', choices=[[], *CASES], default=[])
    parser.add_argument('--quick', action='store_true', help='small sizes')
    parser.add_argument('--out', type=Path, help='write the rows as JSON')
    arguments = parser.parse_args()
    if arguments.out:
        check_file(arguments.out)  # before any time is spent
    chosen = arguments.cases or [name for name in CASES if name != 'huge']
    has_gpu = resolve_device('auto').type == 'cuda'
    rows: list[Row] = []
    for name in chosen:
        rows += CASES[name]('cpu', arguments.quick)
        if has_gpu and name in ON_DEVICES:
            rows += CASES[name]('cuda', arguments.quick)
    console = Console(width=240)
    console.print(table_of(rows))
    if has_gpu:
        console.print(f'memory of the GPU: {copy_bandwidth() / 1e9:.0f} GB/s read and written')
    for line in growth_of(rows):
        console.print(line)
    if arguments.out:
        found = [{**asdict(row), 'ratio': row.ratio, 'work_ratio': row.work_ratio} for row in rows]
        write_json(arguments.out, found)


if __name__ == '__main__':
    main()
