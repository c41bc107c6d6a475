"""Where a robot can go in a scene, and the shortest way there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.visibility import sample_surface

CELL_M = 0.05
POINTS_PER_CELL = 6
STEP_M = 0.06
"""Higher things are obstacles; carpets and thresholds are lower."""


class Navigation(Protocol):
    """Where a robot may be, and the ways there, on a grid or a mesh."""

    @property
    def floor_height_m(self) -> float:
        """World z of the floor."""
        ...

    def random_points(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw navigable positions uniformly, shape (count, 2)."""
        ...

    def shortest_path(self, start_m: ArrayLike, goal_m: ArrayLike) -> NDArray[np.float64]:
        """Return a collision-free polyline (N, 2) from start to goal, both included."""
        ...


@dataclass(frozen=True, eq=False)
class NavigationMap:
    """Grid of the places where the centre of a round robot may be.

    Parameters
    ----------
    origin_m : ndarray, shape (2,)
        World x and y of the corner of cell (0, 0).
    cell_m : float
        Edge of a cell.
    clearance_m : ndarray of float64, shape (columns in x, rows in y)
        Distance to the nearest obstacle or end of the floor.
    radius_m : float
        Radius of the robot.
    floor_height_m : float
        World z of the floor.
    """

    origin_m: NDArray[np.float64]
    cell_m: float
    clearance_m: NDArray[np.float64]
    radius_m: float
    floor_height_m: float

    @classmethod
    def of_scene(
        cls,
        scene: Scene,
        *,
        radius_m: float,
        height_m: float,
        cell_m: float = CELL_M,
        seed: int = 0,
    ) -> NavigationMap:
        """Build from points spread over the meshes; SimulationError if the robot fits nowhere."""
        from scipy import ndimage

        cloud = sample_surface(scene, POINTS_PER_CELL / cell_m**2, seed)
        normals = cloud.normals
        assert normals is not None
        floor_m = _floor_height(cloud.points[normals[:, 2] > 0.9, 2])
        origin = cloud.points[:, :2].min(axis=0).astype(np.float64) - cell_m
        cells = ((cloud.points[:, :2] - origin) / cell_m).astype(np.int64)
        shape = tuple(cells.max(axis=0) + 2)
        height = cloud.points[:, 2] - floor_m
        floor = _occupied(cells[(np.abs(height) < STEP_M) & (normals[:, 2] > 0.9)], shape)
        # Furniture may stand on the floor's samples, and samples may miss a cell.
        floor = ndimage.binary_closing(np.pad(floor, 4), iterations=3)[4:-4, 4:-4]
        obstacle = _occupied(cells[(height > STEP_M) & (height < height_m)], shape)
        clearance = ndimage.distance_transform_edt(floor & ~obstacle) * cell_m
        found = cls(origin, cell_m, clearance, radius_m, float(floor_m))
        if not found.free.any():
            raise SimulationError(
                f'scene {scene.dataset}/{scene.name}: no floor fits a robot of radius '
                f'{radius_m} m and height {height_m} m; check robot.radius_m, robot.height_m'
            )
        return found

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Cells of the largest connected part that keep the robot's radius and a cell clear."""
        from scipy import ndimage

        clear = self.clearance_m > self.radius_m + self.cell_m
        parts, count = ndimage.label(clear, structure=np.ones((3, 3)))
        if count == 0:
            return clear
        sizes = np.bincount(parts.ravel())[1:]
        return np.asarray(parts == 1 + int(np.argmax(sizes)))

    def cell_of(self, point_m: ArrayLike) -> tuple[int, int]:
        """Return the cell of a world position (x, y)."""
        x, y = ((np.asarray(point_m) - self.origin_m) / self.cell_m).astype(int)
        return int(x), int(y)

    def is_free(self, point_m: ArrayLike) -> bool:
        """Return whether the robot may stand at (x, y) and get there from the main part."""
        x, y = self.cell_of(point_m)
        inside = 0 <= x < self.free.shape[0] and 0 <= y < self.free.shape[1]
        return bool(inside and self.free[x, y])

    def random_points(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw navigable positions uniformly, shape (count, 2)."""
        cells = np.argwhere(self.free)
        chosen = cells[rng.integers(len(cells), size=count)]
        return np.asarray(self.origin_m + (chosen + 0.5) * self.cell_m)

    def shortest_path(self, start_m: ArrayLike, goal_m: ArrayLike) -> NDArray[np.float64]:
        """Return a short polyline (N, 2) from start to goal; raises SimulationError if blocked."""
        from skimage.graph import MCP_Geometric

        for name, point in (('start', start_m), ('goal', goal_m)):
            if not self.is_free(point):
                x, y = np.asarray(point, np.float64)
                raise SimulationError(
                    f'{name} ({x:.2f}, {y:.2f}) cannot be reached by a robot of radius '
                    f'{self.radius_m} m; it lies in or near an obstacle, or in a separate part '
                    'of the scene. Choose another point'
                )
        search = MCP_Geometric(np.where(self.free, 1.0, -1.0))
        goal_cell = self.cell_of(goal_m)
        search.find_costs([self.cell_of(start_m)], [goal_cell])
        cells = np.array(search.traceback(goal_cell))
        points = self.origin_m + (cells + 0.5) * self.cell_m
        points[0], points[-1] = start_m, goal_m
        return self._shortcut(points)

    def distance_m(self, start_m: ArrayLike, goal_m: ArrayLike) -> float:
        """Return the length of `shortest_path`."""
        path = self.shortest_path(start_m, goal_m)
        return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())

    def _shortcut(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Replace detours of the eight-connected search by lines of sight."""
        for _ in range(2):
            kept = [0]
            while kept[-1] < len(points) - 1:
                here = kept[-1]
                last = len(points) - 1
                while last > here + 1 and not self._line_is_free(points[here], points[last]):
                    # Halving finds a far visible point in a few looks.
                    last = here + max(1, (last - here) // 2)
                kept.append(last)
            points = points[kept]
        return points

    def _line_is_free(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> bool:
        steps = max(2, int(np.linalg.norm(end - start) / (self.cell_m / 2)) + 1)
        line = start + np.linspace(0.0, 1.0, steps)[:, None] * (end - start)
        cells = ((line - self.origin_m) / self.cell_m).astype(int)
        return bool(self.free[cells[:, 0], cells[:, 1]].all())


def _floor_height(heights: NDArray[np.floating]) -> float:
    """Return the lowest level with a good part of the upward surface, so no ceiling."""
    if not len(heights):
        raise SimulationError('the scene has no upward surface to drive on')
    low = heights.min()
    counts = np.bincount(((heights - low) / 0.05).astype(int))
    level = int(np.argmax(counts >= 0.25 * counts.max()))
    near = heights[np.abs(heights - low - (level + 0.5) * 0.05) < 0.05]
    return float(np.median(near))


def _occupied(cells: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    grid = np.zeros(shape, bool)
    grid[cells[:, 0], cells[:, 1]] = True
    return grid
