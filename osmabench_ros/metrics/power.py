"""How small a difference a number of scenes can show, and how many a difference needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from osmabench_ros.metrics.statistics import LEAST_UNITS, LEVEL

POWER = 0.8
"""Share of matrices in which a difference of that size is to be shown."""
_MOST_UNITS = 10**7


def power_of(units: int, effect: float, *, level: float = LEVEL) -> float:
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


def smallest_difference(units: int, spread: float, *, power: float = POWER) -> float:
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

    if units < LEAST_UNITS or not math.isfinite(spread):
        return math.nan
    return spread * float(brentq(lambda effect: power_of(units, effect) - power, 1e-6, 100.0))


def units_needed(difference: float, spread: float, *, power: float = POWER) -> int:
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
        return LEAST_UNITS
    effect, high = difference / spread, LEAST_UNITS
    while power_of(high, effect) < power:
        if high > _MOST_UNITS:
            return high
        high *= 2
    low = max(LEAST_UNITS, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(middle, effect) >= power else (middle + 1, high)
    return low


@dataclass(frozen=True)
class Spread:
    """How much differences vary between units, and between what is inside of each.

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


def spread_of(differences: Mapping[tuple[str, ...], float]) -> Spread:
    """Return the spread of differences by (unit, what is inside), one level deep."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for place, value in differences.items():
        groups.setdefault(place[:-1], []).append(value)
    means = [float(np.mean(values)) for values in groups.values()]
    several = [values for values in groups.values() if len(values) > 1]
    return Spread(
        len(means),
        float(np.std(means, ddof=1)) if len(means) > 1 else math.nan,
        _pooled(several),
        float(np.mean([1 / len(values) for values in groups.values()])) if groups else 1.0,
    )


def _pooled(groups: Sequence[Sequence[float]]) -> float:
    freedom = sum(len(values) - 1 for values in groups)
    squares = sum(float(np.var(values) * len(values)) for values in groups)
    return math.sqrt(squares / freedom) if freedom else math.nan


def root_mean_square(spreads: Sequence[float]) -> float:
    """Return the common spread of several, those that are known; NaN without any."""
    known = [spread for spread in spreads if math.isfinite(spread)]
    return math.sqrt(sum(spread**2 for spread in known) / len(known)) if known else math.nan
