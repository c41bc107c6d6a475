import numpy as np
import pytest

from osmabench_ros.geometry.axes import (
    camera_pose_from_habitat,
    camera_pose_to_habitat,
    points_from_habitat,
    points_to_habitat,
)
from osmabench_ros.geometry.pose import Pose


def test_habitat_up_becomes_z_and_forward_becomes_y() -> None:
    assert points_from_habitat(np.array([0.0, 1.0, 0.0])).tolist() == [0.0, 0.0, 1.0]
    assert points_from_habitat(np.array([0.0, 0.0, -1.0])).tolist() == [0.0, 1.0, 0.0]


def test_point_conversions_undo_each_other() -> None:
    points = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_array_equal(points_to_habitat(points_from_habitat(points)), points)


def test_a_level_habitat_camera_looks_along_world_y_with_its_image_upright() -> None:
    optical = camera_pose_from_habitat(Pose.identity())
    np.testing.assert_allclose(optical.rotation @ [0, 0, 1], [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(optical.rotation @ [0, -1, 0], [0, 0, 1], atol=1e-12)


@pytest.mark.parametrize('yaw', [0.0, 0.7, -2.0])
def test_camera_conversions_undo_each_other(yaw: float) -> None:
    pose = Pose.from_yaw(yaw, (1.0, 2.0, 3.0))
    again = camera_pose_to_habitat(camera_pose_from_habitat(pose))
    np.testing.assert_allclose(again.matrix, pose.matrix, atol=1e-12)
