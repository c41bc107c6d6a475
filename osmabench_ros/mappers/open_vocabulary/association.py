"""Detections of a frame lifted by depth, and the object of the map that each belongs to.

Section III-A of ConceptGraphs (Gu et al., ConceptGraphs: Open-Vocabulary 3D Scene Graphs for
Perception and Planning, ICRA 2024).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.spatial import cKDTree

from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import needing
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers.fusion import FusedCells, VoxelFusion, voxel_indices
from osmabench_ros.mappers.open_vocabulary.features import EXTRA

# Distance at which points of two clouds lie on each other: delta_nn of the paper.
NEAR_M = 0.025

# How often objects of the map are compared with each other.
MERGE_EVERY_FRAMES = 20

# Two objects become one if more than this fraction of the smaller is on the other and the cosine
# of their features is larger; as in the published code.
MERGE_OVERLAP, MERGE_SIMILARITY = 0.7, 0.7


class AssociationOptions(Strict):
    """When clouds are one object.

    Parameters
    ----------
    min_similarity : float
        Sum of geometric and semantic similarity, of 2, that a cloud needs to join an object:
        delta_sim, 1.1 in the paper.
    min_detections : int
        Objects found less often are left out of maps; 3 in the published code.
    """

    min_similarity: float = Field(1.1, ge=0.0, le=2.0)
    min_detections: int = Field(3, ge=1)


class MappedObject:
    """An object of the map: its cloud, mean feature and class."""

    def __init__(self, dimensions: int) -> None:
        self.feature = np.zeros(dimensions)
        self.detections = 0
        self.votes: dict[str, float] = {}
        self._fusion = VoxelFusion(VOXEL_M)
        self._cells: FusedCells | None = None
        self.low = np.full(3, np.inf)
        self.high = np.full(3, -np.inf)

    @property
    def cells(self) -> FusedCells:
        """The cloud, one point per voxel."""
        if self._cells is None:
            self._cells = self._fusion.cells()
        return self._cells

    @property
    def direction(self) -> NDArray[np.float64]:
        """The feature at length 1."""
        return _unit(self.feature)

    def take(self, fragment: Fragment) -> None:
        """Join a cloud, and average the features: f = (n f + f_new) / (n + 1) after n of them."""
        points = fragment.cells.points
        zeros = np.zeros(len(points), np.int64)
        self._fusion.add(points, fragment.cells.colors, zeros)
        self._learn(_unit(fragment.feature), 1, points)
        if fragment.name:
            self._vote({fragment.name: fragment.confidence})

    def joined(self, other: MappedObject) -> MappedObject:
        """Return one object made of two, which stay as they are."""
        made = MappedObject(len(self.feature))
        for part in (self, other):
            made._fusion.absorb(part._fusion)
            made._learn(part.feature, part.detections, np.stack([part.low, part.high]))
            made._vote(part.votes)
        return made

    def _vote(self, votes: Mapping[str, float]) -> None:
        for name, weight in votes.items():
            self.votes[name] = self.votes.get(name, 0.0) + weight

    def _learn(
        self, feature: NDArray[np.floating], detections: int, points: NDArray[np.floating]
    ) -> None:
        total = self.detections + detections
        self.feature = (self.feature * self.detections + feature * detections) / total
        self.detections = total
        self.low = np.minimum(self.low, points.min(axis=0))
        self.high = np.maximum(self.high, points.max(axis=0))
        self._cells = None


class ObjectMap:
    """All objects so far.

    The cost of a frame goes with the clouds of the frame and the objects around them, not with
    the map: boxes choose the objects, and of those only points in reach of the frame are looked
    at.
    """

    def __init__(self, options: AssociationOptions) -> None:
        self.options = options
        self.clouds: list[MappedObject] = []
        self.changed: set[int] = set()
        self._frames = 0

    def add(self, fragments: Sequence[Fragment]) -> None:
        """Give each cloud of a frame to the object it is most like, or make it a new one."""
        chosen = self._matches(fragments)
        for fragment, match in zip(fragments, chosen.tolist(), strict=True):
            if match < 0:
                match = len(self.clouds)
                self.clouds.append(MappedObject(len(fragment.feature)))
            self.clouds[match].take(fragment)
            self.changed.add(match)
        self._frames += 1
        if self._frames % MERGE_EVERY_FRAMES == 0:
            self.clouds = self._merged()
            self.changed = set()

    def objects(self) -> list[MappedObject]:
        """Return the objects that were found often enough, duplicates merged."""
        kept = self.options.min_detections
        return [item for item in self._merged() if item.detections >= kept]

    def _matches(self, fragments: Sequence[Fragment]) -> NDArray[np.int64]:
        """Return the best object of each cloud, -1 where none is similar enough.

        Similarity is the sum of the geometric one, the share of the cloud's points with a point
        of the object within delta_nn, and the semantic one, cosine / 2 + 1 / 2. Objects that the
        cloud does not touch are not candidates.
        """
        best = np.full(len(fragments), -1)
        if not self.clouds or not fragments:
            return best
        bounds = np.array([_bounds(fragment.cells.points) for fragment in fragments])
        touching = self._touching(bounds[:, 0], bounds[:, 1])
        highest = np.full(len(fragments), self.options.min_similarity)
        for row, cloud in np.argwhere(touching).tolist():
            shared = share_near(fragments[row].cells.points, self.clouds[cloud].cells.points)
            cosine = _unit(fragments[row].feature) @ self.clouds[cloud].direction
            similarity = shared + cosine / 2 + 0.5
            if shared and similarity > highest[row]:
                best[row], highest[row] = cloud, similarity
        return best

    def _touching(
        self, low: NDArray[np.floating], high: NDArray[np.floating]
    ) -> NDArray[np.bool_]:
        """Return which boxes (K, 3) come within delta_nn of which objects (N): (K, N)."""
        lows = np.array([item.low for item in self.clouds]) - NEAR_M
        highs = np.array([item.high for item in self.clouds]) + NEAR_M
        found = (low[:, None] <= highs) & (high[:, None] >= lows)
        return np.asarray(found.all(axis=2))

    def _merged(self) -> list[MappedObject]:
        """Return the objects with those that lie on each other, and are alike, as one."""
        objects: list[MappedObject | None] = list(self.clouds)
        for smaller, larger in self._pairs_to_merge():
            part = objects[smaller]
            whole = objects[larger]
            # Objects that were merged meanwhile are compared again next time.
            if part is not None and whole is not None:
                objects[larger], objects[smaller] = whole.joined(part), None
        return [item for item in objects if item is not None]

    def _pairs_to_merge(self) -> list[tuple[int, int]]:
        """Return pairs of a smaller and a larger object, the most overlapping first."""
        rows = sorted(self.changed)
        if not rows:
            return []
        items = self.clouds
        touching = self._touching(
            np.array([items[row].low for row in rows]), np.array([items[row].high for row in rows])
        )
        directions = np.stack([item.direction for item in items])
        alike = directions[rows] @ directions.T > MERGE_SIMILARITY
        pairs = set()
        for place, other in np.argwhere(touching & alike).tolist():
            pair = sorted((rows[place], other), key=lambda row: (len(items[row].cells), -row))
            if pair[0] != pair[1]:
                pairs.add((pair[0], pair[1]))
        found = []
        for smaller, larger in sorted(pairs):
            overlap = share_near(items[smaller].cells.points, items[larger].cells.points)
            if overlap > MERGE_OVERLAP:
                found.append((-overlap, smaller, larger))
        return [(smaller, larger) for _, smaller, larger in sorted(found)]


def share_near(points: NDArray[np.floating], others: NDArray[np.floating]) -> float:
    """Return the share of points (N, 3) with one of the others (M, 3) within `NEAR_M`."""
    low, high = _bounds(points)
    around = _inside(others, low - NEAR_M, high + NEAR_M)
    if not len(around):
        return 0.0
    distances, _ = cKDTree(around).query(points, distance_upper_bound=NEAR_M)
    return float(np.isfinite(distances).mean())


def joined_cells(objects: Sequence[MappedObject]) -> FusedCells:
    """Return the clouds of all objects one after another; the segment is the object's number."""
    return FusedCells.joined(
        [
            replace(item.cells, segments=np.full(len(item.cells), row, np.int64))
            for row, item in enumerate(objects)
        ]
    )


def _bounds(points: NDArray[np.floating]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    return points.min(axis=0), points.max(axis=0)


def _inside(
    points: NDArray[np.floating], low: NDArray[np.floating], high: NDArray[np.floating]
) -> NDArray[np.floating]:
    return np.asarray(points[((points >= low) & (points <= high)).all(axis=1)])


def _unit(feature: NDArray[np.floating]) -> NDArray[np.float64]:
    vector = feature.astype(np.float64)
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12))


@dataclass(frozen=True, eq=False)
class Detections:
    """Masks of one image with their attributes.

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


# Cluster of points that lie in none.
NOISE = -1


# Clouds are thinned to one point per voxel. All values are ConceptGraphs' values.
VOXEL_M = 0.025

# Pixels farther away are left out.
MAX_DEPTH_M = 6.0

# Clouds with fewer points are left out.
MIN_POINTS = 16

# Radius and number of neighbours of DBSCAN, which cleans each cloud (section III-A).
CLUSTER_M, CLUSTER_POINTS = 0.1, 10


@dataclass(frozen=True, eq=False)
class Fragment:
    """An object as one mask shows it: cloud, feature, confidence and name, '' if unknown."""

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
