"""Matching of the nodes of a map with true objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.metrics.overlaps import Overlaps
from osmabench_ros.semantics.scene_graph import SceneNode


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
        """Share of predicted nodes that are matched, in [0, 1]; NaN without any."""
        return len(self.pairs) / self.predicted if self.predicted else float('nan')

    @property
    def recall(self) -> float:
        """Share of true nodes that are matched, in [0, 1]; NaN without any."""
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


def box_of(node: SceneNode) -> AxisAlignedBox | None:
    """Return the axis-aligned bounds of a node, None if it has no box at all."""
    if node.box is not None or node.oriented_box is None:
        return node.box
    return node.oriented_box.axis_aligned()


def box_iou_of_nodes(
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
        box = box_of(node)
        if box is not None:
            low[i], high[i] = box.minimum, box.maximum
    return low, high
