import numpy as np
import pytest

from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Mesh, Scene, SceneObject
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences.ground_truth import GroundTruth, build_ground_truth

LABELS = LabelSet.from_names('two squares', ['floor', 'table'], structure=['floor'])


def square(instance: int, name: str, side_m: float, height_m: float) -> SceneObject:
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], np.float32) * side_m / 2
    vertices = np.column_stack([corners, np.full(4, height_m)]).astype(np.float32)
    faces = np.array([[0, 1, 2], [0, 2, 3]], np.int32)
    normals = np.tile(np.array([[0, 0, 1]], np.float32), (4, 1))
    mesh = Mesh(vertices, faces, normals, np.zeros((4, 2), np.float32))
    return SceneObject(instance, name, LABELS.id_of(name), (mesh,))


@pytest.fixture(scope='module')
def truth() -> GroundTruth:
    """A table of one square metre 1 m above a floor of nine, seen from 2 m above the floor."""
    scene = Scene('test', 'squares', LABELS, (square(1, 'floor', 3, 0), square(2, 'table', 1, 1)))
    down = Pose(np.diag([1.0, -1.0, -1.0]), np.array([0.0, 0.0, 2.0]))
    camera = Intrinsics.from_hfov(200, 200, 2 * np.arctan(0.75))
    return build_ground_truth(scene, [down], camera, points_per_m2=400, seed=3)


def test_what_the_table_hides_is_unseen(truth: GroundTruth) -> None:
    hidden = truth.unseen.points[truth.unseen.labels == LABELS.id_of('floor')]
    # Seen from twice its height, a table of 1 m throws a shadow of 2 m on the floor.
    inside = np.abs(truth.surface.points[truth.surface.instances == 1][:, :2]).max(axis=1)
    assert inside.min() > 0.97
    assert len(hidden) == pytest.approx(400 * 4, rel=0.05)
    assert (truth.surface.instances == 2).sum() == pytest.approx(400, rel=0.02)
    assert truth.seen_instances == (1, 2)


def test_the_rest_describes_the_scene(truth: GroundTruth) -> None:
    assert truth.fused is None
    assert {node.id for node in truth.graph.nodes} == {1, 2}
    assert len(truth.surface) + len(truth.unseen) == pytest.approx(400 * 10, rel=0.02)
    assert truth.surface.normals is not None
    np.testing.assert_allclose(np.abs(truth.surface.normals[:, 2]), 1, atol=1e-6)


def test_the_same_seed_samples_the_same_points(truth: GroundTruth) -> None:
    scene = Scene('test', 'squares', LABELS, (square(1, 'floor', 3, 0), square(2, 'table', 1, 1)))
    again = build_ground_truth(
        scene, truth.camera_poses, truth.intrinsics, points_per_m2=400, seed=3
    )
    np.testing.assert_array_equal(again.surface.points, truth.surface.points)
