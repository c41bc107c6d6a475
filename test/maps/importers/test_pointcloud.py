import json
from pathlib import Path

import numpy as np
import pytest
from maps.importers.method_files import CHAIR, gray, write_cloud

from osmabench_ros.errors import ConfigError, MapError
from osmabench_ros.maps.disk.storage import read_map, write_map
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.pointcloud import import_map
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

LABELS = LabelSet.from_names('small', ['chair', 'table'])
CLASS_IDS = np.repeat(np.array([1, 2, 0, 65535], np.int32), 10)
INSTANCES = np.repeat(np.array([7, 9, 9, -1], np.int32), 10)


@pytest.mark.parametrize('names', [('label', 'instance'), ('class_id', 'object_id')])
def test_labels_and_instances_come_out(tmp_path: Path, names: tuple[str, str]) -> None:
    columns = dict(zip(names, (CLASS_IDS, INSTANCES), strict=True))
    write_cloud(tmp_path / 'in' / 'a.ply', CHAIR, **gray(40), **columns)
    write_map(import_map(tmp_path / 'in', ImportOptions(label_set=LABELS)), tmp_path / 'map')
    made = read_map(tmp_path / 'map')
    assert made.dense is not None
    assert made.dense.labels is not None
    assert made.dense.instances is not None
    assert made.dense.labels.tolist() == np.repeat([1, 2, UNLABELLED, UNLABELLED], 10).tolist()
    assert made.dense.instances.tolist() == np.repeat([7, 9, 9, 0], 10).tolist()
    chair, table = made.graph.nodes
    assert (chair.id, chair.label, chair.labels[0].score) == (7, 'chair', 1.0)
    assert (table.id, table.label, table.labels[0].score) == (9, 'table', 0.5)
    assert chair.box is not None
    np.testing.assert_allclose(chair.box.minimum, CHAIR[:10].min(axis=0), rtol=1e-6)


def test_a_pcd_file_with_labels_comes_out(tmp_path: Path) -> None:
    open3d = pytest.importorskip('open3d')
    cloud = open3d.t.geometry.PointCloud()
    cloud.point.positions = open3d.core.Tensor(CHAIR.astype(np.float32))
    cloud.point.colors = open3d.core.Tensor(np.full(CHAIR.shape, 90, np.uint8))
    cloud.point.label = open3d.core.Tensor(CLASS_IDS.reshape(-1, 1))
    open3d.t.io.write_point_cloud(str(tmp_path / 'a.pcd'), cloud)
    made = import_map(tmp_path / 'a.pcd', ImportOptions(label_set=LABELS))
    assert made.dense is not None
    np.testing.assert_allclose(made.dense.points, CHAIR, rtol=1e-6)
    assert made.dense.labels is not None
    assert made.dense.labels[:20].tolist() == [1] * 10 + [2] * 10
    assert made.dense.colors is not None
    assert (made.dense.colors == 90).all()


def test_classes_beside_the_file_give_the_ids_their_meaning(tmp_path: Path) -> None:
    write_cloud(tmp_path / 'a.ply', CHAIR, label=np.where(CLASS_IDS == 65535, 0, CLASS_IDS + 4))
    classes = {'classes': [{'id': 5, 'name': 'Arm_Chair'}, {'id': 6, 'name': 'desk'},
                           {'id': 4, 'name': 'x'}]}  # fmt: skip
    (tmp_path / 'classes.json').write_text(json.dumps(classes))
    made = import_map(tmp_path / 'a.ply', ImportOptions())
    assert made.label_set is not None
    assert made.label_set.name_of(5) == 'arm chair'
    assert made.dense is not None
    assert made.dense.labels is not None
    assert made.dense.labels[0] == 5


def test_geometry_alone_is_read(tmp_path: Path) -> None:
    write_cloud(tmp_path / 'a.ply', CHAIR)
    made = import_map(tmp_path / 'a.ply', ImportOptions())
    assert made.dense is not None
    assert made.dense.labels is None
    assert made.dense.instances is None
    assert made.graph.nodes == ()


def test_labels_without_meaning_are_refused(tmp_path: Path) -> None:
    write_cloud(tmp_path / 'a.ply', CHAIR, label=CLASS_IDS)
    with pytest.raises(MapError, match='their meaning is unknown; give a label set'):
        import_map(tmp_path / 'a.ply', ImportOptions())


def test_labels_outside_the_set_are_refused(tmp_path: Path) -> None:
    write_cloud(tmp_path / 'a.ply', CHAIR, label=CLASS_IDS + np.int32(1))
    with pytest.raises(ConfigError, match=r'a\.ply: label ids'):
        import_map(tmp_path / 'a.ply', ImportOptions(label_set=LABELS))


def test_labels_that_are_no_whole_numbers_are_refused(tmp_path: Path) -> None:
    write_cloud(tmp_path / 'a.ply', CHAIR, label=np.full(40, 0.5))
    with pytest.raises(MapError, match='a label is no whole number'):
        import_map(tmp_path / 'a.ply', ImportOptions(label_set=LABELS))


@pytest.mark.parametrize('data', ['binary', 'binary_compressed', 'ascii'])
def test_a_pcd_file_that_claims_more_points_than_it_holds_is_refused(
    tmp_path: Path, data: str
) -> None:
    pytest.importorskip('open3d')
    header = (
        'VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n'
        f'WIDTH 9000000000\nHEIGHT 1\nPOINTS 9000000000\nDATA {data}\n'
    )
    (tmp_path / 'a.pcd').write_bytes(header.encode() + b'1 2 3\n' * 9)
    with pytest.raises(MapError, match=r'a\.pcd cannot be read as PCD'):
        import_map(tmp_path, ImportOptions())
