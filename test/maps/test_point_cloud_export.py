import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest
from support.world.maps import sample_map

from osmabench_ros.base.owned_folder import MARKER
from osmabench_ros.errors import MapError, PointFileError, RunError
from osmabench_ros.geometry.point_files import write_pcd
from osmabench_ros.maps.export import export_point_cloud
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.pointcloud import import_map
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap


def exported(semantic_map: SemanticMap, folder: Path, suffix: str) -> DenseMap:
    if suffix == '.pcd':
        pytest.importorskip('open3d')
    export_point_cloud(semantic_map, folder, suffix)
    again = import_map(folder, ImportOptions())
    assert again.dense is not None
    return again.dense


@pytest.mark.parametrize('suffix', ['.ply', '.pcd'])
def test_points_labels_and_instances_come_back(tmp_path: Path, suffix: str) -> None:
    given = sample_map().dense
    assert given is not None
    made = exported(sample_map(), tmp_path / 'out', suffix)
    np.testing.assert_array_equal(made.points, given.points)
    assert given.colors is not None
    assert given.labels is not None
    assert given.instances is not None
    np.testing.assert_array_equal(made.colors, given.colors)
    np.testing.assert_array_equal(made.labels, given.labels)
    np.testing.assert_array_equal(made.instances, given.instances)


@pytest.mark.parametrize('suffix', ['.ply', '.pcd'])
def test_classes_come_back(tmp_path: Path, suffix: str) -> None:
    exported(sample_map(), tmp_path / 'out', suffix)
    label_set = import_map(tmp_path / 'out', ImportOptions()).label_set
    given = sample_map().label_set
    assert given is not None
    assert label_set is not None
    assert label_set.classes == given.classes


@pytest.mark.parametrize('suffix', ['.ply', '.pcd'])
def test_what_a_map_does_not_give_is_absent(tmp_path: Path, suffix: str) -> None:
    points = np.array([[0, 1, 2], [3, 4, 5]], np.float32)
    bare = SemanticMap(sample_map().header, dense=DenseMap(points))
    made = exported(bare, tmp_path / 'out', suffix)
    np.testing.assert_array_equal(made.points, points)
    assert made.colors is None
    assert made.labels is None
    assert made.instances is None
    assert {path.name for path in (tmp_path / 'out').iterdir()} == {f'cloud{suffix}', MARKER}


def test_what_has_no_place_in_a_point_cloud_is_listed(tmp_path: Path) -> None:
    left_out = export_point_cloud(sample_map(), tmp_path / 'out', '.ply')
    assert f'{len(sample_map().graph.edges)} edges' in left_out
    assert 'features' in left_out


def test_an_export_overwrites_nothing_and_needs_points(tmp_path: Path) -> None:
    (tmp_path / 'thesis').write_text('')
    with pytest.raises(RunError, match='is not empty'):
        export_point_cloud(sample_map(), tmp_path, '.ply')
    without_points = dataclasses.replace(sample_map(), dense=None)
    with pytest.raises(MapError, match='no points'):
        export_point_cloud(without_points, tmp_path / 'out', '.ply')
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(
    'columns',
    [
        {'x': np.zeros(2, np.float32), 'y': np.zeros(3, np.float32)},
        {'x': np.zeros(2, np.complex64)},
    ],
)
def test_columns_that_pcd_cannot_hold_are_refused(columns: dict[str, np.ndarray]) -> None:
    with pytest.raises(PointFileError, match='PCD field'):
        write_pcd(io.BytesIO(), columns)
