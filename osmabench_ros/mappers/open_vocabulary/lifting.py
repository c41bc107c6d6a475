"""Detections of a frame, and the points that depth lifts them to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from osmabench_ros.base.strict import Strict
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers.fusion import FusedCells, VoxelFusion, voxel_indices


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

    def __post_init__(self) -> None:
        count = len(self.masks)
        if not count == len(self.features) == len(self.confidences) == len(self.names):
            raise ValueError(
                f'{count} masks have {len(self.features)} features, {len(self.confidences)} '
                f'confidences and {len(self.names)} names'
            )


NOISE = -1
"""Cluster of points that lie in none."""


class LiftingOptions(Strict):
    """How masks become clouds; by default as ConceptGraphs (Gu et al., ICRA 2024) does it.

    Parameters
    ----------
    voxel_m : float
        Clouds are thinned to one point a voxel; 2.5 cm in the paper.
    max_depth_m : float
        Pixels farther away are left out.
    min_mask_pixels, min_points : int
        Masks with fewer pixels, or clouds with fewer points, are left out; 25 and 16 in the
        published code.
    cluster_m, cluster_points : float, int
        Radius and number of neighbours of DBSCAN, which cleans each cloud (section III-A).
    """

    voxel_m: float = Field(0.025, gt=0.001, le=1.0)
    max_depth_m: float = Field(6.0, gt=0.0)
    min_mask_pixels: int = Field(25, ge=1)
    min_points: int = Field(16, ge=1)
    cluster_m: float = Field(0.1, gt=0.0)
    cluster_points: int = Field(10, ge=1)


@dataclass(frozen=True, eq=False)
class Fragment:
    """What one mask shows of an object: its cloud, feature, confidence and name, '' if unknown."""

    cells: FusedCells
    feature: NDArray[np.float32]
    confidence: float
    name: str


def dbscan(
    points: NDArray[np.floating],
    weights: NDArray[np.integer],
    groups: NDArray[np.integer],
    radius_m: float,
    min_weight: int,
) -> NDArray[np.int64]:
    """Return the cluster of each point (N, 3), NOISE for none; groups (N,) do not mix.

    Density-based clusters by Ester et al. (KDD 1996): a point is in the core if points of
    `min_weight` together, itself among them, lie within the radius; cores within the radius of
    each other are one cluster, which takes the other points around them. All groups are
    clustered at once, as layers of a fourth dimension.
    """
    count = len(points)
    clusters = np.full(count, NOISE, np.int64)
    if not count:
        return clusters
    layers = np.column_stack([points, groups * (4 * radius_m)]).astype(np.float64)
    pairs = cKDTree(layers).query_pairs(radius_m, output_type='ndarray')
    around = np.bincount(pairs[:, 0], weights[pairs[:, 1]], count)
    around += np.bincount(pairs[:, 1], weights[pairs[:, 0]], count)
    core = weights + around >= min_weight
    inner = pairs[core[pairs].all(axis=1)]
    graph = coo_array((np.ones(len(inner), np.bool_), (inner[:, 0], inner[:, 1])), (count, count))
    _, components = connected_components(graph, directed=False)
    clusters[core] = components[core]
    border = pairs[core[pairs].sum(axis=1) == 1]
    inside = np.where(core[border[:, 0]], border[:, 0], border[:, 1])
    clusters[border.sum(axis=1) - inside] = components[inside]
    return clusters


def _clusters(cells: FusedCells, options: LiftingOptions) -> NDArray[np.int64]:
    """Return the cluster of each cell; neighbours go together, weighted by their number.

    A cloud on the voxel grid has dozens of points within the radius; without this thinning the
    pairs of them would take most of the time of a frame.
    """
    step = max(1, int(options.cluster_m / 2 / options.voxel_m))
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
    groups = cells.segments[first]
    return dbscan(centers, weights, groups, options.cluster_m, options.cluster_points)[coarse]


def lift(frame: Frame, detections: Detections, options: LiftingOptions) -> list[Fragment]:
    """Return the largest cluster of each mask's cloud in the world, without those too small."""
    usable = (frame.valid & (frame.depth_m <= options.max_depth_m)).ravel()
    large = detections.masks.sum(axis=(1, 2)) >= options.min_mask_pixels
    pixels = [
        np.flatnonzero(mask.ravel() & usable) if kept else np.empty(0, np.int64)
        for mask, kept in zip(detections.masks, large.tolist(), strict=True)
    ]
    if not sum(map(len, pixels)):
        return []
    row = np.cumsum(usable) - 1
    points = frame.world_points(usable.reshape(frame.depth_m.shape))
    chosen = np.concatenate(pixels)
    segments = np.repeat(np.arange(len(pixels)), [len(own) for own in pixels])
    fusion = VoxelFusion(options.voxel_m)
    fusion.add(points[row[chosen]], frame.color.reshape(-1, 3)[chosen], segments)
    cells = fusion.cells()
    clusters = _clusters(cells, options)
    fragments = []
    for segment in range(len(pixels)):
        own = np.flatnonzero((cells.segments == segment) & (clusters != NOISE))
        if not len(own):
            continue
        found, sizes = np.unique(clusters[own], return_counts=True)
        own = own[clusters[own] == found[sizes.argmax()]]
        if len(own) >= options.min_points:
            fragments.append(
                Fragment(
                    cells.select(own),
                    detections.features[segment],
                    float(detections.confidences[segment]),
                    detections.names[segment],
                )
            )
    return fragments
