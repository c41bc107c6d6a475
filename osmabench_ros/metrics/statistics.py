"""Confidence intervals, tests of paired differences, and robustness."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError

RESAMPLES = 10_000
LEVEL = 0.95
# Of two units the bounds would be 13 standard errors away, and say nothing.
LEAST_UNITS = 3
SCENES = 'scenes'
_EXACT_UP_TO = 16

# Turns rows of shape (N, ...) into a value.
Statistic = Callable[[NDArray[np.float64]], float]


@dataclass(frozen=True)
class Interval:
    """A value with its confidence interval.

    Parameters
    ----------
    value : float
        The value; NaN if there is none.
    low, high : float
        Bounds; NaN with fewer than three units, too few for an interval.
    n : int
        Units that were resampled.
    unit : str
        Kind of the units: 'scenes', or 'paths', 'repetitions' or 'objects' of one scene. An
        interval over the objects of one scene says nothing about other scenes.
    """

    value: float
    low: float
    high: float
    n: int
    unit: str = SCENES

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval is on one side of 0."""
        return self.low > 0 or self.high < 0


def mean_statistic(rows: NDArray[np.float64]) -> float:
    """Return the mean of rows of shape (N,)."""
    return float(rows.mean())


def ratio_statistic(rows: NDArray[np.float64]) -> float:
    """Return sum over sum of rows of shape (N, 2) with a part and a whole; NaN without wholes."""
    part, whole = rows.sum(axis=0)
    return float(part / whole) if whole else math.nan


# The units that each row hangs on, such as the objects that a question is about.
Owners = Sequence[Sequence[Hashable]]


def jackknife_interval(
    values: Sequence[float] | NDArray[np.floating],
    *,
    statistic: Statistic = mean_statistic,
    unit: str = SCENES,
    owners: Owners | None = None,
    share: bool = False,
    level: float = LEVEL,
) -> Interval:
    """Return a statistic with the t interval of the delete-one jackknife (Tukey, 1958).

    Units are left out one at a time, each with all its rows. The standard error of the statistic
    is sqrt((n - 1) / n * sum((left_out - mean of left_out)**2)), the quantile is from Student's
    t with n - 1 degrees of freedom. Of a mean this is the classic t interval.

    Parameters
    ----------
    values : sequence, shape (N,) or (N, ...)
        Rows of the statistic. Rows with NaN are not applicable and left out.
    statistic : callable
        The statistic, computed from rows.
    unit : str
        Kind of the units: 'scenes', 'paths' or 'objects'.
    owners : sequence, shape (N,), optional
        Units that each row hangs on; a row without any is its own unit, as all are by
        default.
    share : bool
        The statistic is in [0, 1]: bounds are computed on its logit, and stay inside. At 0 and 1
        they are Wilson's (1927), every unit counted as one sample.
    level : float
        Confidence in (0, 1).

    Returns
    -------
    Interval
        Without bounds if there are fewer than three units, or the statistic does not exist
        without one of them.
    """
    from scipy.special import expit, logit, stdtrit

    rows, kept = _select_finite_rows(values)
    value = statistic(rows) if len(rows) else math.nan
    units = _units(len(rows), None if owners is None else [owners[i] for i in kept])
    n = len(units)
    if n < LEAST_UNITS or not math.isfinite(value):
        return Interval(value, math.nan, math.nan, n, unit)
    if share and not 0 < value < 1:
        return Interval(value, *wilson_interval(round(value) * n, n, level=level), n, unit)
    left_out = np.array([_without(rows, unit, statistic) for unit in units])
    error = math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
    half = float(stdtrit(n - 1, 0.5 + level / 2)) * error
    if not share:
        return Interval(value, value - half, value + half, n, unit)
    half /= value * (1 - value)
    low = expit(logit(value) - half)
    high = expit(logit(value) + half)
    return Interval(value, float(low), float(high), n, unit)


def _units(count: int, owners: Owners | None) -> list[list[int]]:
    """Return the rows of each unit."""
    if owners is None:
        return [[row] for row in range(count)]
    alone: list[list[int]] = []
    shared: dict[Hashable, list[int]] = {}
    for row, names in enumerate(owners):
        if not names:
            alone.append([row])
        for name in dict.fromkeys(names):
            shared.setdefault(name, []).append(row)
    return [*shared.values(), *alone]


def _without(rows: NDArray[np.float64], unit: list[int], statistic: Statistic) -> float:
    rest = np.delete(rows, unit, axis=0)
    return statistic(rest) if len(rest) else math.nan


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
    share = hits / total
    spread = z * z / total
    centre = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / total + spread / (4 * total)) / (1 + spread)
    # At the ends rounding would leave something like 1e-17.
    return (0.0 if hits == 0 else centre - half), (1.0 if hits == total else centre + half)


def _select_finite_rows(
    values: Sequence[float] | NDArray[np.floating],
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the rows without NaN, and their indices."""
    rows = np.asarray(values, np.float64)
    if rows.ndim < 1:
        raise MetricError('an interval needs one row per unit')
    if not len(rows):
        return rows, np.zeros(0, np.intp)
    kept = np.flatnonzero(np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))
    return rows[kept], kept


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
        Two-sided sign-flip test of no change, in (0, 1]. NaN if the units are not scenes: objects
        and paths of one scene are not a sample of other scenes.
    smallest_p : float
        Least p the test can give with that many units, 2 / 2**n.
    """

    difference: Interval
    effect_size: float
    rank_biserial: float
    p_value: float
    smallest_p: float


def compare_pairs(
    first: Sequence[float],
    second: Sequence[float],
    *,
    unit: str = SCENES,
    owners: Owners | None = None,
    seed: int = 0,
) -> PairedDifference:
    """Compare two conditions or methods unit by unit.

    Parameters
    ----------
    first, second : sequence of float, shape (N,)
        The same units in the same order; pairs with NaN are not applicable and left out.
    unit : str
        Kind of the units.
    owners : sequence, shape (N,), optional
        Units that each pair hangs on; see `jackknife_interval`.
    seed : int
        Seed of the sign flips of more than 16 scenes.

    Raises
    ------
    MetricError
        If the lengths differ.
    """
    pairs = _pair(first, second)
    changes, _ = _select_finite_rows(pairs[:, 1] - pairs[:, 0])
    return PairedDifference(
        jackknife_interval(pairs[:, 1] - pairs[:, 0], unit=unit, owners=owners),
        _cohens_dz(changes),
        _rank_biserial(changes),
        sign_flip_p(changes, seed=seed) if unit == SCENES else math.nan,
        find_smallest_attainable_p(len(changes)),
    )


def _pair(first: Sequence[float], second: Sequence[float]) -> NDArray[np.float64]:
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


def find_smallest_attainable_p(units: int) -> float:
    """Return the least two-sided p of a sign-flip test: 2 / 2**n, at most 1."""
    return min(1.0, 2.0 ** (1 - units))


def sign_flip_p(
    changes: Sequence[float] | NDArray[np.floating], *, seed: int = 0, resamples: int = RESAMPLES
) -> float:
    """Return the two-sided p of a sign-flip permutation test of the mean change.

    All sign patterns are tried for up to 16 units, else a random sample of them, counting the
    observed one, so that p is never 0. NaN without units.
    """
    values, _ = _select_finite_rows(changes)
    n = len(values)
    if not n:
        return math.nan
    if n <= _EXACT_UP_TO:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    else:
        signs = _draw_signs(seed, resamples, n)
    sums = np.abs(signs @ values)
    # Sums that differ only by rounding are ties; of changes that cancel, the sum is rounding.
    rounding = 1e-12 * float(np.abs(values).sum())
    return float((sums >= np.abs(values.sum()) - rounding).mean())


@lru_cache(maxsize=1)
def _draw_signs(seed: int, resamples: int, units: int) -> NDArray[np.float64]:
    """Return sign patterns, the first without a flip; the metrics of a matrix share them."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (resamples, units))
    signs[0] = 1.0
    return signs


def adjust_by_holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return p values adjusted for the number of contrasts (Holm, 1979), keys as given."""
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    adjusted, highest = {}, 0.0
    for rank, (name, p) in enumerate(ordered):
        highest = max(highest, min(1.0, p * (len(ordered) - rank)))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


def correct_tests(
    contrasts: Mapping[str, PairedDifference], *, alpha: float = 0.05
) -> dict[str, float] | None:
    """Return Holm-adjusted p values, or None where no outcome could be significant.

    With n units and m contrasts the least adjusted p is m * 2 / 2**n. Above alpha a test says
    nothing whatever the data: 8 scenes and 7 contrasts (0.055) are too few. Then only
    intervals and effect sizes are reported, as where there is no p.
    """
    if not contrasts or any(math.isnan(item.p_value) for item in contrasts.values()):
        return None
    least = max(item.smallest_p for item in contrasts.values())
    if least * len(contrasts) > alpha:
        return None
    return adjust_by_holm({name: item.p_value for name, item in contrasts.items()})


def relative_change(
    reference: Sequence[float],
    condition: Sequence[float],
    *,
    unit: str = SCENES,
    owners: Owners | None = None,
) -> Interval:
    """Return robustness: the relative change of a mean from the reference condition.

    (mean of condition - mean of reference) / mean of reference, with an interval from leaving out
    pairs; 0 is unmoved, -0.5 half of it lost. NaN if the reference mean is 0.

    Parameters
    ----------
    reference, condition : sequence of float, shape (N,)
        The same units under both conditions; pairs with NaN are left out.
    unit : str
        Kind of the units.
    owners : sequence, shape (N,), optional
        Units that each pair hangs on; see `jackknife_interval`.

    Notes
    -----
    The quantity of Fig. 5 of arXiv 2503.10331.
    """

    def change(rows: NDArray[np.float64]) -> float:
        before, after = rows.mean(axis=0)
        return float((after - before) / before) if before else math.nan

    pairs = _pair(reference, condition)
    return jackknife_interval(pairs, statistic=change, unit=unit, owners=owners)
