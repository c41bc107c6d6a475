"""Points on surfaces, and which of them cameras see."""

import numpy as np
import pytest
from support.world.scenes import LABELS, box_object, camera_at

from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Mesh, Scene, SceneObject
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


SIZE = np.array([1.0, 2.0, 4.0])
AREA = 2 * (2 + 4 + 8)


@pytest.fixture
def boxes():
    return Scene(
        'test',
        'boxes',
        LABELS,
        (box_object(3, 'box', (0, 0, 0), SIZE), box_object(7, 'ball', (5, 5, 5), (6, 6, 6))),
    )


def test_density_labels_and_instances(boxes):
    cloud = sample_surface(boxes, 500, seed=1)
    assert abs((cloud.instances == 3).sum() - 500 * AREA) <= 1
    assert abs((cloud.instances == 7).sum() - 500 * 6) <= 1
    assert set(cloud.labels[cloud.instances == 3]) == {LABELS.id_of('box')}
    assert set(cloud.labels[cloud.instances == 7]) == {LABELS.id_of('ball')}


def test_points_lie_on_the_surface_and_normals_point_out(boxes):
    cloud = sample_surface(boxes, 300, seed=1)
    cloud = cloud.select(cloud.instances == 3)
    to_faces = np.stack([cloud.points, SIZE - cloud.points], axis=-1)
    assert np.abs(to_faces.reshape(-1, 6).min(axis=1)).max() < 1e-5
    nearest = np.abs(to_faces).reshape(-1, 6).argmin(axis=1)
    expected = np.array([[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]])
    edge = np.sort(np.abs(to_faces).reshape(-1, 6), axis=1)[:, 1] < 1e-4
    np.testing.assert_allclose(cloud.normals[~edge], expected[nearest][~edge], atol=1e-6)


def test_density_is_the_same_everywhere(boxes):
    cloud = sample_surface(boxes, 2000, seed=2)
    top = cloud.points[(cloud.instances == 3) & (cloud.normals[:, 2] > 0.5)]
    counts, *_ = np.histogram2d(top[:, 0], top[:, 1], bins=(4, 8), range=((0, 1), (0, 2)))
    mean = counts.mean()
    assert abs(mean - 2000 * 2 / 32) < 5
    # Chi-square with 31 degrees of freedom: 61 is its 0.999 quantile.
    assert ((counts - mean) ** 2 / mean).sum() < 61.1
    on_sides = (cloud.instances == 3) & (np.abs(cloud.normals[:, 0]) > 0.5)
    assert on_sides.sum() == pytest.approx(2000 * 16, rel=0.02)


def test_long_thin_triangles_are_sampled_by_area():
    vertices = np.array([[0, 0, 0], [10, 0, 0], [0, 0.1, 0], [0, -1, 0], [1, -1, 0], [0, -2, 0]])
    mesh = Mesh(
        vertices.astype(np.float32),
        np.array([[0, 1, 2], [3, 4, 5]], np.int32),
        np.tile(np.array([[0, 0, 1]], np.float32), (6, 1)),
        np.zeros((6, 2), np.float32),
    )
    item = SceneObject(1, 'triangles', LABELS.id_of('box'), (mesh,))
    cloud = sample_surface(Scene('test', 't', LABELS, (item,)), 10_000, seed=0)
    assert (cloud.points[:, 1] >= 0).sum() == pytest.approx(5000, rel=0.06)


def test_seed_and_neighbours_decide(boxes):
    cloud = sample_surface(boxes, 100, seed=4)
    np.testing.assert_array_equal(cloud.points, sample_surface(boxes, 100, seed=4).points)
    assert not np.array_equal(cloud.points[:50], sample_surface(boxes, 100, seed=5).points[:50])
    alone = sample_surface(Scene('test', 'b', LABELS, boxes.objects[1:]), 100, seed=4)
    np.testing.assert_array_equal(alone.points, cloud.points[cloud.instances == 7])


def test_pose_is_applied():
    item = box_object(1, 'box', (-0.5, -1, -2), (0.5, 1, 2))
    turned = SceneObject(1, 'b', item.class_id, item.meshes, Pose.from_yaw(np.pi / 2, (10, 0, 0)))
    cloud = sample_surface(Scene('test', 't', LABELS, (turned,)), 200, seed=0)
    np.testing.assert_allclose(cloud.points.min(axis=0), (9, -0.5, -2), atol=1e-5)
    np.testing.assert_allclose(cloud.points.max(axis=0), (11, 0.5, 2), atol=1e-5)
