import numpy as np
import pytest
from support.world.scenes import LABELS, box_object, camera_at

from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.visibility import find_visible_points, sample_surface
from osmabench_ros.semantics.cloud import LabelledCloud

CAMERA = Intrinsics.from_hfov(64, 48, 1.4)


@pytest.fixture(scope='module')
def scene():
    return Scene(
        'test',
        'room',
        LABELS,
        (
            box_object(1, 'floor', (-3, -3, -0.1), (3, 3, 0)),
            box_object(2, 'wall', (2.9, -3, 0), (3, 3, 2.5)),
            box_object(3, 'box', (0.5, -0.5, 0), (1.5, 0.5, 1.5)),
            box_object(4, 'ball', (1.8, 1.2, 0), (2.2, 1.6, 0.4)),
        ),
    )


def hits_before(scene, origin, target):
    """Return by linear equations whether a triangle is between two points."""
    corners = np.concatenate([item.world_vertices[item.world_faces] for item in scene.objects])
    a, b, c = corners.astype(float).transpose(1, 0, 2)
    # Where a + u (b - a) + v (c - a) = origin + t (target - origin).
    sides = np.stack([b - a, c - a, np.broadcast_to(origin - target, a.shape)], axis=-1)
    crossed = np.abs(np.linalg.det(sides)) > 1e-12
    solved = np.linalg.solve(sides[crossed], (origin - a[crossed])[..., None])
    u, v, t = solved[..., 0].T
    before_m = (1 - t) * np.linalg.norm(target - origin)
    return ((u >= 0) & (v >= 0) & (u + v <= 1) & (t > 1e-6) & (before_m > 0.005)).any()


def brute_force(scene, cloud, poses, max_depth_m):
    seen = np.zeros(len(cloud), bool)
    for pose in poses:
        local = (cloud.points - pose.translation) @ pose.rotation
        for i, (x, y, z) in enumerate(local):
            if not 0 < z <= max_depth_m:
                continue
            u, v = CAMERA.fx * x / z + CAMERA.cx, CAMERA.fy * y / z + CAMERA.cy
            if not (-0.5 <= u < CAMERA.width - 0.5 and -0.5 <= v < CAMERA.height - 0.5):
                continue
            seen[i] |= not hits_before(scene, pose.translation, cloud.points[i].astype(float))
    return seen


def test_equals_brute_force(scene):
    cloud = sample_surface(scene, 12, seed=3)
    poses = [camera_at(-2, 0.2, 1.2, 0.0), camera_at(-1, -2, 1.0, 0.9), camera_at(2.5, 2, 1, -2.5)]
    for max_depth in (10.0, 3.0):
        mask = find_visible_points(scene, cloud, poses, CAMERA, max_depth)
        expected = brute_force(scene, cloud, poses, max_depth)
        assert 0.1 < expected.mean() < 0.9
        np.testing.assert_array_equal(mask, expected)


def test_what_stands_before_hides_what_is_behind(scene):
    points = np.array(
        [[0.5, 0, 0.75], [1.5, 0, 0.75], [2.9, 0, 0.75], [2.9, 1.9, 0.75], [-2.5, 0, 0.0]],
        np.float32,
    )
    cloud = LabelledCloud(points, np.ones(5, np.int32), np.ones(5, np.int32))
    seen = find_visible_points(scene, cloud, [camera_at(-2, 0, 0.75, 0.0)], CAMERA, 10.0)
    np.testing.assert_array_equal(seen, [True, False, False, True, False])


def test_a_bound_on_the_footprint_drops_what_a_pixel_cannot_resolve(scene):
    cloud = sample_surface(scene, 50.0, 0)
    pose = camera_at(-2, 0, 0.75, 0.0)
    all_seen = find_visible_points(scene, cloud, [pose], CAMERA, 10.0)
    bound = 0.1
    resolved = find_visible_points(scene, cloud, [pose], CAMERA, 10.0, max_extent_m=bound)
    rays = cloud.points - pose.translation
    distance = np.linalg.norm(rays, axis=1)
    incidence = np.abs((rays / distance[:, None] * cloud.normals).sum(axis=1))
    footprint = distance / CAMERA.fx / incidence
    np.testing.assert_array_equal(resolved, all_seen & (footprint <= bound))
    assert 0 < resolved.sum() < all_seen.sum()
