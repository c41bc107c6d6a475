"""Compares conditions or methods on common scenes, and how small a difference they can show."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError, choose
from osmabench_ros.metrics import statistics

# Fraction of matrices in which a difference of that size is to be shown.
POWER = 0.8
_MOST_UNITS = 10**7


def compute_power(units: int, effect: float, *, level: float = statistics.LEVEL) -> float:
    """Return how often the t interval of paired differences leaves out 0 (Cohen, 1988).

    Parameters
    ----------
    units : int
        Pairs, two or more.
    effect : float
        True mean difference over the standard deviation of differences.
    level : float
        Confidence of the interval.
    """
    from scipy.special import fdtri, ncfdtr

    # The square of t is F; unlike the noncentral t of SciPy it has no holes in its tails.
    bound = fdtri(1, units - 1, level)
    return 1.0 - float(ncfdtr(1, units - 1, units * effect**2, bound))


def find_smallest_difference(units: int, spread: float, *, power: float = POWER) -> float:
    """Return the difference that so many units show with a power; NaN below three units.

    Parameters
    ----------
    units : int
        Pairs.
    spread : float
        Standard deviation of the differences, in the unit of the result.
    power : float
        In (0.05, 1).
    """
    from scipy.optimize import brentq

    if units < statistics.LEAST_UNITS or not math.isfinite(spread):
        return math.nan
    return spread * float(brentq(lambda effect: compute_power(units, effect) - power, 1e-6, 100.0))


def count_needed_units(difference: float, spread: float, *, power: float = POWER) -> int:
    """Return how many units show a difference with a power; three at least.

    Parameters
    ----------
    difference : float
        True mean difference, not 0.
    spread : float
        Standard deviation of the differences, in the same unit.
    power : float
        In (0.05, 1).
    """
    if spread <= 0:
        return statistics.LEAST_UNITS
    effect, high = difference / spread, statistics.LEAST_UNITS
    while compute_power(high, effect) < power:
        if high > _MOST_UNITS:
            return high
        high *= 2
    low = max(statistics.LEAST_UNITS, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if compute_power(middle, effect) >= power else (middle + 1, high)
    return low


@dataclass(frozen=True)
class Spread:
    """Variance of differences between units, and within each unit.

    Parameters
    ----------
    units : int
        Number of units.
    total : float
        Standard deviation of the units' means; NaN with fewer than two units.
    inside : float
        Standard deviation between the paths of a scene, or repetitions on a path; NaN where no
        unit has two.
    share : float
        Mean over units of 1 / (number of those inside), by which their variance enters `total`.
    """

    units: int
    total: float
    inside: float = math.nan
    share: float = 1.0

    def with_more_inside(self, times: float) -> float:
        """Return the spread that units with so many times as much inside would have."""
        if not math.isfinite(self.inside):
            return math.nan
        saved = self.inside**2 * self.share * (1 - 1 / times)
        return math.sqrt(max(0.0, self.total**2 - saved))


def measure_spread(differences: Mapping[tuple[str, ...], float]) -> Spread:
    """Return the spread of differences by (unit, inner unit), one level deep."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for place, value in differences.items():
        groups.setdefault(place[:-1], []).append(value)
    means = [float(np.mean(values)) for values in groups.values()]
    several = [values for values in groups.values() if len(values) > 1]
    return Spread(
        len(means),
        float(np.std(means, ddof=1)) if len(means) > 1 else math.nan,
        _pool_spreads(several),
        float(np.mean([1 / len(values) for values in groups.values()])) if groups else 1.0,
    )


def _pool_spreads(groups: Sequence[Sequence[float]]) -> float:
    freedom = sum(len(values) - 1 for values in groups)
    squares = sum(float(np.var(values) * len(values)) for values in groups)
    return math.sqrt(squares / freedom) if freedom else math.nan


def root_mean_square(spreads: Sequence[float]) -> float:
    """Return the common spread of several, those that are known; NaN without any."""
    known = [spread for spread in spreads if math.isfinite(spread)]
    return math.sqrt(sum(spread**2 for spread in known) / len(known)) if known else math.nan


def macc_over_objects(
    labels: NDArray[np.integer],
    instances: NDArray[np.integer],
    correct: NDArray[np.bool_],
) -> statistics.Interval:
    """Return mAcc with an interval from leaving out the objects of a scene, one at a time.

    Points of one object are right or wrong together, so objects leave, not points. Without its
    only object a class leaves the mean.

    Parameters
    ----------
    labels, instances : ndarray of int, shape (N,)
        Class and instance of each true point that is scored.
    correct : ndarray of bool, shape (N,)
        Whether its class was predicted.

    Returns
    -------
    Interval
        Of unit 'objects': it shows how much the metric depends on single objects of this scene,
        not how another scene would score.
    """
    if not labels.shape == instances.shape == correct.shape:
        raise MetricError(
            f'{labels.shape} labels, {instances.shape} instances and {correct.shape} verdicts'
        )
    _, things = np.unique(instances, return_inverse=True)
    names, kind = np.unique(labels, return_inverse=True)
    # An object with points of several classes counts as one of each.
    objects, owner = np.unique(things * max(len(names), 1) + kind, return_inverse=True)
    classes = objects % max(len(names), 1)
    hits = np.bincount(owner, weights=correct, minlength=len(objects))
    points = np.bincount(owner, minlength=len(objects))

    def statistic(rows: NDArray[np.float64]) -> float:
        kind_of_row = rows[:, 0].astype(np.int64)
        found, total = (np.bincount(kind_of_row, rows[:, k]) for k in (1, 2))
        return float((found[total > 0] / total[total > 0]).mean())

    rows = np.stack([classes, hits, points], axis=1).astype(np.float64)
    return statistics.jackknife_interval(rows, statistic=statistic, unit='objects', share=True)


# A unit, or the places of one value from outside in: scene, path in it, repetition on that.
Place = str | tuple[str, ...]

# A value by place; None where it is not applicable.
Figures = Mapping[str, float | None] | Mapping[tuple[str, ...], float | None]

NESTED = (statistics.SCENES, 'paths', 'repetitions')


@dataclass(frozen=True)
class Comparison:
    """How a condition or method differs from the reference.

    Parameters
    ----------
    paired : PairedDifference
        Other - reference, unit by unit, with interval and effect sizes.
    robustness : Interval
        Relative change of the mean; 0 is unmoved.
    adjusted_p : float
        p adjusted for all contrasts; NaN where no outcome could be significant.
    spread : Spread, optional
        Of the differences between scenes, paths or repetitions.
    """

    paired: statistics.PairedDifference
    robustness: statistics.Interval
    adjusted_p: float
    spread: Spread | None


def compare_with_reference(
    figures: Mapping[str, Figures],
    reference: str,
    *,
    unit: str = statistics.SCENES,
    owners: Mapping[str, Sequence[Hashable]] | None = None,
) -> dict[str, Comparison]:
    """Compare every condition or method with one of them.

    Parameters
    ----------
    figures : mapping of str to mapping of str or tuple of str to float
        A metric by condition (or method) and place. Places that one side lacks, or where the
        metric is not applicable, leave that comparison. Tuples are nested: see `average_nested`.
    reference : str
        Key of the reference.
    unit : str
        Kind of the units: 'scenes', or 'objects' of one scene. Nested places have the
        kind of their level.
    owners : mapping of str to sequence, optional
        The units that the value of a place depends on; by default the place itself.

    Raises
    ------
    MetricError
        If the reference is not among the keys.
    """
    choose(reference, figures, MetricError, f'there is no "{reference}" to compare with')
    level = find_nested_level(place for item in figures.values() for place in item)
    if level is not None:
        unit = NESTED[level]
    pairs = {
        name: _Pairs.of(figures[reference], other, level, owners)
        for name, other in figures.items()
        if name != reference
    }
    paired = {
        name: statistics.compare_pairs(item.first, item.second, unit=unit, owners=item.owners)
        for name, item in pairs.items()
    }
    adjusted = statistics.correct_tests(paired) or {}
    return {
        name: Comparison(
            paired[name],
            statistics.relative_change(item.first, item.second, unit=unit, owners=item.owners),
            adjusted.get(name, math.nan),
            item.spread,
        )
        for name, item in pairs.items()
    }


def find_nested_level(places: Iterable[Place]) -> int | None:
    """Return the outermost level with more than one place, 0 if none has; None if not nested."""
    nested = [place for place in places if isinstance(place, tuple)]
    if not nested:
        return None
    levels = range(min(map(len, nested)))
    return next((i for i in levels if len({place[: i + 1] for place in nested}) > 1), 0)


def average_nested(
    figures: Mapping[tuple[str, ...], float], level: int = 0
) -> dict[tuple[str, ...], float]:
    """Average values by place from inside out, until one is left for each unit of a level.

    Every repetition counts the same on its path, every path in its scene, every scene in the
    mean, however many there are. Resampling the scenes with all that is inside of them has the
    variance of the nested scheme (Davison and Hinkley, 1997, section 3.8): the spread between
    paths and repetitions is part of the spread between scenes.

    Parameters
    ----------
    figures : mapping of tuple of str to float
        By scene, path and repetition.
    level : int
        0 for scenes, 1 for paths, 2 for repetitions.
    """
    found = dict(figures)
    while found and len(next(iter(found))) > level + 1:
        outer: dict[tuple[str, ...], list[float]] = {}
        for place, value in found.items():
            outer.setdefault(place[:-1], []).append(value)
        found = {place: math.fsum(values) / len(values) for place, values in outer.items()}
    return found


@dataclass(frozen=True)
class _Pairs:
    """The values of two sides at their common places, the units of each, and their spread."""

    first: list[float]
    second: list[float]
    owners: list[Sequence[Hashable]] | None
    spread: Spread | None = None

    @classmethod
    def of(
        cls,
        first: Figures,
        second: Figures,
        level: int | None,
        owners: Mapping[str, Sequence[Hashable]] | None,
    ) -> _Pairs:
        others: dict[Place, float | None] = dict(second.items())
        both = [
            (place, (before, after))
            for place, before in first.items()
            if before is not None and (after := others.get(place)) is not None
        ]
        if level is None:
            hung = None if owners is None else [owners.get(str(place), ()) for place, *_ in both]
            return cls([pair[0] for _, pair in both], [pair[1] for _, pair in both], hung)
        one, two = (
            average_nested({tuple(place): pair[side] for place, pair in both}, level)
            for side in (0, 1)
        )
        changes = {tuple(place): pair[1] - pair[0] for place, pair in both}
        return cls(list(one.values()), list(two.values()), None, _spread(changes, level))


def _spread(changes: Mapping[tuple[str, ...], float], level: int) -> Spread:
    """Return the spread between units of a level, and inside by the first level that differs."""
    depths = range(level + 1, min(map(len, changes), default=0))
    nested = [measure_spread(average_nested(changes, depth)) for depth in depths]
    means = {(*place, ''): value for place, value in average_nested(changes, level).items()}
    return next((item for item in nested if math.isfinite(item.inside)), measure_spread(means))


# Points: the median of the published ConceptGraphs rows on 22 scenes of ReplicaCAD.
ASSUMED_SPREAD = 5.0
# Effect sizes for which the required number of scenes is reported.
DIFFERENCES = (1.0, 2.0, 5.0, 10.0)
_ASSUMED = (
    f'assumed that differences vary by {ASSUMED_SPREAD:g} points (standard deviation; the '
    'published ones between conditions vary by 2 to 9)'
)


def estimate_power(places: Iterable[tuple[str, ...]], columns: int) -> list[str]:
    """Return the smallest difference that a planned matrix can show, and the units others need.

    Parameters
    ----------
    places : iterable of tuple of str
        Scene, path and repetition of each run.
    columns : int
        Pairs of condition and method; with one, nothing is compared.
    """
    places = list(places)
    if columns < 2:
        return []
    level = find_nested_level(places) or 0
    count = len({place[: level + 1] for place in places})
    unit = NESTED[level]
    beyond = '' if level == 0 else ', and nothing about other scenes'
    there = f'{count} {unit if count > 1 else unit.removesuffix("s")}'
    if count < statistics.LEAST_UNITS:
        least = statistics.LEAST_UNITS
        shown = f'{there}: no interval, so no difference can be shown; it takes {least}'
    else:
        points = find_smallest_difference(count, ASSUMED_SPREAD)
        shown = f'{there} can show a difference of {points:.1f} points{beyond}'
    needed = ', '.join(
        f'{count_needed_units(points, ASSUMED_SPREAD)} for {points:g}' for points in DIFFERENCES
    )
    return [
        f'{shown} (in four of five matrices the 95 % interval leaves out 0)',
        f'{unit} needed for a difference in points: {needed}; {_ASSUMED}',
    ]
