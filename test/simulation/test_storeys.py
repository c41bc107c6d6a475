"""Paths on the walkable grid of a room, and in a house with a ramp between two floors."""

import json

import numpy as np
import pytest
from support.world.runs import small_config
from support.world.scenes import (
    LABELS,
    RAMP_RUN_M,
    STOREY_M,
    box_object,
    ramp_house,
    room_scene,
    stair_house,
)

from osmabench_ros.errors import ConfigError, SimulationError
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.shared_path import navigation_of, shared_path
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation import robot_path
from osmabench_ros.simulation.habitat.navigation import HabitatNavigation
from osmabench_ros.simulation.strategies import Lookouts
from osmabench_ros.simulation.walkable_grid import CLIMB_M, WalkableGrid

EYE_M = 1.2
DOWNSTAIRS, UPSTAIRS = (2.0, 0.8), (8.5, 0.8)


@pytest.fixture(scope='module')
def house():
    return ramp_house()


@pytest.fixture(scope='module')
def navigation(house):
    return grid_of(house)


def grid_of(scene, radius_m=0.2, height_m=1.5, storey=None):
    return WalkableGrid.of_scene(scene, radius_m=radius_m, height_m=height_m, storey=storey)


def without(house, *names):
    kept = tuple(item for item in house.objects if item.name not in names)
    return Scene('test', 'cut', house.label_set, kept)


def eyes(path):
    frames = robot_path.sample_trajectory(
        path, robot_path.Motion(), 20.0, robot_path.CameraMount(height_m=EYE_M)
    ).frames
    return np.array([frame.camera_pose.translation for frame in frames])


def heights_m(x, y):
    """Return the heights of both surfaces of the house at a place, the lower one first."""
    if y > 4.7:
        return 0.0, float(np.clip((x - 1) / RAMP_RUN_M, 0, 1)) * STOREY_M
    return 0.0, STOREY_M


def off_m(points, above_m):
    """Return how far points are from a height above the nearer of the surfaces there."""
    grounds = np.array([heights_m(x, y) for x, y, _ in points.tolist()])
    # At the side of the ramp, where the ground has a step, a path is between both.
    beside = np.abs(points[:, 1] - 4.7) < 0.04
    return np.asarray(np.abs(points[:, 2:] - above_m - grounds).min(axis=1)[~beside])


def test_the_camera_keeps_its_height_above_the_ground_on_floors_and_ramp(navigation):
    goals = [(*DOWNSTAIRS, 0.0), (*UPSTAIRS, STOREY_M), (0.6, 5.4, 0.0), (3.0, 3.0, STOREY_M)]
    path = robot_path.plan_path(navigation, goals=3, seed=0, goal_points=goals)
    seen = eyes(path)
    assert off_m(seen, EYE_M).max() < 0.01
    heights = seen[:, 2] - EYE_M
    assert ((heights > 0.1) & (heights < STOREY_M - 0.1)).sum() > 100
    # Beside the ramp's ends a step of up to 0.2 m is climbed, elsewhere no more than the slope.
    assert np.abs(np.diff(heights)).max() < 0.2
    ends = [path.states[np.flatnonzero(path.segments == s)[-1] + 1, :2] for s in range(3)]
    np.testing.assert_allclose(ends, [goal[:2] for goal in goals[1:]])
    assert path.heights_m[[0, -1]] == pytest.approx([0.0, STOREY_M], abs=0.005)


def test_speed_is_along_the_slope(navigation):
    points = [(2.0, 5.4), (8.0, 5.4, STOREY_M * 7 / 8)]
    path = robot_path.plan_path(navigation, goals=1, seed=0, goal_points=points)
    slope = np.hypot(6.0, 6.0 * STOREY_M / 8.0)
    assert path.length_m == pytest.approx(slope, abs=0.01)
    assert path.times_s(robot_path.Motion())[-1] == pytest.approx(slope / 0.75, abs=0.02)
    steps = np.linalg.norm(np.diff(eyes(path), axis=0), axis=1)
    np.testing.assert_allclose(steps[:-1], 0.75 / 20, atol=1e-6)


SLOPE = STOREY_M / RAMP_RUN_M
# A place keeps the radius and a cell clear.
CLEAR_M = 0.2 + 0.05

# The x between which the side of the ramp is too high for a step, and its y.
RAMP = (1 + CLIMB_M / SLOPE, 9 - CLIMB_M / SLOPE), 4.7

PILLAR, PARTITION = ((4.0, 4.1), 1.5), ((6.0, 6.1), 3.0)


@pytest.mark.parametrize(
    ('start', 'goal', 'wall'),
    [
        ((2, 0.8, 0), (8.5, 0.8, STOREY_M), RAMP),
        ((3.5, 3, 0), (7, 2, STOREY_M), RAMP),
        ((0.5, 1, 0), (9.5, 1.5, STOREY_M), RAMP),
        ((1, 4, 0), (9, 2.5, 0), PILLAR),
        ((5, 1, STOREY_M), (8, 0.8, STOREY_M), PARTITION),
    ],
)
def test_distances_are_those_of_a_taut_string_within_a_percent(navigation, start, goal, wall):
    """A string along a wall: tangents to circles about its ends, arcs, and its length."""
    (first, last), side = wall
    length_m = last - first
    if wall is RAMP:
        # Next to each end of the ramp is a step.
        length_m = np.hypot(length_m, SLOPE * length_m) + 2 * (CLIMB_M - SLOPE * CLEAR_M)
    for (x, y, _), end, sign in ((start, first, 1), (goal, last, -1)):
        along, across = sign * (x - end), -abs(y - side)
        away = np.hypot(along, across)
        turn = np.arctan2(across, along) - np.arccos(CLEAR_M / away)
        length_m += np.sqrt(away**2 - CLEAR_M**2) + CLEAR_M * (turn % (2 * np.pi) - np.pi / 2)
    assert navigation.distance_m(*np.array([start, goal])) == pytest.approx(length_m, rel=0.01)


@pytest.mark.full
def test_goals_lie_on_both_floors_or_on_the_one_of_storey(house):
    for storey, expected in ((None, {0, 1}), (0, {0}), (1, {1})):
        found = grid_of(house, storey=storey)
        points = found.draw_points(40, np.random.default_rng(2))
        assert set(np.rint(points[:, 2] / STOREY_M).astype(int)) == expected
        assert off_m(points, 0.0).max() < 0.01
        assert found.storeys_m == pytest.approx((0.0, STOREY_M), abs=0.01)
        path = robot_path.plan_path(found, goals=4, seed=1)
        assert (path.heights_m is None) == (storey is not None)
    assert found.floor_height_m == pytest.approx(STOREY_M, abs=0.01)
    with pytest.raises(SimulationError, match=r'no storey 2; it has 0 at 0\.00 m, 1 at 2\.80 m'):
        grid_of(house, storey=2)


def test_a_point_above_another_is_told_by_its_height(navigation):
    assert navigation.is_free(UPSTAIRS)
    assert navigation.is_free((*UPSTAIRS, 0.1))
    assert navigation.is_free((*UPSTAIRS, STOREY_M))
    assert not navigation.is_free((*UPSTAIRS, 1.4))
    with pytest.raises(SimulationError, match=r'goal \(8\.50, 0\.80, 1\.40\) cannot be reached'):
        navigation.find_shortest_path((*DOWNSTAIRS, 0.0), (*UPSTAIRS, 1.4))


def test_a_floor_without_a_ramp_is_a_storey_of_its_own_and_a_roof_is_none(house):
    cut = without(house, 'ramp')
    found = grid_of(cut)
    assert found.storeys_m == pytest.approx((0.0, STOREY_M), abs=0.01)
    assert set(found.draw_points(20, np.random.default_rng(0))[:, 2]) == {found.floor_height_m}
    assert grid_of(cut, storey=1).is_free((*UPSTAIRS, STOREY_M))
    assert len(grid_of(room_scene()).storeys_m) == 1


@pytest.mark.parametrize(('ramp', 'storeys'), [(True, 2), (False, 1)])
def test_a_terrace_is_a_storey_if_a_ramp_leads_there(house, ramp, storeys):
    roofed = ('floor_7', 'wall_6') if ramp else ('floor_7', 'wall_6', 'ramp')
    assert len(grid_of(without(house, *roofed)).storeys_m) == storeys


def test_stairs_are_climbed_step_by_step_if_their_steps_are_low_enough():
    found = grid_of(stair_house(16, 0.28))
    goals = [(*DOWNSTAIRS, 0.0), (*UPSTAIRS, STOREY_M)]
    seen = eyes(robot_path.plan_path(found, goals=1, seed=0, goal_points=goals))
    treads = np.rint((seen[:, 2] - EYE_M) / (STOREY_M / 16))
    level = np.abs(seen[:, 2] - EYE_M - treads * STOREY_M / 16) < 0.01
    # On the way the camera is over one step after the other, and between two for an instant.
    assert {0.0, 16.0} <= set(treads[level])
    assert len(set(treads[level])) > 12
    on_stairs = level & (seen[:, 1] > 4.75) & (treads < 16) & (treads > 0)
    under = np.ceil((seen[on_stairs, 0] - 1) / 0.28)
    assert on_stairs.sum() > 40
    assert (under == treads[on_stairs]).mean() > 0.9
    steep = grid_of(stair_house(11, 0.28))
    assert set(steep.draw_points(20, np.random.default_rng(0))[:, 2]) == {steep.floor_height_m}


def test_stairs_have_no_holes_where_a_cell_has_only_points_of_risers():
    found = grid_of(stair_house(16, 0.28), radius_m=0.3)
    along_m = np.arange(1.1, 5.3, 0.05)
    treads_m = np.ceil((along_m - 1) / 0.28) * STOREY_M / 16
    assert all(found.is_free((x, 5.25, z)) for x, z in zip(along_m, treads_m, strict=True))


def test_a_climbing_path_is_cut_and_read_again(navigation, write_file):
    points = [(*DOWNSTAIRS, 0.0), (*UPSTAIRS, STOREY_M)]
    path = robot_path.plan_path(navigation, goals=1, seed=0, goal_points=points)
    half = path.crop(path.times_s(robot_path.Motion())[-1] / 2, robot_path.Motion())
    assert off_m(eyes(half), EYE_M).max() < 0.01
    np.testing.assert_allclose(eyes(half), eyes(path)[: len(eyes(half))], atol=1e-9)
    file = write_file('path.json', half.to_json())
    again = robot_path.RobotPath.read(file)
    np.testing.assert_array_equal(again.heights_m, half.heights_m)
    data = half.to_json()
    assert data['format'] == 'osmabench.path/2'
    file.write_text(json.dumps({**data, 'heights_m': data['heights_m'][1:]}))
    with pytest.raises(SimulationError, match='heights_m of shape'):
        robot_path.RobotPath.read(file)


def test_surface_of_both_floors_is_visible_from_where_the_robot_gets_to(house, navigation):
    found = Lookouts(house, navigation, EYE_M)
    # The last cells of a floor reach a step up its ramp.
    assert off_m(found.places, 0.0).max() < 0.07
    assert (found.places[:, 2] > STOREY_M / 2).any()
    assert len(found.choose_places(4)) == 4


def configuration(**trajectory):
    base = {'goals': 3, 'max_frames': 5000, 'frame_rate_hz': 5.0}
    return parse_config(small_config(trajectory={**base, **trajectory}), 'test')


def test_the_configuration_chooses_a_storey(house):
    config = configuration(storey=1)
    path = shared_path(config, 3, house, navigation_of(config, house))
    assert path.heights_m is None
    assert path.floor_height_m == pytest.approx(STOREY_M, abs=0.01)
    with pytest.raises(ConfigError, match='storey'):
        configuration(storey=-1)
    with pytest.raises(ConfigError, match='leave out storey'):
        configuration(storey=1, recorded='poses.tum')


def test_a_recorded_trajectory_keeps_its_heights(house, write_file):
    x = np.linspace(0.5, 9.5, 40)
    z = [heights_m(value, 5.4)[1] for value in x]
    rows = [f'{i} {a} 5.4 {b} 0 0 0 1' for i, (a, b) in enumerate(zip(x, z, strict=True))]
    file = write_file('ramp.tum', '\n'.join(rows) + '\n')
    config = configuration(recorded=str(file))
    path = shared_path(config, 3, house, navigation_of(config, house))
    np.testing.assert_allclose(path.states[:, 0], x)
    np.testing.assert_allclose(path.heights_m, z)


class Mesh:
    """Answers as the worker of Habitat-Sim with a mesh of voxels of 5 cm, y up."""

    def call(self, name, _timeout_s, **request):
        if name == 'walk':
            return {'height_m': 0.05, 'area_m2': 100.0}
        if name == 'snapped':
            return request['point']
        if name == 'find_shortest_path':
            # From floor to floor a mesh has corners where the way bends, not where it slopes.
            corners = [(0.5, 5.4, 0.05), (9.5, 5.4, STOREY_M + 0.05)]
            return {'distance_m': 9.5, 'points': [[a, c, -b] for a, b, c in corners]}
        x = np.arange(0.5, 9.5, 0.06)
        rise = [round((heights_m(a, 5.4)[1] + 0.05) / 0.05) * 0.05 for a in x]
        return [[a, b, -5.4, 0.0] for a, b in zip(x, rise, strict=True)]


def test_ways_on_a_navigation_mesh_lie_on_the_ground(house):
    mesh = HabitatNavigation(Mesh(), house, radius_m=0.2, height_m=1.5, timeout_s=1.0)
    way = mesh.find_shortest_path((0.5, 5.4), (9.5, 5.4, STOREY_M))
    assert off_m(way, 0.0).max() < 0.01
    assert any(way[:, 0] == pytest.approx(1.0, abs=0.1) for way in way[:, None])
    driven = mesh.follow((0.5, 5.4), 0.0, (9.5, 5.4, STOREY_M))
    assert driven.shape[1] == 4
    assert off_m(driven[:, :3], 0.0).max() < 0.01


@pytest.fixture(scope='module')
def room():
    return grid_of(room_scene())


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
    shortest = np.hypot(0.2, 0.5 + 0.2) + 1.2 + np.hypot(0.4, 0.5 + 0.2)
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
    cut = grid_of(room_scene(extra=(wall,)))
    with pytest.raises(SimulationError, match=r'start \(-2\.50, 0\.00\)'):
        cut.find_shortest_path((-2.5, 0.0), (2.0, 0.0))
    assert cut.is_free((2.0, 1.0))


def test_a_low_robot_drives_under_what_a_tall_one_must_avoid():
    board = box_object(8, 'box', (-2.4, -2.0, 1.0), (-1.6, 2.0, 1.05))
    scene = room_scene(extra=(board,))
    for height_m, expected in ((0.8, True), (1.5, False)):
        assert grid_of(scene, height_m=height_m).is_free((-2.0, 0.0)) is expected


def test_a_scene_without_room_for_the_robot_is_refused():
    tiny = Scene('test', 'tiny', LABELS, (box_object(1, 'floor', (0, 0, -0.1), (0.3, 0.3, 0)),))
    with pytest.raises(
        SimulationError, match=r'test/tiny: no floor fits a robot of radius 0\.2 m'
    ):
        grid_of(tiny)


def test_points_that_are_too_far_apart_for_a_grid_are_refused():
    points = np.array([(0.0, 0.0, 0.0), (1e6, 1e6, 0.0)])
    with pytest.raises(SimulationError, match=r'points span 1000000 x 1000000 m'):
        WalkableGrid.of_points(points, (0.0,), height_m=1.5)
