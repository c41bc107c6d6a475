"""Where a robot can go in a scene, on every storey, and the shortest way there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.visibility import RayCaster
from osmabench_ros.simulation.surfaces import CLIMB_M, Surfaces, neighbours, on_the_ground

CELL_M = 0.05
SAME_FLOOR_M = 0.5
"""A point may be this far above or below the floor that it is on."""


class Navigation(Protocol):
    """Where a robot may be, and the ways there, on a grid or a mesh."""

    def random_points(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw navigable positions on floors uniformly, shape (count, 3)."""
        ...

    def shortest_path(self, start_m: ArrayLike, goal_m: ArrayLike) -> NDArray[np.float64]:
        """Return a collision-free polyline (N, 3) on the ground from start to goal.

        A point is x and y, or x, y and z where floors lie above each other.
        """
        ...


def point_text(point_m: ArrayLike) -> str:
    """Return a point as errors name it."""
    return '(' + ', '.join(f'{value:.2f}' for value in np.asarray(point_m, np.float64)) + ')'


def unreachable(name: str, point_m: ArrayLike, radius_m: float) -> SimulationError:
    """Return the error for a start or goal where the robot cannot stand."""
    return SimulationError(
        f'{name} {point_text(point_m)} cannot be reached by a robot of radius {radius_m} m; it '
        'lies in or near an obstacle, or in a separate part of the scene. Choose another point'
    )


@dataclass(frozen=True, eq=False)
class NavigationMap:
    """Grid of the places where the centre of a round robot may be, in layers above each other.

    Parameters
    ----------
    origin_m : ndarray, shape (2,)
        World x and y of the corner of cell (0, 0).
    cell_m : float
        Edge of a cell.
    clearance_m : ndarray of float64, shape (layers, columns in x, rows in y)
        Distance to the nearest obstacle or end of the surface.
    heights_m : ndarray of float64, shape (layers, columns in x, rows in y)
        World z of the surfaces; anything where `clearance_m` is 0. The first layers are floors,
        from below, the others stairs and ramps.
    floors : int
        How many layers are floors.
    radius_m : float
        Radius of the robot.
    storeys_m : tuple of float
        World z of all floors of the scene, from below, also of those that the map does not have.
    caster : RayCaster, optional
        Finds the ground of a map that has more than one floor.
    """

    origin_m: NDArray[np.float64]
    cell_m: float
    clearance_m: NDArray[np.float64]
    heights_m: NDArray[np.float64]
    floors: int
    radius_m: float
    storeys_m: tuple[float, ...]
    caster: RayCaster | None = None

    @classmethod
    def of_scene(
        cls,
        scene: Scene,
        *,
        radius_m: float,
        height_m: float,
        seed: int = 0,
        storey: int | None = None,
    ) -> NavigationMap:
        """Build from points spread over the meshes; SimulationError if the robot fits nowhere.

        `storey` is the number of one, from 0; None for the lowest and all that stairs and ramps
        lead to from there.
        """
        from scipy import ndimage

        surfaces = Surfaces(scene, height_m=height_m, cell_m=CELL_M, seed=seed)
        storeys_m = surfaces.storeys_m
        if storey is not None and storey >= len(storeys_m):
            known = ', '.join(f'{number} at {z:.2f} m' for number, z in enumerate(storeys_m))
            raise SimulationError(
                f'scene {scene.dataset}/{scene.name} has no storey {storey}; it has {known}'
            )
        origin_m = surfaces.origin_m
        if storey is None and len(surfaces.linked[0]) > 1:
            floors, heights = len(surfaces.linked[0]), surfaces.linked[1]
            clearance, caster = surface_clearance(heights, CELL_M), RayCaster(scene)
            found = cls(origin_m, CELL_M, clearance, heights, floors, radius_m, storeys_m, caster)
            if found.free[1:floors].any():
                return found
        floor_m = storeys_m[storey or 0]
        clear = ndimage.distance_transform_edt(surfaces.floor(floor_m))[None] * CELL_M
        heights = np.full(clear.shape, floor_m)
        found = cls(origin_m, CELL_M, clear, heights, 1, radius_m, storeys_m)
        if not found.free.any():
            raise SimulationError(
                f'scene {scene.dataset}/{scene.name}: no floor fits a robot of radius '
                f'{radius_m} m and height {height_m} m; check robot.radius_m, robot.height_m'
            )
        return found

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Places of the main connected part that keep the robot's radius and a cell clear.

        The main part is the largest one, on several floors that with most of the lowest.
        """
        from scipy import ndimage, sparse

        clear = self.clearance_m > self.radius_m + self.cell_m
        if len(clear) == 1:
            found, count = ndimage.label(clear[0], structure=np.ones((3, 3)))
            parts = found[None]
        else:
            surfaces = np.where(clear, self.heights_m, np.nan)
            graph, _ = neighbours(surfaces, self.cell_m)
            count, labels = sparse.csgraph.connected_components(graph, directed=False)
            parts = np.where(clear, 1 + labels.reshape(clear.shape), 0)
        if not clear[0].any():
            return np.zeros_like(clear)
        sizes = np.bincount(parts[0].ravel(), minlength=count + 1)[1:]
        return np.asarray(parts == 1 + int(np.argmax(sizes)))

    @property
    def floor_height_m(self) -> float:
        """World z of the lowest floor of the map."""
        return float(self.heights_m[0][self.free[0]][0])

    def positions(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the middles (N, 3) of places (N, 3): layer, column, row."""
        points = self.origin_m + (places[:, 1:] + 0.5) * self.cell_m
        return np.column_stack([points, self.heights_m[tuple(places.T)]])

    def place_of(self, point_m: ArrayLike) -> tuple[int, int, int] | None:
        """Return layer, column and row of a world position, None if the robot is not free there.

        The position is (x, y), for the lowest layer that is free, or (x, y, z).
        """
        point = np.asarray(point_m, np.float64)
        x, y = ((point[:2] - self.origin_m) / self.cell_m).astype(int).tolist()
        _, columns, rows = self.free.shape
        if not (0 <= x < columns and 0 <= y < rows):
            return None
        layers = np.flatnonzero(self.free[:, x, y])
        heights = self.heights_m[layers, x, y]
        if len(point) == 3:
            near = np.argsort(np.abs(heights - point[2]))[:1]
            layers = layers[near[np.abs(heights[near] - point[2]) <= SAME_FLOOR_M]]
        else:
            layers = layers[np.argsort(heights)]
        return (int(layers[0]), x, y) if len(layers) else None

    def is_free(self, point_m: ArrayLike) -> bool:
        """Return whether the robot may stand at (x, y) or (x, y, z), in the main part."""
        return self.place_of(point_m) is not None

    def random_points(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw navigable positions on floors uniformly, shape (count, 3)."""
        places = np.argwhere(self.free[: self.floors])
        return self.positions(places[rng.integers(len(places), size=count)])

    def shortest_path(self, start_m: ArrayLike, goal_m: ArrayLike) -> NDArray[np.float64]:
        """Return a short polyline (N, 3) from start to goal; raises SimulationError if blocked."""
        start, goal = self._required('start', start_m), self._required('goal', goal_m)
        points = self.positions(self._way(start, goal))
        points[0, :2], points[-1, :2] = np.asarray(start_m)[:2], np.asarray(goal_m)[:2]
        line = self._shortcut(points)
        return line if self.caster is None else on_the_ground(self.caster, line)

    def distance_m(self, start_m: ArrayLike, goal_m: ArrayLike) -> float:
        """Return the length of `shortest_path`."""
        path = self.shortest_path(start_m, goal_m)
        return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())

    def _required(self, name: str, point_m: ArrayLike) -> tuple[int, int, int]:
        found = self.place_of(point_m)
        if found is None:
            raise unreachable(name, point_m, self.radius_m)
        return found

    def _way(self, start: tuple[int, int, int], goal: tuple[int, int, int]) -> NDArray[np.int64]:
        """Return the places (N, 3) of a shortest way; a grid where one floor is all there is."""
        if len(self.free) == 1:
            from skimage.graph import MCP_Geometric

            search = MCP_Geometric(np.where(self.free[0], 1.0, -1.0))
            search.find_costs([start[1:]], [goal[1:]])
            cells = np.array(search.traceback(goal[1:]))
            return np.column_stack([np.zeros(len(cells), np.int64), cells])
        from scipy import sparse

        first, here = (np.ravel_multi_index(place, self.free.shape) for place in (start, goal))
        _, before = sparse.csgraph.dijkstra(
            self._graph, directed=False, indices=first, return_predecessors=True
        )
        way = [here]
        while way[-1] != first:
            way.append(before[way[-1]])
        return np.column_stack(np.unravel_index(way[::-1], self.free.shape))

    @cached_property
    def _graph(self) -> Any:
        return neighbours(np.where(self.free, self.heights_m, np.nan), self.cell_m)[0]

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
        way = end[:2] - start[:2]
        steps = max(2, int(np.linalg.norm(way) / (self.cell_m / 2)) + 1)
        line = start[:2] + np.linspace(0.0, 1.0, steps)[:, None] * way
        columns, rows = ((line - self.origin_m) / self.cell_m).astype(int).T
        free, heights = self.free[:, columns, rows], self.heights_m[:, columns, rows]
        for layer in range(self.floors):
            if start[2] == end[2] == heights[layer, 0] and free[layer].all():
                return True
        if len(free) == 1 or not free.any(axis=0).all():
            return False
        z = start[2]
        for here in np.where(free, heights, np.inf).T:
            nearest = here[np.argmin(np.abs(here - z))]
            if abs(nearest - z) > CLIMB_M:
                return False
            z = nearest
        return bool(abs(z - end[2]) <= CLIMB_M)


def surface_clearance(heights_m: NDArray[np.float64], cell_m: float) -> NDArray[np.float64]:
    """Return the way from each surface to the nearest end of one, over its neighbours."""
    from scipy import sparse

    graph, inner = neighbours(heights_m, cell_m)
    ends = np.flatnonzero(np.isfinite(heights_m) & ~inner)
    ways = sparse.csgraph.dijkstra(graph, directed=False, indices=ends, min_only=True)
    return np.where(np.isfinite(heights_m), ways.reshape(heights_m.shape) + cell_m, 0.0)
