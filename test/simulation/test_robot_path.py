import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.world.scenes import room_scene

from osmabench_ros.errors import SimulationError
from osmabench_ros.simulation.conditions import load_condition
from osmabench_ros.simulation.robot_path import (
    CameraMount,
    Motion,
    RobotPath,
    covered,
    duration_s,
    plan_path,
    sample_trajectory,
)
from osmabench_ros.simulation.walkable_grid import WalkableGrid


@pytest.fixture(scope='module')
def navigation():
    return WalkableGrid.of_scene(room_scene(), radius_m=0.2, height_m=1.5)


@pytest.fixture
def path(navigation):
    return plan_path(navigation, goals=4, seed=5)


def test_goals_of_the_user_are_visited_in_order(navigation):
    points = [(-2.0, -1.0), (2.0, 1.2), (2.2, -1.2)]
    path = plan_path(navigation, goals=9, seed=0, goal_points=points)
    ends = [path.states[np.flatnonzero(path.segments == s)[-1] + 1, :2] for s in (0, 1)]
    np.testing.assert_allclose([path.states[0, :2], *ends], points)
    with pytest.raises(SimulationError, match=r'goal \(1\.00, 0\.00\) cannot be reached'):
        plan_path(navigation, goals=1, seed=0, goal_points=[(-2.0, 0.0), (1.0, 0.0)])


@pytest.mark.parametrize('name', ['baseline', 'velocity'])
def test_frames_are_spaced_by_speed_over_rate_exactly(path, name):
    motion, rate = load_condition(name).make_motion(20.0), 20.0
    frames = sample_trajectory(path, motion, rate, CameraMount()).frames
    position = np.array([frame.base_pose.translation for frame in frames])
    yaw = np.unwrap([frame.base_pose.yaw_rad for frame in frames])
    driven = np.linalg.norm(np.diff(position, axis=0), axis=1)
    turned = np.abs(np.diff(yaw))
    np.testing.assert_allclose(np.diff([frame.time_s for frame in frames]), 1 / rate)
    # The robot drives or turns; a frame may fall on both sides of a change.
    inner = (turned < 1e-9) | (driven < 1e-9)
    assert inner.mean() > 0.8
    straight, turning = driven[inner & (driven > 1e-9)], turned[inner & (turned > 1e-9)]
    assert np.median(straight) == pytest.approx(motion.linear_m_s / rate)
    assert np.median(turning) == pytest.approx(motion.angular_rad_s / rate)
    assert straight.max() <= motion.linear_m_s / rate + 1e-9
    assert turning.max() <= motion.angular_rad_s / rate + 1e-9


def test_velocity_drives_the_same_line_in_half_the_time(path):
    slow, fast = (load_condition(name).make_motion(10.0) for name in ('baseline', 'velocity'))
    assert path.times_s(fast)[-1] == pytest.approx(path.times_s(slow)[-1] / 2)
    every = sample_trajectory(path, slow, 10.0, CameraMount()).frames
    second = sample_trajectory(path, fast, 10.0, CameraMount()).frames
    for one, two in zip(every[::2], second, strict=False):
        np.testing.assert_allclose(one.base_pose.matrix, two.base_pose.matrix, atol=1e-9)
        assert one.segment == two.segment
        assert one.segment_progress == pytest.approx(two.segment_progress)


def test_the_camera_sits_at_its_height_and_looks_ahead(path):
    mount = CameraMount(height_m=1.2, pitch_rad=0.3)
    for frame in sample_trajectory(path, Motion(), 2.0, mount).frames:
        assert frame.camera_pose.translation[2] == pytest.approx(path.floor_height_m + 1.2)
        ahead = frame.camera_pose.rotation @ [0, 0, 1]
        assert np.arctan2(ahead[1], ahead[0]) == pytest.approx(frame.base_pose.yaw_rad)
        assert np.arcsin(-ahead[2]) == pytest.approx(0.3)
        assert (frame.camera_pose.rotation @ [1, 0, 0])[2] == pytest.approx(0.0)


def test_segments_and_their_progress_only_grow(path):
    frames = sample_trajectory(path, Motion(), 10.0, CameraMount()).frames
    along = [frame.segment + frame.segment_progress for frame in frames]
    assert along == sorted(along)
    assert along[0] == 0.0
    assert along[-1] > 3.8


def test_a_cut_path_is_the_first_part_of_the_whole(path):
    short = path.crop(3.0, Motion())
    assert short.times_s(Motion())[-1] == pytest.approx(3.0)
    whole = sample_trajectory(path, Motion(), 5.0, CameraMount()).frames
    cut = sample_trajectory(short, Motion(), 5.0, CameraMount()).frames
    assert len(cut) == 16
    for one, two in zip(whole, cut, strict=False):
        np.testing.assert_allclose(one.camera_pose.matrix, two.camera_pose.matrix, atol=1e-9)
    assert path.crop(1e6, Motion()) is path


def test_json_gives_the_path_back(path, write_file):
    file = write_file('path.json', path.to_json())
    again = RobotPath.read(file)
    np.testing.assert_array_equal(again.states, path.states)
    np.testing.assert_array_equal(again.segments, path.segments)
    assert again.to_json() == path.to_json()


def test_broken_files_are_named(tmp_path):
    file = tmp_path / 'path.json'
    for text, message in (
        ('{', r'path\.json is not JSON'),
        ('{}', 'malformed path'),
        ('{"format": "other"}', 'format is other'),
        (
            '{"format": "osmabench.path/1", "states": [[0, 0, NaN]], "segments": [], '
            '"floor_height_m": 0}',
            'is not JSON',
        ),
        (
            '{"format": "osmabench.path/1", "states": [[0, 0, 0]], "segments": [1], '
            '"floor_height_m": 0}',
            'segment',
        ),
    ):
        file.write_text(text)
        with pytest.raises(SimulationError, match=message):
            RobotPath.read(file)


def test_discrete_actions_step_as_osma_bench_does(path):
    rate = 25.0
    for name, step_m, step_deg in (('compat_baseline', 0.03, 2.0), ('compat_velocity', 0.06, 4.0)):
        motion = load_condition(name).make_motion(rate)
        frames = sample_trajectory(path, motion, rate, CameraMount()).frames
        position = np.array([frame.base_pose.translation for frame in frames])
        yaw = np.unwrap([frame.base_pose.yaw_rad for frame in frames])
        driven, turned = np.linalg.norm(np.diff(position, axis=0), axis=1), np.abs(np.diff(yaw))
        # Every leg ends on a frame, so that no step both drives and turns.
        assert not ((driven > 1e-9) & (turned > 1e-9)).any()
        assert driven.max() == pytest.approx(step_m)
        assert turned.max() == pytest.approx(np.radians(step_deg))
        full = np.isclose(driven, step_m) | np.isclose(turned, np.radians(step_deg))
        assert (~full).sum() <= len(path.segments)


def test_the_rate_does_not_change_discrete_steps(path):
    compat = load_condition('compat_baseline')
    slow, fast = (
        sample_trajectory(path, compat.make_motion(rate), rate, CameraMount())
        for rate in (5.0, 25.0)
    )
    assert len(slow) == len(fast)
    for one, two in zip(slow.frames, fast.frames, strict=True):
        np.testing.assert_allclose(one.base_pose.matrix, two.base_pose.matrix, atol=1e-6)


def test_acceleration_makes_the_robot_slower_and_stop_at_corners(path):
    gentle = Motion(linear_m_s2=0.5, angular_rad_s2=1.0)
    assert path.times_s(gentle)[-1] > path.times_s(Motion())[-1]
    trajectory = sample_trajectory(path, gentle, 20.0, CameraMount())
    position = np.array([frame.base_pose.translation for frame in trajectory.frames])
    speed = np.linalg.norm(np.diff(position, axis=0), axis=1) * 20.0
    assert speed.max() <= 0.75 + 1e-6
    # A frame may be on both sides of a turn, where the acceleration starts again.
    assert np.quantile(np.abs(np.diff(speed)) * 20.0, 0.9) <= 0.5 + 1e-6
    reached = path.interpolate_states(path.times_s(gentle), gentle)[0]
    np.testing.assert_allclose(reached, path.states, atol=1e-9)


def test_poses_between_frames_lie_on_the_path(path):
    fine = sample_trajectory(path, Motion(), 40.0, CameraMount())
    coarse = sample_trajectory(path, Motion(), 5.0, CameraMount())
    times = np.array([frame.time_s for frame in fine.frames[:100]])
    for one, two in zip(fine.camera_poses, coarse.interpolate_camera_poses(times), strict=False):
        np.testing.assert_allclose(one.matrix, two.matrix, atol=1e-9)


POSITIVE = st.floats(0.01, 10.0)


def test_constant_speed_takes_distance_over_speed():
    np.testing.assert_allclose(duration_s([0.0, 1.5], 0.75), [0.0, 2.0])
    np.testing.assert_allclose(covered([-1.0, 1.0, 9.0], 1.5, 0.75), [0.0, 0.75, 1.5])


def test_a_trapezoid_and_a_triangle():
    # 1 m/s and 1 m/s2: a second up over 0.5 m, a second down; 3 m leave 2 s in the middle.
    assert duration_s(3.0, 1.0, 1.0) == pytest.approx(4.0)
    np.testing.assert_allclose(covered([1.0, 2.0, 3.0, 4.0], 3.0, 1.0, 1.0), [0.5, 1.5, 2.5, 3.0])
    # 0.25 m never reach 1 m/s.
    assert duration_s(0.25, 1.0, 1.0) == pytest.approx(1.0)
    assert covered(0.5, 0.25, 1.0, 1.0) == pytest.approx(0.125)


@given(POSITIVE, POSITIVE, POSITIVE)
def test_profiles_respect_their_limits_and_arrive(distance, speed, limit):
    total = float(duration_s(distance, speed, limit))
    times = np.linspace(0, total, 400)
    position = covered(times, distance, speed, limit)
    assert position[0] == pytest.approx(0.0, abs=1e-9)
    assert position[-1] == pytest.approx(distance)
    velocity = np.diff(position) / np.diff(times)
    assert velocity.min() > -1e-6
    assert velocity.max() <= speed * (1 + 1e-6)
    acceleration = np.diff(velocity) / np.diff(times)[:-1]
    assert np.abs(acceleration).max() <= limit * (1 + 1e-3) + 1e-6
