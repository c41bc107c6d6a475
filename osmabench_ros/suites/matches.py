"""Nearest neighbours between a map and its ground truth, each searched once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.geometry import surfel_distances
from osmabench_ros.metrics.matching import NeighbourIndex, Neighbours, Progress
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.prediction import PredictedCloud, predicted_cloud


class Matches:
    """Lazily computed matches; indices into the map are those of its valid points.

    The device is 'auto', 'cpu' or 'cuda'; progress starts anew for each search.
    """

    def __init__(
        self,
        semantic_map: SemanticMap,
        ground_truth: GroundTruth,
        device: str,
        progress: Progress | None = None,
    ) -> None:
        self._map = semantic_map
        self._truth = ground_truth
        self._device = device
        self._progress = progress

    @cached_property
    def predicted(self) -> PredictedCloud | None:
        """Valid points of the map; None if it has no dense part."""
        return predicted_cloud(self._map)

    @cached_property
    def _map_index(self) -> NeighbourIndex:
        assert self.predicted is not None
        return NeighbourIndex(self.predicted.points, self._device, 'map')

    def _query(self, index: NeighbourIndex, points: NDArray[np.float32], what: str) -> Neighbours:
        return index.query(points, what=what, progress=self._progress)

    @cached_property
    def surface_to_map(self) -> Neighbours:
        """Nearest map point of every visible surface point."""
        return self._query(self._map_index, self._truth.surface.points, 'ground-truth surface')

    @cached_property
    def fused_to_map(self) -> Neighbours:
        """Nearest map point of every point of the depth-fused cloud."""
        assert self._truth.fused is not None
        return self._query(self._map_index, self._truth.fused.points, 'fused ground-truth cloud')

    @cached_property
    def truth_points(self) -> NDArray[np.float32]:
        """All surface points, the visible ones first."""
        return np.concatenate([self._truth.surface.points, self._truth.unseen.points])

    @cached_property
    def map_to_truth(self) -> Neighbours:
        """Nearest surface point of every map point, whether the trajectory saw it or not.

        Distances are those to the discs that the surface points stand for, where the truth
        knows normals, so that the spacing of the samples does not count as an error.
        """
        assert self.predicted is not None
        points = self.predicted.points
        index = NeighbourIndex(self.truth_points, self._device, 'ground-truth surface')
        found = self._query(index, points, 'map')
        surface, unseen = self._truth.surface, self._truth.unseen
        if surface.normals is None or unseen.normals is None or not len(self.truth_points):
            return found
        normals = np.concatenate([surface.normals, unseen.normals])[found.indices]
        radius = 1 / np.sqrt(self._truth.points_per_m2)
        centers = self.truth_points[found.indices]
        return Neighbours(found.indices, surfel_distances(points, centers, normals, radius))
