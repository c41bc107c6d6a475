"""Paths along recorded poses."""

import numpy as np
import pytest

from osmabench_ros.errors import SimulationError
from osmabench_ros.simulation.conditions import load_condition
from osmabench_ros.simulation.robot_path import Motion, make_path_along, sample_trajectory


def test_every_recorded_pose_is_a_state_and_every_leg_drives_or_turns():
    angle = np.linspace(0, 1.5 * np.pi, 40)
    points = np.column_stack([np.cos(angle), np.sin(angle), np.full(40, 0.2)])
    headings = np.angle(np.exp(1j * (angle + np.pi / 2)))  # wrapped, as recorded ones are
    path = make_path_along(points, headings, segments=3)
    wrapped = np.column_stack([path.states[:, :2], np.cos(path.states[:, 2])])
    for point, heading in zip(points, headings, strict=True):
        assert np.abs(wrapped - [*point[:2], np.cos(heading)]).max(axis=1).min() < 1e-9
    steps = np.diff(path.states, axis=0)
    assert not ((np.abs(steps[:, :2]).max(axis=1) > 0) & (steps[:, 2] != 0)).any()
    assert np.abs(steps[:, 2]).max() < 0.2  # no turn the long way round
    assert path.length_m == pytest.approx(1.5 * np.pi, rel=0.01)
    assert path.floor_height_m == 0.2
    counts = np.bincount(path.segments)
    assert len(counts) == 3
    assert counts.max() - counts.min() <= 3


def test_discrete_actions_repeat_the_frames_of_a_recording_with_those_actions():
    steps = np.concatenate([np.arange(0, 0.6, 0.03), np.full(10, 0.57)])
    headings = np.concatenate([np.zeros(20), np.radians(2.0) * np.arange(1, 11)])
    points = np.column_stack([steps, np.zeros(30), np.zeros(30)])
    path = make_path_along(points, headings, segments=1)
    trajectory = sample_trajectory(path, load_condition('compat_baseline').make_motion(5.0), 5.0)
    found = np.array(
        [(*f.base_pose.translation[:2], f.base_pose.yaw_rad) for f in trajectory.frames]
    )
    np.testing.assert_allclose(found, np.column_stack([points[:, :2], headings]), atol=1e-6)


def test_a_robot_that_stands_for_a_while_just_goes_on():
    points = [[0, 0, 0], [0, 0, 0], [0.00001, 0, 0], [1, 0, 0]]
    path = make_path_along(points, np.zeros(4), segments=2)
    assert len(path.states) == 2
    assert path.times_s(Motion())[-1] == pytest.approx(1 / 0.75)


@pytest.mark.parametrize(
    ('points', 'headings', 'reported'),
    [
        ([[0, 0, 0], [0, 0, 0]], [1, 1], 'do not move'),
        ([[0, 0, 0]], [1], 'do not move'),
        (np.zeros((0, 3)), [], 'do not move'),
        ([[0, 0, 0], [np.nan, 0, 0]], [0, 0], 'NaN'),
        ([[0, 0, 0], [1, 0, 0]], [0, np.inf], 'infinite'),
    ],
)
def test_poses_that_are_no_path(points, headings, reported):
    with pytest.raises(SimulationError, match=reported):
        make_path_along(points, headings, segments=1)
