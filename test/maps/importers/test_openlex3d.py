import dataclasses
from pathlib import Path

import numpy as np
import pytest
from maps.importers.method_files import CHAIR, CLIP, write_bbq, write_cloud, write_conceptgraphs
from support.libraries import Lazy, needs
from support.world.maps import sample_map

from osmabench_ros.errors import MapError, RunError
from osmabench_ros.maps.disk.storage import read_map, write_map
from osmabench_ros.maps.export import export_openlex3d
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers.bbq import import_map as import_bbq
from osmabench_ros.maps.importers.conceptgraphs import import_map as import_conceptgraphs
from osmabench_ros.maps.importers.openlex3d import import_map

pytestmark = needs('open3d')
open3d = Lazy('open3d')
INDEX = np.repeat([2, -1, 0, 1], 10)


def write(folder: Path, index: np.ndarray = INDEX, embeddings: np.ndarray = CLIP) -> None:
    """Write a prediction as OpenLex3D's README asks for."""
    folder.mkdir(parents=True, exist_ok=True)
    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(CHAIR))
    cloud.colors = open3d.utility.Vector3dVector(np.full(CHAIR.shape, 0.2))
    open3d.io.write_point_cloud(str(folder / 'point_cloud.pcd'), cloud)
    np.save(folder / 'index.npy', index)
    np.save(folder / 'embeddings.npy', embeddings)


def test_objects_come_out(tmp_path: Path) -> None:
    write(tmp_path / 'in')
    write_map(import_map(tmp_path / 'in', ImportOptions()), tmp_path / 'map')
    made = read_map(tmp_path / 'map')
    assert made.dense is not None
    assert made.dense.instances is not None
    assert made.dense.instances.tolist() == np.repeat([3, 0, 1, 2], 10).tolist()
    np.testing.assert_allclose(made.dense.points, CHAIR, rtol=1e-6)
    assert made.dense.colors is not None
    assert (made.dense.colors == 51).all()
    np.testing.assert_array_equal(made.feature_spaces['clip'].vectors, CLIP)


def test_a_dense_prediction_has_no_objects(tmp_path: Path) -> None:
    embeddings = np.random.default_rng(0).normal(size=(len(CHAIR), 8)).astype(np.float32)
    write(tmp_path, np.arange(len(CHAIR)), embeddings)
    (tmp_path / 'point_cloud.pcd').unlink()
    write_cloud(tmp_path / 'point_cloud.ply', CHAIR)
    made = import_map(tmp_path, ImportOptions())
    assert made.graph.nodes == ()
    assert made.dense is not None
    assert made.dense.feature_rows is not None
    assert made.dense.feature_rows.tolist() == list(range(len(CHAIR)))


def test_an_export_is_what_openlex3d_reads(tmp_path: Path) -> None:
    write_conceptgraphs(tmp_path / 'in')
    made = import_conceptgraphs(tmp_path / 'in', ImportOptions(world=World.Z_UP))
    assert export_openlex3d(made, tmp_path / 'out') == 0
    cloud = open3d.io.read_point_cloud(str(tmp_path / 'out' / 'point_cloud.pcd'))
    index = np.load(tmp_path / 'out' / 'index.npy')
    embeddings = np.load(tmp_path / 'out' / 'embeddings.npy')
    assert made.dense is not None
    np.testing.assert_allclose(np.asarray(cloud.points), made.dense.points)
    np.testing.assert_allclose(np.asarray(cloud.colors) * 255, made.dense.colors)
    assert len(index) == len(made.dense.points)
    np.testing.assert_array_equal(embeddings[index[0]], CLIP[0])
    again = import_map(tmp_path / 'out', ImportOptions())
    assert again.dense is not None
    np.testing.assert_array_equal(again.dense.points, made.dense.points)


def test_points_without_a_feature_are_left_out_and_counted(tmp_path: Path) -> None:
    write(tmp_path / 'in')
    made = import_map(tmp_path / 'in', ImportOptions())
    assert export_openlex3d(made, tmp_path / 'out') == 10
    assert np.load(tmp_path / 'out' / 'index.npy').tolist() == np.repeat([2, 0, 1], 10).tolist()


def test_an_export_overwrites_nothing_and_needs_features(tmp_path: Path) -> None:
    (tmp_path / 'thesis').write_text('')
    with pytest.raises(RunError, match='is not empty'):
        export_openlex3d(sample_map(), tmp_path)
    without_points = dataclasses.replace(sample_map(), dense=None)
    with pytest.raises(MapError, match='no points with features'):
        export_openlex3d(without_points, tmp_path / 'out')


def test_features_that_text_cannot_query_are_not_exported(tmp_path: Path) -> None:
    write_bbq(tmp_path / 'in')
    with pytest.raises(MapError, match='cannot be compared with text'):
        export_openlex3d(import_bbq(tmp_path / 'in', ImportOptions()), tmp_path / 'out')


@pytest.mark.parametrize(
    ('index', 'embeddings', 'message'),
    [
        (INDEX[:5], CLIP, r'index\.npy is int64 \(5,\) for 40 points'),
        (INDEX + 1, CLIP, 'refers to row 3'),
        (INDEX, CLIP[0], r'embeddings\.npy is float32 of shape \(1024,\)'),
    ],
)
def test_files_that_do_not_fit_are_named(
    tmp_path: Path, index: np.ndarray, embeddings: np.ndarray, message: str
) -> None:
    write(tmp_path, index, embeddings)
    with pytest.raises(MapError, match=message):
        import_map(tmp_path, ImportOptions())
