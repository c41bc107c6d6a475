"""What a matrix can show before anything of it has run."""

from __future__ import annotations

from collections.abc import Iterable

from osmabench_ros.metrics.comparison import NESTED, nested_level
from osmabench_ros.metrics.power import smallest_difference, units_needed
from osmabench_ros.metrics.statistics import LEAST_UNITS
from osmabench_ros.runs.identity import RunIdentity

ASSUMED_SPREAD = 5.0
"""Points: the median of the published ConceptGraphs rows on 22 scenes of ReplicaCAD."""
DIFFERENCES = (1.0, 2.0, 5.0, 10.0)
"""Points of which a reader may want to know what they need."""
_ASSUMED = (
    f'assumed that differences vary by {ASSUMED_SPREAD:g} points (standard deviation; the '
    'published ones between conditions vary by 2 to 9)'
)


def expected_power(runs: Iterable[RunIdentity]) -> list[str]:
    """Return how small a difference runs can show and what others need; empty if none is taken."""
    runs = list(runs)
    if len({(run.condition, run.mapper) for run in runs}) < 2:
        return []
    level = nested_level(run.place for run in runs) or 0
    count, unit = len({run.place[: level + 1] for run in runs}), NESTED[level]
    beyond = '' if level == 0 else ', and nothing about other scenes'
    there = f'{count} {unit if count > 1 else unit.removesuffix("s")}'
    if count < LEAST_UNITS:
        shown = f'{there}: no interval, so no difference can be shown; it takes {LEAST_UNITS}'
    else:
        points = smallest_difference(count, ASSUMED_SPREAD)
        shown = f'{there} can show a difference of {points:.1f} points{beyond}'
    needed = ', '.join(
        f'{units_needed(points, ASSUMED_SPREAD)} for {points:g}' for points in DIFFERENCES
    )
    return [
        f'{shown} (in four of five matrices the 95 % interval leaves out 0)',
        f'{unit} needed for a difference in points: {needed}; {_ASSUMED}',
    ]
