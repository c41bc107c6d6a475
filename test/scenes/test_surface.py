import numpy as np
import pytest
from support.world.scenes import LABELS, box_object

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Mesh, Scene, SceneObject
from osmabench_ros.scenes.visibility import sample_surface

SIZE = np.array([1.0, 2.0, 4.0])
AREA = 2 * (2 + 4 + 8)


@pytest.fixture
def scene():
    return Scene(
        'test',
        'boxes',
        LABELS,
        (box_object(3, 'box', (0, 0, 0), SIZE), box_object(7, 'ball', (5, 5, 5), (6, 6, 6))),
    )


def test_density_labels_and_instances(scene):
    cloud = sample_surface(scene, 500, seed=1)
    assert abs((cloud.instances == 3).sum() - 500 * AREA) <= 1
    assert abs((cloud.instances == 7).sum() - 500 * 6) <= 1
    assert set(cloud.labels[cloud.instances == 3]) == {LABELS.id_of('box')}
    assert set(cloud.labels[cloud.instances == 7]) == {LABELS.id_of('ball')}


def test_points_lie_on_the_surface_and_normals_point_out(scene):
    cloud = sample_surface(scene, 300, seed=1)
    cloud = cloud.select(cloud.instances == 3)
    to_faces = np.stack([cloud.points, SIZE - cloud.points], axis=-1)
    assert np.abs(to_faces.reshape(-1, 6).min(axis=1)).max() < 1e-5
    nearest = np.abs(to_faces).reshape(-1, 6).argmin(axis=1)
    expected = np.array([[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]])
    edge = np.sort(np.abs(to_faces).reshape(-1, 6), axis=1)[:, 1] < 1e-4
    np.testing.assert_allclose(cloud.normals[~edge], expected[nearest][~edge], atol=1e-6)


def test_density_is_the_same_everywhere(scene):
    cloud = sample_surface(scene, 2000, seed=2)
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


def test_seed_and_neighbours_decide(scene):
    cloud = sample_surface(scene, 100, seed=4)
    np.testing.assert_array_equal(cloud.points, sample_surface(scene, 100, seed=4).points)
    assert not np.array_equal(cloud.points[:50], sample_surface(scene, 100, seed=5).points[:50])
    alone = sample_surface(Scene('test', 'b', LABELS, scene.objects[1:]), 100, seed=4)
    np.testing.assert_array_equal(alone.points, cloud.points[cloud.instances == 7])


def test_pose_is_applied():
    item = box_object(1, 'box', (-0.5, -1, -2), (0.5, 1, 2))
    turned = SceneObject(1, 'b', item.class_id, item.meshes, Pose.from_yaw(np.pi / 2, (10, 0, 0)))
    cloud = sample_surface(Scene('test', 't', LABELS, (turned,)), 200, seed=0)
    np.testing.assert_allclose(cloud.points.min(axis=0), (9, -0.5, -2), atol=1e-5)
    np.testing.assert_allclose(cloud.points.max(axis=0), (11, 0.5, 2), atol=1e-5)
