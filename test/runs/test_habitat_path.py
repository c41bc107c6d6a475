"""Paths that Habitat-Sim plans for a configuration."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from small_scenes import room_scene

from osmabench_ros.errors import ConfigError, MissingDependencyError, SimulationError
from osmabench_ros.runs.config import MatrixConfig, parse_config
from osmabench_ros.runs.prepare.shared_path import navigation_of, shared_path
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.writing import write_habitat_dataset
from osmabench_ros.simulation.conditions import load_condition
from osmabench_ros.simulation.habitat.simulator import PYTHON_VARIABLE
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.simulation.trajectory import sample_trajectory

needs_habitat = pytest.mark.skipif(
    not os.environ.get(PYTHON_VARIABLE),
    reason=f'{PYTHON_VARIABLE} names no interpreter with habitat_sim',
)
POINTS = [[-1.0, 0.0], [2.5, 0.0], [-2.0, 1.0]]
"""A table stands between the first two."""


@pytest.fixture(scope='module')
def room(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return load_scene(str(write_habitat_dataset(room_scene(), tmp_path_factory.mktemp('room'))))


def configuration(**trajectory: Any) -> MatrixConfig:
    data = {
        'name': 'room',
        'mappers': [{'name': 'oracle'}],
        'robot': {'radius_m': 0.25, 'height_m': 1.2},
        'trajectory': {'max_frames': 5000, 'goal_points': POINTS, **trajectory},
        'suites': [{'name': 'map_geometry'}],
    }
    return parse_config(data, 'test')


def planned(scene: Scene, **trajectory: Any) -> RobotPath:
    config = configuration(**trajectory)
    return shared_path(config, 3, scene, navigation_of(config, scene))


@needs_habitat
def test_both_planners_go_round_the_table_by_the_shortest_way(room: Scene) -> None:
    grid, mesh, greedy = (
        planned(room, planner=name) for name in ('grid', 'navmesh', 'greedy_follower')
    )
    assert mesh.length_m == pytest.approx(grid.length_m, rel=0.05)
    assert greedy.length_m == pytest.approx(mesh.length_m, rel=0.15)
    assert set(mesh.segments) == set(greedy.segments) == {0, 1}
    np.testing.assert_allclose(mesh.states[[0, -1], :2], [POINTS[0], POINTS[2]], atol=1e-6)
    config = configuration()
    free = navigation_of(config, room)
    assert np.mean([free.is_free(state[:2]) for state in greedy.states]) > 0.9


@needs_habitat
def test_the_follower_drives_in_the_actions_of_osma_bench(room: Scene) -> None:
    path = planned(room, planner='greedy_follower')
    steps = np.diff(path.states, axis=0)
    driven, turned = np.hypot(steps[:, 0], steps[:, 1]), np.degrees(np.abs(steps[:, 2]))
    assert np.median(driven[driven > 0]) == pytest.approx(0.06, abs=1e-4)
    # Habitat-Sim lets a robot slide along the edge of the mesh, which makes a step a bit longer.
    slid = driven > 0.06 + 1e-4
    assert driven.max() < 0.065
    assert slid.mean() < 0.05
    assert turned.max() == pytest.approx(4.0, abs=0.01)
    assert not ((driven > 1e-6) & (turned > 0.01)).any()
    ends = [path.states[1:][path.segments == number][-1, :2] for number in (0, 1)]
    assert np.linalg.norm(np.array(ends) - POINTS[1:], axis=1).max() < 0.3
    # In the discrete steps of the code every action takes two frames, a longer one three.
    motion = load_condition('compat_baseline').motion_at(5.0)
    assert len(sample_trajectory(path, motion, 5.0)) == 2 * len(steps) + slid.sum() + 1


@needs_habitat
def test_random_goals_and_faults(room: Scene) -> None:
    for planner in ('navmesh', 'greedy_follower'):
        one, two = (
            planned(room, planner=planner, goal_points=[], goals=2).states for _ in range(2)
        )
        np.testing.assert_array_equal(one, two)
        with pytest.raises(SimulationError, match=r'\(1\.00, 0\.00\) cannot be reached'):
            planned(room, planner=planner, goal_points=[[-1, 0], [1, 0]])
    with pytest.raises(SimulationError, match='gone.navmesh is no navigation mesh'):
        planned(room, planner='navmesh', navmesh='gone.navmesh')
    with pytest.raises(SimulationError, match='is not on disk as a Habitat scene data set'):
        planned(room_scene(), planner='navmesh')


def test_without_habitat_sim_it_says_so(room: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    with pytest.raises(MissingDependencyError, match='habitat_python'):
        planned(room, planner='navmesh')


@pytest.mark.parametrize(
    ('changes', 'reported'),
    [
        ({'planner': 'recast'}, 'trajectory.planner'),
        ({'navmesh': 'a.navmesh'}, '"navmesh" is for the planners'),
        ({'planner': 'navmesh', 'strategy': 'coverage', 'goal_points': []}, 'planner grid alone'),
        ({'planner': 'navmesh', 'recorded': 'a.tum', 'goal_points': []}, 'planner grid alone'),
        ({'planner': 'greedy_follower', 'strategy': 'look_around'}, 'strategy follow alone'),
    ],
)
def test_planners_at_fault_are_named(changes: dict[str, Any], reported: str) -> None:
    with pytest.raises(ConfigError, match=reported):
        configuration(**changes)
