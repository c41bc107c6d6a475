"""What planners share: the protocol of a navigation, its errors, and the ground below a path."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.scenes.visibility import RayCaster

CELL_M = 0.05
SAME_FLOOR_M = 0.5
"""A point may be this far above or below the floor that it is on."""

STEP_M = 0.06
"""Higher objects on a floor are obstacles; carpets and thresholds are lower."""

CLIMB_M = 0.2
"""The highest step of stairs, as for an agent of Habitat-Sim."""

SPACING_M = 0.025
TOLERANCE_M = 0.004
"""Largest error in height between the kept points of a path."""


class Navigation(Protocol):
    """Where a robot may be, and the ways there, on a grid or a mesh."""

    def random_points(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw navigable positions on floors uniformly, shape (count, 3)."""
        ...

    def shortest_path(self, start_m: ArrayLike, goal_m: ArrayLike) -> NDArray[np.float64]:
        """Return a collision-free polyline (N, 3) on the ground from start to goal.

        A point is x and y, or x, y and z where floors are above each other.
        """
        ...


def point_text(point_m: ArrayLike) -> str:
    """Return a point as errors name it."""
    return '(' + ', '.join(f'{value:.2f}' for value in np.asarray(point_m, np.float64)) + ')'


def unreachable(name: str, point_m: ArrayLike, radius_m: float) -> SimulationError:
    """Return the error for a start or goal where the robot cannot be."""
    return SimulationError(
        f'{name} {point_text(point_m)} cannot be reached by a robot of radius {radius_m} m; it '
        'lies in or near an obstacle, or in a separate part of the scene. Choose another point'
    )


def ground_below(caster: RayCaster, points_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the heights (N,) of the ground along close points (N, 3), of the first one's floor.

    Where there is no ground within a step up or down, as over a gap, the path stays level.
    """
    reach, z = CLIMB_M + STEP_M, float(points_m[0, 2])
    down, heights = np.array([[0.0, 0.0, -1.0]], np.float32), []
    for x, y in points_m[:, :2]:
        origin = np.array([[x, y, z + reach]], np.float32)
        ground = z + reach - float(caster.distances(origin, down)[0])
        z = ground if ground > z - reach else z
        heights.append(z)
    return np.array(heights)


def lay_on_ground(caster: RayCaster, line_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the polyline (N, 3) on the meshes below one whose first point is near the ground."""
    from skimage.measure import approximate_polygon

    z = ground_below(caster, line_m[:1])[0]
    laid = [np.array([*line_m[0, :2], z])]
    for start, end in zip(line_m[:-1, :2], line_m[1:, :2], strict=True):
        length = float(np.linalg.norm(end - start))
        shares = np.linspace(0.0, 1.0, max(2, int(np.ceil(length / SPACING_M)) + 1))
        points = np.insert(start + shares[:, None] * (end - start), 2, z, axis=1)
        points[:, 2] = ground_below(caster, points)
        profile = np.column_stack([shares * length, points[:, 2]])
        kept = np.isin(profile[:, 0], approximate_polygon(profile, TOLERANCE_M)[:, 0])
        laid += list(points[kept][1:])
        z = points[-1, 2]
    return np.array(laid)
