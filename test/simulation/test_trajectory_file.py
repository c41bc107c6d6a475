import json
from pathlib import Path

import numpy as np
import pytest
from small_scenes import camera_at

from osmabench_ros.errors import SimulationError
from osmabench_ros.simulation.robot_path import Motion, RobotPath
from osmabench_ros.simulation.trajectory import CameraMount, Trajectory, sample_trajectory
from osmabench_ros.simulation.trajectory_file import (
    read_trajectory,
    recorded_trajectory,
    write_trajectory,
)


@pytest.fixture
def trajectory() -> Trajectory:
    states = np.array([[0, 0, 0], [2, 0, 0], [2, 0, 1.5], [2.1, 1.4, 1.5]], float)
    path = RobotPath(states, np.array([0, 1, 1]), 0.1)
    return sample_trajectory(path, Motion(), 5.0, CameraMount(1.2, 0.1))


def test_what_is_written_is_read_and_the_bytes_are_the_same(
    trajectory: Trajectory, tmp_path: Path
) -> None:
    first, second = tmp_path / 'a.json', tmp_path / 'b.json'
    write_trajectory(trajectory, first)
    again = read_trajectory(first)
    write_trajectory(again, second)
    assert first.read_bytes() == second.read_bytes()
    assert again.mount == trajectory.mount
    assert again.frame_rate_hz == 5.0
    for one, two in zip(trajectory.frames, again.frames, strict=True):
        assert (one.time_s, one.segment, one.segment_progress) == (
            two.time_s,
            two.segment,
            two.segment_progress,
        )
        np.testing.assert_array_equal(one.camera_pose.matrix, two.camera_pose.matrix)
    assert [item.name for item in tmp_path.iterdir() if 'partial' in item.name] == []


def test_faults_name_the_file_and_the_frame(trajectory: Trajectory, tmp_path: Path) -> None:
    path = tmp_path / 'drive.json'
    write_trajectory(trajectory, path)
    good = json.loads(path.read_text())

    def fails(message: str) -> None:
        with pytest.raises(SimulationError, match=message):
            read_trajectory(path)

    bad = json.loads(path.read_text())
    bad['frames'][3]['camera_pose'][0][3] = float('nan')
    path.write_text(json.dumps(bad))
    fails(r'drive\.json: frame 3: .*NaN')
    del bad['frames'][3]['camera_pose']
    path.write_text(json.dumps(bad))
    fails(r"drive\.json: frame 3: 'camera_pose'")
    path.write_text(json.dumps({**good, 'frames': []}))
    fails('needs frames')
    path.write_text(json.dumps({**good, 'frames': good['frames'][::-1]}))
    fails('times grow')
    path.write_text(json.dumps({**good, 'frame_rate_hz': 0}))
    fails('must be positive')
    path.write_text(json.dumps({**good, 'format': 'else'}))
    fails('is no trajectory')
    path.write_text('[')
    fails('cannot read trajectory')


def test_recorded_poses_become_a_trajectory() -> None:
    mount = CameraMount(1.5)
    poses = [camera_at(0.1 * i, 0.0, 1.5, 0.2) for i in range(5)]
    trajectory = recorded_trajectory(poses, [3.0, 3.1, 3.2, 3.3, 3.4], mount)
    assert trajectory.frame_rate_hz == pytest.approx(10.0)
    assert trajectory.frames[0].time_s == 0.0
    assert trajectory.frames[-1].segment_progress == 1.0
    np.testing.assert_allclose(trajectory.frames[2].base_pose.translation, [0.2, 0, 0], atol=1e-9)
    middle = trajectory.camera_poses_at(np.array([0.15]))[0]
    np.testing.assert_allclose(middle.translation, [0.15, 0, 1.5], atol=1e-9)
    with pytest.raises(SimulationError, match='5 poses but 1 times'):
        recorded_trajectory(poses, [0.0], mount)
    with pytest.raises(SimulationError, match='times grow'):
        recorded_trajectory(poses, [0.0] * 5, mount)
