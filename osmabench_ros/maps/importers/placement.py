"""Takes coordinates of a method's files to the frame of the map: axes, units, alignment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.source_model import Method


class Placement:
    """Takes coordinates of a method's files to the frame of the map: z up, metres."""

    def __init__(self, method: Method, options: ImportOptions) -> None:
        turn = (options.world or method.world).rotation
        self._rotation = options.pose.rotation @ turn
        self._translation = options.pose.translation
        self._scale = options.metres_per_unit
        if not (np.isfinite(self._scale) and self._scale > 0):
            raise MapError(f'metres_per_unit is {self._scale}; it must be a positive number')

    def points(self, points: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return points (..., 3) in metres in the frame of the map."""
        scaled = np.asarray(points, np.float64) * self._scale
        return np.asarray(scaled @ self._rotation.T + self._translation)

    def box(
        self, center: Sequence[float], size: Sequence[float]
    ) -> tuple[AxisAlignedBox, OrientedBox]:
        """Return bounds of a box along the axes of the files."""
        lengths = np.abs(np.asarray(size, np.float64)) * self._scale
        pose = Pose(self._rotation, self.points(np.asarray(center)))
        oriented = OrientedBox(pose, lengths)
        return oriented.axis_aligned(), oriented

    def corners(self, corners: NDArray[np.floating]) -> tuple[AxisAlignedBox, OrientedBox | None]:
        """Return bounds of eight corners in the order of Open3D's get_box_points."""
        placed = self.points(corners)
        return AxisAlignedBox.around(placed), _oriented_box(placed)


def _oriented_box(corners: NDArray[np.float64]) -> OrientedBox | None:
    """Return the box whose corners 1, 2, 3 lie along its edges from corner 0, None if skew."""
    if corners.shape != (8, 3):
        return None
    edges = corners[1:4] - corners[0]
    size = np.linalg.norm(edges, axis=1)
    if (size < 1e-6).any():
        return None
    axes = (edges / size[:, None]).T
    if np.abs(axes.T @ axes - np.eye(3)).max() > 1e-3:
        return None
    left, _, right = np.linalg.svd(axes)
    rotation = left @ right
    if np.linalg.det(rotation) < 0:
        rotation[:, 2] *= -1
    return OrientedBox(Pose(rotation, corners.mean(axis=0)), size)
