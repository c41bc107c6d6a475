from functools import partial

import numpy as np
import pytest
from support.libraries import needs
from support.world.scenes import CAMERA, camera_at, divided_room

from osmabench_ros.base.configuration import config_path
from osmabench_ros.runs.config import load_config
from osmabench_ros.runs.shared_path import navigation_of, shared_path
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.simulation.robot_path import CameraMount, Motion, plan_path, sample_trajectory
from osmabench_ros.simulation.strategies import Lookouts, Strategy, order_tour, plan_with_strategy
from osmabench_ros.simulation.walkable_grid import WalkableGrid

pytestmark = needs('open3d')

HEIGHT_M = 1.2


@pytest.fixture(scope='module')
def scene():
    return divided_room()


@pytest.fixture(scope='module')
def navigation(scene):
    return WalkableGrid.of_scene(scene, radius_m=0.2, height_m=1.3)


@pytest.fixture(scope='module')
def lookouts(scene, navigation):
    return Lookouts(scene, navigation, HEIGHT_M)


def test_nothing_is_covered_without_frames_and_more_with_more(lookouts):
    shares = [
        lookouts.measure_coverages([camera_at(-2.0, 0.0, HEIGHT_M, yaw) for yaw in yaws], CAMERA)[
            0
        ].share
        for yaws in ([], [0.0], [0.0, 1.5, 3.0, 4.5])
    ]
    assert shares[0] == 0.0
    assert shares[0] < shares[1] < shares[2] < 1.0


def test_hidden_surface_counts_for_the_scene_but_not_as_visible(lookouts):
    coverage = lookouts.measure_coverages([], CAMERA)[0]
    # The outer faces of the walls and the lower side of the floor are seen from nowhere.
    assert 0.3 * coverage.scene_m2 < coverage.visible_m2 < 0.7 * coverage.scene_m2


def test_two_places_are_chosen_on_both_sides_of_the_wall(lookouts):
    places = lookouts.choose_places(2)
    assert sorted(places[:, 0] > -0.55) == [False, True]


def test_places_stop_when_nothing_new_is_seen(lookouts):
    assert 2 <= len(lookouts.choose_places(1000)) < len(lookouts.places)


@pytest.fixture(scope='module')
def plan(scene, navigation):
    given = {'scene': scene, 'navigation': navigation, 'camera_height_m': HEIGHT_M}
    return partial(plan_with_strategy, **given)


def test_coverage_sees_more_than_following_with_as_many_goals(plan, lookouts):
    def share(strategy):
        path = plan(strategy, goals=2, seed=3)
        frames = sample_trajectory(path, Motion(), 2.0, CameraMount(HEIGHT_M))
        return lookouts.measure_coverages(frames.camera_poses, CAMERA)[0].share

    assert share(Strategy.COVERAGE) > 0.8
    assert share(Strategy.COVERAGE) > share(Strategy.FOLLOW)
    assert share(Strategy.LOOK_AROUND) > share(Strategy.FOLLOW)


def test_strategies_are_seeded(plan):
    for strategy in Strategy:
        one, two = (plan(strategy, goals=3, seed=7) for _ in range(2))
        assert one.to_json() == two.to_json()


def test_looking_around_turns_once_at_every_goal(navigation):
    plain = plan_path(navigation, goals=3, seed=1)
    around = plan_path(navigation, goals=3, seed=1, look_around=True)
    assert around.length_m == pytest.approx(plain.length_m)
    turns = np.abs(np.diff(around.states[:, 2]))
    assert np.isclose(turns, 2 * np.pi).sum() == 3


def test_a_tour_visits_every_place_once_and_is_no_longer_than_as_given(navigation):
    rng = np.random.default_rng(0)
    start, *places = navigation.draw_points(6, rng)
    tour = order_tour(navigation, start, np.array(places))

    def length(points):
        return sum(navigation.distance_m(points[i], points[i + 1]) for i in range(len(points) - 1))

    np.testing.assert_array_equal(tour[0], start)
    assert {tuple(point) for point in tour[1:]} == {tuple(point) for point in places}
    assert length(tour) <= length(np.array([start, *places])) + 1e-9


@pytest.mark.full
@pytest.mark.slow
def test_the_path_of_the_demo_sees_most_of_what_can_be_seen():
    config = load_config(str(config_path('demo.yaml')))
    scene = load_scene('apartment', seed=5)
    navigation = navigation_of(config, scene)
    path = shared_path(config, 5, scene, navigation)
    rate_hz = config.trajectory.frame_rate_hz
    frames = sample_trajectory(path, Motion(), rate_hz, config.camera.mount)
    assert len(frames) == config.trajectory.max_frames
    lookouts = Lookouts(scene, navigation, config.camera.mounting_height_m, seed=5)
    assert lookouts.measure_coverages(frames.camera_poses, config.camera.intrinsics)[0].share > 0.7
