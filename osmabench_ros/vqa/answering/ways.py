"""Ways of a robot over the floors and stairs that points show."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.storeys import find_floor_heights, find_storey
from osmabench_ros.simulation.walkable_grid import CELL_M, WalkableGrid

# Size of the robot that questions about ways mean: the usual agent of Habitat-Sim.
RADIUS_M, HEIGHT_M = 0.2, 1.5

# Coarser than on a floor: a map has few points of a stair.
STAIR_CELL_M = 0.1


class FloorPlans:
    """Free floor under points of surfaces (N, 3), world metres, z up, on every storey.

    Attributes
    ----------
    storeys_m : tuple of float
        World z of the floors, from below; of a single one, of the lowest points.
    storeys : tuple of WalkableGrid
        The places of each storey, for a robot without width.
    house : WalkableGrid
        The places of all storeys, with stairs and ramps, for the same robot.
    """

    def __init__(self, points: NDArray[np.floating]) -> None:
        self._points = points

    @cached_property
    def storeys_m(self) -> tuple[float, ...]:
        """World z of the floors, from below."""
        return find_floor_heights(self._points) if len(self._points) else ()

    @cached_property
    def storeys(self) -> tuple[WalkableGrid, ...]:
        """The places of each storey."""
        return tuple(self._grid((z_m,), CELL_M) for z_m in self.storeys_m)

    @cached_property
    def house(self) -> WalkableGrid:
        """The places of all storeys, and of the stairs and ramps between them."""
        return self._grid(self.storeys_m, STAIR_CELL_M)

    def _grid(self, floors_m: tuple[float, ...], cell_m: float) -> WalkableGrid:
        return WalkableGrid.of_points(self._points, floors_m, height_m=HEIGHT_M, cell_m=cell_m)


@dataclass(frozen=True, eq=False)
class FloorWays:
    """Ways of a round robot on floor plans.

    Ways on one storey stay on it; those to another take stairs and ramps. They join the free
    places nearest to two points; with `margin_m`, of those that are further away by no more, the
    one on the other side, of a wall say.
    """

    plans: FloorPlans
    radius_m: float = RADIUS_M
    margin_m: float = 0.0
    _maps: dict[WalkableGrid, WalkableGrid] = field(default_factory=dict, init=False)

    def line_m(self, start_m: ArrayLike, goal_m: ArrayLike) -> NDArray[np.float64] | None:
        """Return the way (N, 3) between the free places nearest to two points, None for none."""
        plans = self.plans
        if not plans.storeys:
            return None
        points = np.array([start_m, goal_m], np.float64)
        first, last = find_storey(points[:, 2], plans.storeys_m).tolist()
        plan = plans.storeys[first] if first == last else plans.house
        grid = self._maps.setdefault(plan, replace(plan, radius_m=self.radius_m))
        free = grid.free_positions
        ends = []
        for point, storey in zip(points, (first, last), strict=True):
            own = free[find_storey(free[:, 2], plans.storeys_m) == storey]
            if not len(own):
                return None
            away_m = np.linalg.norm(own - point, axis=1)
            end = own[np.argmin(away_m)]
            if self.margin_m:
                near = own[away_m < away_m.min() + self.margin_m]
                end = near[np.argmax(np.linalg.norm(near - end, axis=1))]
            ends.append(end)
        try:
            return grid.find_shortest_path(*ends)
        except SimulationError:
            return None

    def between_m(self, first: AxisAlignedBox, second: AxisAlignedBox) -> float | None:
        """Return the length of the shortest way between two objects, None if there is none.

        It joins the navigable points that are nearest to their centres.
        """
        line = self.path(first, second)
        return None if line is None else float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())

    def path(self, first: AxisAlignedBox, second: AxisAlignedBox) -> NDArray[np.float64] | None:
        """Return that way as a polyline (N, 3), None if there is none."""
        return self.line_m(first.center, second.center)


def ways_of_map(semantic_map: SemanticMap) -> FloorWays | None:
    """Return the ways on the map's own points; None for a map without points."""
    dense = semantic_map.dense
    if dense is None or not len(dense.points):
        return None
    return FloorWays(FloorPlans(dense.valid_points))
