"""Grid of the places where a robot can be, over points of surfaces, and ground below paths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.visibility import RayCaster, sample_surface
from osmabench_ros.semantics.storeys import STOREY_M, find_storeys

CELL_M = 0.05
# A point may be this far above or below the floor that it is on.
SAME_FLOOR_M = 0.5

# Higher objects on a floor are obstacles; carpets and thresholds are lower.
STEP_M = 0.06

# The highest step of stairs, as for an agent of Habitat-Sim.
CLIMB_M = 0.2

SPACING_M = 0.025
# Largest error in height between the kept points of a path.
TOLERANCE_M = 0.004


class Navigation(Protocol):
    """Where a robot may be, and the ways there, on a grid or a mesh."""

    def draw_points(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw navigable positions on floors uniformly, shape (count, 3)."""
        ...

    def find_shortest_path(self, start_m: ArrayLike, goal_m: ArrayLike) -> NDArray[np.float64]:
        """Return a collision-free polyline (N, 3) on the ground from start to goal.

        A point is x and y, or x, y and z where floors are above each other.
        """
        ...


def format_point(point_m: ArrayLike) -> str:
    """Return a point as errors name it."""
    return '(' + ', '.join(f'{value:.2f}' for value in np.asarray(point_m, np.float64)) + ')'


def make_unreachable_error(name: str, point_m: ArrayLike, radius_m: float) -> SimulationError:
    """Return the error for a start or goal where the robot cannot be."""
    return SimulationError(
        f'{name} {format_point(point_m)} cannot be reached by a robot of radius {radius_m} m; it '
        'lies in or near an obstacle, or in a separate part of the scene. Choose another point'
    )


def find_ground(caster: RayCaster, points_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Follow the ground below close points (N, 3) from the floor of the first; return heights.

    Where there is no ground within a step up or down, as over a gap, the path stays level.
    """
    reach = CLIMB_M + STEP_M
    z = float(points_m[0, 2])
    down = np.array([[0.0, 0.0, -1.0]], np.float32)
    heights = []
    for x, y in points_m[:, :2]:
        origin = np.array([[x, y, z + reach]], np.float32)
        ground = z + reach - float(caster.distances(origin, down)[0])
        z = ground if ground > z - reach else z
        heights.append(z)
    return np.array(heights)


def lay_on_ground(caster: RayCaster, line_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the polyline (N, 3) on the meshes below one that starts near the ground."""
    from skimage.measure import approximate_polygon

    z = find_ground(caster, line_m[:1])[0]
    laid = [np.array([*line_m[0, :2], z])]
    for start, end in zip(line_m[:-1, :2], line_m[1:, :2], strict=True):
        length = float(np.linalg.norm(end - start))
        shares = np.linspace(0.0, 1.0, max(2, int(np.ceil(length / SPACING_M)) + 1))
        points = np.insert(start + shares[:, None] * (end - start), 2, z, axis=1)
        points[:, 2] = find_ground(caster, points)
        profile = np.column_stack([shares * length, points[:, 2]])
        kept = np.isin(profile[:, 0], approximate_polygon(profile, TOLERANCE_M)[:, 0])
        laid += list(points[kept][1:])
        z = points[-1, 2]
    return np.array(laid)


POINTS_PER_CELL = 6
# Replaces STEP_M where points have no normals, as in maps, which are noisy.
NOISE_STEP_M = 0.1

# Upward parts of the normals of the steepest ramp and of a floor.
STEEPEST = float(np.cos(np.radians(45.0)))
LEVEL = 0.9

# Furniture may cover the points of a floor, and points may miss a cell: gaps are closed.
GAP_M = 0.15

# As many known neighbours give the height of a cell of stairs without points.
MIN_NEIGHBOURS = 5

MAX_CELLS = 100_000_000


@dataclass(frozen=True, eq=False)
class WalkableGrid:
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
        World z of all floors of the building, from below, also of those without a layer.
    caster : RayCaster, optional
        Finds the ground of a scene that has more than one floor.
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
    def of_points(
        cls,
        points_m: NDArray[np.floating],
        floors_m: tuple[float, ...],
        *,
        height_m: float,
        cell_m: float = CELL_M,
    ) -> WalkableGrid:
        """Lay a grid over points (N, 3) of surfaces, world metres, z up.

        A place is free if it has floor, and no point between a step and `height_m` above it.
        Between two floors the highest surface with headroom is one if it joins both, as stairs
        do. Raises SimulationError if the points are so far apart that no grid fits into memory.
        """
        return cls._lay(_Surfaces(points_m, None, cell_m, height_m), floors_m, 0.0)

    @classmethod
    def _lay(
        cls, surfaces: _Surfaces, floors_m: tuple[float, ...], radius_m: float
    ) -> WalkableGrid:
        from scipy import ndimage

        cell_m = surfaces.cell_m
        cells = np.stack([surfaces.find_floor(z) for z in floors_m])
        if len(floors_m) == 1:
            clearance = ndimage.distance_transform_edt(cells[0])[None] * cell_m
            heights = np.full(clearance.shape, floors_m[0])
        else:
            floors = list(zip(cells, floors_m, strict=True))
            stairs = [surfaces.find_stairs(lower, upper) for lower, upper in pairwise(floors)]
            heights = np.stack([*(np.where(floor, z, np.nan) for floor, z in floors), *stairs])
            clearance = measure_clearance(heights, cell_m)
        count = len(floors_m)
        return cls(surfaces.origin_m, cell_m, clearance, heights, count, radius_m, floors_m)

    @classmethod
    def of_scene(
        cls,
        scene: Scene,
        *,
        radius_m: float,
        height_m: float,
        seed: int = 0,
        storey: int | None = None,
    ) -> WalkableGrid:
        """Build from points spread over the meshes; SimulationError if the robot fits nowhere.

        `storey` is the number of one, from 0; None for the lowest and all that stairs and ramps
        lead to from there.
        """
        cloud = sample_surface(scene, POINTS_PER_CELL / CELL_M**2, seed)
        surfaces = _Surfaces(cloud.points, cloud.normals, CELL_M, height_m)
        floors_m = surfaces.find_floor_heights()
        house = cls._lay(surfaces, floors_m, radius_m)
        reached = np.any(house.free[: house.floors], axis=(1, 2)).tolist()
        storeys_m = tuple(
            z
            for number, z in enumerate(floors_m)
            if number == 0 or reached[number] or surfaces.is_covered(z)
        )
        name = f'scene {scene.dataset}/{scene.name}'
        if storey is not None and storey >= len(storeys_m):
            known = ', '.join(f'{number} at {z:.2f} m' for number, z in enumerate(storeys_m))
            raise SimulationError(f'{name} has no storey {storey}; it has {known}')
        if storey is None and sum(reached) > 1:
            return replace(house, storeys_m=storeys_m, caster=RayCaster(scene))
        floor_m = storeys_m[storey or 0]
        floor = house if floors_m == (floor_m,) else cls._lay(surfaces, (floor_m,), radius_m)
        if not floor.free.any():
            raise SimulationError(
                f'{name}: no floor fits a robot of radius {radius_m} m and height {height_m} m; '
                'check robot.radius_m, robot.height_m'
            )
        return replace(floor, storeys_m=storeys_m)

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Places of the main connected part that keep the robot's radius and a cell clear.

        The main part is the largest; with several floors, the one with most of the lowest floor.
        """
        from scipy import ndimage, sparse

        clear = self.clearance_m > self.radius_m + self.cell_m
        if not clear[0].any():
            return np.zeros_like(clear)
        if len(clear) == 1:
            labels, count = ndimage.label(clear[0], structure=np.ones((3, 3)))
            parts = labels[None]
        else:
            surfaces = np.where(clear, self.heights_m, np.nan)
            graph, _ = join_neighbours(surfaces, self.cell_m)
            count, labels = sparse.csgraph.connected_components(graph, directed=False)
            parts = np.where(clear, 1 + labels.reshape(clear.shape), 0)
        sizes = np.bincount(parts[0].ravel(), minlength=count + 1)[1:]
        return np.asarray(parts == 1 + int(np.argmax(sizes)))

    @property
    def floor_height_m(self) -> float:
        """World z of the lowest floor of the map."""
        return float(self.heights_m[0][self.free[0]][0])

    @cached_property
    def free_positions(self) -> NDArray[np.float64]:
        """Centres (N, 3) of all free places."""
        return self.positions(np.argwhere(self.free))

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
        """Return whether the robot may be at (x, y) or (x, y, z), in the main part."""
        return self.place_of(point_m) is not None

    def draw_points(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw navigable positions on floors uniformly, shape (count, 3)."""
        places = np.argwhere(self.free[: self.floors])
        return self.positions(places[rng.integers(len(places), size=count)])

    def find_shortest_path(self, start_m: ArrayLike, goal_m: ArrayLike) -> NDArray[np.float64]:
        """Return a short polyline (N, 3) from start to goal; raises SimulationError if blocked."""
        start = self._require('start', start_m)
        goal = self._require('goal', goal_m)
        points = self.positions(self._search(start, goal))
        points[0, :2], points[-1, :2] = np.asarray(start_m)[:2], np.asarray(goal_m)[:2]
        line = self._simplify(points)
        if len(self.free) > 1:
            line = self._tighten(line, points)
        return line if self.caster is None else lay_on_ground(self.caster, line)

    def distance_m(self, start_m: ArrayLike, goal_m: ArrayLike) -> float:
        """Return the length of `find_shortest_path`."""
        path = self.find_shortest_path(start_m, goal_m)
        return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())

    def _require(self, name: str, point_m: ArrayLike) -> tuple[int, int, int]:
        place = self.place_of(point_m)
        if place is None:
            raise make_unreachable_error(name, point_m, self.radius_m)
        return place

    def _search(
        self, start: tuple[int, int, int], goal: tuple[int, int, int]
    ) -> NDArray[np.int64]:
        """Return the places (N, 3) of a shortest way; on a plain grid if there is one layer."""
        if len(self.free) == 1:
            from skimage.graph import MCP_Geometric

            search = MCP_Geometric(np.where(self.free[0], 1.0, -1.0))
            search.find_costs([start[1:]], [goal[1:]])
            cells = np.array(search.traceback(goal[1:]))
            return np.column_stack([np.zeros(len(cells), np.int64), cells])
        from scipy import sparse

        first, last = (np.ravel_multi_index(place, self.free.shape) for place in (start, goal))
        _, before = sparse.csgraph.dijkstra(
            self._graph, directed=False, indices=first, return_predecessors=True
        )
        way = [last]
        while way[-1] != first:
            way.append(before[way[-1]])
        return np.column_stack(np.unravel_index(way[::-1], self.free.shape))

    @cached_property
    def _graph(self) -> Any:
        return join_neighbours(np.where(self.free, self.heights_m, np.nan), self.cell_m)[0]

    def _simplify(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Replace detours of the eight-connected search by lines of sight."""
        for _ in range(2):
            kept = [0]
            while kept[-1] < len(points) - 1:
                here = kept[-1]
                last = len(points) - 1
                while last > here + 1 and not self._is_line_free(points[here], points[last]):
                    # Halving finds a far visible point in few checks.
                    last = here + max(1, (last - here) // 2)
                kept.append(last)
            points = points[kept]
        return points

    def _tighten(
        self, line: NDArray[np.float64], places: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Move the corners of a line to those places between which it is shortest.

        The grid has many ways of one length, and their lines of sight differ by some percent.
        """
        moved = True
        while moved:
            moved = False
            for corner in range(1, len(line) - 1):
                before = line[corner - 1]
                after = line[corner + 1]
                way = np.linalg.norm(line[corner] - (before, after), axis=1).sum()
                ways = sum(np.linalg.norm(places - end, axis=1) for end in (before, after))
                shorter = np.argsort(ways)[: (ways < way - self.cell_m / 10).sum()]
                for place in places[shorter]:
                    if self._is_line_free(before, place) and self._is_line_free(place, after):
                        line[corner], moved = place, True
                        break
            line = line[np.append(True, np.diff(line, axis=0).any(axis=1))]
        return line

    def _is_line_free(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> bool:
        way = end[:2] - start[:2]
        steps = max(2, int(np.linalg.norm(way) / (self.cell_m / 2)) + 1)
        line = start[:2] + np.linspace(0.0, 1.0, steps)[:, None] * way
        columns, rows = ((line - self.origin_m) / self.cell_m).astype(int).T
        free = self.free[:, columns, rows]
        heights = self.heights_m[:, columns, rows]
        for layer in range(self.floors):
            if start[2] == end[2] == heights[layer, 0] and free[layer].all():
                return True
        if not free.any(axis=0).all():
            return False
        z = start[2]
        for here in np.where(free, heights, np.inf).T:
            nearest = here[np.argmin(np.abs(here - z))]
            if abs(nearest - z) > CLIMB_M:
                return False
            z = nearest
        return bool(abs(z - end[2]) <= CLIMB_M)


# The free cells of a floor, and its height.
_Floor = tuple[NDArray[np.bool_], float]


class _Surfaces:
    """Points of surfaces in the cells of a grid, for a robot of a height."""

    def __init__(
        self,
        points_m: NDArray[np.floating],
        normals: NDArray[np.floating] | None,
        cell_m: float,
        robot_height_m: float,
    ) -> None:
        self._points_m, self._z = points_m, points_m[:, 2]
        self.cell_m, self._robot_height_m = cell_m, robot_height_m
        self.origin_m = points_m[:, :2].min(axis=0).astype(np.float64) - cell_m
        spans = (points_m[:, :2].max(axis=0) - self.origin_m) / cell_m
        if not np.prod(spans + 2) < MAX_CELLS:
            raise SimulationError(
                f'points span {spans[0] * cell_m:.0f} x {spans[1] * cell_m:.0f} m, more than '
                f'{MAX_CELLS} cells of {cell_m} m; remove outliers'
            )
        self._cells = ((points_m[:, :2] - self.origin_m) / cell_m).astype(np.int64)
        self._shape = tuple((self._cells.max(axis=0) + 2).tolist())
        self._step_m = NOISE_STEP_M if normals is None else STEP_M
        self._upward = np.ones(len(points_m)) if normals is None else normals[:, 2]

    def find_floor_heights(self) -> tuple[float, ...]:
        """Return the heights of floors and roofs with headroom, from below."""
        lowest_m = _find_lowest_floor(self._z[self._upward > LEVEL])
        found = find_storeys(self._points_m[self._standing], with_roofs=True)
        return (lowest_m, *(z for z in found if z > lowest_m + STOREY_M))

    def is_covered(self, floor_m: float) -> bool:
        """Return whether most of a floor is under other surfaces, unlike a roof."""
        covered = self._occupy(self._z > floor_m + self._robot_height_m)
        floor = self.find_floor(floor_m)
        return bool(floor.any() and covered[floor].mean() > 0.5)

    def find_floor(self, floor_m: float) -> NDArray[np.bool_]:
        """Return the free cells of a floor, with gaps closed."""
        from scipy import ndimage

        above_m = self._z - floor_m
        floor = self._occupy((np.abs(above_m) < self._step_m) & (self._upward > LEVEL))
        gap = round(GAP_M / self.cell_m)
        border = gap + 1
        closed = ndimage.binary_closing(np.pad(floor, border), iterations=gap)
        closed = closed[border:-border, border:-border]
        blocked = self._occupy((above_m > self._step_m) & (above_m < self._robot_height_m))
        return np.asarray(closed & ~blocked)

    def find_stairs(self, lower: _Floor, upper: _Floor) -> NDArray[np.float64]:
        """Return the heights of stairs and ramps that join two floors, NaN elsewhere."""
        from scipy import ndimage, sparse

        heights = np.full(self._shape, np.nan)
        flat = np.ravel_multi_index(tuple(self._cells[self._standing].T), self._shape)
        z = self._z[self._standing]
        between = (z > lower[1] - self._step_m) & (z < upper[1] + self._step_m)
        for floor, floor_m in (lower, upper):
            between &= ~floor.ravel()[flat] | (np.abs(z - floor_m) > self._step_m)
        heights.ravel()[flat[between]] = z[between]
        heights = _fill_gaps(heights)
        # A gap may have points without headroom, as of risers, but no obstacle.
        over = self._z - heights[tuple(self._cells.T)]
        heights[self._occupy((over > CLIMB_M) & (over < self._robot_height_m))] = np.nan
        graph, _ = join_neighbours(heights[None], 1.0)
        _, labels = sparse.csgraph.connected_components(graph, directed=False)
        parts = labels.reshape(self._shape)
        ends = []
        for floor, floor_m in (lower, upper):
            near = ndimage.binary_dilation(floor, np.ones((3, 3)))
            ends.append(parts[near & (np.abs(heights - floor_m) <= CLIMB_M)])
        return np.where(np.isin(parts, np.intersect1d(*ends)), heights, np.nan)

    @cached_property
    def _standing(self) -> NDArray[np.int64]:
        """Indices of the points that a robot can be on, in each cell from below."""
        flat = np.ravel_multi_index(tuple(self._cells.T), self._shape)
        # The points of a cell in order of height, all cells as one sorted list.
        tall = np.ptp(self._z) + 2 * self._robot_height_m + 1.0
        keys = flat * tall + self._z.astype(np.float64) - self._z.min()
        order = np.argsort(keys)
        keys = keys[order]
        above = np.searchsorted(keys, np.add(keys, [[CLIMB_M], [self._robot_height_m]]))
        free = (above[0] == above[1]) & (self._upward[order] > STEEPEST)
        return np.asarray(order[free])

    def _occupy(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        grid = np.zeros(self._shape, bool)
        grid[tuple(self._cells[chosen].T)] = True
        return grid


def join_neighbours(
    heights_m: NDArray[np.float64], cell_m: float
) -> tuple[Any, NDArray[np.bool_]]:
    """Return ways from surfaces to those in neighbouring cells, and which are interior.

    `heights_m` has shape (layers, columns, rows). The graph has the lengths of the ways in metres,
    once each, between flat indices; an interior surface has all eight neighbours.
    """
    from scipy import sparse

    index = np.arange(heights_m.size).reshape(heights_m.shape)
    around = np.zeros(heights_m.shape, int)
    parts = []
    for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1)):
        columns = heights_m.shape[1] - dx
        rows = heights_m.shape[2]
        here = np.s_[:, :columns, max(0, -dy) : rows - max(0, dy)]
        there = np.s_[:, dx:, max(0, dy) : rows - max(0, -dy)]
        rise = heights_m[there][None] - heights_m[here][:, None]
        near = np.abs(rise) <= CLIMB_M
        around[here] += near.any(axis=1)
        around[there] += near.any(axis=0)
        a, b = np.broadcast_arrays(index[here][:, None], index[there][None])
        lengths = np.hypot(cell_m * np.hypot(dx, dy), rise[near])
        parts.append((lengths, a[near], b[near]))
    lengths, a, b = (np.concatenate(column) for column in zip(*parts, strict=True))
    size = heights_m.size
    return sparse.csr_array((lengths, (a, b)), shape=(size, size)), around == 8


def measure_clearance(heights_m: NDArray[np.float64], cell_m: float) -> NDArray[np.float64]:
    """Return the distance of each surface, over neighbours, to the edge of the free area."""
    from scipy import sparse

    graph, inner = join_neighbours(heights_m, cell_m)
    ends = np.flatnonzero(np.isfinite(heights_m) & ~inner)
    ways = sparse.csgraph.dijkstra(graph, directed=False, indices=ends, min_only=True)
    return np.where(np.isfinite(heights_m), ways.reshape(heights_m.shape) + cell_m, 0.0)


def _fill_gaps(heights_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a grid of heights with single unknown cells as the median of those around."""
    around = sliding_window_view(np.pad(heights_m, 1, constant_values=np.nan), (3, 3))
    around = around.reshape(*heights_m.shape, 9)
    gaps = np.isnan(heights_m) & (np.isfinite(around).sum(axis=2) >= MIN_NEIGHBOURS)
    filled = heights_m.copy()
    filled[gaps] = np.nanmedian(around[gaps], axis=1)
    return filled


def _find_lowest_floor(heights: NDArray[np.floating]) -> float:
    """Return the lowest level with a quarter as much upward surface as the largest has."""
    if not len(heights):
        raise SimulationError('the scene has no upward surface to drive on')
    low = heights.min()
    counts = np.bincount(((heights - low) / 0.05).astype(int))
    level = int(np.argmax(counts >= 0.25 * counts.max()))
    near = heights[np.abs(heights - low - (level + 0.5) * 0.05) < 0.05]
    return float(np.median(near))
