"""What every planner's paths must keep to; none of it knows who plans."""

from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial import cKDTree
from support.sizes import few
from support.world.runs import small_config
from support.world.scenes import STOREY_M, load_small_house, ramp_house, room_scene, stair_house

from osmabench_ros.errors import MissingDependencyError
from osmabench_ros.runs.config import MatrixConfig, Planner
from osmabench_ros.runs.shared_path import navigation_of, shared_path
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.visibility import RayCaster, sample_surface
from osmabench_ros.scenes.writing import write_habitat_dataset
from osmabench_ros.simulation.walkable_grid import CLIMB_M, STEP_M

# Both grid and navigation mesh know obstacles to a cell.
CELL_M = 0.05

# Recast moves the outlines of its mesh by as much to make them simpler.
OUTLINE_M = 1.3 * CELL_M

# OSMa-Bench's own planner promises none of this; test_habitat_path.py holds it to its code.
PLANNERS = [planner for planner in Planner if planner is not Planner.OSMA_BENCH]


SCENES = 'room', 'ramp_house', 'stair_house', 'small_house'


@pytest.fixture(scope='module', params=few(SCENES, 'room', 'stair_house'))
def scene(request, tmp_path_factory):
    known = {'room': room_scene, 'ramp_house': ramp_house, 'stair_house': stair_house}
    built = known.get(request.param)
    if built is not None:
        return load_scene(str(write_habitat_dataset(built(), tmp_path_factory.mktemp('scene'))))
    return load_small_house()


@lru_cache(maxsize=1)
def navigation(scene):
    return navigation_of(MatrixConfig.model_validate(small_config()), scene)


def planned(planner, scene, seed):
    trajectory = {'goals': 4, 'planner': planner.value, 'max_frames': 5000, 'frame_rate_hz': 5.0}
    config = MatrixConfig.model_validate(small_config(trajectory=trajectory))
    try:
        return config, shared_path(config, seed, scene, navigation(scene))
    except MissingDependencyError as error:
        pytest.skip(f'{planner.value}: {error}')


@pytest.mark.slow
@pytest.mark.parametrize('planner', PLANNERS, ids=lambda planner: planner.value)
def test_paths_keep_the_radius_of_the_robot_clear(planner, scene):
    config, path = planned(planner, scene, seed=5)
    points = sample_surface(scene, 800.0, seed=9).points
    z = np.full(len(path.states), path.floor_height_m)
    if path.heights_m is not None:
        z = path.heights_m
    # Where a path climbs, steps and surfaces at the side of a ramp are not obstacles.
    low_m = STEP_M if path.heights_m is None else CLIMB_M
    line = np.column_stack([path.states[:, :2], z])
    dense = np.concatenate(
        [a + np.linspace(0, 1, 60)[:, None] * (b - a) for a, b in pairwise(line)]
    )
    assert path.length_m > 3.0
    near = cKDTree(points[:, :2]).query_ball_point(dense[:, :2], config.robot.radius_m - OUTLINE_M)
    for (x, y, here), found in zip(dense.tolist(), near, strict=True):
        high_m = points[found, 2] - here
        in_the_way = (high_m > low_m + CELL_M) & (high_m < config.robot.height_m - CELL_M)
        assert not in_the_way.any(), (x, y, here)


@pytest.mark.slow
@pytest.mark.parametrize('planner', PLANNERS, ids=lambda planner: planner.value)
def test_a_path_over_two_floors_keeps_to_the_ground(planner, scene):
    storeys_m = navigation(scene).storeys_m
    if len(storeys_m) == 1:
        pytest.skip('one floor')
    _, path = planned(planner, scene, seed=5)
    assert path.heights_m is not None
    assert np.ptp(storeys_m) == pytest.approx(STOREY_M, abs=0.1)
    assert np.ptp(path.heights_m) == pytest.approx(np.ptp(storeys_m), abs=0.05)
    caster = RayCaster(scene)
    down = np.tile(np.array([[0, 0, -1]], np.float32), (len(path.states), 1))
    above = np.column_stack([path.states[:, :2], path.heights_m + 0.3]).astype(np.float32)
    np.testing.assert_allclose(caster.distances(above, down), 0.3, atol=CELL_M)


@pytest.mark.slow
@pytest.mark.parametrize('planner', PLANNERS, ids=lambda planner: planner.value)
def test_a_seed_repeats_its_path_and_another_has_its_own(planner, scene):
    first, again, other = (planned(planner, scene, seed)[1] for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.states, again.states)
    assert first.states.shape != other.states.shape or not np.allclose(first.states, other.states)
