"""Overlap of predicted masks with true instances, counted on the true points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError
from osmabench_ros.semantics.labels import NO_INSTANCE


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
        True points a mask covers, and what it hallucinates in true points if that is known.
    true_sizes : ndarray of int64, shape (G,)
        Points of an instance.
    """

    predicted_ids: NDArray[np.int64]
    true_ids: NDArray[np.int64]
    shared: NDArray[np.int64]
    predicted_sizes: NDArray[np.int64]
    true_sizes: NDArray[np.int64]

    def __post_init__(self) -> None:
        p, g = len(self.predicted_ids), len(self.true_ids)
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


def overlaps_of_instances(
    true_instances: NDArray[np.integer],
    predicted_instances: NDArray[np.integer],
    mask_ids: NDArray[np.integer] | None = None,
) -> Overlaps:
    """Count the overlaps of masks that do not overlap each other.

    Parameters
    ----------
    true_instances, predicted_instances : ndarray of int, shape (N,)
        Instance and node id of each true point, 0 for none.
    mask_ids : ndarray of int, optional
        Node ids of all masks, those that cover no true point included.
    """
    if true_instances.shape != predicted_instances.shape:
        raise MetricError(
            f'{true_instances.shape} true instance ids, {predicted_instances.shape} predicted ones'
        )
    true_ids, true_rows = np.unique(true_instances, return_inverse=True)
    every_id = () if mask_ids is None else mask_ids
    # Ids that stand only at the end are listed, and counted nowhere.
    ids, rows = np.unique(np.append(predicted_instances, every_id), return_inverse=True)
    rows = rows[: len(predicted_instances)]
    counts = np.bincount(rows * len(true_ids) + true_rows, minlength=len(ids) * len(true_ids))
    counts = counts.reshape(len(ids), len(true_ids))
    real, predicted = true_ids != NO_INSTANCE, ids != NO_INSTANCE
    return Overlaps(
        ids[predicted].astype(np.int64),
        true_ids[real].astype(np.int64),
        counts[predicted][:, real],
        counts[predicted].sum(axis=1),
        counts[:, real].sum(axis=0),
    )


def overlaps_of_masks(
    true_instances: NDArray[np.integer],
    map_rows: NDArray[np.integer],
    node_ids: NDArray[np.integer],
    offsets: NDArray[np.integer],
    point_indices: NDArray[np.integer],
) -> Overlaps:
    """Count the overlaps of masks that may overlap each other, given as sparse rows.

    Parameters
    ----------
    true_instances : ndarray of int, shape (N,)
        Instance id of each true point, 0 for none.
    map_rows : ndarray of int, shape (N,)
        Map point that each true point matches, -1 for none.
    node_ids, offsets, point_indices : ndarray of int, shapes (R,), (R + 1,), (K,)
        Row r stands for node ``node_ids[r]`` and owns the map points
        ``point_indices[offsets[r]:offsets[r + 1]]``.
    """
    from scipy.sparse import csr_matrix

    true_ids, true_rows = np.unique(true_instances, return_inverse=True)
    points = int(max(point_indices.max(initial=-1), map_rows.max(initial=-1))) + 1
    ones = np.ones(len(point_indices), np.int64)
    masks = csr_matrix((ones, point_indices, offsets), shape=(len(node_ids), points))
    masks.sum_duplicates()
    masks.data[:] = 1
    hit = map_rows >= 0
    pairs = (np.ones(int(hit.sum()), np.int64), (map_rows[hit], true_rows[hit]))
    counts = np.asarray((masks @ csr_matrix(pairs, shape=(points, len(true_ids)))).todense())
    real = true_ids != NO_INSTANCE
    sizes = np.bincount(true_rows, minlength=len(true_ids))
    return Overlaps(
        node_ids.astype(np.int64),
        true_ids[real].astype(np.int64),
        counts[:, real].astype(np.int64),
        counts.sum(axis=1).astype(np.int64),
        sizes[real].astype(np.int64),
    )
