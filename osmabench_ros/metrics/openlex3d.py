"""OpenLex3D (Kassab et al., 2025): features of true points, Top-N frequency, set ranking."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.nearest_neighbours import Neighbours
from osmabench_ros.metrics.similarity import CosineTable, rank_rows
from osmabench_ros.metrics.tiers import TieredLabels, TieredObject, WordCategory, strip_word
from osmabench_ros.semantics.labels import group_rows_by_id

# Largest distance between a true point and the predicted one that it is compared with.
MAX_DISTANCE_M = 0.05


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
        The N best prompts of each feature, see `find_best_prompts`.
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
    ids, objects = _find_distinct(points.object_ids)
    table = labels.table(ids, prompts)
    scored = table[:, 0] != WordCategory.NONE if len(prompts) else np.zeros(len(ids), bool)
    if not scored.any():
        return {item: math.nan for item in WordCategory if item is not WordCategory.NONE}
    kept = scored[objects]
    owner = objects[kept]
    rows = points.rows[kept]
    missing = points.distances_m[kept] > max_distance_m
    if not compat or not len(best):
        missing |= rows < 0
    if not len(best):
        missing[:] = True
    near = ~missing
    pairs = _count_pairs(owner[near], rows[near] % max(len(best), 1), len(ids), len(best))
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


def _find_distinct(ids: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
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


def _count_pairs(
    owner: NDArray[np.integer], rows: NDArray[np.integer], objects: int, features: int
) -> _Pairs:
    """Count points by object and feature where that is less than one entry a point."""
    if objects * features > len(owner):
        return _Pairs(owner, rows, np.ones(len(owner), np.int64))
    counts = np.bincount(owner * features + rows, minlength=objects * features)
    used = np.flatnonzero(counts)
    return _Pairs(used // max(features, 1), used % max(features, 1), counts[used])


def list_category_shares(frequency: Mapping[WordCategory, float]) -> Iterator[tuple[str, float]]:
    """Yield names and shares of the categories, best first."""
    for item in WordCategory:
        if item is not WordCategory.NONE:
            yield item.name.lower(), frequency[item]


_EPSILON = 1e-8


@dataclass(frozen=True, eq=False)
class BoxScores:
    """Scores of ranks against their expected interval.

    Parameters
    ----------
    score, left, right : ndarray of float64
        Overall score and the scores of the two sides, in [0, 1], higher is better.
    """

    score: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]


def score_boxes(ranks: NDArray[np.integer], low: int, high: int, last: int) -> BoxScores:
    """Score ranks against the box [low, high] of the ranks 0 to `last`.

    left = 1 + min(0, (r - low) / low), right = 1 - max(0, (r - high) / (last - high)),
    score = min(left, right): 1 inside the box, falling to 0 at either end of the list.
    """
    left = 1 + np.minimum(0.0, (ranks - low) / (low + _EPSILON))
    right = 1 - np.maximum(0.0, (ranks - high) / max(last - high, _EPSILON))
    return BoxScores(np.minimum(left, right), left, right)


@dataclass(frozen=True)
class SetRanking:
    """Set ranking of a scene; NaN where no object has such labels.

    Parameters
    ----------
    overall, synonyms, secondary : float
        Mean score, in [0, 1], higher is better: mean over labels and points of an object, then
        over objects. Secondary labels are depictions and look-alikes together.
    over_points : float
        As overall, but the mean over points, as the paper writes it.
    synonym_undershooting, secondary_overshooting, secondary_undershooting : float
        Mean one-sided score of the labels that violate that side, in [0, 1), higher is better;
        the paper's penalties are 1 minus these.
    synonym_inlier_rate, secondary_inlier_rate : float
        Fraction of labels inside their box, in [0, 1], higher is better.
    coverage : float
        Fraction of an object's points with a feature within the gate, mean over objects, in
        [0, 1], higher is better.
    objects : int
        Objects that were scored.
    """

    overall: float
    synonyms: float
    secondary: float
    over_points: float
    synonym_undershooting: float
    secondary_overshooting: float
    secondary_undershooting: float
    synonym_inlier_rate: float
    secondary_inlier_rate: float
    coverage: float
    objects: int


def set_ranking(
    points: PointFeatures,
    similarity: NDArray[np.floating] | CosineTable,
    labels: TieredLabels,
    prompts: Sequence[str],
    *,
    max_distance_m: float = MAX_DISTANCE_M,
    compat: bool = False,
) -> SetRanking:
    """Score where the words for an object rank among all prompts.

    The nS synonyms belong to the ranks [0, nS - 1], the depictions and look-alikes to those that
    follow. Words that are not prompts are left out.

    Parameters
    ----------
    points : PointFeatures
        True points with the features that speak for them.
    similarity : ndarray or CosineTable, shape (M, L)
        Similarity of features and prompts; of a table only the rows that are used are computed.
    labels : TieredLabels
        Words for the objects.
    prompts : sequence of str, length L
        All prompts.
    max_distance_m : float
        Points farther from the prediction, and those without a feature, are missing: each of
        their labels scores 0 on both sides, so that a sparser map never gains.
    compat : bool
        As published: neither the gate nor the excluded objects apply, a point without a feature
        takes the last one, and under-, overshooting and inlier rates come only from the last
        point of an object.
    """
    place: dict[str, int] = {}
    for index, prompt in enumerate(prompts):
        place.setdefault(strip_word(prompt), index)
    near = (points.rows >= 0) & (points.distances_m <= max_distance_m)
    found = []
    for object_id, own in group_rows_by_id(points.object_ids).items():
        item = labels.objects.get(object_id)
        if item is None or not (compat or TieredLabels.is_scored(item)):
            continue
        rows = points.rows[own if compat else own[near[own]]]
        scores = _score_object(item, rows, len(own), similarity, place, compat)
        if scores:
            found.append({**scores, 'coverage': (float(near[own].mean()), len(own))})
    return _summary(found)


# Figure of an object with its weight in points; NaN where it does not exist.
_Scores = Mapping[str, tuple[float, int]]


def _score_object(
    item: TieredObject,
    rows: NDArray[np.int64],
    n: int,
    similarity: NDArray[np.floating] | CosineTable,
    place: Mapping[str, int],
    compat: bool,
) -> _Scores:
    """Score an object of n points, of which those that `rows` lacks are missing."""
    tiers = [_places(words, place) for words in (item.synonyms, item.depictions)]
    tiers.append(_places(item.visually_similar, place))
    n_synonyms = len(tiers[0])
    last = similarity.shape[1] - 1
    wanted = np.array([index for tier in tiers for index in tier], np.int64)
    if not len(wanted):
        return {}
    used, inverse, counts = np.unique(
        rows % similarity.shape[0], return_inverse=True, return_counts=True
    )
    ranks = rank_rows(similarity, used, wanted)
    primary = score_boxes(ranks[:, :n_synonyms], 0, n_synonyms - 1, last)
    secondary = score_boxes(ranks[:, n_synonyms:], n_synonyms, len(wanted) - 1, last)
    # Missing points add nothing to a share, so that the shares of the others are less than 1.
    share = counts / n
    missing = 0 if compat else (n - len(rows)) / n
    # The published code overwrites these with every point, so that the last one remains.
    weights = np.eye(len(used))[inverse[-1]] if compat else share
    both = np.concatenate([primary.score, secondary.score], axis=1)
    return {
        'overall': (_average_weighted(both, share), n),
        'synonyms': (_average_weighted(primary.score, share), n),
        'secondary': (_average_weighted(secondary.score, share), n),
        'synonym_undershooting': (_average_violations(primary.right, weights, missing), n),
        'secondary_overshooting': (_average_violations(secondary.left, weights, missing), n),
        'secondary_undershooting': (_average_violations(secondary.right, weights, missing), n),
        'synonym_inlier_rate': (_average_weighted(primary.score == 1, weights), n),
        'secondary_inlier_rate': (_average_weighted(secondary.score == 1, weights), n),
    }


def _places(words: Sequence[str], place: Mapping[str, int]) -> list[int]:
    return [place[strip_word(word)] for word in words if strip_word(word) in place]


def _average_weighted(values: NDArray[np.generic], weights: NDArray[np.float64]) -> float:
    """Return the mean over labels and weighted features, NaN without labels."""
    return float(weights @ values.mean(axis=1)) if values.shape[1] else math.nan


def _average_violations(
    values: NDArray[np.float64], weights: NDArray[np.float64], missing: float
) -> float:
    """Return the mean of the values below 1 and of the zeros of missing points, NaN if none."""
    spread = (values < 1) * weights[:, None]
    total = float(spread.sum() + values.shape[1] * missing)
    return float((values * spread).sum() / total) if total > 0 else math.nan


def _summary(found: Sequence[_Scores]) -> SetRanking:
    def mean(name: str) -> float:
        values = [item[name][0] for item in found if math.isfinite(item[name][0])]
        return float(np.mean(values)) if values else math.nan

    names = [name for name in SetRanking.__dataclass_fields__ if name not in _NOT_MEANS]
    points = sum(item['overall'][1] for item in found)
    total = sum(item['overall'][0] * item['overall'][1] for item in found)
    return SetRanking(
        **{name: mean(name) for name in names},
        over_points=total / points if points else math.nan,
        objects=len(found),
    )


_NOT_MEANS = frozenset({'over_points', 'objects'})
