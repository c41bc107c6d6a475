import json

import numpy as np
import pytest
from maps.importers.method_files import CHAIR, CLIP
from maps.test_storage import assert_equal

from osmabench_ros.errors import LimitError, MapError
from osmabench_ros.maps.importer import ImportOptions, import_map
from osmabench_ros.maps.importers.hydra import import_payload
from osmabench_ros.maps.storage import pack_map, unpack_map
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind

dsg = pytest.importorskip('spark_dsg')
LABELS = LabelSet.from_names('small', ['chair', 'wall'])
OPTIONS = ImportOptions(label_set=LABELS)


def symbol(category, number):
    return int(dsg.NodeSymbol(category, number).value)


def graph(khronos=False):
    """Return a chair at a place in a kitchen of a building, with a mesh of eight vertices."""
    made = dsg.DynamicSceneGraph()
    chair = dsg.KhronosObjectAttributes() if khronos else dsg.ObjectNodeAttributes()
    center, size = np.array([1, 2, 0.5], np.float32), np.array([0.5, 0.6, 1.0], np.float32)
    turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]], np.float32)
    chair.position = center
    chair.name = 'chair 7'
    chair.semantic_label = 4
    chair.bounding_box = dsg.BoundingBox(dsg.BoundingBoxType.RAABB, size, center, turn)
    chair.semantic_feature = CLIP[0, :16].reshape(-1, 1)
    chair.mesh_connections = [1, 2, 5]
    if khronos:
        chair.mesh().resize_vertices(len(CHAIR))
        vertices = np.zeros((6, len(CHAIR)), np.float32)
        vertices[:3] = CHAIR.T
        chair.mesh().set_vertices(vertices)
    place, room = dsg.PlaceNodeAttributes(), dsg.RoomNodeAttributes()
    place.position, room.position = np.array([1, 1, 1.0]), np.array([2, 2, 1.0])
    room.semantic_label = 1
    building = dsg.RoomNodeAttributes()
    building.position = np.zeros(3)
    agent = dsg.AgentNodeAttributes()
    agent.position = np.zeros(3)
    agent.world_R_body = dsg.Quaternion(1.0, 0.0, 0.0, 0.0)
    for layer, category, attributes in (
        (2, 'O', chair), (3, 'p', place), (4, 'R', room), (5, 'B', building),
    ):  # fmt: skip
        made.add_node(layer, symbol(category, 0), attributes)
    second = dsg.PlaceNodeAttributes()
    second.position = np.array([1, 3, 1.0])
    made.add_node(3, symbol('p', 1), second)
    made.add_node(2, symbol('a', 0), agent, ord('a'))
    for source, target in (('B', 'R'), ('R', 'p'), ('p', 'O')):
        made.insert_edge(symbol(source, 0), symbol(target, 0))
    made.insert_edge(symbol('p', 0), symbol('p', 1))
    made.set_labelspace(dsg.Labelspace({4: 'chair', 2: 'wall'}), 2, 0)
    made.set_labelspace(dsg.Labelspace({1: 'kitchen'}), 4, 0)
    mesh = dsg.Mesh()
    mesh.resize_vertices(8)
    vertices = np.full((6, 8), 0.2, np.float32)
    vertices[:3] = np.arange(24).reshape(8, 3).T
    mesh.set_vertices(vertices)
    for i in range(8):
        mesh.set_label(i, [4, 2, 99][i % 3])
    made.mesh = mesh
    return made


def check(made):
    by_source = {node.source_id: node for node in made.graph.nodes}
    chair, room, building = by_source['O0'], by_source['R0'], by_source['B0']
    kinds = {name: by_source[name].kind for name in ('O0', 'p0', 'R0', 'B0')}
    assert kinds == {
        'O0': NodeKind.OBJECT, 'p0': NodeKind.PLACE, 'R0': NodeKind.ROOM, 'B0': NodeKind.BUILDING,
    }  # fmt: skip
    assert 'a0' not in by_source
    assert (chair.label, chair.class_id) == ('chair', LABELS.id_of('chair'))
    assert room.label == 'kitchen'
    assert chair.parent == by_source['p0'].id
    assert room.parent == building.id
    edges = {(edge.source, edge.type, edge.target) for edge in made.graph.edges}
    assert (chair.id, 'part of', room.id) in edges
    assert (room.id, 'part of', building.id) in edges
    connected = {frozenset(e[::2]) for e in edges if e[1] == 'connected to'}
    assert connected == {frozenset({by_source['p0'].id, by_source['p1'].id})}
    np.testing.assert_allclose(chair.oriented_box.pose.translation, [1, 2, 0.5])
    np.testing.assert_allclose(chair.oriented_box.size, [0.5, 0.6, 1.0], rtol=1e-6)
    np.testing.assert_allclose(chair.oriented_box.axis_aligned().size, [0.6, 0.5, 1], rtol=1e-6)
    np.testing.assert_allclose(made.feature_spaces['clip'].vectors[0], CLIP[0, :16], rtol=1e-6)


@pytest.mark.parametrize('suffix', ['.json', '.sparkdsg'])
def test_a_saved_graph_comes_out(tmp_path, suffix):
    graph().save(str(tmp_path / f'dsg_with_mesh{suffix}'), True)
    made = import_map('hydra', tmp_path, OPTIONS)
    assert_equal(unpack_map(pack_map(made)), made)
    check(made)
    dense = made.dense
    np.testing.assert_allclose(dense.points, np.arange(24).reshape(8, 3))
    chair = next(node.id for node in made.graph.nodes if node.source_id == 'O0')
    assert np.flatnonzero(dense.instances == chair).tolist() == [1, 2, 5]
    assert dense.membership.points_of(0).tolist() == [1, 2, 5]
    ids = [LABELS.id_of('chair'), LABELS.id_of('wall'), UNLABELLED]
    assert dense.labels.tolist() == [ids[i % 3] for i in range(8)]


@pytest.mark.parametrize('mesh', [True, False])
def test_the_payload_of_the_topic_comes_out(tmp_path, mesh):
    payload = graph().to_binary(mesh)
    made = import_payload(payload, OPTIONS)
    assert made.graph.by_id
    assert (made.dense is not None) == mesh
    (tmp_path / 'update.bin').write_bytes(payload)
    again = import_map('hydra', tmp_path / 'update.bin', OPTIONS)
    assert again.header.provenance == made.header.provenance


@pytest.mark.parametrize('mesh', [True, False])
def test_khronos_objects_bring_their_own_points(tmp_path, mesh):
    graph(khronos=True).save(str(tmp_path / 'dsg.json'), mesh)
    data = json.loads((tmp_path / 'dsg.json').read_text())
    for node in data['nodes']:
        if 'first_observed_ns' in node['attributes']:
            node['attributes'] |= {'first_observed_ns': [10, 20], 'last_observed_ns': [15, 25]}
    (tmp_path / 'dsg.json').write_text(json.dumps(data))
    made = import_map('khronos', tmp_path, OPTIONS)
    assert next(node for node in made.graph.nodes if node.source_id == 'O0').observations == 2
    assert made.header.provenance.method == 'khronos'
    np.testing.assert_allclose(made.dense.points[:40], CHAIR + np.array([1, 2, 0.5]), rtol=1e-6)
    assert len(made.dense.points) == len(CHAIR) + (8 if mesh else 0)
    if mesh:  # the points of the chair are its own, and those that it has in the mesh
        assert made.dense.membership.points_of(0).tolist() == [*range(40), 41, 42, 45]
    assert_equal(unpack_map(pack_map(made)), made)


@pytest.mark.parametrize(
    ('cut', 'words'), [(0, 'of 0 bytes'), *((cut, 'only full updates') for cut in (10, 60, 400))]
)
def test_a_cut_off_payload_is_refused(cut, words):
    with pytest.raises(MapError, match=words):
        import_payload(graph().to_binary(True)[:cut], OPTIONS)


def test_a_payload_that_claims_more_than_it_holds_takes_no_memory():
    sound = graph().to_binary(True)
    causes = []
    for place in (4, len(sound) - 1):
        claiming = bytearray(sound)
        claiming[place] = 0xDD  # a list with its length in the next four bytes
        with pytest.raises(MapError, match='^the payload') as caught:
            import_payload(bytes(claiming), OPTIONS)
        causes.append(type(caught.value.__cause__))
    assert LimitError in causes
