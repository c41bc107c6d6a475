"""The order of mappers whose quality is known, in the main figure of every suite.

    python benchmarks/protocol_order.py [--seeds 5] [--first-seed 0] [--out runs]

Runs `config/all_protocols.yaml` in apartments of several seeds, without what is mapped beside it,
and goes on where it was cut off. The exit code is 0 if and only if, over the seeds, the oracle
scores above the noisy oracle and that above appearance in each main figure, both by a difference
whose interval excludes 0, and the oracle's mean of every accuracy over what neither colour nor
material decides is above 95 %.
"""

from __future__ import annotations

import argparse
import sys
from itertools import pairwise
from pathlib import Path

from osmabench_ros.base.progress import shown_progress
from osmabench_ros.bringup.runner.matrix_runner import run_matrix
from osmabench_ros.metrics.statistics import paired_difference
from osmabench_ros.runs.config import load_config, parse_config
from osmabench_ros.runs.results.report_model import MatrixReport

ORDER = ('oracle', 'noisy_oracle', 'appearance')
MAIN = (
    ('osma_segmentation', 'strict', 'macc'),
    ('instances', 'strict', 'pq'),
    ('scene_graph', 'strict', 'node_f1'),
    ('exact_questions', None, 'accuracy'),
    ('space3d', None, 'accuracy'),
    ('hypo3d', None, 'accuracy_told'),
)
DECIDED = (
    ('exact_questions', None, 'accuracy_rest'),
    ('space3d', None, 'accuracy_rest'),
    ('hypo3d', None, 'accuracy_told'),
)
"""What the path saw decides these: materials are not to be seen."""


def main() -> int:
    """Run, compare and print; return 1 if an order or the oracle's share does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seeds', type=int, default=5)
    parser.add_argument('--first-seed', type=int, default=0)
    parser.add_argument('--out', type=Path, default=Path('runs'))
    parser.add_argument('--jobs', type=int, default=None)
    arguments = parser.parse_args()
    suites = dict.fromkeys(suite for suite, _, _ in (*MAIN, *DECIDED))
    data = load_config('all_protocols').model_dump(mode='json')
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    data |= {
        'name': 'protocol_order',
        'scenes': [{'reference': 'apartment', 'seed': seed} for seed in seeds],
        'suites': [{'name': name} for name in suites],
        'requirements': [],
    }
    config = parse_config(data, 'of protocol_order')
    with shown_progress() as progress:
        report = run_matrix(config, arguments.out, jobs=arguments.jobs, progress=progress)
    holds = [_in_order(report, figure) for figure in MAIN]
    holds += [_decided(report, figure) for figure in DECIDED]
    return int(not all(holds))


Figure = tuple[str, str | None, str]


def _values(report: MatrixReport, mapper: str, figure: Figure) -> dict[int, float]:
    return {
        item.seed: item.value
        for item in report.metrics
        if (item.suite, item.mode, item.metric) == figure
        and (item.mapper, item.class_name) == (mapper, '')
        and item.value is not None
    }


def _in_order(report: MatrixReport, figure: Figure) -> bool:
    name, holds = ' '.join(filter(None, figure)), True
    for better, worse in pairwise(ORDER):
        high, low = (_values(report, mapper, figure) for mapper in (better, worse))
        seeds = sorted(high.keys() & low.keys())
        found = paired_difference([low[s] for s in seeds], [high[s] for s in seeds]).difference
        above = found.low > 0
        holds &= above
        print(
            f'{name}: {better} - {worse} = {100 * found.value:.1f} points '
            f'[{100 * found.low:.1f}, {100 * found.high:.1f}] over {len(seeds)} scenes'
            f'{"" if above else ", NOT ABOVE 0"}'
        )
    return holds


def _decided(report: MatrixReport, figure: Figure) -> bool:
    values = _values(report, ORDER[0], figure)
    mean = sum(values.values()) / max(1, len(values))
    name = ' '.join(filter(None, figure))
    shares = ', '.join(f'seed {seed}: {100 * value:.1f}' for seed, value in values.items())
    print(f'{name} of the oracle: {100 * mean:.1f} % ({shares})')
    return mean > 0.95


if __name__ == '__main__':
    sys.exit(main())
