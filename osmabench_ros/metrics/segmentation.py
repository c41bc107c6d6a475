"""Semantic segmentation of a map: OSMa-Bench as published (`compat`) and done right (`strict`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics import confusion
from osmabench_ros.metrics.geometry import find_occupied_voxels
from osmabench_ros.metrics.nearest_neighbours import Neighbours
from osmabench_ros.semantics.labels import UNLABELLED

# Classes OSMa-Bench leaves out: 0 means "other" in its data.
COMPAT_IGNORED = (0,)


@dataclass(frozen=True, eq=False)
class SegmentationScores:
    """Metrics of a confusion matrix.

    Parameters
    ----------
    labels : ndarray of int64, shape (K,)
        Classes with true points, without ignored ones.
    iou, accuracy : ndarray of float64, shape (K,)
        Per class, in [0, 1], higher is better.
    support : ndarray of int64, shape (K,)
        True points per class.
    miou, macc, accuracy_overall : float
        In [0, 1], higher is better; NaN if no class has true points.
    """

    labels: NDArray[np.int64]
    iou: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    support: NDArray[np.int64]
    miou: float
    macc: float
    accuracy_overall: float

    @property
    def fmiou(self) -> float:
        """IoU weighted by the true points of each class, in [0, 1]; NaN without support."""
        return self.fmiou_of(np.ones(len(self.labels), bool))

    def fmiou_of(self, chosen: NDArray[np.bool_]) -> float:
        """Return the f-mIoU of some classes, such as those that are not parts of the building."""
        weights = self.support[chosen]
        return _ratio(float((self.iou[chosen] * weights).sum()), weights.sum())


def score_segmentation(
    matrix: confusion.ConfusionMatrix,
    *,
    ignored: Sequence[int] = COMPAT_IGNORED,
    punish_false_classes: bool = False,
) -> SegmentationScores:
    r"""Score a confusion matrix.

    With :math:`n_c` true points of class c, :math:`TP_c` of them found and :math:`FP_c` from the
    whole column (rows of ignored labels included):

    - :math:`IoU_c = TP_c / (n_c + FP_c)`, :math:`Acc_c = TP_c / n_c`
    - mIoU and mAcc: means over the classes with :math:`n_c > 0` that are not ignored
    - f-mIoU: :math:`\sum_c n_c IoU_c / \sum_c n_c`
    - overall accuracy: :math:`\sum_c TP_c / \sum_c n_c`

    Parameters
    ----------
    matrix : ConfusionMatrix
        Negative labels are never classes.
    ignored : sequence of int
        Further labels that are not scored.
    punish_false_classes : bool
        Let classes that were predicted but do not exist count as IoU 0 in mIoU, as a global
        vocabulary demands.

    Notes
    -----
    Source: the evaluation of OSMa-Bench (arXiv 2503.10331) and its published results.
    """
    counts, labels = matrix.counts, matrix.labels
    support = counts.sum(axis=1)
    columns = counts.sum(axis=0)
    hits = np.diag(counts)
    scored = (labels >= 0) & ~np.isin(labels, ignored)
    real = scored & (support > 0)
    in_mean = scored & (support + columns > 0) if punish_false_classes else real
    with np.errstate(invalid='ignore', divide='ignore'):
        iou = hits / (support + columns - hits)
        accuracy = hits / support
    return SegmentationScores(
        labels[real],
        iou[real],
        accuracy[real],
        support[real],
        miou=_mean(iou[in_mean]) if real.any() else float('nan'),
        macc=_mean(accuracy[real]),
        accuracy_overall=_ratio(float(hits[real].sum()), support[real].sum()),
    )


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float('nan')


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else float('nan')


def list_scene_vocabulary(
    labels: NDArray[np.integer], ignored: Sequence[int] = COMPAT_IGNORED
) -> NDArray[np.int64]:
    """Return the classes that occur in the ground truth of a scene, ascending."""
    counts = np.bincount(labels, minlength=UNLABELLED + 1) if len(labels) else np.zeros(1)
    present = np.flatnonzero(counts)
    return present[~np.isin(present, [UNLABELLED, *ignored])].astype(np.int64)


def compat_confusion(
    truth: NDArray[np.integer],
    predicted: NDArray[np.integer],
    neighbours: Neighbours,
    *,
    ignored: Sequence[int] = COMPAT_IGNORED,
    device: str = 'auto',
) -> confusion.ConfusionMatrix:
    """Count as the published code does.

    Every true point takes the label of its nearest predicted point, however far that is. True
    points outside the scene's vocabulary are dropped, and so are those that get a class outside
    it, as scikit-learn's `confusion_matrix` drops points of other labels. The labels are the
    vocabulary and OUTSIDE, which here means only unlabelled points.

    Parameters
    ----------
    truth : ndarray of int, shape (N,)
        Class ids of the true points.
    predicted : ndarray of int, shape (M,)
        Class ids of the predicted points.
    neighbours : Neighbours
        Nearest predicted point of every true point, without a gate.
    ignored : sequence of int
        Class ids that do not belong to the vocabulary.
    device : str
        'auto', 'cpu' or 'cuda'.
    """
    _check_lengths(truth, neighbours)
    vocabulary = list_scene_vocabulary(truth, ignored)
    if not len(truth):
        return confusion.confusion_matrix(truth, truth, vocabulary, device=device)
    taken = np.append(predicted, UNLABELLED)[neighbours.indices]
    known = np.append(vocabulary, UNLABELLED)
    kept = np.isin(truth, vocabulary, kind='table') & np.isin(taken, known, kind='table')
    return confusion.confusion_matrix(truth[kept], taken[kept], vocabulary, device=device)


def strict_confusion(
    truth: NDArray[np.integer],
    predicted: NDArray[np.integer],
    neighbours: Neighbours,
    *,
    max_distance_m: float,
    vocabulary: NDArray[np.integer],
    hallucinated: Mapping[int, int] | None = None,
    device: str = 'auto',
) -> confusion.ConfusionMatrix:
    """Count with a distance gate; missing and unlabelled points are wrong.

    A true point without a predicted one within the gate counts in the column NOTHING, and in
    OUTSIDE if its neighbour has no class or one outside the vocabulary. Both stay in the class's
    denominator. Hallucinated surface forms the row NOTHING and so counts as false positives.

    Parameters
    ----------
    truth : ndarray of int, shape (N,)
        Class ids of points spread uniformly over the true surface. UNLABELLED ones are dropped.
    predicted : ndarray of int, shape (M,)
        Class ids of the predicted points.
    neighbours : Neighbours
        Nearest predicted point of every true point.
    max_distance_m : float
        Largest distance of a match in metres.
    vocabulary : ndarray of int
        Classes that can be predicted: the scene's, or all of the label set (global).
    hallucinated : mapping of int to int, optional
        Hallucinated surface per predicted class, in true points; see `count_hallucinated_points`.
    device : str
        'auto', 'cpu' or 'cuda'.
    """
    _check_lengths(truth, neighbours)
    table = np.append(predicted, confusion.NOTHING).astype(np.int32)
    table[table == UNLABELLED] = confusion.OUTSIDE
    taken = table[neighbours.find_rows_within(max_distance_m)]
    kept = truth != UNLABELLED
    extra = (confusion.OUTSIDE, confusion.NOTHING)
    matrix = confusion.confusion_matrix(
        truth[kept], taken[kept], vocabulary, extra_labels=extra, device=device
    )
    counts, labels = matrix.counts.copy(), matrix.labels
    for class_id, points in (hallucinated or {}).items():
        column = np.flatnonzero(labels == class_id)
        # The last row is NOTHING and the column before the last OUTSIDE, as in `extra`.
        counts[-1, column[0] if len(column) else -2] += points
    return confusion.ConfusionMatrix(counts, labels)


def count_hallucinated_points(
    points: NDArray[np.floating],
    labels: NDArray[np.integer],
    hallucinated: NDArray[np.bool_],
    truth_points: NDArray[np.floating],
    *,
    cell_m: float,
) -> dict[int, int]:
    """Express hallucinated surface in true points, whatever the density of the prediction.

    Both clouds are cut into cells. A cell with hallucinated points of a class weighs as much as
    an occupied cell of the truth holds on average: ``round(cells_c * N / cells_truth)``.

    Parameters
    ----------
    points : ndarray, shape (M, 3)
        Predicted points in metres.
    labels : ndarray of int, shape (M,)
        Their class ids.
    hallucinated : ndarray of bool, shape (M,)
        Which of them lie farther from any true surface than the gate.
    truth_points : ndarray, shape (N, 3)
        Points spread uniformly over the true surface.
    cell_m : float
        Edge of a cell; the gate is a good choice.

    Returns
    -------
    dict of int to int
        True points per class id, ascending.
    """
    if not hallucinated.any() or not len(truth_points):
        return {}
    per_cell = len(truth_points) / len(find_occupied_voxels(truth_points, cell_m))
    wrong = points[hallucinated]
    classes = labels[hallucinated]
    return {
        int(label): round(len(find_occupied_voxels(wrong[classes == label], cell_m)) * per_cell)
        for label in np.unique(classes)
    }


def top_k_accuracy(
    ranked: NDArray[np.integer], truth: NDArray[np.integer], k: int
) -> tuple[float, int]:
    """Return the fraction of points with their class among the k best, and the number of points.

    Parameters
    ----------
    ranked : ndarray of int, shape (N, K)
        Class ids, best first; negative or UNLABELLED where a ranking is shorter.
    truth : ndarray of int, shape (N,)
        True class ids; UNLABELLED ones are left out.
    k : int
        At least 1.

    Returns
    -------
    tuple of float and int
        In [0, 1], higher is better, as `top_k_accuracy_score` of scikit-learn; and the points.
    """
    if ranked.ndim != 2 or len(ranked) != len(truth):
        raise MetricError(f'ranking {ranked.shape} does not fit {len(truth)} true labels')
    known = truth != UNLABELLED
    hits = (ranked[:, :k] == truth[:, None]).any(axis=1)
    return _ratio(float(hits[known].sum()), int(known.sum())), int(known.sum())


class SegmentationRow(NamedTuple):
    """A line of a published table; values in [0, 1], higher is better."""

    miou: float
    fmiou: float
    macc: float
    scene: str


def score_scenes(
    matrices: Mapping[str, confusion.ConfusionMatrix], *, ignored: Sequence[int] = COMPAT_IGNORED
) -> list[SegmentationRow]:
    """Score every scene, and all of them together in both published ways.

    Returns
    -------
    list of SegmentationRow
        One per scene in the given order; ``'overall'``, the scores of the matrices summed by label
        (ReplicaCAD); ``'overall_mean'``, the means over scenes (HM3D). A scene without a scored
        class is left out of the mean.
    """
    if not matrices:
        raise MetricError('there are no confusion matrices to score')
    rows = [_row(name, item, ignored) for name, item in matrices.items()]
    figures = np.array([row[:3] for row in rows], np.float64)
    scored = figures[np.isfinite(figures).all(axis=1)]
    miou, fmiou, macc = (_mean(column) for column in scored.T)
    rows.append(_row('overall', confusion.sum_matrices(matrices.values()), ignored))
    return [*rows, SegmentationRow(miou, fmiou, macc, 'overall_mean')]


def _row(scene: str, matrix: confusion.ConfusionMatrix, ignored: Sequence[int]) -> SegmentationRow:
    scores = score_segmentation(matrix, ignored=ignored)
    return SegmentationRow(scores.miou, scores.fmiou, scores.macc, scene)


def _check_lengths(truth: NDArray[np.integer], neighbours: Neighbours) -> None:
    if truth.shape != neighbours.indices.shape:
        raise MetricError(
            f'{truth.shape} true labels, but {neighbours.indices.shape} nearest neighbours'
        )
