"""Object retrieval by text query: OpenLex3D as published (`compat`) and done right (`strict`)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics import instances

# Objects a query retrieves in the published code.
COMPAT_K = 10

# IoU above which an object is found, in the published configuration of the inverse rank.
COMPAT_RANK_IOU = 0.25

# Published gate of mask alignment: a squared distance of 0.001, so 3.16 cm instead of 1 mm.
COMPAT_ALIGNMENT_M = math.sqrt(0.001)


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Queries, their true objects, and their similarity to every predicted object.

    Parameters
    ----------
    similarity : ndarray, shape (P, Q)
        Cosine of predicted objects and queries.
    iou : ndarray, shape (P, G)
        Overlap of predicted objects with true ones.
    sizes : ndarray of int, shape (P,)
        True points that a predicted object covers.
    wanted : sequence of sequence of int, length Q
        Columns of `iou` that each query asks for.
    """

    similarity: NDArray[np.floating]
    iou: NDArray[np.float64]
    sizes: NDArray[np.integer]
    wanted: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        p = len(self.sizes)
        if self.similarity.shape != (p, len(self.wanted)) or len(self.iou) != p:
            raise MetricError(
                f'{p} objects and {len(self.wanted)} queries do not fit similarities '
                f'{self.similarity.shape} and overlaps {self.iou.shape}'
            )

    def order(self, query: int) -> NDArray[np.intp]:
        """Return the predicted objects from most to least similar."""
        return np.argsort(-self.similarity[:, query], kind='stable')


def compat_confidence(similarity: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return (s + 1) / 2, stretched to [0, 1] for each query over all objects."""
    raised = (similarity.astype(np.float64) + 1) / 2
    low = raised.min(axis=0)
    high = raised.max(axis=0)
    return np.asarray((raised - low) / np.maximum(high - low, 1e-8))


def compat_average_precision(
    retrieval: Retrieval, threshold: float, *, k: int = COMPAT_K
) -> float:
    """Return the published AP at one threshold, pooled over all queries as one class.

    The k most confident objects of a query are retrieved; a wanted object takes the first free
    one with IoU above (never at) the threshold. NaN without wanted objects.
    """
    confidence = compat_confidence(retrieval.similarity)
    verdicts: list[tuple[bool, float]] = []
    missed = wanted = 0
    for query, targets in enumerate(retrieval.wanted):
        chosen = [p for p in retrieval.order(query)[:k] if retrieval.sizes[p] > 0]
        scores = [float(confidence[p, query]) for p in chosen]
        overlap = retrieval.iou[np.ix_(chosen, list(targets))]
        found, lost = instances.judge_as_scannet(overlap > threshold, scores)
        verdicts += found
        missed += lost
        wanted += len(targets)
    if not wanted:
        return math.nan
    true = np.array([verdict for verdict, _ in verdicts], bool)
    return instances.kernel_average_precision(
        true, np.array([score for _, score in verdicts]), missed
    )


def strict_average_precision(retrieval: Retrieval, threshold: float) -> float:
    """Return the mean over queries of the area under the precision-recall curve.

    All objects are ranked, an IoU of exactly the threshold is enough, and a perfect ranking of
    perfect masks gives 1. In [0, 1], higher is better; NaN without wanted objects.
    """
    values = []
    for query, targets in enumerate(retrieval.wanted):
        if not len(targets):
            continue
        similarity = retrieval.similarity[:, query].astype(np.float64)
        hits = instances.find_greedy_hits(retrieval.iou[:, list(targets)], similarity, threshold)
        values.append(instances.average_precision(hits, similarity, len(targets)))
    return float(np.mean(values)) if values else math.nan


def mean_over_thresholds(
    retrieval: Retrieval, *, compat: bool = False, k: int = COMPAT_K
) -> float:
    """Return mAP: compat over 0.50 … 0.90, although the paper says 0.95, strict over those."""
    if compat:
        found = [compat_average_precision(retrieval, t, k=k) for t in instances.SCANNET_THRESHOLDS]
    else:
        found = [strict_average_precision(retrieval, t) for t in instances.COCO_THRESHOLDS]
    return float(np.mean(found))


def compat_inverse_rank(
    retrieval: Retrieval, threshold: float = COMPAT_RANK_IOU, *, k: int = COMPAT_K
) -> float:
    """Return the published mean inverse rank over wanted objects.

    Each wanted object takes the free retrieved object with the largest IoU above the threshold;
    the ranks of a query, 1-based and ascending, are lowered by 0, 1, 2, … so that a perfect list
    has rank 1 throughout. Objects not found count 0. In [0, 1], higher is better; 0 without
    wanted objects.
    """
    inverse: list[float] = []
    for query, targets in enumerate(retrieval.wanted):
        order = retrieval.order(query)
        rank_of = {int(p): rank for rank, p in enumerate(order, start=1)}
        free = [int(p) for p in order[:k] if retrieval.sizes[p] > 0]
        ranks: list[int] = []
        for target in targets:
            best = max(free, key=lambda p: retrieval.iou[p, target], default=None)
            if best is not None and retrieval.iou[best, target] > threshold:
                ranks.append(rank_of[best])
                free.remove(best)
        lowered = [rank - i for i, rank in enumerate(sorted(ranks))]
        inverse += [1 / rank if rank > 0 else 0.0 for rank in lowered]
        inverse += [0.0] * (len(targets) - len(ranks))
    return float(np.mean(inverse)) if inverse else 0.0


def find_first_ranks(retrieval: Retrieval, threshold: float = 0.5) -> Iterator[int | None]:
    """Yield the 1-based rank of the first right object of each query, None if there is none.

    Of equally similar objects the wrong ones come first.
    """
    for query, targets in enumerate(retrieval.wanted):
        if not len(targets):
            continue
        similarity = retrieval.similarity[:, query]
        right = (retrieval.iou[:, list(targets)] >= threshold).any(axis=1)
        best = similarity[right].max(initial=-np.inf)
        yield 1 + int((similarity[~right] >= best).sum()) if right.any() else None


def mean_reciprocal_rank(retrieval: Retrieval, threshold: float = 0.5) -> float:
    """Return the mean of 1 / rank of the first right object, 0 where none is right.

    In [0, 1], higher is better; NaN without queries that want anything.
    """
    values = [0.0 if rank is None else 1 / rank for rank in find_first_ranks(retrieval, threshold)]
    return float(np.mean(values)) if values else math.nan


def recall_at_k(retrieval: Retrieval, k: int, threshold: float = 0.5) -> float:
    """Return the share of queries with a right object among the k best.

    In [0, 1], higher is better; NaN without queries that want anything.
    """
    values = [rank is not None and rank <= k for rank in find_first_ranks(retrieval, threshold)]
    return float(np.mean(values)) if values else math.nan
