from dataclasses import replace

import numpy as np
import pytest
from support.world import box_room

from osmabench_ros.base.files import sha256_of
from osmabench_ros.errors import SequenceError
from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.sequences import ground_truth

CAMERA = Intrinsics.from_hfov(8, 6, 1.5)


def cloud(n, *, normals):
    rng = np.random.default_rng(n)
    return LabelledCloud(
        rng.random((n, 3)).astype(np.float32),
        rng.integers(1, 3, n).astype(np.int32),
        rng.integers(0, 4, n).astype(np.int32),
        rng.random((n, 3)).astype(np.float32) if normals else None,
    )


@pytest.fixture
def truth():
    graph = SceneGraph((SceneNode(1, labels=(ScoredLabel('chair', 1.0, 1),)),))
    poses = (Pose.identity(), Pose.from_yaw(0.5, (1, 2, 3)))
    labels = LabelSet.from_names('test', ['chair', 'table'])
    surface, unseen = cloud(20, normals=True), cloud(7, normals=True)
    return ground_truth.GroundTruth(
        dataset='apartment', scene='s1', label_set=labels, graph=graph, surface=surface,
        unseen=unseen, camera_poses=poses, intrinsics=CAMERA, seen_instances=(1, 3),
        max_depth_m=10.0, points_per_m2=400.0,
    )  # fmt: skip


def test_ground_truth_survives_a_folder(truth, tmp_path):
    truth = replace(truth, fused=cloud(11, normals=False))
    ground_truth.write_ground_truth(truth, tmp_path / 'gt')
    again = ground_truth.read_ground_truth(tmp_path / 'gt')
    assert again.fused.normals is None
    for one, other in ((again.surface, truth.surface), (again.unseen, truth.unseen)):
        np.testing.assert_array_equal(one.points, other.points)
        np.testing.assert_array_equal(one.normals, other.normals)
        np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(again.camera_poses[1].matrix, truth.camera_poses[1].matrix)
    assert again.label_set == truth.label_set
    assert again.intrinsics == CAMERA
    assert again.seen_instances == (1, 3)
    assert again.graph.by_id[1].label == 'chair'


def test_equal_ground_truth_gives_equal_bytes(truth, tmp_path):
    for name in 'ab':
        ground_truth.write_ground_truth(truth, tmp_path / name)
    assert sha256_of(tmp_path / 'a') == sha256_of(tmp_path / 'b')


def test_damaged_folders_are_named(truth, tmp_path):
    with pytest.raises(SequenceError, match='nowhere'):
        ground_truth.read_ground_truth(tmp_path / 'nowhere')
    ground_truth.write_ground_truth(truth, tmp_path / 'gt')
    (tmp_path / 'gt' / 'unseen_points.npy').unlink()
    with pytest.raises(SequenceError, match=r'unseen_points\.npy'):
        ground_truth.read_ground_truth(tmp_path / 'gt')
    (tmp_path / 'gt' / 'ground_truth.json').write_text('{"format": "other"}')
    with pytest.raises(SequenceError, match="format: Input should be .*it is 'other'"):
        ground_truth.read_ground_truth(tmp_path / 'gt')


def test_seen_instances_need_enough_points():
    assert ground_truth.seen_instances(np.array([0, 0, 0, 5, 5, 5, 2, 2]), 3) == (5,)


def frame(index, depth=2.0):
    shape = (CAMERA.height, CAMERA.width)
    depth_m = np.full(shape, depth, np.float32)
    depth_m[0] = np.nan
    images = np.zeros((*shape, 3), np.uint8), depth_m, np.full(shape, UNLABELLED, np.uint16)
    return Frame(index, 0, Pose.identity(), CAMERA, *images, np.full(shape, 7, np.int32))


def test_fused_cloud_takes_every_fifth_frame_and_tenth_point():
    found = ground_truth.fuse_cloud(frame(index) for index in range(11))
    valid = (CAMERA.height - 1) * CAMERA.width
    assert len(found) == 3 * -(-valid // 10)
    np.testing.assert_allclose(found.points[:, 2], 2.0)
    assert set(found.labels) == {UNLABELLED}
    assert set(found.instances) == {7}
    assert len(ground_truth.fuse_cloud([frame(0, depth=10.0)])) == 0  # saturated
    with pytest.raises(SequenceError, match='frame 0 has no semantic image'):
        ground_truth.fuse_cloud([replace(frame(0), semantic=None)])


def test_an_object_has_the_colour_of_the_part_that_is_seen():
    """A white sofa with a black front, of which only the front shows."""
    frames = [replace(frame, color=frame.color.copy()) for frame in box_room.frames(count=4)]
    for item in frames:
        item.color[item.instance == 8] = (23, 23, 26)
        item.color[(item.instance == 8) & (np.arange(160) % 16 == 0)] = (237, 237, 232)
    counts = {}
    assert list(ground_truth.count_colors(frames, counts)) == frames
    names = ground_truth.name_colors(counts)
    assert (names[8], names[6], 0 in names) == ('black', 'brown', False)
    counts = {}
    list(ground_truth.count_colors([replace(frames[0], instance=None)], counts))
    assert ground_truth.name_colors(counts) == {}
