"""Ways to choose where the robot drives and looks."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation.coverage import Lookouts
from osmabench_ros.simulation.navigation import NavigationMap
from osmabench_ros.simulation.robot_path import RobotPath, plan_path


class Strategy(str, Enum):
    """How goals are chosen and what the robot does at them.

    FOLLOW drives through random goals, as the paper does; LOOK_AROUND also turns once around at
    every goal; COVERAGE goes where most is seen, in a short order, and turns around there.
    """

    FOLLOW = 'follow'
    LOOK_AROUND = 'look_around'
    COVERAGE = 'coverage'


def plan_with_strategy(
    strategy: Strategy,
    scene: Scene,
    navigation: NavigationMap,
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
    start = navigation.random_points(1, np.random.default_rng([seed, goals]))[0]
    tour = short_tour(navigation, start, lookouts.best_places(goals))
    return plan_path(
        navigation, goals=len(tour) - 1, seed=seed, goal_points=tour.tolist(), look_around=True
    )


def short_tour(
    navigation: NavigationMap, start: NDArray[np.float64], places: NDArray[np.float64]
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
    return np.asarray(points[_improved(order, way)])


def _improved(order: list[int], way: NDArray[np.float64]) -> list[int]:
    best, found = _length(order, way), True
    while found:
        found = False
        for i in range(1, len(order) - 1):
            for j in range(i + 1, len(order)):
                turned = [*order[:i], *reversed(order[i : j + 1]), *order[j + 1 :]]
                length = _length(turned, way)
                if length < best - 1e-9:
                    order, best, found = turned, length, True
    return order


def _length(order: list[int], way: NDArray[np.float64]) -> float:
    return float(sum(way[a, b] for a, b in pairwise(order)))
