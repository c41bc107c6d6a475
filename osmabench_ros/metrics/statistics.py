"""Confidence intervals, tests of paired differences, and robustness."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError

RESAMPLES = 10_000
LEVEL = 0.95
_EXACT_UP_TO = 16
_CHUNK = 2_000_000

Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Turns resampled rows of shape (B, N, ...) into figures of shape (B,)."""


@dataclass(frozen=True)
class Interval:
    """A figure with its bootstrap interval.

    Parameters
    ----------
    value : float
        The figure; NaN if there is none.
    low, high : float
        Bounds; NaN with fewer than two units, too few for an interval.
    n : int
        Units that were resampled.
    unit : str
        What they are: 'scenes', or 'objects' or 'questions' of one scene. An interval over the
        objects of one scene says nothing about other scenes.
    """

    value: float
    low: float
    high: float
    n: int
    unit: str = 'scenes'

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on one side of 0."""
        return self.low > 0 or self.high < 0


def mean_statistic(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over units, rows of shape (B, N)."""
    return np.asarray(rows.mean(axis=1))


def ratio_statistic(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sum over sum, rows of shape (B, N, 2) with parts and wholes of each unit."""
    parts, wholes = rows[..., 0].sum(axis=1), rows[..., 1].sum(axis=1)
    with np.errstate(invalid='ignore', divide='ignore'):
        return np.asarray(parts / wholes)


def bootstrap_interval(
    values: Sequence[float] | NDArray[np.floating],
    *,
    statistic: Statistic = mean_statistic,
    unit: str = 'scenes',
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Interval:
    """Return a figure with its percentile bootstrap interval (Efron, 1979).

    Parameters
    ----------
    values : sequence, shape (N,) or (N, ...)
        One row a unit. Rows with NaN are not applicable and left out.
    statistic : callable
        What is computed of resampled rows.
    unit : str
        What the rows are: 'scenes', 'objects', 'questions'.
    seed : int
        Seed of the resampling.
    resamples : int
        Number of resamples.
    level : float
        Confidence in (0, 1).

    Returns
    -------
    Interval
        Without bounds if fewer than two rows are left.
    """
    rows = _finite_rows(values)
    if not len(rows):
        return Interval(math.nan, math.nan, math.nan, 0, unit)
    value = float(statistic(rows[None])[0])
    if len(rows) < 2 or not math.isfinite(value):
        return Interval(value, math.nan, math.nan, len(rows), unit)
    rng = np.random.default_rng(seed)
    size = max(1, _CHUNK // rows.size)
    figures = list(
        chain.from_iterable(
            statistic(rows[rng.integers(0, len(rows), (min(size, resamples - start), len(rows)))])
            for start in range(0, resamples, size)
        )
    )
    tail = (1 - level) / 2
    low, high = np.nanquantile(figures, [tail, 1 - tail])
    return Interval(value, float(low), float(high), len(rows), unit)


def wilson_interval(hits: int, total: int, *, level: float = LEVEL) -> tuple[float, float]:
    """Return the interval of a proportion (Wilson, 1927); NaNs without samples.

    Parameters
    ----------
    hits, total : int
        hits <= total.
    level : float
        Confidence in (0, 1).
    """
    from scipy.stats import norm

    if total == 0:
        return math.nan, math.nan
    z = float(norm.ppf(0.5 + level / 2))
    share, spread = hits / total, z * z / total
    centre = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    # At the ends rounding would leave something like 1e-17.
    return (0.0 if hits == 0 else centre - half), (1.0 if hits == total else centre + half)


def _finite_rows(values: Sequence[float] | NDArray[np.floating]) -> NDArray[np.float64]:
    rows = np.asarray(values, np.float64)
    if rows.ndim < 1:
        raise MetricError('a bootstrap needs one row a unit')
    return rows[np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)] if len(rows) else rows


@dataclass(frozen=True)
class PairedDifference:
    """What changes between two conditions or methods on the same units.

    Parameters
    ----------
    difference : Interval
        Mean of (second - first).
    effect_size : float
        Cohen's d_z: mean difference over its standard deviation; NaN if that is 0 or n < 2.
    rank_biserial : float
        Matched-pairs rank-biserial correlation, in [-1, 1]: +1 if every unit rises. NaN without
        a unit that changes.
    p_value : float
        Two-sided sign-flip test of no change, in (0, 1].
    smallest_p : float
        Least p the test can give with that many units, 2 / 2**n.
    """

    difference: Interval
    effect_size: float
    rank_biserial: float
    p_value: float
    smallest_p: float


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    *,
    unit: str = 'scenes',
    seed: int = 0,
) -> PairedDifference:
    """Compare two conditions or methods unit by unit.

    Parameters
    ----------
    first, second : sequence of float, shape (N,)
        The same units in the same order; pairs with NaN are not applicable and left out.
    unit : str
        What the rows are.
    seed : int
        Seed of resampling.

    Raises
    ------
    MetricError
        If the lengths differ.
    """
    changes = _finite_rows(_paired(first, second) @ np.array([-1.0, 1.0]))
    return PairedDifference(
        bootstrap_interval(changes, unit=unit, seed=seed),
        _cohens_dz(changes),
        _rank_biserial(changes),
        sign_flip_p(changes, seed=seed),
        smallest_attainable_p(len(changes)),
    )


def _paired(first: Sequence[float], second: Sequence[float]) -> NDArray[np.float64]:
    if len(first) != len(second):
        raise MetricError(f'pairs are needed, not {len(first)} and {len(second)} units')
    return np.stack([np.asarray(first, np.float64), np.asarray(second, np.float64)], axis=-1)


def _cohens_dz(changes: NDArray[np.float64]) -> float:
    if len(changes) < 2 or changes.std(ddof=1) == 0:
        return math.nan
    return float(changes.mean() / changes.std(ddof=1))


def _rank_biserial(changes: NDArray[np.float64]) -> float:
    from scipy.stats import rankdata

    moved = changes[changes != 0]
    if not len(moved):
        return math.nan
    ranks = rankdata(np.abs(moved))
    return float((ranks * np.sign(moved)).sum() / ranks.sum())


def smallest_attainable_p(units: int) -> float:
    """Return the least two-sided p of a sign-flip test: 2 / 2**n, at most 1."""
    return min(1.0, 2.0 ** (1 - units))


def sign_flip_p(
    changes: Sequence[float] | NDArray[np.floating], *, seed: int = 0, resamples: int = RESAMPLES
) -> float:
    """Return the two-sided p of a sign-flip permutation test of the mean change.

    All sign patterns are tried for up to 16 units, else a random sample of them, counting the
    observed one, so that p is never 0. NaN without units.
    """
    values = _finite_rows(changes)
    n = len(values)
    if not n:
        return math.nan
    if n <= _EXACT_UP_TO:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    else:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (resamples, n))
        signs[0] = 1.0
    sums = np.abs(signs @ values)
    # Sums that differ only by rounding are ties.
    return float((sums >= np.abs(values.sum()) * (1 - 1e-12)).mean())


def holm_adjusted(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return p values adjusted for the number of contrasts (Holm, 1979), keys as given."""
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    adjusted, highest = {}, 0.0
    for rank, (name, p) in enumerate(ordered):
        highest = max(highest, min(1.0, p * (len(ordered) - rank)))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


def corrected_tests(
    contrasts: Mapping[str, PairedDifference], *, alpha: float = 0.05
) -> dict[str, float] | None:
    """Return Holm-adjusted p values, or None where no outcome could be significant.

    With n units and m contrasts the least adjusted p is m * 2 / 2**n. Above alpha a test says
    nothing whatever the data: 8 scenes and 7 contrasts (0.055) are too few. Then intervals and
    effect sizes stand alone.
    """
    if not contrasts:
        return None
    least = max(item.smallest_p for item in contrasts.values())
    if least * len(contrasts) > alpha:
        return None
    return holm_adjusted({name: item.p_value for name, item in contrasts.items()})


def relative_change(
    reference: Sequence[float], condition: Sequence[float], *, unit: str = 'scenes', seed: int = 0
) -> Interval:
    """Return robustness: the relative change of a mean from the reference condition.

    (mean of condition - mean of reference) / mean of reference, with an interval from resampling
    pairs; 0 is unmoved, -0.5 half of it lost. NaN if the reference mean is 0.

    Parameters
    ----------
    reference, condition : sequence of float, shape (N,)
        The same units under both conditions; pairs with NaN are left out.
    unit : str
        What the rows are.
    seed : int
        Seed of resampling.

    Notes
    -----
    The quantity of Fig. 5 of arXiv 2503.10331.
    """

    def change(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        before, after = rows[..., 0].mean(axis=1), rows[..., 1].mean(axis=1)
        with np.errstate(invalid='ignore', divide='ignore'):
            return np.where(before == 0, np.nan, (after - before) / before)

    pairs = _paired(reference, condition)
    return bootstrap_interval(pairs, statistic=change, unit=unit, seed=seed)
