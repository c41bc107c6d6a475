"""What every planner's paths must keep to; none of it knows who plans."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial import cKDTree
from shared_data import shared_path as shared_data_path
from small_config import small_config
from small_scenes import room_scene

from osmabench_ros.errors import MissingDependencyError
from osmabench_ros.runs.config import MatrixConfig, Planner
from osmabench_ros.runs.prepare.shared_path import navigation_of, shared_path
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.visibility import sample_surface
from osmabench_ros.scenes.writing import write_habitat_dataset
from osmabench_ros.simulation.robot_path import RobotPath

CELL_M = 0.05
"""Both grid and navigation mesh know obstacles to a cell."""


@pytest.fixture(scope='module', params=['room', 'small_house'])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    if request.param == 'room':
        return load_scene(
            str(write_habitat_dataset(room_scene(), tmp_path_factory.mktemp('room')))
        )
    return load_scene(
        str(shared_data_path('scenes', 'small_house', 'house.scene_dataset_config.json'))
    )


def planned(planner: Planner, scene: Scene, seed: int) -> tuple[MatrixConfig, RobotPath]:
    trajectory = {'goals': 4, 'planner': planner.value, 'max_frames': 5000, 'frame_rate_hz': 5.0}
    config = MatrixConfig.model_validate(small_config(trajectory=trajectory))
    try:
        return config, shared_path(config, seed, scene, navigation_of(config, scene))
    except MissingDependencyError as error:
        pytest.skip(f'{planner.value}: {error}')


@pytest.mark.slow
@pytest.mark.parametrize('planner', Planner, ids=lambda planner: planner.value)
def test_paths_keep_the_radius_of_the_robot_clear(planner: Planner, scene: Scene) -> None:
    config, path = planned(planner, scene, seed=5)
    floor_m = navigation_of(config, scene).floor_height_m
    points = sample_surface(scene, 800.0, seed=9).points
    high_m = points[:, 2] - floor_m
    in_the_way = (high_m > 0.06 + CELL_M) & (high_m < config.robot.height_m - CELL_M)
    line = path.states[:, :2]
    dense = np.concatenate(
        [a + np.linspace(0, 1, 60)[:, None] * (b - a) for a, b in pairwise(line)]
    )
    distance_m, _ = cKDTree(points[in_the_way][:, :2]).query(dense)
    assert path.length_m > 3.0
    assert distance_m.min() > config.robot.radius_m - CELL_M


@pytest.mark.slow
@pytest.mark.parametrize('planner', Planner, ids=lambda planner: planner.value)
def test_a_seed_repeats_its_path_and_another_has_its_own(planner: Planner, scene: Scene) -> None:
    first, again, other = (planned(planner, scene, seed)[1] for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.states, again.states)
    assert first.states.shape != other.states.shape or not np.allclose(first.states, other.states)
