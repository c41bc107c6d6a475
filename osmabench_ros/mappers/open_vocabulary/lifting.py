"""Detections of a frame, and the points that depth lifts them to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import needing
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers.fusion import FusedCells, VoxelFusion, voxel_indices
from osmabench_ros.mappers.open_vocabulary.networks import EXTRA


@dataclass(frozen=True, eq=False)
class Detections:
    """Masks of one image with what is known of each.

    Parameters
    ----------
    masks : ndarray of bool, shape (K, height, width)
        They may overlap.
    features : ndarray of float32, shape (K, D)
        One a mask, of any length.
    confidences : ndarray of float32, shape (K,)
        In [0, 1].
    names : tuple of str
        K names, '' where the network gives none.
    """

    masks: NDArray[np.bool_]
    features: NDArray[np.float32]
    confidences: NDArray[np.float32]
    names: tuple[str, ...]


NOISE = -1
"""Cluster of points that lie in none."""


VOXEL_M = 0.025
"""Clouds are thinned to one point per voxel. All values are those of ConceptGraphs."""

MAX_DEPTH_M = 6.0
"""Pixels farther away are left out."""

MIN_POINTS = 16
"""Clouds with fewer points are left out."""

CLUSTER_M, CLUSTER_POINTS = 0.1, 10
"""Radius and number of neighbours of DBSCAN, which cleans each cloud (section III-A)."""


@dataclass(frozen=True, eq=False)
class Fragment:
    """What one mask shows of an object: its cloud, feature, confidence and name, '' if unknown."""

    cells: FusedCells
    feature: NDArray[np.float32]
    confidence: float
    name: str


def _clusters(cells: FusedCells) -> NDArray[np.int64]:
    """Return the cluster of each cell; neighbours go together, weighted by their number.

    All segments are clustered at once, as layers of a fourth dimension.

    A cloud on the voxel grid has dozens of points within the radius; without this thinning the
    pairs of them would take most of the time of a frame.
    """
    with needing('the mapper "open_vocabulary" needs scikit-learn', EXTRA):
        from sklearn.cluster import DBSCAN

    step = max(1, int(CLUSTER_M / 2 / VOXEL_M))
    index = voxel_indices(cells.voxels) // step
    index -= index.min(axis=0)
    shape = (int(cells.segments.max()) + 1, *(index.max(axis=0) + 1).tolist())
    keys = np.ravel_multi_index((cells.segments, *index.T), shape)
    _, first, coarse, weights = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    centers = np.stack(
        [np.bincount(coarse, axis) / weights for axis in cells.points.T.astype(np.float64)], axis=1
    )
    layers = np.column_stack([centers, cells.segments[first] * (4 * CLUSTER_M)])
    found = DBSCAN(eps=CLUSTER_M, min_samples=CLUSTER_POINTS).fit(layers, sample_weight=weights)
    return np.asarray(found.labels_[coarse], np.int64)


def lift(frame: Frame, detections: Detections) -> list[Fragment]:
    """Return the largest cluster of each mask's cloud in the world, without those too small."""
    usable = (frame.valid & (frame.depth_m <= MAX_DEPTH_M)).ravel()
    pixels = [np.flatnonzero(mask.ravel() & usable) for mask in detections.masks]
    if not sum(map(len, pixels)):
        return []
    row = np.cumsum(usable) - 1
    points = frame.world_points(usable.reshape(frame.depth_m.shape))
    chosen = np.concatenate(pixels)
    segments = np.repeat(np.arange(len(pixels)), [len(own) for own in pixels])
    fusion = VoxelFusion(VOXEL_M)
    fusion.add(points[row[chosen]], frame.color.reshape(-1, 3)[chosen], segments)
    cells = fusion.cells()
    clusters = _clusters(cells)
    fragments = []
    for segment in range(len(pixels)):
        own = np.flatnonzero((cells.segments == segment) & (clusters != NOISE))
        if not len(own):
            continue
        found, sizes = np.unique(clusters[own], return_counts=True)
        own = own[clusters[own] == found[sizes.argmax()]]
        if len(own) >= MIN_POINTS:
            fragments.append(
                Fragment(
                    cells.select(own),
                    detections.features[segment],
                    float(detections.confidences[segment]),
                    detections.names[segment],
                )
            )
    return fragments
