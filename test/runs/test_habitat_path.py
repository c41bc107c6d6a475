"""Paths that Habitat-Sim plans for a configuration."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import trimesh
from support.habitat_files import write_dataset, write_json
from support.world.runs import matrix_config
from support.world.scenes import room_scene

from osmabench_ros.errors import ConfigError, MissingDependencyError, SimulationError
from osmabench_ros.geometry.axes import turn_from_habitat
from osmabench_ros.runs.shared_path import navigation_of, shared_path
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.writing import write_habitat_dataset
from osmabench_ros.simulation.conditions import load_condition
from osmabench_ros.simulation.habitat.simulator import PYTHON_VARIABLE
from osmabench_ros.simulation.robot_path import sample_trajectory

needs_habitat = pytest.mark.skipif(
    not os.environ.get(PYTHON_VARIABLE),
    reason=f'{PYTHON_VARIABLE} names no interpreter with habitat_sim',
)
# A table stands between the first two.
POINTS = [[-1.0, 0.0], [2.5, 0.0], [-2.0, 1.0]]


@pytest.fixture(scope='module')
def room(tmp_path_factory):
    return load_scene(str(write_habitat_dataset(room_scene(), tmp_path_factory.mktemp('room'))))


def configuration(**trajectory):
    return matrix_config(
        robot={'radius_m': 0.25, 'height_m': 1.2},
        trajectory={'max_frames': 5000, 'goal_points': POINTS, **trajectory},
    )


def planned(scene, **trajectory):
    config = configuration(**trajectory)
    return shared_path(config, 3, scene, navigation_of(config, scene))


@needs_habitat
def test_both_planners_go_round_the_table_by_the_shortest_way(room):
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
def test_the_follower_drives_in_the_actions_of_osma_bench(room):
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
    motion = load_condition('compat_baseline').make_motion(5.0)
    assert len(sample_trajectory(path, motion, 5.0)) == 2 * len(steps) + slid.sum() + 1


def two_islands(folder):
    """Write a data set of two floors 3 m apart as its stage, with a crate on the larger one."""
    parts = (
        ((8, 0.1, 8), (0, -0.05, 0)),
        ((3, 2, 0.2), (0.5, 1, 0)),
        ((4, 0.1, 8), (9, -0.05, 0)),
    )
    boxes = [trimesh.creation.box(size) for size, _ in parts]
    for box, (_, place) in zip(boxes, parts, strict=True):
        box.apply_translation(place)
    stage = write_json(
        folder / 'stages' / 'floors.stage_config.json',
        {'render_asset': 'floors.glb', 'up': [0, 1, 0], 'front': [0, 0, -1]},
    )
    trimesh.util.concatenate(boxes).export(stage.parent / 'floors.glb')
    crate = {'template_name': 'crate', 'translation': [-2, 0.5, 2], 'motion_type': 'STATIC'}
    return write_dataset(
        folder,
        objects={'crate': (trimesh.creation.box((1, 1, 1)), {})},
        instances=[{**crate, 'translation_origin': 'asset_local'}],
        scene={'stage_instance': {'template_name': 'floors'}},
    )


@needs_habitat
@pytest.mark.filterwarnings('ignore')
def test_drives_of_osma_bench_are_those_of_its_code(tmp_path):
    dataset = two_islands(tmp_path)
    path = planned(
        load_scene(str(dataset)), planner='osma_bench', goal_points=[], goals=5, max_frames=100_000
    )
    script = Path(__file__).with_name('osma_bench_drive.py')
    command = [os.environ[PYTHON_VARIABLE], str(script), str(dataset), '3', '5']
    quiet = {'HABITAT_SIM_LOG': 'quiet', 'MAGNUM_LOG': 'quiet'}
    printed = subprocess.check_output(command, env=quiet, cwd=tmp_path, text=True)
    driven = np.array(json.loads(printed.splitlines()[-1]))
    places, headings = turn_from_habitat(driven[:, 1:4]), np.unwrap(driven[:, 4] + np.pi / 2)
    moved = np.linalg.norm(np.diff(np.column_stack([places[:, :2], headings]), axis=0), axis=1)
    kept = np.append(True, moved > 1e-9)
    np.testing.assert_allclose(path.states[:, :2], places[kept, :2], atol=1e-5)
    np.testing.assert_allclose(
        path.states[:, 2] - path.states[0, 2], headings[kept] - headings[0], atol=1e-5
    )
    assert path.states[0, 2] == pytest.approx(np.pi / 2), 'heading -z of Habitat'
    np.testing.assert_array_equal(path.segments, driven[kept, 0][1:])
    assert 0 < len(set(path.segments.tolist())) < 5, 'goals on the other floor are left out'
    height_m = path.floor_height_m if path.heights_m is None else path.heights_m
    np.testing.assert_allclose(height_m, places[kept, 2], atol=1e-5)


@needs_habitat
def test_random_goals_and_faults(room):
    for planner in ('navmesh', 'greedy_follower'):
        one, two = (
            planned(room, planner=planner, goal_points=[], goals=2).states for _ in range(2)
        )
        np.testing.assert_array_equal(one, two)
        with pytest.raises(SimulationError, match=r'\(1\.00, 0\.00\) cannot be reached'):
            planned(room, planner=planner, goal_points=[[-1, 0], [1, 0]])
    with pytest.raises(SimulationError, match='gone.navmesh is not a navigation mesh'):
        planned(room, planner='navmesh', navmesh='gone.navmesh')
    in_memory = planned(room_scene(), planner='navmesh')
    np.testing.assert_array_equal(in_memory.states, planned(room, planner='navmesh').states)


def test_without_habitat_sim_it_says_so(room, monkeypatch):
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    with pytest.raises(MissingDependencyError, match='habitat_python'):
        planned(room, planner='navmesh')


@pytest.mark.parametrize(
    ('changes', 'reported'),
    [
        ({'planner': 'recast'}, 'trajectory.planner'),
        ({'navmesh': 'a.navmesh'}, '"navmesh" is for the planners'),
        ({'planner': 'navmesh', 'strategy': 'coverage', 'goal_points': []}, 'the planner grid'),
        ({'planner': 'navmesh', 'recorded': 'a.tum', 'goal_points': []}, 'the planner grid'),
        ({'planner': 'greedy_follower', 'strategy': 'look_around'}, 'needs the strategy follow'),
        ({'planner': 'osma_bench'}, 'leave out goal_points and storey'),
        ({'planner': 'osma_bench', 'goal_points': [], 'storey': 1}, 'goal_points and storey'),
    ],
)
def test_planners_at_fault_are_named(changes, reported):
    with pytest.raises(ConfigError, match=reported):
        configuration(**changes)
