"""Object map quality (OMQ), by which BenchBot scores maps of boxes and lists of changed boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError

ADDED, REMOVED, CONSTANT = 0, 1, 2
"""States of an object, in the order of BenchBot's `state_probs`."""


@dataclass(frozen=True, eq=False)
class TrueBoxes:
    """Objects that there are, or those that changed.

    Parameters
    ----------
    boxes : ndarray, shape (G, 2, 3)
        Lower and upper corners along the axes of the world, metres.
    classes : ndarray of int, shape (G,)
        Columns of the proposals' `label_probs`.
    states : ndarray of int, shape (G,), optional
        ADDED or REMOVED; None for a map as it is.
    groups : ndarray of bool, shape (G,), optional
        Boxes around several things of one class.
    """

    boxes: NDArray[np.float64]
    classes: NDArray[np.int64]
    states: NDArray[np.int64] | None = None
    groups: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class ProposedBoxes:
    """What a method says there is, or has changed.

    Parameters
    ----------
    boxes : ndarray, shape (P, 2, 3)
        As of `TrueBoxes`.
    label_probs : ndarray, shape (P, C)
        Distribution over classes; the last column is the background.
    state_probs : ndarray, shape (P, 3), optional
        Distribution over ADDED, REMOVED and CONSTANT.
    """

    boxes: NDArray[np.float64]
    label_probs: NDArray[np.float64]
    state_probs: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class ObjectMapQuality:
    """OMQ and its parts, all in [0, 1]; averages are over true positives.

    `fp_quality` is 1 less the mean cost of a false positive, 1 without any. `state` is None
    where no states are scored.
    """

    omq: float
    pairwise: float
    label: float
    spatial: float
    fp_quality: float
    state: float | None
    true_positives: int
    false_positives: int
    false_negatives: int


def filled(probs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return distributions, shape (N, C), of sum 1: scaled down, or with the rest in the last."""
    total = probs.sum(axis=1)
    probs[:, -1] += np.maximum(1.0 - total, 0.0)
    return np.asarray(probs / np.maximum(total, 1.0)[:, None])


def object_map_quality(true: TrueBoxes, proposed: ProposedBoxes) -> ObjectMapQuality:
    """Return the object map quality of one map, or of a list of changes, as published.

    Parameters
    ----------
    true, proposed : TrueBoxes, ProposedBoxes
        Both with states for a list of changes, or both without.

    Raises
    ------
    MetricError
        If only one of the two has states.

    Notes
    -----
    Of the code of BenchBot (benchbot-addons/eval_omq). The quality of a pair is the geometric mean
    of its 3-D IoU, of the probability of the true class, and of that of the true state. Pairs are
    one to one with the largest sum of qualities, and with quality 0 are none. Then

        OMQ = sum of qualities / (TP + FN + sum of the costs of false positives)

    where a false positive costs the largest probability of a class but the background, for
    changes its geometric mean with that of a state but CONSTANT. As there, qualities have single
    precision; without any true object or any proposal the cost is of the class alone; a proposal
    of the class of a group, at least half of it in the group's box, is no false positive.
    """
    if (true.states is None) != (proposed.state_probs is None):
        raise MetricError('object map quality: states are needed on both sides, or on neither')
    truths, proposals = len(true.boxes), len(proposed.boxes)
    if not truths or not proposals:
        cost = float(proposed.label_probs[:, :-1].max(axis=1, initial=0.0).sum())
        by_state = true.states is not None
        return _quality(np.zeros((4, 0)), cost, proposals, truths, by_state=by_state)
    shared = _shared_volumes(true.boxes, proposed.boxes)
    own = [np.prod(boxes[:, 1] - boxes[:, 0], axis=1) for boxes in (true.boxes, proposed.boxes)]
    union = own[0][:, None] + own[1] - shared
    parts = [
        proposed.label_probs[:, true.classes].T.astype(np.float32),
        np.divide(shared, union, out=np.zeros_like(shared), where=union > 0),
    ]
    if true.states is not None and proposed.state_probs is not None:
        parts.append(proposed.state_probs[:, true.states].T.astype(np.float32))
    square = (max(truths, proposals),) * 2
    tables = np.zeros((4, *square), np.float32)
    overall = np.prod(np.array(parts, np.float64), axis=0) ** (1.0 / len(parts))
    for table, values in zip(tables, (overall, *parts), strict=False):
        # Kept as costs there, which takes the last digits of small qualities.
        table[:truths, :proposals] = 1 - (1 - values).astype(np.float32)
    pairs = _assigned(tables[0])
    tables[1:, tables[0] == 0] = 0.0
    missed = tables[0][pairs] <= 0
    unmatched = [int(column) for column in pairs[1][missed] if column < proposals]
    false = [i for i in unmatched if not _of_group(i, tables[0], true, proposed, shared, own[1])]
    costs = proposed.label_probs[false, :-1].max(axis=1, initial=0.0)
    if proposed.state_probs is not None:
        costs = np.sqrt(costs * proposed.state_probs[false, :-1].max(axis=1, initial=0.0))
    hit = tables[:, pairs[0][~missed], pairs[1][~missed]]
    missing = truths - hit.shape[1]
    return _quality(hit, float(costs.sum()), len(false), missing, by_state=len(parts) == 3)


def _shared_volumes(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> NDArray[np.float64]:
    low = np.maximum(first[:, None, 0], second[None, :, 0])
    high = np.minimum(first[:, None, 1], second[None, :, 1])
    return np.asarray(np.prod(np.maximum(high - low, 0.0), axis=2))


def _assigned(quality: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(1 - quality)
    return rows, columns


def _of_group(
    column: int,
    quality: NDArray[np.float32],
    true: TrueBoxes,
    proposed: ProposedBoxes,
    shared: NDArray[np.float64],
    volumes: NDArray[np.float64],
) -> bool:
    """Return whether a proposal without partner is one of a group that has another partner."""
    best = int(quality[:, column].argmax())
    if true.groups is None or not quality[best, column] > 0 or not true.groups[best]:
        return False
    same_class = proposed.label_probs[column, :-1].argmax() == true.classes[best]
    return bool(same_class and shared[best, column] >= 0.5 * volumes[column])


def _quality(
    hit: NDArray[np.floating],
    cost: float,
    false_positives: int,
    false_negatives: int,
    *,
    by_state: bool,
) -> ObjectMapQuality:
    """Return the figures of the qualities (4, TP) of pairs: overall, label, IoU and state."""
    count = hit.shape[1]
    overall, label, spatial, state = (float(row.sum()) / max(count, 1) for row in hit)
    whole = count + cost + false_negatives
    return ObjectMapQuality(
        omq=float(hit[0].sum()) / whole if whole > 0 else 0.0,
        pairwise=overall,
        label=label,
        spatial=spatial,
        fp_quality=(false_positives - cost) / false_positives if false_positives else 1.0,
        state=state if by_state else None,
        true_positives=count,
        false_positives=false_positives,
        false_negatives=false_negatives,
    )
