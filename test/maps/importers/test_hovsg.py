import json
from pathlib import Path

import numpy as np
import pytest
from maps.importers.method_files import (
    CHAIR,
    CLIP,
    TABLE,
    write_hovsg_flat,
    write_hovsg_graph,
    z_up,
)

from osmabench_ros.errors import MapError
from osmabench_ros.maps.disk.storage import read_map, write_map
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.hovsg import import_map
from osmabench_ros.semantics.scene_graph import NodeKind

DEFAULT = ImportOptions()


@pytest.mark.parametrize('inside', ['', 'graph'])
def test_a_graph_gives_floors_rooms_and_objects(tmp_path: Path, inside: str) -> None:
    write_hovsg_graph(tmp_path / 'in')
    made = import_map(tmp_path / 'in' / inside, DEFAULT)
    floor, room, chair, table = made.graph.nodes
    kinds = [NodeKind.FLOOR, NodeKind.ROOM, NodeKind.OBJECT, NodeKind.OBJECT]
    assert [node.kind for node in made.graph.nodes] == kinds
    assert (room.label, chair.label, table.label) == ('kitchen', 'chair', 'table')
    assert (room.parent, chair.parent, table.parent) == (floor.id, room.id, room.id)
    edges = {(edge.source, edge.type, edge.target) for edge in made.graph.edges}
    assert edges == {
        (room.id, 'part of', floor.id),
        (chair.id, 'part of', room.id),
        (table.id, 'part of', room.id),
    }
    assert room.attributes['room_height_m'] == 2.5
    assert made.extras['nodes']['room 0_0']['represent_images'] == [4, 9]
    assert (chair.feature_row, table.feature_row) == (0, None)
    np.testing.assert_allclose(made.feature_spaces['clip'].vectors, CLIP[:1], rtol=1e-6)
    write_map(made, tmp_path / 'map')
    assert len(read_map(tmp_path / 'map').graph.nodes) == 4


def test_only_objects_have_points_and_rooms_have_bounds(tmp_path: Path) -> None:
    write_hovsg_graph(tmp_path)
    made = import_map(tmp_path, DEFAULT)
    assert made.dense is not None
    assert made.dense.instances is not None
    np.testing.assert_allclose(made.dense.points[: len(CHAIR)], z_up(CHAIR), rtol=1e-6)
    assert np.unique(made.dense.instances).tolist() == [3, 4]
    both = z_up(np.concatenate([CHAIR, TABLE]))
    room = made.graph.nodes[1]
    assert room.box is not None
    np.testing.assert_allclose(room.box.minimum, both.min(axis=0), rtol=1e-6)


def test_flat_segments_are_read(tmp_path: Path) -> None:
    pytest.importorskip('torch')
    write_hovsg_flat(tmp_path / 'in')
    made = import_map(tmp_path / 'in', DEFAULT)
    assert [node.source_id for node in made.graph.nodes] == ['0', '1']
    np.testing.assert_array_equal(made.feature_spaces['clip'].vectors, CLIP[:2])
    write_map(made, tmp_path / 'map')
    dense = read_map(tmp_path / 'map').dense
    assert dense is not None
    np.testing.assert_allclose(dense.points[len(CHAIR) :], z_up(TABLE), rtol=1e-6)


def test_features_of_other_segments_are_refused(tmp_path: Path) -> None:
    pytest.importorskip('torch')
    write_hovsg_flat(tmp_path)
    (tmp_path / 'objects' / 'pcd_1.ply').unlink()
    with pytest.raises(MapError, match=r'features \(2, 1024\), .* has 1 segments'):
        import_map(tmp_path, DEFAULT)


def test_a_malformed_object_is_named(tmp_path: Path) -> None:
    write_hovsg_graph(tmp_path)
    path = tmp_path / 'graph' / 'objects' / '0_0_0.json'
    path.write_text(json.dumps(json.loads(path.read_text()) | {'embedding': ['x']}))
    with pytest.raises(MapError, match=r'0_0_0\.json: "embedding"'):
        import_map(tmp_path, DEFAULT)
    path.write_text('{')
    with pytest.raises(MapError, match=r'0_0_0\.json.* is not JSON'):
        import_map(tmp_path, DEFAULT)
