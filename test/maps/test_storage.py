import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from support.world.maps import sample_map

from osmabench_ros.errors import MapError, RunError
from osmabench_ros.geometry.stamped_trajectory import tum_text
from osmabench_ros.maps.disk.storage import read_map, write_map
from osmabench_ros.maps.semantic_map import (
    DenseMap,
    MapHeader,
    Membership,
    Provenance,
    SemanticMap,
)
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode, graph_to_json


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob('*'))
        if path.is_file()
    }


def assert_equal(one: SemanticMap, other: SemanticMap) -> None:
    assert one.header == other.header
    assert graph_to_json(one.graph) == graph_to_json(other.graph)
    assert one.label_set == other.label_set
    assert one.extras == other.extras
    assert list(one.feature_spaces) == list(other.feature_spaces)
    for name, space in one.feature_spaces.items():
        for field in dataclasses.fields(space):
            np.testing.assert_array_equal(
                getattr(space, field.name), getattr(other.feature_spaces[name], field.name)
            )
    assert (one.trajectory is None) == (other.trajectory is None)
    if one.trajectory is not None and other.trajectory is not None:
        assert tum_text(one.trajectory) == tum_text(other.trajectory)
        assert one.trajectory.frame_id == other.trajectory.frame_id == one.header.frame_id
    assert (one.dense is None) == (other.dense is None)
    if one.dense is None or other.dense is None:
        return
    for field in dataclasses.fields(DenseMap):
        mine, yours = getattr(one.dense, field.name), getattr(other.dense, field.name)
        if isinstance(mine, Membership):
            for name in ('node_ids', 'offsets', 'point_indices'):
                np.testing.assert_array_equal(getattr(mine, name), getattr(yours, name))
        elif isinstance(mine, np.ndarray):
            assert mine.dtype == yours.dtype
            np.testing.assert_array_equal(mine, yours)
        else:
            assert mine == yours


def test_every_part_survives_the_round_trip(tmp_path: Path) -> None:
    write_map(sample_map(), tmp_path / 'map')
    assert_equal(read_map(tmp_path / 'map'), sample_map())


def test_poses_that_are_none_are_named(tmp_path: Path) -> None:
    write_map(sample_map(), tmp_path / 'map')
    (tmp_path / 'map/trajectory.tum').write_text('1.0 0 0 0\n')
    with pytest.raises(MapError, match=r'trajectory\.tum.*it has 4 columns'):
        read_map(tmp_path / 'map')


@pytest.mark.parametrize(
    'part', ['colors', 'labels', 'instances', 'scores', 'valid', 'membership']
)
def test_an_absent_part_stays_absent(tmp_path: Path, part: str) -> None:
    whole = sample_map()
    assert whole.dense is not None
    lesser = dataclasses.replace(whole, dense=dataclasses.replace(whole.dense, **{part: None}))
    write_map(lesser, tmp_path / 'map')
    again = read_map(tmp_path / 'map')
    assert again.dense is not None
    assert getattr(again.dense, part) is None
    assert_equal(again, lesser)


def test_a_map_without_points_and_labels_survives(tmp_path: Path) -> None:
    bare = SemanticMap(
        MapHeader(Provenance('bare'), frame_id='map'), SceneGraph((SceneNode(1),), (), 'map')
    )
    write_map(bare, tmp_path / 'deep' / 'map')
    assert_equal(read_map(tmp_path / 'deep' / 'map'), bare)
    assert not (tmp_path / 'deep' / 'map' / 'cloud.ply').exists()


def test_an_empty_cloud_survives(tmp_path: Path) -> None:
    empty = SemanticMap(
        MapHeader(Provenance('bare')), dense=DenseMap(np.zeros((0, 3), np.float32))
    )
    write_map(empty, tmp_path / 'map')
    assert_equal(read_map(tmp_path / 'map'), empty)


def test_equal_maps_give_equal_bytes(tmp_path: Path) -> None:
    write_map(sample_map(), tmp_path / 'one')
    write_map(read_map(tmp_path / 'one'), tmp_path / 'two')
    assert contents(tmp_path / 'one') == contents(tmp_path / 'two')


def test_open3d_reads_the_cloud_with_its_labels(tmp_path: Path) -> None:
    open3d = pytest.importorskip('open3d')
    write_map(sample_map(), tmp_path / 'map')
    dense = sample_map().dense
    assert dense is not None
    assert dense.colors is not None
    path = str(tmp_path / 'map' / 'cloud.ply')
    cloud = open3d.io.read_point_cloud(path)
    np.testing.assert_allclose(np.asarray(cloud.points), dense.points)
    np.testing.assert_allclose(np.asarray(cloud.colors) * 255, dense.colors)
    tensors = open3d.t.io.read_point_cloud(path).point
    np.testing.assert_array_equal(tensors['label'].numpy().ravel(), dense.labels)
    np.testing.assert_array_equal(tensors['instance'].numpy().ravel(), dense.instances)


def test_an_existing_directory_is_not_overwritten(tmp_path: Path) -> None:
    write_map(sample_map(), tmp_path / 'map')
    before = contents(tmp_path / 'map')
    with pytest.raises(RunError, match='exists'):
        write_map(sample_map(9), tmp_path / 'map')
    assert contents(tmp_path / 'map') == before


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    bad = dataclasses.replace(sample_map(), extras={'value': float('nan')})
    with pytest.raises(MapError, match='extras'):
        write_map(bad, tmp_path / 'map')
    assert list(tmp_path.iterdir()) == []


def test_a_faulty_map_is_not_written_and_the_fault_is_named(tmp_path: Path) -> None:
    whole = sample_map()
    assert whole.dense is not None
    points = whole.dense.points.copy()
    points[2, 1] = np.nan
    bad = dataclasses.replace(whole, dense=dataclasses.replace(whole.dense, points=points))
    with pytest.raises(MapError, match=r'cloud\.ply: y, row 2'):
        write_map(bad, tmp_path / 'map')
    assert list(tmp_path.iterdir()) == []


def test_a_graph_in_another_frame_is_refused(tmp_path: Path) -> None:
    bad = SemanticMap(MapHeader(Provenance('bare')), SceneGraph((SceneNode(1),), (), 'odom'))
    with pytest.raises(MapError, match='frame "odom"'):
        write_map(bad, tmp_path / 'map')


def test_reading_a_faulty_map_lists_the_faults(tmp_path: Path) -> None:
    write_map(sample_map(), tmp_path / 'map')
    document = json.loads((tmp_path / 'map' / 'map.json').read_text())
    document['nodes'][0]['parent'] = 50
    document['edges'][1]['target'] = 51
    (tmp_path / 'map' / 'map.json').write_text(json.dumps(document))
    with pytest.raises(MapError, match=r'(?s)2 fault.*nodes\[0\]\.parent.*edges\[1\]\.target'):
        read_map(tmp_path / 'map')
