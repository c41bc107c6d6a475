"""Paths that Habitat-Sim plans: on its navigation mesh, or by its GreedyGeodesicFollower."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.runs.config import MatrixConfig, Planner
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation.habitat.navigation import HabitatNavigation
from osmabench_ros.simulation.habitat.simulator import HabitatSimulator
from osmabench_ros.simulation.robot_path import RobotPath, plan_path
from osmabench_ros.simulation.strategies import Strategy

HABITAT = 'habitat'
UNSEEN = Intrinsics.from_hfov(16, 16, math.pi / 2)
"""Nothing is rendered."""


def habitat_path(config: MatrixConfig, seed: int, scene: Scene) -> RobotPath:
    """Plan the path of a configuration with one of the planners of Habitat-Sim.

    If its simulator is Habitat-Sim, that one's options count; `seed` is that of start and goals.
    Raises MissingDependencyError if there is no interpreter with habitat_sim, and SimulationError
    if the scene is not of a data set, no floor fits the robot, or a goal cannot be reached.
    """
    wanted = config.trajectory
    with _navigation(config, scene) as navigation:
        if wanted.planner is Planner.GREEDY:
            return _followed(navigation, wanted.goals, seed, wanted.goal_points)
        return plan_path(
            navigation,
            goals=wanted.goals,
            seed=seed,
            goal_points=wanted.goal_points,
            look_around=wanted.strategy is Strategy.LOOK_AROUND,
        )


@contextmanager
def _navigation(config: MatrixConfig, scene: Scene) -> Iterator[HabitatNavigation]:
    options = config.simulator.options if config.simulator.name == HABITAT else {}
    simulator = HabitatSimulator(scene, UNSEEN, **options)
    try:
        file = config.trajectory.navmesh
        yield simulator.navigation(
            radius_m=config.robot.radius_m,
            height_m=config.robot.height_m,
            mesh_file=str(Path(file).expanduser().absolute()) if file else '',
        )
    finally:
        simulator.close()


def _followed(
    navigation: HabitatNavigation,
    goals: int,
    seed: int,
    goal_points: tuple[tuple[float, float], ...],
) -> RobotPath:
    """Follow goal after goal, each from where the last one was near enough."""
    points = np.asarray(goal_points, np.float64).reshape(-1, 2)
    if not len(points):
        points = navigation.random_points(goals + 1, np.random.default_rng([seed, goals]))
    if len(points) < 2:
        raise SimulationError('a path needs a start and a goal: two points or more')
    ahead = points[1] - points[0]
    place, heading = points[0], math.atan2(ahead[1], ahead[0])
    states: list[tuple[float, float, float]] = []
    segments: list[int] = []
    for number, goal in enumerate(points[1:]):
        driven = navigation.follow(place, heading, goal)
        if not states:  # where the mesh has the start
            states.append((*driven[0, :2], heading))
        for before, after in pairwise(driven):
            turn = math.remainder(after[2] - before[2], 2 * math.pi)
            if np.hypot(*(after - before)[:2]) < 1e-9 and abs(turn) < 1e-9:
                continue
            heading += turn
            states.append((*after[:2], heading))
            segments.append(number)
        place = driven[-1, :2]
    return RobotPath(np.array(states), np.array(segments, np.int64), navigation.floor_height_m)
