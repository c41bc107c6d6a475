"""Where a robot can go, by Habitat-Sim's navigation mesh."""

import math
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.axes import turn_from_habitat, turn_to_habitat
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.visibility import RayCaster
from osmabench_ros.simulation import walkable_grid
from osmabench_ros.simulation.habitat.process import WorkerProcess

STEP_M = 0.06
TURN_DEG = 4.0
GOAL_RADIUS_M = 0.25
DRAWS = 50


class HabitatNavigation:
    """A navigation mesh (Recast), which `plan_path` takes like a WalkableGrid.

    Computed with voxels of CELL_M, or read from `mesh_file`, a `.navmesh`, or with `as_loaded`
    the one that Habitat-Sim loads with the scene, else of only the stage. `floor_height_m`
    takes the largest surface within half a metre of this world z; by default the lowest of the
    large ones, because the largest may be a roof. With `one_floor`, random points lie within half
    a metre of it. The mesh knows heights to a voxel and bridges slopes with straight lines, so
    what leaves that floor is laid on the meshes of the scene. Raises SimulationError without a
    floor.
    """

    def __init__(
        self,
        worker: WorkerProcess,
        scene: Scene,
        *,
        radius_m: float,
        height_m: float,
        timeout_s: float,
        floor_height_m: float | None = None,
        one_floor: bool = False,
        mesh_file: str = '',
        as_loaded: bool = False,
    ) -> None:
        self._worker, self._timeout_s = worker, timeout_s
        self._scene, self._one_floor = scene, one_floor
        self.radius_m = radius_m
        found = worker.call(
            'walk',
            timeout_s,
            radius_m=radius_m,
            height_m=height_m,
            cell_m=walkable_grid.CELL_M,
            floor_height_m=floor_height_m,
            mesh_file=mesh_file,
            as_loaded=as_loaded,
        )
        self._mesh_height_m = float(found['height_m'])
        self.area_m2 = float(found['area_m2'])
        # Recast rounds surfaces up to whole voxels.
        self.floor_height_m = self._mesh_height_m - walkable_grid.CELL_M

    def is_free(self, point_m: ArrayLike) -> bool:
        """Return whether the robot fits at (x, y), on the lowest floor, or (x, y, z)."""
        return self._snap_point(point_m) is not None

    def draw_points(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw navigable positions uniformly, shape (count, 3)."""
        found = np.zeros((0, 3))
        for _ in range(DRAWS):
            seed = int(rng.integers(2**31))
            points = self._worker.call('draw_points', self._timeout_s, count=count, seed=seed)
            drawn = self._read_floor_points(points)
            if self._one_floor:
                drawn = drawn[
                    np.abs(drawn[:, 2] - self.floor_height_m) <= walkable_grid.SAME_FLOOR_M
                ]
            found = np.concatenate([found, drawn])[:count]
            if len(found) == count:
                return found
        raise SimulationError(
            f'the navigation mesh has too little room at height {self.floor_height_m:.2f} m to '
            f'draw {count} goals; choose another trajectory.storey, or goal_points'
        )

    def _read_floor_points(self, points: list[list[float]]) -> NDArray[np.float64]:
        found = turn_from_habitat(np.array(points, np.float64).reshape(-1, 3))
        return np.asarray(found - [0.0, 0.0, walkable_grid.CELL_M])

    def _is_on_floor(self, points: NDArray[np.float64]) -> bool:
        return bool((np.abs(points[:, 2] - self.floor_height_m) <= walkable_grid.CLIMB_M).all())

    @cached_property
    def _caster(self) -> RayCaster:
        return RayCaster(self._scene)

    def measure_distance(self, start_m: ArrayLike, goal_m: ArrayLike) -> float:
        """Return the length in metres of the shortest way between two points; inf without one."""
        start = self._snap_point(start_m)
        goal = self._snap_point(goal_m)
        if start is None or goal is None:
            return math.inf
        reply = self._worker.call('find_shortest_path', self._timeout_s, start=start, goal=goal)
        return math.inf if reply['distance_m'] is None else float(reply['distance_m'])

    def find_shortest_path(self, start_m: ArrayLike, goal_m: ArrayLike) -> NDArray[np.float64]:
        """Return the shortest polyline (N, 3) from start to goal; SimulationError without one."""
        start = self._require_point('start', start_m)
        goal = self._require_point('goal', goal_m)
        reply = self._worker.call('find_shortest_path', self._timeout_s, start=start, goal=goal)
        if reply['distance_m'] is None:
            ends = ' to '.join(map(walkable_grid.format_point, (start_m, goal_m)))
            raise SimulationError(f'no way leads from {ends}; choose other goals')
        points = self._read_floor_points(reply['points'])
        points[0, :2], points[-1, :2] = np.asarray(start_m)[:2], np.asarray(goal_m)[:2]
        if not self._is_on_floor(points):
            return walkable_grid.lay_on_ground(self._caster, points)
        points[:, 2] = self.floor_height_m
        return points

    def follow(
        self, start_m: ArrayLike, heading_rad: float, goal_m: ArrayLike
    ) -> NDArray[np.float64]:
        """Drive by the greedy follower; return x, y, z, heading at the start and then (K, 4)."""
        states = self._worker.call(
            'follow',
            self._timeout_s,
            start=self._require_point('start', start_m),
            goal=self._require_point('goal', goal_m),
            yaw_rad=heading_rad - math.pi / 2,
            step_m=STEP_M,
            turn_deg=TURN_DEG,
            goal_radius_m=GOAL_RADIUS_M,
        )
        raw, headings = _read_states(states)
        points = self._read_floor_points(raw[:, :3].tolist())
        level = self._is_on_floor(points)
        points[:, 2] = (
            self.floor_height_m if level else walkable_grid.find_ground(self._caster, points)
        )
        return np.column_stack([points, headings])

    def scenario(self, goals: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Draw goals and drive as OSMa-Bench's code does.

        Returns x, y, z, heading at the start and then, (K, 4), on the mesh itself as its camera
        has them, and the goal of each leg; goals without a way have none.
        """
        found = self._worker.call('scenario', self._timeout_s, goals=goals, seed=seed)
        raw, headings = _read_states(found['states'])
        points = turn_from_habitat(raw[:, :3])
        return np.column_stack([points, headings]), np.array(found['goals'], np.int64)

    def _snap_point(self, point_m: ArrayLike) -> list[float] | None:
        x, y, *z = np.asarray(point_m, np.float64).tolist()
        height_m = z[0] + walkable_grid.CELL_M if z else self._mesh_height_m
        point = turn_to_habitat(np.array([x, y, height_m])).tolist()
        found: list[float] | None = self._worker.call('snapped', self._timeout_s, point=point)
        return found

    def _require_point(self, name: str, point_m: ArrayLike) -> list[float]:
        found = self._snap_point(point_m)
        if found is None:
            raise walkable_grid.make_unreachable_error(name, point_m, self.radius_m)
        return found


def _read_states(found: list[list[float]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the worker's states, (K, 4), and headings in the world."""
    raw = np.array(found, np.float64).reshape(-1, 4)
    return raw, (raw[:, 3] + math.pi / 2 + math.pi) % (2 * math.pi) - math.pi
