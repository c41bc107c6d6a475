"""Pairs of axis-aligned boxes that are close to each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def close_pairs(
    low: NDArray[np.float64], high: NDArray[np.float64], reach_m: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all pairs of boxes whose gap along every axis is at most `reach_m`.

    Sweep along x: O(n log n) plus the pairs whose x intervals meet.

    Parameters
    ----------
    low, high : ndarray, shape (N, 3)
        Corners in metres.
    reach_m : float
        Greatest gap.

    Returns
    -------
    first, second : ndarray of int, shape (P,)
        Indices with first < second, in ascending order.
    """
    order = np.argsort(low[:, 0], kind='stable')
    starts = low[order, 0]
    ends = np.searchsorted(starts, high[order, 0] + reach_m, side='right')
    first, second = [], []
    for position, end in enumerate(ends):
        index, others = order[position], order[position + 1 : end]
        gap = np.maximum(low[others] - high[index], low[index] - high[others])
        near = others[(gap[:, 1:] <= reach_m).all(axis=1)]
        first.append(np.full(len(near), index))
        second.append(near)
    if not first:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    a, b = np.concatenate(first), np.concatenate(second)
    a, b = np.minimum(a, b), np.maximum(a, b)
    rank = np.lexsort((b, a))
    return a[rank], b[rank]
