"""OpenLex3D: features of true points, and Top-N frequency (Kassab et al., 2025)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.nearest_neighbours import Neighbours
from osmabench_ros.metrics.tiers import TieredLabels, WordCategory

MAX_DISTANCE_M = 0.05
"""Largest distance between a true point and the predicted one that it is compared with."""


@dataclass(frozen=True, eq=False)
class PointFeatures:
    """The feature of each true point.

    Parameters
    ----------
    object_ids : ndarray of int, shape (N,)
        True object of each point.
    rows : ndarray of int64, shape (N,)
        Feature of the nearest predicted point; -1 where that has none.
    distances_m : ndarray of float32, shape (N,)
        Distance of that point.
    """

    object_ids: NDArray[np.integer]
    rows: NDArray[np.int64]
    distances_m: NDArray[np.floating]

    def __post_init__(self) -> None:
        shapes = {self.object_ids.shape, self.rows.shape, self.distances_m.shape}
        if len(shapes) != 1:
            raise MetricError(f'object ids, features and distances differ in shape: {shapes}')

    @classmethod
    def of(
        cls,
        object_ids: NDArray[np.integer],
        neighbours: Neighbours,
        feature_rows: NDArray[np.integer],
    ) -> PointFeatures:
        """Look up the feature of each point's neighbour."""
        rows = np.append(feature_rows, -1)[neighbours.indices].astype(np.int64)
        return cls(object_ids, rows, neighbours.distances_m)


def top_n_frequency(
    points: PointFeatures,
    best: NDArray[np.integer],
    labels: TieredLabels,
    prompts: Sequence[str],
    *,
    max_distance_m: float = MAX_DISTANCE_M,
    compat: bool = False,
) -> dict[WordCategory, float]:
    r"""Return how often the best word of each point falls into each category.

    A point takes the best category among the N words of its feature, or MISSING if the nearest
    predicted point is farther than the gate. :math:`F_C` is the mean over objects of the share
    of an object's points in C. Objects that are not scored leave the denominator.

    Parameters
    ----------
    points : PointFeatures
        True points with the features that speak for them.
    best : ndarray of int, shape (M, N)
        The N best prompts of each feature, see `best_prompts`.
    labels : TieredLabels
        Words for the objects.
    prompts : sequence of str, length L
        All prompts.
    max_distance_m : float
        Distance beyond which a point is missing.
    compat : bool
        As published: a point without a feature takes the last one. Otherwise it is missing.

    Returns
    -------
    dict
        Share in [0, 1] for each category but NONE; they add up to 1. Synonyms: higher is better.
        NaN if no object is scored.
    """
    ids, objects = _distinct(points.object_ids)
    table = labels.table(ids, prompts)
    scored = table[:, 0] != WordCategory.NONE if len(prompts) else np.zeros(len(ids), bool)
    if not scored.any():
        return {item: math.nan for item in WordCategory if item is not WordCategory.NONE}
    kept = scored[objects]
    owner, rows, missing = (
        objects[kept],
        points.rows[kept],
        points.distances_m[kept] > max_distance_m,
    )
    if not compat or not len(best):
        missing |= rows < 0
    if not len(best):
        missing[:] = True
    near = ~missing
    pairs = _counted_pairs(owner[near], rows[near] % max(len(best), 1), len(ids), len(best))
    category = table[pairs.objects[:, None], best[pairs.rows]].min(
        axis=1, initial=WordCategory.NONE
    )
    kinds = len(WordCategory) - 1
    place = pairs.objects * kinds + category
    counts = np.bincount(place, pairs.counts, len(ids) * kinds).reshape(len(ids), kinds)
    counts[:, WordCategory.MISSING] += np.bincount(owner[missing], minlength=len(ids))
    counts = counts[scored]
    means = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    return {WordCategory(i): float(value) for i, value in enumerate(means)}


def _distinct(ids: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Return the distinct ids, ascending, and the index of each given id among them."""
    if not len(ids) or int(ids.max()) - int(ids.min()) > len(ids):
        return np.unique(ids, return_inverse=True)
    low = ids.min()
    occurs = np.zeros(int(ids.max()) - int(low) + 1, bool)
    occurs[ids - low] = True
    place = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs) + low, place[ids - low]


class _Pairs(NamedTuple):
    """Pairs of object and feature, with the number of points of each pair."""

    objects: NDArray[np.integer]
    rows: NDArray[np.integer]
    counts: NDArray[np.integer]


def _counted_pairs(
    owner: NDArray[np.integer], rows: NDArray[np.integer], objects: int, features: int
) -> _Pairs:
    """Count points by object and feature where that is less than one entry a point."""
    if objects * features > len(owner):
        return _Pairs(owner, rows, np.ones(len(owner), np.int64))
    counts = np.bincount(owner * features + rows, minlength=objects * features)
    used = np.flatnonzero(counts)
    return _Pairs(used // max(features, 1), used % max(features, 1), counts[used])


def category_shares(frequency: Mapping[WordCategory, float]) -> Iterator[tuple[str, float]]:
    """Yield names and shares of the categories, best first."""
    for item in WordCategory:
        if item is not WordCategory.NONE:
            yield item.name.lower(), frequency[item]
