import numpy as np
import pytest
from support.world.scenes import LABELS, box_object, room_scene

from osmabench_ros.errors import SimulationError
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation.walkable_grid import WalkableGrid

RADIUS_M, HEIGHT_M = 0.2, 1.5


@pytest.fixture(scope='module')
def room():
    return WalkableGrid.of_scene(room_scene(), radius_m=RADIUS_M, height_m=HEIGHT_M)


def test_the_floor_is_free_and_furniture_and_walls_are_not(room):
    assert room.floor_height_m == pytest.approx(0.0, abs=0.01)
    for point in ((-2.0, 0.0), (2.0, 1.0), (0.0, -1.5)):
        assert room.is_free(point)
    for point in ((1.0, 0.0), (1.0, 0.6), (2.95, 0.0), (0.0, 1.9), (9.0, 9.0), (-9.0, 0.0)):
        assert not room.is_free(point)


def test_a_path_around_the_table_is_barely_longer_than_it_must_be(room):
    path = room.find_shortest_path((0.2, 0.0), (2.0, 0.0))
    length = np.linalg.norm(np.diff(path, axis=0), axis=1).sum()
    # Around the corners of the table grown by the radius, which is a little too long.
    shortest = np.hypot(0.2, 0.5 + RADIUS_M) + 1.2 + np.hypot(0.4, 0.5 + RADIUS_M)
    assert shortest * 0.95 < length < shortest * 1.1
    np.testing.assert_allclose(path[[0, -1], :2], [(0.2, 0.0), (2.0, 0.0)])


def test_a_free_line_of_sight_is_driven_straight(room):
    assert len(room.find_shortest_path((-2.0, -1.0), (2.2, -1.2))) == 2


@pytest.mark.parametrize('point', [(1.0, 0.0), (20.0, 0.0)])
def test_a_goal_that_cannot_be_reached_is_named(room, point):
    with pytest.raises(
        SimulationError, match=rf'goal \({point[0]:.2f}, 0\.00\) cannot be reached'
    ):
        room.find_shortest_path((-2.0, 0.0), point)


def test_a_place_behind_a_wall_without_a_door_is_not_reachable():
    wall = box_object(8, 'wall', (-1.5, -2.0, 0), (-1.4, 2.0, 2.5))
    cut = WalkableGrid.of_scene(room_scene(extra=(wall,)), radius_m=RADIUS_M, height_m=HEIGHT_M)
    with pytest.raises(SimulationError, match=r'start \(-2\.50, 0\.00\)'):
        cut.find_shortest_path((-2.5, 0.0), (2.0, 0.0))
    assert cut.is_free((2.0, 1.0))


def test_a_low_robot_drives_under_what_a_tall_one_must_avoid():
    board = box_object(8, 'box', (-2.4, -2.0, 1.0), (-1.6, 2.0, 1.05))
    scene = room_scene(extra=(board,))
    for height_m, expected in ((0.8, True), (1.5, False)):
        found = WalkableGrid.of_scene(scene, radius_m=RADIUS_M, height_m=height_m)
        assert found.is_free((-2.0, 0.0)) is expected


def test_a_scene_without_room_for_the_robot_is_refused():
    tiny = Scene('test', 'tiny', LABELS, (box_object(1, 'floor', (0, 0, -0.1), (0.3, 0.3, 0)),))
    with pytest.raises(
        SimulationError, match=r'test/tiny: no floor fits a robot of radius 0\.2 m'
    ):
        WalkableGrid.of_scene(tiny, radius_m=RADIUS_M, height_m=HEIGHT_M)


def test_points_that_are_too_far_apart_for_a_grid_are_refused():
    points = np.array([(0.0, 0.0, 0.0), (1e6, 1e6, 0.0)])
    with pytest.raises(SimulationError, match=r'points span 1000000 x 1000000 m'):
        WalkableGrid.of_points(points, (0.0,), height_m=HEIGHT_M)
