"""Maps for other tools: plain point clouds, and OpenLex3D's interchange form."""

import dataclasses

import numpy as np
import pytest
from maps.importers.method_files import CLIP, write_bbq, write_conceptgraphs, write_openlex3d
from support.libraries import Lazy, needs
from support.world.maps import sample_map

from osmabench_ros.base.files import MARKER
from osmabench_ros.errors import MapError, RunError
from osmabench_ros.maps.export import export_openlex3d, export_point_cloud
from osmabench_ros.maps.importer import ImportOptions, World, import_map
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap

open3d = Lazy('open3d')
SUFFIXES = ['.ply', pytest.param('.pcd', marks=needs('open3d'))]


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_points_labels_instances_and_classes_come_back(tmp_path, suffix):
    given = sample_map()
    left_out = export_point_cloud(given, tmp_path / 'out', suffix)
    assert f'{len(given.graph.edges)} edges' in left_out
    assert 'features' in left_out
    made = import_map('pointcloud', tmp_path / 'out')
    for part in ('points', 'colors', 'labels', 'instances'):
        np.testing.assert_array_equal(getattr(made.dense, part), getattr(given.dense, part))
    assert made.label_set.classes == given.label_set.classes


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_a_part_that_a_map_does_not_give_is_absent(tmp_path, suffix):
    points = np.array([[0, 1, 2], [3, 4, 5]], np.float32)
    bare = SemanticMap(sample_map().header, dense=DenseMap(points))
    export_point_cloud(bare, tmp_path / 'out', suffix)
    made = import_map('pointcloud', tmp_path / 'out').dense
    np.testing.assert_array_equal(made.points, points)
    assert (made.colors, made.labels, made.instances) == (None, None, None)
    assert {path.name for path in (tmp_path / 'out').iterdir()} == {f'cloud{suffix}', MARKER}


@needs('open3d')
def test_an_export_is_what_openlex3d_reads(tmp_path):
    write_conceptgraphs(tmp_path / 'in')
    made = import_map('conceptgraphs', tmp_path / 'in', ImportOptions(world=World.Z_UP))
    assert export_openlex3d(made, tmp_path / 'out') == 0
    cloud = open3d.io.read_point_cloud(str(tmp_path / 'out' / 'point_cloud.pcd'))
    index = np.load(tmp_path / 'out' / 'index.npy')
    np.testing.assert_allclose(np.asarray(cloud.points), made.dense.points)
    np.testing.assert_allclose(np.asarray(cloud.colors) * 255, made.dense.colors)
    assert len(index) == len(made.dense.points)
    embeddings = np.load(tmp_path / 'out' / 'embeddings.npy')
    np.testing.assert_array_equal(embeddings[index[0]], CLIP[0])
    again = import_map('openlex3d', tmp_path / 'out')
    np.testing.assert_array_equal(again.dense.points, made.dense.points)


@needs('open3d')
def test_points_without_a_feature_are_left_out_and_counted(tmp_path):
    write_openlex3d(tmp_path / 'in')
    assert export_openlex3d(import_map('openlex3d', tmp_path / 'in'), tmp_path / 'out') == 10
    assert np.load(tmp_path / 'out' / 'index.npy').tolist() == np.repeat([2, 0, 1], 10).tolist()


@pytest.mark.parametrize(
    ('export', 'words'),
    [
        (lambda made, folder: export_point_cloud(made, folder, '.ply'), 'no points'),
        (export_openlex3d, 'no points with features'),
    ],
)
def test_an_export_overwrites_nothing_and_needs_points(tmp_path, export, words):
    (tmp_path / 'thesis').write_text('')
    with pytest.raises(RunError, match='is not empty'):
        export(sample_map(), tmp_path)
    with pytest.raises(MapError, match=words):
        export(dataclasses.replace(sample_map(), dense=None), tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


def test_features_that_text_cannot_query_are_not_exported(tmp_path):
    write_bbq(tmp_path / 'in')
    with pytest.raises(MapError, match='cannot be compared with text'):
        export_openlex3d(import_map('bbq', tmp_path / 'in'), tmp_path / 'out')
