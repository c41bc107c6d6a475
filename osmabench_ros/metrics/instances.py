"""Instance segmentation of a map: average precision, panoptic quality, splits and merges."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.matching import Overlaps

# IoU thresholds of mAP: 0.50, 0.55, … 0.95, as in COCO.
COCO_THRESHOLDS = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))

# IoU thresholds of mAP: 0.50, 0.55, … 0.90, as in ScanNet's benchmark and OpenLex3D's code.
SCANNET_THRESHOLDS = COCO_THRESHOLDS[:-1]


def find_greedy_hits(
    iou: NDArray[np.float64], confidence: NDArray[np.float64], threshold: float
) -> NDArray[np.bool_]:
    """Return which masks hit an instance that no better mask has hit before.

    Masks choose in order of confidence, equal ones in their own order, the free instance with
    the largest IoU, if that is at least the threshold.

    Parameters
    ----------
    iou : ndarray, shape (P, G)
        IoU of masks with instances.
    confidence : ndarray, shape (P,)
        Higher is surer.
    threshold : float
        Least IoU of a hit, inclusive.

    Returns
    -------
    ndarray of bool, shape (P,)
    """
    hits = np.zeros(len(iou), bool)
    free = np.ones(iou.shape[1], bool)
    for mask in np.argsort(-confidence, kind='stable'):
        candidates = np.where(free, iou[mask], -1.0)
        best = int(candidates.argmax()) if len(candidates) else -1
        if best >= 0 and candidates[best] >= threshold:
            hits[mask], free[best] = True, False
    return hits


def average_precision(
    hits: NDArray[np.bool_], confidence: NDArray[np.float64], instances: int
) -> float:
    r"""Return the area under the precision-recall curve without interpolation.

    :math:`AP = \sum_n (R_n - R_{n-1}) P_n` over the thresholds of confidence, where instances
    that nothing hit stay in the denominator of recall. In [0, 1], higher is better; NaN without
    instances. The definition is scikit-learn's.
    """
    if hits.shape != confidence.shape:
        raise MetricError(f'{hits.shape} hits, but {confidence.shape} confidences')
    if instances < 1:
        return float('nan')
    order = np.argsort(-confidence, kind='stable')
    ordered = confidence[order]
    last_of_tie = np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)]
    found = np.cumsum(hits[order])[last_of_tie]
    tried = (np.arange(len(ordered)) + 1)[last_of_tie]
    gains = np.diff(found, prepend=0) / instances
    return float((gains * (found / tried)).sum())


def judge_as_scannet(
    overlapping: NDArray[np.bool_], scores: Sequence[float]
) -> tuple[list[tuple[bool, float]], int]:
    """Return right and wrong masks with their scores, and the number of missed instances.

    An instance takes the first free mask that overlaps it enough, shape (P, G); another one on the
    same instance is wrong, with the lower score of the two.
    """
    verdicts: list[tuple[bool, float]] = []
    used: set[int] = set()
    missed = 0
    for target in range(overlapping.shape[1]):
        best: float | None = None
        for p in np.flatnonzero(overlapping[:, target]).tolist():
            if p in used:
                continue
            if best is None:
                best = scores[p]
                used.add(p)
            else:
                verdicts.append((False, min(best, scores[p])))
                best = max(best, scores[p])
        missed += best is None
        if best is not None:
            verdicts.append((True, best))
    wrong = np.flatnonzero(~overlapping.any(axis=1)).tolist()
    return verdicts + [(False, scores[p]) for p in wrong], missed


def kernel_average_precision(
    true: NDArray[np.bool_], confidence: NDArray[np.float64], missed: int
) -> float:
    """Integrate a precision-recall curve as ScanNet's evaluation does.

    Parameters
    ----------
    true : ndarray of bool, shape (N,)
        Whether each mask is right.
    confidence : ndarray, shape (N,)
        Its confidence.
    missed : int
        Instances that nothing hit.

    Returns
    -------
    float
        Sum of precision times the step of recall, taken over both neighbours (kernel
        [-0.5, 0, 0.5]), with an artificial point of precision 1 at recall 0. Higher is better;
        0 without anything right. It is not the area: a perfect list can give less than 1.
    """
    if not len(true):
        return 0.0
    order = np.argsort(confidence, kind='stable')
    sums = np.append(np.cumsum(true[order]), 0)
    _, starts = np.unique(confidence[order], return_index=True)
    below = sums[starts - 1]
    hits = sums[-2] - below
    with np.errstate(invalid='ignore'):
        precision = np.append(hits / (len(true) - starts), 1.0)
        recall = np.append(np.nan_to_num(hits / (hits + below + missed)), 0.0)
    padded = np.concatenate([recall[:1], recall, [0.0]])
    return float(precision @ ((padded[:-2] - padded[2:]) / 2))


def coco_precision(
    iou: NDArray[np.float64], confidence: NDArray[np.float64], threshold: float
) -> float:
    """Return `average_precision` of `find_greedy_hits`."""
    hits = find_greedy_hits(iou, confidence, threshold)
    return average_precision(hits, confidence, iou.shape[1])


def scannet_precision(
    iou: NDArray[np.float64], confidence: NDArray[np.float64], threshold: float
) -> float:
    """Return average precision as ScanNet's benchmark computes it, without its minimal size.

    A hit needs an IoU above the threshold, and the curve is integrated by
    `kernel_average_precision`. In [0, 1], higher is better; NaN without instances.
    """
    if not iou.shape[1]:
        return float('nan')
    verdicts, missed = judge_as_scannet(iou > threshold, confidence.tolist())
    true = np.array([verdict for verdict, _ in verdicts], bool)
    return kernel_average_precision(true, np.array([score for _, score in verdicts]), missed)


@dataclass(frozen=True)
class PrecisionProtocol:
    """A way to compute average precision.

    Parameters
    ----------
    name : str
        Part of the name of its metrics.
    precision : callable
        Called with IoU (P, G), confidence (P,) and threshold of one class.
    thresholds : tuple of float
        Those of the mean.
    counts_false_classes : bool
        Whether a class that masks have and no instance has is 0, so that it lowers the mean, or
        left out.
    """

    name: str
    precision: Callable[[NDArray[np.float64], NDArray[np.float64], float], float]
    thresholds: tuple[float, ...]
    counts_false_classes: bool


# Masks choose by confidence the instance with the largest IoU, at least the threshold.
COCO = PrecisionProtocol('coco', coco_precision, COCO_THRESHOLDS, counts_false_classes=True)

# Instances take the first mask with an IoU above the threshold.
SCANNET = PrecisionProtocol(
    'scannet', scannet_precision, SCANNET_THRESHOLDS, counts_false_classes=False
)


@dataclass(frozen=True)
class PanopticQuality:
    """Panoptic quality and its factors (Kirillov et al., 2019).

    Parameters
    ----------
    quality : float
        PQ = sum of IoU over matches / (TP + FP/2 + FN/2), in [0, 1], higher is better; NaN if
        there is neither a mask nor an instance.
    segmentation : float
        SQ = mean IoU of the matches; NaN without one.
    recognition : float
        RQ = TP / (TP + FP/2 + FN/2).
    true_positives, false_positives, false_negatives : int
        Counts; a match has IoU > 0.5, so that there is at most one.
    """

    quality: float
    segmentation: float
    recognition: float
    true_positives: int
    false_positives: int
    false_negatives: int


def panoptic_quality(iou: NDArray[np.float64]) -> PanopticQuality:
    """Score the masks of one class, given their IoU with its instances, shape (P, G)."""
    matched = iou > 0.5
    if matched.sum(axis=0).max(initial=0) > 1:
        # Possible only for masks that overlap: the best one counts.
        matched &= iou == np.where(matched, iou, -1).max(axis=0)
        matched &= np.cumsum(matched, axis=0) == 1
    found = int(matched.sum())
    wrong = iou.shape[0] - found
    missed = iou.shape[1] - found
    denominator = found + wrong / 2 + missed / 2
    total = float(iou[matched].sum())
    return PanopticQuality(
        total / denominator if denominator else float('nan'),
        total / found if found else float('nan'),
        found / denominator if denominator else float('nan'),
        found,
        wrong,
        missed,
    )


def count_pieces_of_instances(
    overlaps: Overlaps, *, min_share: float = 0.5, min_points: int = 1
) -> NDArray[np.int64]:
    """Count the masks that mostly lie in each instance: 1 is right, more is over-segmentation.

    OSMa-Bench shows one staircase as fifteen objects; that instance has 15 pieces.

    Parameters
    ----------
    overlaps : Overlaps
        Masks and instances.
    min_share : float
        Fraction of a mask that must lie in an instance.
    min_points : int
        Smallest shared surface that counts.

    Returns
    -------
    ndarray of int64, shape (G,)
    """
    share = overlaps.shared / np.maximum(overlaps.predicted_sizes, 1)[:, None]
    return np.asarray(
        ((share >= min_share) & (overlaps.shared >= min_points)).sum(axis=0), np.int64
    )


def count_instances_of_pieces(
    overlaps: Overlaps, *, min_share: float = 0.5, min_points: int = 1
) -> NDArray[np.int64]:
    """Count the instances that mostly lie in each mask: more than 1 is under-segmentation.

    Returns
    -------
    ndarray of int64, shape (P,)
    """
    share = overlaps.shared / np.maximum(overlaps.true_sizes, 1)[None]
    return np.asarray(
        ((share >= min_share) & (overlaps.shared >= min_points)).sum(axis=1), np.int64
    )


def mean_excess(counts: NDArray[np.integer]) -> float:
    """Return the mean number of surplus pieces: mean of max(count - 1, 0); 0 is best."""
    return float(np.maximum(counts - 1, 0).mean()) if len(counts) else float('nan')


def class_average_precision(
    overlaps: Overlaps,
    predicted_classes: NDArray[np.integer],
    confidence: NDArray[np.float64],
    true_classes: NDArray[np.integer],
    threshold: float,
    protocol: PrecisionProtocol = COCO,
) -> dict[int, float]:
    """Return the average precision of every class that counts, ascending by class.

    These are the classes of instances and, if the protocol counts them, classes that masks have
    and no instance has, with 0. A negative class has no name in the label set.
    """
    result = {}
    for class_id in np.unique(true_classes):
        own, true = predicted_classes == class_id, true_classes == class_id
        found = overlaps.select(own, true).iou
        result[int(class_id)] = protocol.precision(found, confidence[own], threshold)
    if protocol.counts_false_classes:
        false = np.setdiff1d(predicted_classes[predicted_classes >= 0], true_classes)
        result.update({int(class_id): 0.0 for class_id in false})
    return dict(sorted(result.items()))


def mean_average_precision(
    overlaps: Overlaps,
    predicted_classes: NDArray[np.integer],
    confidence: NDArray[np.float64],
    true_classes: NDArray[np.integer],
    protocol: PrecisionProtocol = COCO,
) -> float:
    """Return the mean over thresholds and classes; in [0, 1], higher is better."""
    per_threshold = [
        list(
            class_average_precision(
                overlaps, predicted_classes, confidence, true_classes, threshold, protocol
            ).values()
        )
        for threshold in protocol.thresholds
    ]
    return float(np.mean(per_threshold)) if len(true_classes) else float('nan')
