"""Ways of a robot over the floors and stairs that points show."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.storeys import floor_heights, storey_of
from osmabench_ros.simulation.navigation import CELL_M, NavigationMap, surface_clearance

RADIUS_M, HEIGHT_M = 0.2, 1.5
"""The robot whose ways are asked for: the usual agent of Habitat-Sim."""

_LEVEL_M, _GAP_M, _STAIR_CELL_M, _LEAST_AROUND = 0.1, 0.15, 0.1, 5


class Ways(Protocol):
    """Where a robot can go."""

    def between_m(self, first: AxisAlignedBox, second: AxisAlignedBox) -> float | None:
        """Return the length of the shortest way between two things, None if there is none.

        It joins the navigable points that are nearest to their centres.
        """
        ...

    def path(self, first: AxisAlignedBox, second: AxisAlignedBox) -> NDArray[np.float64] | None:
        """Return that way as a polyline (N, 3), None if there is none."""
        ...


class FloorPlans:
    """Free floor under points of surfaces (N, 3), world metres, z up, on every storey.

    A place is free where there is floor, with small gaps closed, and no point between _LEVEL_M
    above it and HEIGHT_M.

    Attributes
    ----------
    storeys_m : tuple of float
        World z of the floors, from below; of a single one, of the lowest points.
    storeys : tuple of NavigationMap
        The places of each storey, for a robot without width.
    house : NavigationMap
        Those of all storeys, with a layer more for the stairs and ramps above each but the last.
    """

    def __init__(self, points: NDArray[np.floating]) -> None:
        self._points = points

    @cached_property
    def storeys_m(self) -> tuple[float, ...]:
        """World z of the floors, from below."""
        return floor_heights(self._points) if len(self._points) else ()

    @cached_property
    def storeys(self) -> tuple[NavigationMap, ...]:
        """The places of each storey."""
        from scipy import ndimage

        if not self.storeys_m:
            return ()
        floors = [np.where(np.isnan(layer), 0.0, 1.0) for layer in self._floors(CELL_M)]
        clear = [ndimage.distance_transform_edt(floor)[None] * CELL_M for floor in floors]
        return tuple(
            self._map(CELL_M, clearance, np.full(clearance.shape, z_m), (z_m,))
            for clearance, z_m in zip(clear, self.storeys_m, strict=True)
        )

    @cached_property
    def house(self) -> NavigationMap:
        """The places of all storeys; between them the highest surfaces under headroom."""
        floors = self._floors(_STAIR_CELL_M)
        _, cells = self._grid(_STAIR_CELL_M)
        flat, z = np.ravel_multi_index(tuple(cells.T), floors.shape[1:]), self._points[:, 2]
        order = np.lexsort((z, flat))
        flat, z = flat[order], z[order]
        top = np.append((np.diff(flat) != 0) | (np.diff(z) > HEIGHT_M), True)
        layers = []
        for low, high in pairwise(self.storeys_m):
            between = np.full(floors[0].size, np.nan)
            chosen = top & (z > low + _LEVEL_M) & (z < high - _LEVEL_M)
            between[flat[chosen]] = z[chosen]
            layers.append(_without_gaps(between.reshape(floors.shape[1:])))
        heights = np.concatenate([floors, layers])
        clearance = surface_clearance(heights, _STAIR_CELL_M)
        return self._map(_STAIR_CELL_M, clearance, heights, self.storeys_m)

    def _map(
        self,
        cell_m: float,
        clearance_m: NDArray[np.float64],
        heights_m: NDArray[np.float64],
        floors_m: tuple[float, ...],
    ) -> NavigationMap:
        origin, _ = self._grid(cell_m)
        return NavigationMap(origin, cell_m, clearance_m, heights_m, len(floors_m), 0.0, floors_m)

    def _grid(self, cell_m: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the corner of a grid and the cells (N, 2) of the points in it."""
        origin = self._points[:, :2].min(axis=0).astype(np.float64) - cell_m
        return origin, ((self._points[:, :2] - origin) / cell_m).astype(np.int64)

    def _floors(self, cell_m: float) -> NDArray[np.float64]:
        """Return the heights of free floor (storeys, columns, rows), NaN where there is none."""
        from scipy import ndimage

        _, cells = self._grid(cell_m)
        shape = tuple((cells.max(axis=0) + 2).tolist())
        steps = round(_GAP_M / cell_m)
        found = []
        for floor_m in self.storeys_m:
            height = self._points[:, 2] - floor_m
            floor, blocked = np.zeros(shape, bool), np.zeros(shape, bool)
            floor[tuple(cells[np.abs(height) < _LEVEL_M].T)] = True
            blocked[tuple(cells[(height > _LEVEL_M) & (height < HEIGHT_M)].T)] = True
            closed = ndimage.binary_closing(np.pad(floor, steps + 1), iterations=steps)
            free = closed[steps + 1 : -steps - 1, steps + 1 : -steps - 1] & ~blocked
            found.append(np.where(free, floor_m, np.nan))
        return np.stack(found)


class FloorWays:
    """Ways of a round robot on floor plans.

    Ways on one storey stay on it; those to another take stairs and ramps. They join the free
    places nearest to two points; with `margin_m`, of those that are further away by no more, the
    one on the other side, of a wall say.
    """

    def __init__(
        self, plans: FloorPlans, radius_m: float = RADIUS_M, *, margin_m: float = 0.0
    ) -> None:
        self._plans, self._radius_m, self._margin_m = plans, radius_m, margin_m
        self._maps: dict[NavigationMap, NavigationMap] = {}

    def line_m(self, start_m: ArrayLike, goal_m: ArrayLike) -> NDArray[np.float64] | None:
        """Return the way (N, 3) between the free places nearest to two points, None for none."""
        plans = self._plans
        if not plans.storeys:
            return None
        points = np.array([start_m, goal_m], np.float64)
        first, last = storey_of(points[:, 2], plans.storeys_m).tolist()
        plan = plans.storeys[first] if first == last else plans.house
        grid = self._maps.setdefault(plan, replace(plan, radius_m=self._radius_m))
        free = grid.positions(np.argwhere(grid.free))
        ends = []
        for point, storey in zip(points, (first, last), strict=True):
            own = free[storey_of(free[:, 2], plans.storeys_m) == storey]
            if not len(own):
                return None
            away_m = np.linalg.norm(own - point, axis=1)
            end = own[np.argmin(away_m)]
            if self._margin_m:
                near = own[away_m < away_m.min() + self._margin_m]
                end = near[np.argmax(np.linalg.norm(near - end, axis=1))]
            ends.append(end)
        try:
            return grid.shortest_path(*ends)
        except SimulationError:
            return None

    def between_m(self, first: AxisAlignedBox, second: AxisAlignedBox) -> float | None:
        """Return the length of the way between two things, as `Ways`."""
        line = self.path(first, second)
        return None if line is None else float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())

    def path(self, first: AxisAlignedBox, second: AxisAlignedBox) -> NDArray[np.float64] | None:
        """Return the way between two things, as `Ways`."""
        return self.line_m(first.center, second.center)


def _without_gaps(heights_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a grid of heights with single missing cells as the median of those around them."""
    columns, rows = heights_m.shape
    around = sliding_window_view(np.pad(heights_m, 1, constant_values=np.nan), (3, 3))
    around = around.reshape(columns, rows, 9)
    gaps = np.isnan(heights_m) & (np.isfinite(around).sum(axis=2) >= _LEAST_AROUND)
    filled = heights_m.copy()
    filled[gaps] = np.nanmedian(around[gaps], axis=1)
    return filled


def ways_of_map(semantic_map: SemanticMap) -> FloorWays | None:
    """Return the ways on the map's own points; None for a map without points."""
    dense = semantic_map.dense
    if dense is None or not len(dense.points):
        return None
    return FloorWays(FloorPlans(dense.valid_points))
