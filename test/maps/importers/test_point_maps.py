"""Maps of methods that map points or masks of points, and plain clouds."""

import json
import sqlite3

import numpy as np
import pytest
from maps.importers.method_files import (
    BOTH,
    CHAIR,
    CLIP,
    CUP,
    EMBEDDINGS,
    MASKS,
    gray,
    write_cloud,
    write_conceptfusion,
    write_fused_openscene,
    write_openfusion,
    write_openlex3d,
    write_openmask3d,
    write_openscene,
    write_ovo,
    write_rtabmap,
    z_up,
)
from support.libraries import Lazy, needs

from osmabench_ros.geometry.axes import OPTICAL_IN_LINK
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.importer import ImportOptions, World, import_map
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

torch, open3d = Lazy('torch'), Lazy('open3d')
LABELS = LabelSet.from_names('small', ['chair', 'table'])
WITH_LABELS = ImportOptions(label_set=LABELS)
CLASS_IDS = np.repeat(np.array([1, 2, 0, 65535], np.int32), 10)
INSTANCES = np.repeat(np.array([7, 9, 9, -1], np.int32), 10)


@needs('torch')
@pytest.mark.parametrize('form', ['predictions.npy', 'scene.pth', 'scene.ply'])
def test_openscene_features_come_out(tmp_path, form):
    fork = form == 'predictions.npy'
    features = write_openscene(tmp_path) if fork else write_fused_openscene(tmp_path, form)
    made = import_map('openscene', tmp_path)
    seen, dense = (features != 0).any(axis=1), made.dense
    np.testing.assert_allclose(dense.points, z_up(BOTH), rtol=1e-6)
    np.testing.assert_array_equal(dense.feature_rows >= 0, seen)
    np.testing.assert_array_equal(dense.valid, seen)
    space = made.feature_spaces['clip']
    assert (space.templates, made.graph.nodes) == (('a {} in a scene',), ())
    np.testing.assert_allclose(space.vectors[dense.feature_rows[seen]], features[seen])
    expected = {'predictions.npy': 90, 'scene.pth': 0}.get(form)
    assert dense.colors is None if expected is None else (dense.colors == expected).all()


@needs('h5py')
def test_conceptfusion_points_come_out_z_up_with_their_features(tmp_path):
    embeddings = EMBEDDINGS.copy()
    embeddings[3] = 0
    colors, features = np.full(CHAIR.shape, 200.0, 'f4'), np.ones((len(CHAIR), 4), 'f4')
    confidences = np.full((len(CHAIR), 1), 2.0, 'f4')
    parts = {'colors': colors, 'features': features, 'confidences': confidences}
    write_conceptfusion(tmp_path, embeddings=embeddings, **parts)
    made = import_map('conceptfusion', tmp_path)
    expected = np.stack([CHAIR[:, 2], -CHAIR[:, 0], -CHAIR[:, 1]], axis=1)
    np.testing.assert_allclose(made.dense.points, expected, rtol=1e-6)
    assert (made.dense.colors == 200).all()
    np.testing.assert_array_equal(made.dense.feature_rows < 0, np.arange(len(CHAIR)) == 3)
    vectors = made.feature_spaces['clip'].vectors
    np.testing.assert_allclose(vectors[made.dense.feature_rows[5]], EMBEDDINGS[5])
    np.testing.assert_array_equal(made.dense.scores, 2)
    again = import_map('conceptfusion', tmp_path / 'pointclouds', ImportOptions(World.Z_UP))
    np.testing.assert_allclose(again.dense.points, CHAIR, rtol=1e-6)


def test_openfusion_points_come_out_with_their_embeddings(tmp_path):
    write_openfusion(tmp_path)
    made = import_map('openfusion', tmp_path / 'room.npz')
    np.testing.assert_allclose(made.dense.points, CHAIR[:20], rtol=1e-6)
    assert made.dense.feature_rows.tolist() == [1] * 10 + [2] * 10
    np.testing.assert_array_equal(made.dense.scores, 0.5)
    assert made.feature_spaces['seem'].vectors.shape == (3, 512)
    assert made.extras['camera_poses'] == 7


@needs('open3d')
def test_openlex3d_objects_come_out(tmp_path):
    write_openlex3d(tmp_path)
    made = import_map('openlex3d', tmp_path)
    assert made.dense.instances.tolist() == np.repeat([3, 0, 1, 2], 10).tolist()
    np.testing.assert_allclose(made.dense.points, CHAIR, rtol=1e-6)
    assert (made.dense.colors == 51).all()
    np.testing.assert_array_equal(made.feature_spaces['clip'].vectors, CLIP)


@needs('open3d')
def test_a_dense_openlex3d_prediction_has_no_objects(tmp_path):
    write_openlex3d(tmp_path, np.arange(40), np.random.default_rng(0).normal(size=(40, 8)))
    (tmp_path / 'point_cloud.pcd').unlink()
    write_cloud(tmp_path / 'point_cloud.ply', CHAIR)
    made = import_map('openlex3d', tmp_path)
    assert (made.graph.nodes, made.dense.feature_rows.tolist()) == ((), list(range(40)))


@needs('torch')
def test_overlapping_masks_survive_with_and_without_features(tmp_path):
    write_openmask3d(tmp_path)
    made = import_map('openmask3d', tmp_path)
    for i in range(3):
        points = made.dense.membership.points_of(i)
        np.testing.assert_array_equal(points, np.flatnonzero(MASKS[:, i]))
    assert made.dense.instances[[0, 15, 42, 50]].tolist() == [1, 2, 0, 3]
    assert made.dense.feature_rows[[0, 15, 42, 50]].tolist() == [0, 1, -1, -1]
    assert [node.feature_row for node in made.graph.nodes] == [0, 1, None]
    np.testing.assert_allclose(made.dense.points, np.concatenate([CHAIR, CUP]), rtol=1e-6)
    (tmp_path / 'scene_openmask3d_features.npy').unlink()
    bare = import_map('openmask3d', tmp_path)
    assert (bare.feature_spaces, len(bare.graph.nodes)) == ({}, 3)


@needs('torch')
def test_ovo_instances_and_features_come_out(tmp_path):
    write_ovo(tmp_path)
    made = import_map('ovo', tmp_path)
    assert [(n.source_id, n.feature_row) for n in made.graph.nodes] == [('4', 0), ('9', None)]
    assert made.extras['map_params']['max_id'] == len(CHAIR)
    assert made.extras['ovo_map_params']['ins3d_4_clip_feature_kf'] == 7
    np.testing.assert_array_equal(made.feature_spaces['clip'].vectors, CLIP[:1])
    assert made.dense.instances.tolist() == np.repeat([0, 1, 2, 1], 10).tolist()
    np.testing.assert_allclose(made.dense.points, CHAIR, rtol=1e-6)
    assert (made.dense.colors == 120).all()


@needs('torch')
@pytest.mark.parametrize(
    ('length', 'given', 'model'),
    [
        (1024, '', 'PE-Core-L-14-336'),
        (1152, '', 'ViT-SO400M-14-SigLIP-384'),
        (1024, 'ViT-H-14-378', 'ViT-H-14-378'),
    ],
)
def test_the_encoder_follows_from_the_length_of_the_features_or_is_given(
    tmp_path, length, given, model
):
    feature = {'ins_3d_ids': np.asarray([4]), 'ins3d_4_clip_feature': torch.ones(1, length)}
    write_ovo(tmp_path, ovo_map_params=feature)
    made = import_map('ovo', tmp_path, ImportOptions(feature_model=given))
    assert made.feature_spaces['clip'].model == model


@pytest.mark.parametrize('names', [('label', 'instance'), ('class_id', 'object_id')])
def test_labels_and_instances_of_a_cloud_come_out(tmp_path, names):
    columns = dict(zip(names, (CLASS_IDS, INSTANCES), strict=True))
    write_cloud(tmp_path / 'a.ply', CHAIR, **gray(40), **columns)
    made = import_map('pointcloud', tmp_path, WITH_LABELS)
    assert made.dense.labels.tolist() == np.repeat([1, 2, UNLABELLED, UNLABELLED], 10).tolist()
    assert made.dense.instances.tolist() == np.repeat([7, 9, 9, 0], 10).tolist()
    found = [(n.id, n.label, n.labels[0].score) for n in made.graph.nodes]
    assert found == [(7, 'chair', 1.0), (9, 'table', 0.5)]
    lowest = CHAIR[:10].min(axis=0)
    np.testing.assert_allclose(made.graph.nodes[0].box.minimum, lowest, rtol=1e-6)


@needs('open3d')
def test_a_pcd_file_with_labels_comes_out(tmp_path):
    cloud = open3d.t.geometry.PointCloud()
    cloud.point.positions = open3d.core.Tensor(CHAIR.astype(np.float32))
    cloud.point.colors = open3d.core.Tensor(np.full(CHAIR.shape, 90, np.uint8))
    cloud.point.label = open3d.core.Tensor(CLASS_IDS.reshape(-1, 1))
    open3d.t.io.write_point_cloud(str(tmp_path / 'a.pcd'), cloud)
    made = import_map('pointcloud', tmp_path / 'a.pcd', WITH_LABELS)
    np.testing.assert_allclose(made.dense.points, CHAIR, rtol=1e-6)
    assert made.dense.labels[:20].tolist() == [1] * 10 + [2] * 10
    assert (made.dense.colors == 90).all()


def test_classes_next_to_a_cloud_give_its_ids_their_meaning(tmp_path):
    write_cloud(tmp_path / 'a.ply', CHAIR, label=np.where(CLASS_IDS == 65535, 0, CLASS_IDS + 4))
    listed = [{'id': 5, 'name': 'Arm_Chair'}, {'id': 6, 'name': 'desk'}, {'id': 4, 'name': 'x'}]
    (tmp_path / 'classes.json').write_text(json.dumps({'classes': listed}))
    made = import_map('pointcloud', tmp_path / 'a.ply')
    assert (made.label_set.name_of(5), made.dense.labels[0]) == ('arm chair', 5)


def test_a_cloud_of_points_only_is_read(tmp_path):
    write_cloud(tmp_path / 'a.ply', CHAIR)
    made = import_map('pointcloud', tmp_path / 'a.ply')
    assert (made.dense.labels, made.dense.instances, made.graph.nodes) == (None, None, ())


def test_an_rtabmap_map_begins_where_the_first_camera_was(tmp_path):
    """The first exported pose is the optical frame of a robot at the origin."""
    write_rtabmap(tmp_path)
    first_camera = Pose.from_yaw(0.7, (1.0, 2.0, 1.5)) @ OPTICAL_IN_LINK
    origin = first_camera @ OPTICAL_IN_LINK.inverse()
    made = import_map('rtabmap', tmp_path, ImportOptions(pose=origin))
    np.testing.assert_allclose(made.trajectory.pose(0).matrix, first_camera.matrix, atol=1e-6)
    # Half a metre forward along the optical axis.
    ahead = first_camera.transform(np.array([0.0, 0.0, 0.5]))
    np.testing.assert_allclose(made.trajectory.positions[1], ahead, atol=1e-6)
    assert made.trajectory.stamps_ns.tolist() == [1_000_000_000, 1_500_000_000]
    assert made.trajectory.child_frame_id == 'camera_color_optical_frame'
    np.testing.assert_allclose(made.dense.points, origin.transform(CHAIR), atol=1e-5)
    assert made.dense.colors is not None


def test_the_database_of_rtabmap_gives_its_version_and_the_size_of_its_graph(tmp_path):
    write_rtabmap(tmp_path)
    whole = import_map('rtabmap', tmp_path)
    assert whole.extras == {'version': '0.23.8', 'nodes': 5, 'maps': 1, 'loop_closures': 2}
    # Three of five nodes are intermediate and have no exported pose; that is not a break.
    assert whole.header.remark == ''
    with sqlite3.connect(tmp_path / 'rtabmap.db') as database:
        database.execute('UPDATE Node SET map_id = 1 WHERE id > 2')
    database.close()
    made = import_map('rtabmap', tmp_path)
    assert made.extras['maps'] == 2
    assert made.header.remark.startswith('RTAB-Map lost track and began again (2 maps); 3 nodes')
    for file in (*tmp_path.glob('*.txt'), *tmp_path.glob('*.db')):
        file.unlink()
    for path in (tmp_path, tmp_path / 'rtabmap_cloud.ply'):
        bare = import_map('rtabmap', path)
        assert (bare.trajectory, bare.extras) == (None, {})
        assert bare.header.provenance.source_sha256 != whole.header.provenance.source_sha256


def test_colours_belong_to_the_points_that_are_kept(tmp_path):
    write_rtabmap(tmp_path, np.vstack([CHAIR[:-1], [[np.nan] * 3]]), **gray(len(CHAIR)))
    made = import_map('rtabmap', tmp_path)
    assert len(made.dense.points) == len(made.dense.colors) == len(CHAIR) - 1
    assert made.extras['points_dropped_because_not_finite'] == 1
