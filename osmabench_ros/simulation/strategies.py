"""Ways to choose where the robot drives and looks, and how much of a scene it sees there."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.visibility import (
    TOLERANCE_M,
    RayCaster,
    find_visible_points,
    sample_surface,
)
from osmabench_ros.semantics.storeys import find_storey
from osmabench_ros.simulation.robot_path import RobotPath, plan_path
from osmabench_ros.simulation.walkable_grid import WalkableGrid

LOOKOUT_SPACING_M = 0.5
POINTS_PER_M2 = 15.0


@dataclass(frozen=True)
class Coverage:
    """Fraction of the visible surface that a trajectory has seen.

    Parameters
    ----------
    seen_m2 : float
        Surface that at least one frame sees.
    visible_m2 : float
        Surface that can be seen from anywhere the robot gets to, looking anywhere.
    scene_m2 : float
        All surface, also inside and behind objects.
    """

    seen_m2: float
    visible_m2: float
    scene_m2: float

    @property
    def share(self) -> float:
        """Seen share of what can be seen, 0 to 1."""
        return min(1.0, self.seen_m2 / self.visible_m2) if self.visible_m2 else 0.0


class Lookouts:
    """Places all over the free space, and which surface points up to `max_depth_m` each sees."""

    def __init__(
        self,
        scene: Scene,
        navigation: WalkableGrid,
        camera_height_m: float,
        max_depth_m: float = 10.0,
        seed: int = 0,
    ) -> None:
        self._scene = scene
        self._max_depth_m = max_depth_m
        self.cloud = sample_surface(scene, POINTS_PER_M2, seed)
        self.places = _place_lookouts(navigation, LOOKOUT_SPACING_M)
        caster = RayCaster(scene)
        raised = self.places + np.array([0.0, 0.0, camera_height_m])
        self.sees = np.stack([self._see_from(caster, origin) for origin in raised])

    def _see_from(self, caster: RayCaster, origin: NDArray[np.float64]) -> NDArray[np.bool_]:
        ray = self.cloud.points - origin.astype(np.float32)
        distance = np.linalg.norm(ray, axis=1)
        near = np.flatnonzero(distance < self._max_depth_m)
        starts = np.broadcast_to(origin.astype(np.float32), (len(near), 3))
        reach = caster.distances(starts, ray[near]) * distance[near]
        seen = np.zeros(len(ray), bool)
        seen[near] = reach > distance[near] - TOLERANCE_M
        return seen

    def measure_coverages(
        self, camera_poses: Sequence[Pose], intrinsics: Intrinsics, storeys_m: Sequence[float] = ()
    ) -> list[Coverage]:
        """Return the coverage of these frames by ray casting, and of each of some storeys."""
        seen = find_visible_points(
            self._scene, self.cloud, camera_poses, intrinsics, self._max_depth_m
        )
        visible = self.sees.any(axis=0) | seen
        parts = [np.ones(len(seen), bool)]
        if len(storeys_m) > 1:
            own = find_storey(self.cloud.points[:, 2], storeys_m)
            parts += [own == number for number in range(len(storeys_m))]
        return [
            Coverage(
                *(float(mask[part].sum()) / POINTS_PER_M2 for mask in (seen, visible, parts[0]))
            )
            for part in parts
        ]

    def choose_places(self, count: int) -> NDArray[np.float64]:
        """Choose places that see most of the surface together, shape (count or fewer, 3).

        Each is the one that adds most to the places before it; greedy choice reaches at least
        1 - 1/e of the best cover (Nemhauser, Wolsey and Fisher 1978).
        """
        left = self.sees.copy()
        chosen: list[int] = []
        while len(chosen) < count and left.any():
            best = int(np.argmax(left.sum(axis=1)))
            chosen.append(best)
            left &= ~self.sees[best]
        return self.places[chosen]


def _place_lookouts(navigation: WalkableGrid, spacing_m: float) -> NDArray[np.float64]:
    """Return free positions on a coarse grid; the clearest cell of each of its squares."""
    places = np.argwhere(navigation.free)
    order = np.argsort(-navigation.clearance_m[tuple(places.T)], kind='stable')
    squares = places[order].astype(np.float64)
    squares[:, 1:] *= navigation.cell_m / spacing_m
    _, first = np.unique(squares.astype(int), axis=0, return_index=True)
    return navigation.positions(places[order][np.sort(first)])


class Strategy(str, Enum):
    """Choice of goals, and behaviour of the robot at them.

    FOLLOW drives through random goals, as the paper does; LOOK_AROUND also turns once around at
    every goal; COVERAGE goes where most is seen, in a short order, and turns around there.
    """

    FOLLOW = 'follow'
    LOOK_AROUND = 'look_around'
    COVERAGE = 'coverage'


def plan_with_strategy(
    strategy: Strategy,
    scene: Scene,
    navigation: WalkableGrid,
    *,
    goals: int,
    seed: int,
    camera_height_m: float,
    goal_points: Sequence[ArrayLike] = (),
) -> RobotPath:
    """Plan a path; COVERAGE chooses its own goals and may need fewer.

    `camera_height_m` is above the floor, `goal_points` are start and goals, as of `plan_path`.
    Raises SimulationError if a given point cannot be reached, or COVERAGE is given points.
    """
    if strategy is not Strategy.COVERAGE:
        return plan_path(
            navigation,
            goals=goals,
            seed=seed,
            goal_points=goal_points,
            look_around=strategy is Strategy.LOOK_AROUND,
        )
    if goal_points:
        raise SimulationError(
            'the strategy coverage chooses its goals; leave goal_points out, or look_around there'
        )
    lookouts = Lookouts(scene, navigation, camera_height_m, seed=seed)
    start = navigation.draw_points(1, np.random.default_rng([seed, goals]))[0]
    tour = order_tour(navigation, start, lookouts.choose_places(goals))
    return plan_path(
        navigation, goals=len(tour) - 1, seed=seed, goal_points=tour.tolist(), look_around=True
    )


def order_tour(
    navigation: WalkableGrid, start: NDArray[np.float64], places: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Order places so that the robot's way from a start through all is short (nearest, 2-opt)."""
    points = np.concatenate([start[None], places])
    count = len(points)
    way = np.zeros((count, count))
    for i in range(count):
        for j in range(i + 1, count):
            way[i, j] = way[j, i] = navigation.distance_m(points[i], points[j])
    order = [0]
    while len(order) < count:
        rest = [i for i in range(count) if i not in order]
        order.append(min(rest, key=lambda i: way[order[-1], i]))
    return np.asarray(points[_improve_order(order, way)])


def _improve_order(order: list[int], way: NDArray[np.float64]) -> list[int]:
    best, found = _measure_length(order, way), True
    while found:
        found = False
        for i in range(1, len(order) - 1):
            for j in range(i + 1, len(order)):
                turned = [*order[:i], *reversed(order[i : j + 1]), *order[j + 1 :]]
                length = _measure_length(turned, way)
                if length < best - 1e-9:
                    order = turned
                    best = length
                    found = True
    return order


def _measure_length(order: list[int], way: NDArray[np.float64]) -> float:
    return float(sum(way[a, b] for a, b in pairwise(order)))
