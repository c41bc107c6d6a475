"""The surfaces of a scene that a robot can stand on: floors, storey by storey, stairs, ramps."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.visibility import RayCaster, sample_surface
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.storeys import SMALLEST_FLOOR_M2, SMALLEST_SHARE, STOREY_M

POINTS_PER_CELL = 6
STEP_M = 0.06
"""Higher things on a floor are obstacles; carpets and thresholds are lower."""

CLIMB_M = 0.2
STEEPEST = float(np.cos(np.radians(45.0)))
"""Highest step of stairs and steepest ramp, those of an agent of Habitat-Sim."""

_BIN_M = 0.05
_AROUND_CELLS = 6


class Surfaces:
    """What lies in the cells of a grid over a scene, for a robot of a height.

    Attributes
    ----------
    origin_m : ndarray, shape (2,)
        World x and y of the corner of cell (0, 0).
    shape : tuple of int
        Columns in x, rows in y.
    """

    def __init__(self, scene: Scene, *, height_m: float, cell_m: float, seed: int) -> None:
        self._scene, self._height_m, self._cell_m, self._seed = scene, height_m, cell_m, seed
        self._cloud = sample_surface(scene, POINTS_PER_CELL / cell_m**2, seed)
        self.origin_m = self._cloud.points[:, :2].min(axis=0).astype(np.float64) - cell_m
        self._cells = self._cells_of(self._cloud)
        columns, rows = self._cells.max(axis=0) + 2
        self.shape = int(columns), int(rows)
        self._floors: dict[float, NDArray[np.bool_]] = {}

    def _cells_of(self, cloud: LabelledCloud) -> NDArray[np.int64]:
        return np.asarray(((cloud.points[:, :2] - self.origin_m) / self._cell_m).astype(np.int64))

    @property
    def storeys_m(self) -> tuple[float, ...]:
        """World z of the floors, from below; a level under the sky is one if stairs lead there."""
        linked = self.linked[0]
        levels = enumerate(self._levels)
        return tuple(z for number, z in levels if number in linked or self._is_covered(z))

    def floor(self, floor_m: float) -> NDArray[np.bool_]:
        """Return the cells of the floor at a height on which nothing stands."""
        from scipy import ndimage

        if floor_m in self._floors:
            return self._floors[floor_m]
        height = self._cloud.points[:, 2] - floor_m
        level = (np.abs(height) < STEP_M) & (_upward(self._cloud) > 0.9)
        # Furniture may stand on the floor's samples, and samples may miss a cell.
        floor = np.pad(_occupied(self._cells[level], self.shape), 4)
        floor = ndimage.binary_closing(floor, iterations=3)[4:-4, 4:-4]
        in_the_way = (height > STEP_M) & (height < self._height_m)
        self._floors[floor_m] = floor & ~_occupied(self._cells[in_the_way], self.shape)
        return self._floors[floor_m]

    @cached_property
    def linked(self) -> tuple[tuple[int, ...], NDArray[np.float64]]:
        """Levels that can be reached from the lowest one, and heights of surfaces in layers.

        The layers, of shape (layers, columns, rows) with NaN where there is no surface, are those
        levels, from below, then stairs and ramps.
        """
        from scipy import ndimage

        levels = self._levels if self._has_steps else self._levels[:1]
        floors = np.stack([np.where(self.floor(z), z, np.nan) for z in levels])
        if len(floors) == 1:
            return (0,), floors
        reached, links = self._links(floors, *self._standing[:2])
        if len(links):
            # So many points that no cell of a narrow ramp is without, where there is one.
            found = np.isfinite(links).any(axis=0)
            area = ndimage.binary_dilation(found, np.ones((3, 3)), iterations=_AROUND_CELLS)
            reached, links = self._links(floors, *self._dense_places(area))
        return tuple(np.flatnonzero(reached).tolist()), np.concatenate([floors[reached], links])

    def _links(
        self, floors: NDArray[np.float64], place: NDArray[np.int64], height: NDArray[np.float64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return which floors the lowest leads to, and layers of the places that lead there."""
        from scipy import sparse

        count = len(floors)
        layers = np.concatenate([floors, self._between(floors, place, height)])
        graph, _ = neighbours(layers, self._cell_m)
        link = np.repeat(np.arange(len(layers)) >= count, floors[0].size)
        edges = graph.tocoo()
        inner = link[edges.row] & link[edges.col]
        inside = sparse.coo_array((edges.data[inner], (edges.row[inner], edges.col[inner])))
        inside.resize(graph.shape)
        _, part = sparse.csgraph.connected_components(inside, directed=False)
        # Row p, column s: whether part p of what lies between floors begins or ends at floor s.
        touches = np.zeros((part.max() + 1, count), bool)
        for here, there in ((edges.row, edges.col), (edges.col, edges.row)):
            outer = link[here] & ~link[there]
            touches[part[here[outer]], there[outer] // floors[0].size] = True
        touches[touches.sum(axis=1) < 2] = False
        reached = np.arange(count) == 0
        for _ in floors:
            reached |= touches[touches[:, reached].any(axis=1)].any(axis=0)
        leads = np.asarray(touches[:, reached].any(axis=1))
        stairs = leads[part].reshape(layers.shape)[count:]
        links = np.where(stairs, layers[count:], np.nan)
        return reached, links[np.isfinite(links).any(axis=(1, 2))]

    @cached_property
    def _standing(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        return self._places(self._cloud, self._cells)

    def _places(
        self, cloud: LabelledCloud, cells: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return places with headroom: flat cells, heights, and which are level, all (N,)."""
        flat = np.ravel_multi_index(tuple(cells.T), self.shape)
        upward, z = _upward(cloud), cloud.points[:, 2].astype(np.float64)
        walkable = np.flatnonzero(upward > STEEPEST)
        walkable = walkable[np.lexsort((z[walkable], flat[walkable]))]
        own, heights = flat[walkable], z[walkable]
        new = np.concatenate([[True], (np.diff(own) != 0) | (np.diff(heights) > _BIN_M)])
        starts = np.flatnonzero(new)
        counts = np.diff(np.append(starts, len(own)))
        place, height = own[starts], np.add.reduceat(heights, starts) / counts
        level = np.add.reduceat(upward[walkable], starts) / counts > 0.9
        # Samples of a cell in order of height, as one sorted list.
        tall = np.ptp(z) + 2 * self._height_m + 1.0
        keys, base = np.sort(flat * tall + z - z.min()), place * tall + height - z.min()
        free = np.searchsorted(keys, base + CLIMB_M) == np.searchsorted(
            keys, base + self._height_m
        )
        place, height, level = place[free], height[free], level[free]
        # What hides below a step or a ramp is no place of its own.
        hidden = (np.diff(place) == 0) & (np.diff(height) <= CLIMB_M)
        top = ~np.append(hidden, False)
        return place[top], height[top], level[top]

    @cached_property
    def _levels(self) -> tuple[float, ...]:
        """Heights that may be floors, with roofs, the lowest floor first."""
        low = float(_floor_height(self._cloud.points[_upward(self._cloud) > 0.9, 2]))
        _, heights, level = self._standing
        above = heights[level & (heights > low - _BIN_M / 2)]
        areas = np.bincount(((above - low) / _BIN_M + 0.5).astype(int)) * self._cell_m**2
        enough = max(SMALLEST_FLOOR_M2, SMALLEST_SHARE * areas.max(initial=0.0))
        levels = [low]
        for number in np.flatnonzero(areas >= enough):
            height = low + number * _BIN_M
            if height > levels[-1] + STOREY_M:
                levels.append(float(np.median(above[np.abs(above - height) < _BIN_M])))
        return tuple(levels)

    def _is_covered(self, level_m: float) -> bool:
        above = self._cloud.points[:, 2] > level_m + self._height_m
        covered, floor = _occupied(self._cells[above], self.shape), self.floor(level_m)
        return bool(floor.any() and covered[floor].mean() > 0.5)

    @property
    def _has_steps(self) -> bool:
        """Whether places lie close enough above each other all the way to the second level."""
        if len(self._levels) == 1:
            return False
        low, high = self._levels[:2]
        steps = np.unique(self._standing[1])
        steps = steps[(steps > low - _BIN_M) & (steps < high + _BIN_M)]
        return bool((np.diff(steps) <= CLIMB_M).all())

    def _dense_places(
        self, area: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return flat cells and heights of the places in an area of the grid, from more points."""
        near = [item for item in self._scene.objects if area[self._cells_around(item.box)].any()]
        density = 3 * POINTS_PER_CELL / self._cell_m**2
        cloud = sample_surface(replace(self._scene, objects=tuple(near)), density, self._seed)
        cells = np.clip(self._cells_of(cloud), 0, np.array(self.shape) - 1)
        inside = area[tuple(cells.T)]
        return self._places(cloud.select(inside), cells[inside])[:2]

    def _cells_around(self, box: AxisAlignedBox) -> tuple[slice, slice]:
        corners = np.array([box.minimum, box.maximum])[:, :2]
        low, high = ((corners - self.origin_m) / self._cell_m).astype(int).tolist()
        x, y = (slice(max(0, a - 1), b + 2) for a, b in zip(low, high, strict=True))
        return x, y

    def _between(
        self, floors: NDArray[np.float64], place: NDArray[np.int64], height: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return layers of the places that are on no floor."""
        gap = np.abs(floors.reshape(len(floors), -1)[:, place] - height)
        inside = (height > self._levels[0] - _BIN_M) & (height < self._levels[-1] + _BIN_M)
        chosen = inside & ~(gap < STEP_M).any(axis=0)
        place, height = place[chosen], height[chosen]
        first = np.searchsorted(place, place)
        rank = np.arange(len(place)) - first
        layers = np.full((int(rank.max(initial=-1)) + 1, floors[0].size), np.nan)
        layers[rank, place] = height
        return layers.reshape(-1, *self.shape)


def neighbours(heights_m: NDArray[np.float64], cell_m: float) -> tuple[Any, NDArray[np.bool_]]:
    """Return ways from surfaces to those in neighbouring cells, and which surfaces end nowhere.

    `heights_m` has shape (layers, columns, rows). The graph has the lengths of the ways in metres,
    once each, between flat indices; a surface ends where one of eight neighbours is missing.
    """
    from scipy import sparse

    index = np.arange(heights_m.size).reshape(heights_m.shape)
    around = np.zeros(heights_m.shape, int)
    parts = []
    for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1)):
        columns, rows = heights_m.shape[1] - dx, heights_m.shape[2]
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


SPACING_M = 0.025
TOLERANCE_M = 0.004
"""Of the heights of a way between the points that it keeps."""


def ground_below(caster: RayCaster, points_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the heights (N,) of the ground along close points (N, 3), of the first one's floor.

    Where there is no ground within a step up or down, as over a gap, the way stays level.
    """
    reach, z = CLIMB_M + STEP_M, float(points_m[0, 2])
    down, heights = np.array([[0.0, 0.0, -1.0]], np.float32), []
    for x, y in points_m[:, :2]:
        origin = np.array([[x, y, z + reach]], np.float32)
        ground = z + reach - float(caster.distances(origin, down)[0])
        z = ground if ground > z - reach else z
        heights.append(z)
    return np.array(heights)


def on_the_ground(caster: RayCaster, line_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the polyline (N, 3) on the meshes below one whose first point is near the ground."""
    from skimage.measure import approximate_polygon

    z = ground_below(caster, line_m[:1])[0]
    found = [np.array([*line_m[0, :2], z])]
    for start, end in zip(line_m[:-1, :2], line_m[1:, :2], strict=True):
        length = float(np.linalg.norm(end - start))
        shares = np.linspace(0.0, 1.0, max(2, int(np.ceil(length / SPACING_M)) + 1))
        points = np.insert(start + shares[:, None] * (end - start), 2, z, axis=1)
        points[:, 2] = ground_below(caster, points)
        profile = np.column_stack([shares * length, points[:, 2]])
        kept = np.isin(profile[:, 0], approximate_polygon(profile, TOLERANCE_M)[:, 0])
        found += list(points[kept][1:])
        z = points[-1, 2]
    return np.array(found)


def _upward(cloud: LabelledCloud) -> NDArray[np.float32]:
    assert cloud.normals is not None
    return cloud.normals[:, 2]


def _floor_height(heights: NDArray[np.floating]) -> float:
    """Return the lowest level with a good part of the upward surface, so no ceiling."""
    if not len(heights):
        raise SimulationError('the scene has no upward surface to drive on')
    low = heights.min()
    counts = np.bincount(((heights - low) / 0.05).astype(int))
    level = int(np.argmax(counts >= 0.25 * counts.max()))
    near = heights[np.abs(heights - low - (level + 0.5) * 0.05) < 0.05]
    return float(np.median(near))


def _occupied(cells: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.bool_]:
    grid = np.zeros(shape, bool)
    grid[cells[:, 0], cells[:, 1]] = True
    return grid
