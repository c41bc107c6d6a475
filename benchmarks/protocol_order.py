"""The order of mappers whose quality is known, in the main figure of every suite.

    python benchmarks/protocol_order.py [--seeds 5] [--suites hypo3d ...] [--out runs]

Runs `config/all_protocols.yaml` in scenes of several seeds, without what is mapped next to it,
and goes on where it was cut off: all suites in apartments, `promptgt` in rooms by four
specifications, of which a seed has the mean. The exit code is 0 if and only if, over the seeds,
the oracle scores above the noisy oracle and that above appearance in each main figure, both by a
difference whose interval excludes 0, and the oracle's mean of every accuracy over what neither
colour nor material decides is above 95 %.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from osmabench_ros.base.progress import shown_progress
from osmabench_ros.bringup.runner.matrix_runner import run_matrix
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.statistics import compare_pairs
from osmabench_ros.runs.config import load_config, parse_config

PROMPTED = ('office', 'bedroom', 'kitchen', 'living_room')
ORDER = ('oracle', 'noisy_oracle', 'appearance')
MAIN = (
    ('osma_segmentation', 'strict', 'macc'),
    ('instances', 'strict', 'pq'),
    ('scene_graph', 'strict', 'node_f1'),
    ('exact_questions', '', 'accuracy'),
    ('space3d', '', 'accuracy'),
    ('hypo3d', '', 'accuracy_told'),
    ('cospace', 'strict', 'accuracy'),
    ('grounding', 'strict', 'acc_025'),
    ('promptgt', 'strict', 'accuracy_faithful'),
)
# What the path saw decides these: materials are not to be seen.
DECIDED = (
    ('exact_questions', '', 'accuracy_rest'),
    ('space3d', '', 'accuracy_rest'),
    ('hypo3d', '', 'accuracy_told'),
    ('cospace', 'strict', 'accuracy'),
    ('grounding', 'strict', 'acc_025'),
    ('promptgt', 'strict', 'accuracy_faithful'),
)


def main() -> int:
    """Run, compare and print; return 1 if an order or the oracle's share does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seeds', type=int, default=5)
    parser.add_argument('--first-seed', type=int, default=0)
    parser.add_argument('--out', type=Path, default=Path('runs'))
    parser.add_argument('--jobs', type=int, default=None)
    suites = tuple(suite for suite, _, _ in MAIN)
    parser.add_argument('--suites', nargs='+', choices=suites, default=suites)
    arguments = parser.parse_args()
    data = load_config('all_protocols').model_dump(mode='json')
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    metrics: list[MetricRecord] = []
    for name, references in (('apartment', ('apartment',)), ('prompted', PROMPTED)):
        prompted = name == 'prompted'
        asked = [suite for suite in arguments.suites if (suite == 'promptgt') is prompted]
        if not asked:
            continue
        data |= {
            'name': f'protocol_order_{name}',
            'scenes': [{'reference': r, 'seed': seed} for r in references for seed in seeds],
            'suites': [{'name': suite} for suite in asked],
            'requirements': [],
        }
        config = parse_config(data, 'of protocol_order')
        with shown_progress() as progress:
            report = run_matrix(config, arguments.out, jobs=arguments.jobs, progress=progress)
        metrics += report.metrics
    holds = [_in_order(metrics, item) for item in MAIN if item[0] in arguments.suites]
    holds += [_decided(metrics, item) for item in DECIDED if item[0] in arguments.suites]
    return int(not all(holds))


Figure = tuple[str, str, str]


def _values(metrics: Sequence[MetricRecord], mapper: str, figure: Figure) -> dict[int, float]:
    """Return the value of each seed, the mean of its scenes."""
    found = defaultdict(list)
    for item in metrics:
        key = (item.suite, item.mode, item.metric), item.mapper, item.class_name
        if key == (figure, mapper, '') and item.value is not None:
            found[item.seed].append(item.value)
    return {seed: sum(values) / len(values) for seed, values in found.items()}


def _in_order(metrics: Sequence[MetricRecord], figure: Figure) -> bool:
    name, holds = ' '.join(filter(None, figure)), True
    for better, worse in pairwise(ORDER):
        high, low = (_values(metrics, mapper, figure) for mapper in (better, worse))
        seeds = sorted(high.keys() & low.keys())
        found = compare_pairs([low[s] for s in seeds], [high[s] for s in seeds]).difference
        above = found.low > 0
        holds &= above
        print(
            f'{name}: {better} - {worse} = {100 * found.value:.1f} points '
            f'[{100 * found.low:.1f}, {100 * found.high:.1f}] over {len(seeds)} seeds'
            f'{"" if above else ", NOT ABOVE 0"}'
        )
    return holds


def _decided(metrics: Sequence[MetricRecord], figure: Figure) -> bool:
    values = _values(metrics, ORDER[0], figure)
    mean = sum(values.values()) / max(1, len(values))
    name = ' '.join(filter(None, figure))
    shares = ', '.join(f'seed {seed}: {100 * value:.1f}' for seed, value in values.items())
    print(f'{name} of the oracle: {100 * mean:.1f} % ({shares})')
    return mean > 0.95


if __name__ == '__main__':
    sys.exit(main())
