"""Matches the nodes of a map, or predicted masks, with true objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.labels import NO_INSTANCE
from osmabench_ros.semantics.scene_graph import SceneNode


@dataclass(frozen=True, eq=False)
class Overlaps:
    """How predicted masks and true instances share the true points.

    Parameters
    ----------
    predicted_ids : ndarray of int64, shape (P,)
        Node ids of the masks.
    true_ids : ndarray of int64, shape (G,)
        Instance ids.
    shared : ndarray of int64, shape (P, G)
        Points in both.
    predicted_sizes : ndarray of int64, shape (P,)
        True points that a mask covers, and hallucinated ones in true points if known.
    true_sizes : ndarray of int64, shape (G,)
        Points of an instance.
    """

    predicted_ids: NDArray[np.int64]
    true_ids: NDArray[np.int64]
    shared: NDArray[np.int64]
    predicted_sizes: NDArray[np.int64]
    true_sizes: NDArray[np.int64]

    def __post_init__(self) -> None:
        p = len(self.predicted_ids)
        g = len(self.true_ids)
        shapes = (self.shared.shape, self.predicted_sizes.shape, self.true_sizes.shape)
        if shapes != ((p, g), (p,), (g,)):
            raise MetricError(f'overlaps of {p} masks and {g} instances have shapes {shapes}')

    @property
    def iou(self) -> NDArray[np.float64]:
        """Intersection over union, shape (P, G), in [0, 1]."""
        union = self.predicted_sizes[:, None] + self.true_sizes[None] - self.shared
        return np.asarray(self.shared / np.maximum(union, 1))

    def select(
        self, predicted: NDArray[np.bool_] | NDArray[np.intp], true: NDArray[np.bool_]
    ) -> Overlaps:
        """Return the overlaps of some masks with some instances; sizes stay."""
        return Overlaps(
            self.predicted_ids[predicted],
            self.true_ids[true],
            self.shared[predicted][:, true],
            self.predicted_sizes[predicted],
            self.true_sizes[true],
        )


def count_overlaps(
    true_instances: NDArray[np.integer],
    map_rows: NDArray[np.integer],
    masks: Mapping[int, NDArray[np.integer]],
) -> Overlaps:
    """Count the overlaps of true instances and masks, which may overlap each other.

    Parameters
    ----------
    true_instances : ndarray of int, shape (N,)
        Instance id of each true point, 0 for none.
    map_rows : ndarray of int, shape (N,)
        Map point that each true point matches, -1 for none.
    masks : mapping of int to ndarray of int
        Map points by the node id of their mask; a mask may have none.
    """
    from scipy.sparse import csr_matrix

    true_ids, true_rows = np.unique(true_instances, return_inverse=True)
    owned = np.concatenate([np.zeros(0, np.int64), *masks.values()])
    offsets = np.cumsum([0, *(len(rows) for rows in masks.values())])
    points = int(max(owned.max(initial=-1), map_rows.max(initial=-1))) + 1
    members = csr_matrix((np.ones_like(owned), owned, offsets), shape=(len(masks), points))
    members.sum_duplicates()
    members.data[:] = 1
    hit = map_rows >= 0
    pairs = (np.ones(int(hit.sum()), np.int64), (map_rows[hit], true_rows[hit]))
    counts = np.asarray((members @ csr_matrix(pairs, shape=(points, len(true_ids)))).todense())
    real = true_ids != NO_INSTANCE
    sizes = np.bincount(true_rows, minlength=len(true_ids))
    return Overlaps(
        np.array(list(masks), np.int64),
        true_ids[real].astype(np.int64),
        counts[:, real].astype(np.int64),
        counts.sum(axis=1).astype(np.int64),
        sizes[real].astype(np.int64),
    )


@dataclass(frozen=True, eq=False)
class NodeMatches:
    """One-to-one pairs of predicted and true nodes.

    Parameters
    ----------
    pairs : tuple of (int, int)
        Predicted and true node id, ascending by true id.
    iou : ndarray of float64, shape (K,)
        Overlap of each pair.
    predicted, true : int
        Nodes that could have been matched.
    """

    pairs: tuple[tuple[int, int], ...]
    iou: NDArray[np.float64]
    predicted: int
    true: int

    @property
    def precision(self) -> float:
        """Fraction of predicted nodes that are matched, in [0, 1]; NaN without any."""
        return len(self.pairs) / self.predicted if self.predicted else float('nan')

    @property
    def recall(self) -> float:
        """Fraction of true nodes that are matched, in [0, 1]; NaN without any."""
        return len(self.pairs) / self.true if self.true else float('nan')

    @property
    def true_of(self) -> dict[int, int]:
        """True node id by predicted node id."""
        return dict(self.pairs)


def match_nodes(
    predicted_ids: Sequence[int],
    true_ids: Sequence[int],
    iou: NDArray[np.float64],
    *,
    min_iou: float = 0.25,
) -> NodeMatches:
    """Pair nodes so that the sum of IoU is largest, and drop pairs below a threshold.

    Parameters
    ----------
    predicted_ids, true_ids : sequence of int, lengths P, G
        Node ids.
    iou : ndarray, shape (P, G)
        Overlap of masks or boxes.
    min_iou : float
        Least IoU of a pair, inclusive.

    Notes
    -----
    Pairs below the threshold do not compete (their gain is 0), by the Hungarian method of scipy.
    """
    from scipy.optimize import linear_sum_assignment

    gain = np.where(iou >= min_iou, iou, 0.0)
    rows, columns = linear_sum_assignment(gain, maximize=True)
    kept = gain[rows, columns] > 0
    found = sorted(
        (int(true_ids[g]), int(predicted_ids[p]), float(iou[p, g]))
        for p, g in zip(rows[kept], columns[kept], strict=True)
    )
    return NodeMatches(
        tuple((p, g) for g, p, _ in found),
        np.array([value for _, _, value in found], np.float64),
        len(predicted_ids),
        len(true_ids),
    )


def mask_iou_of_nodes(
    predicted_ids: Sequence[int], true_ids: Sequence[int], overlaps: Overlaps
) -> NDArray[np.float64]:
    """Return the IoU of nodes by their masks, shape (P, G); 0 for nodes without points."""
    iou = np.zeros((len(predicted_ids), len(true_ids)))
    rows = {int(item): i for i, item in enumerate(overlaps.predicted_ids)}
    columns = {int(item): i for i, item in enumerate(overlaps.true_ids)}
    known_p = [i for i, item in enumerate(predicted_ids) if item in rows]
    known_g = [i for i, item in enumerate(true_ids) if item in columns]
    iou[np.ix_(known_p, known_g)] = overlaps.iou[
        np.ix_([rows[predicted_ids[i]] for i in known_p], [columns[true_ids[i]] for i in known_g])
    ]
    return iou


def find_box(node: SceneNode) -> AxisAlignedBox | None:
    """Return the axis-aligned bounds of a node, None if it has no box at all."""
    if node.box is not None or node.oriented_box is None:
        return node.box
    return node.oriented_box.axis_aligned()


def compute_box_iou_of_nodes(
    predicted: Sequence[SceneNode], true: Sequence[SceneNode]
) -> NDArray[np.float64]:
    """Return the IoU of axis-aligned boxes, shape (P, G), in [0, 1]; 0 for nodes without one."""
    low_p, high_p = _corners(predicted)
    low_t, high_t = _corners(true)
    shared = np.ones((len(predicted), len(true)))
    for axis in range(3):  # one at a time: thousands of objects make large tables
        top = np.minimum(high_p[:, None, axis], high_t[:, axis])
        shared *= np.maximum(top - np.maximum(low_p[:, None, axis], low_t[:, axis]), 0)
    volumes = np.prod(high_p - low_p, axis=1)[:, None] + np.prod(high_t - low_t, axis=1)
    with np.errstate(invalid='ignore', divide='ignore'):
        iou = shared / (volumes - shared)
    return np.asarray(np.nan_to_num(iou, nan=0.0, posinf=0.0))


def _corners(nodes: Sequence[SceneNode]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners of boxes, shapes (N, 3); NaN where there is none."""
    low, high = np.full((2, len(nodes), 3), np.nan)
    for i, node in enumerate(nodes):
        box = find_box(node)
        if box is not None:
            low[i], high[i] = box.minimum, box.maximum
    return low, high
