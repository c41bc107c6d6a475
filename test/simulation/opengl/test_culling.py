import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.world.scenes import CAMERA, camera_at

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.simulation.opengl import geometry


@settings(max_examples=50)
@given(st.integers(0, 10**6))
def test_a_box_with_a_visible_point_is_never_culled(seed):
    rng = np.random.default_rng(seed)
    pose = camera_at(*rng.uniform(-3, 3, 3), rng.uniform(-3, 3))
    low = rng.uniform(-6, 6, (200, 3))
    high = low + rng.uniform(0, 2, (200, 3))
    clip = geometry.project_camera(CAMERA, 0.05, 10.0) @ pose.inverse().matrix
    kept = geometry.select_boxes(low, high, geometry.find_planes(clip))
    inside = low + rng.uniform(0, 1, (50, 200, 3)) * (high - low)
    seen = pose.inverse().transform(inside)
    with np.errstate(divide='ignore', invalid='ignore'):
        pixel = CAMERA.project(seen)
    visible = (seen[..., 2] > 0.05) & (seen[..., 2] < 10.0)
    visible &= (pixel > -0.5).all(-1) & (pixel < [CAMERA.width - 0.5, CAMERA.height - 0.5]).all(-1)
    assert kept[visible.any(axis=0)].all()
    assert not kept.all()


def test_the_six_faces_of_a_cube_cover_every_direction_once():
    directions = np.random.default_rng(0).normal(size=(500, 3)) + [1.0, 2.0, 3.0] * np.ones(3)
    count = np.zeros(500, int)
    for face in range(geometry.CUBE_FACES):
        matrix = geometry.project_cube(face, np.array([1.0, 2.0, 3.0]), 1e-3, 100.0)
        clip = np.column_stack([directions, np.ones(500)]) @ matrix.T
        count += (np.abs(clip[:, :3]) <= clip[:, 3:]).all(axis=1)
    np.testing.assert_array_equal(count, 1)


def test_a_parallel_projection_holds_the_whole_box():
    box = AxisAlignedBox(np.array([-5.0, -2.0, 0.0]), np.array([3.0, 4.0, 2.5]))
    corners = np.array([[x, y, z] for x in (-5, 3) for y in (-2, 4) for z in (0, 2.5)])
    for direction in ([0.0, 0.0, -1.0], [0.3, -1.0, -0.2], [1.0, 0.0, 0.0]):
        matrix = geometry.project_parallel(np.array(direction), box)
        clip = np.column_stack([corners, np.ones(8)]) @ matrix.T
        assert (np.abs(clip[:, :3]) <= 1).all()
        along = matrix[2, :3]
        assert along @ direction > 0


def test_the_distance_to_a_box_is_zero_inside():
    low, high = np.zeros((2, 3)), np.ones((2, 3))
    low[1] += 3
    high[1] += 3
    np.testing.assert_allclose(
        geometry.measure_distances(low, high, np.full(3, 0.5)), [0, 2.5 * 3**0.5]
    )
