import numpy as np

from osmabench_ros.geometry.axes import turn_camera_to_habitat, turn_from_habitat, turn_to_habitat
from osmabench_ros.geometry.pose import Pose


def test_habitat_up_becomes_z_and_forward_becomes_y():
    assert turn_from_habitat(np.array([0.0, 1.0, 0.0])).tolist() == [0.0, 0.0, 1.0]
    assert turn_from_habitat(np.array([0.0, 0.0, -1.0])).tolist() == [0.0, 1.0, 0.0]


def test_point_conversions_undo_each_other():
    points = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_array_equal(turn_to_habitat(turn_from_habitat(points)), points)


def test_a_camera_along_world_y_with_its_image_upright_is_level_in_habitat():
    right, down, forward = [1, 0, 0], [0, 0, -1], [0, 1, 0]
    optical = Pose(np.array([right, down, forward], float).T, np.array([1.0, 2.0, 3.0]))
    habitat = turn_camera_to_habitat(optical)
    np.testing.assert_allclose(habitat.rotation, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(habitat.translation, [1, 3, -2], atol=1e-12)
