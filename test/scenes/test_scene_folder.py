import json

import numpy as np
import pytest
import trimesh
from support.world.scenes import assert_box, assert_same_scene

from osmabench_ros.base.files import MARKER, PREVIOUS
from osmabench_ros.errors import RunError, SceneError
from osmabench_ros.scenes.apartment.generate import generate_apartment
from osmabench_ros.scenes.changes import find_doubtful_objects, find_parts_of_assemblies
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.writing import write_scene_folder
from osmabench_ros.semantics.labels import UNLABELLED


def write_folder(tmp_path, **changes):
    """Write a folder with a table of two nodes, a cup and something without a name."""
    scene = trimesh.Scene()
    scene.graph.update(frame_to='table', frame_from='world', matrix=np.eye(4))
    for name, size, at, parent in (
        ('table_top', (1, 0.1, 2), (0, 0.75, 0), 'table'),
        ('table_leg', (0.1, 0.7, 0.1), (0, 0.35, 0), 'table'),
        ('cup', (0.1, 0.2, 0.1), (0.2, 0.9, 0), 'world'),
        ('shelf', (0.3, 1, 0.3), (2, 0.5, 2), 'world'),
    ):
        box = trimesh.creation.box(size)
        box.apply_translation(at)
        scene.add_geometry(box, node_name=name, geom_name=name, parent_node_name=parent)
    scene.export(tmp_path / 'room.glb')
    manifest = {
        'format': 'osmabench.scene/1',
        'name': 'room',
        'file': 'room.glb',
        'nodes': {
            'table': {'class': 'Coffee_Table', 'attributes': {'color': 'red'}, 'room': 'lab'},
            'cup': {'class': 'cup', 'instance': 1},
        },
        'rooms': [{'name': 'lab', 'label': 'office', 'min': [-3, -3, 0], 'max': [3, 3, 2.5]}],
        'lights': [{'name': 'lamp', 'position': [0, 0, 2.2], 'intensity': 3, 'room': 'lab'}],
        'ambient': 0.2,
    }
    manifest.update(changes)
    (tmp_path / 'scene.json').write_text(json.dumps(manifest))
    return tmp_path


def test_nodes_become_objects(tmp_path):
    scene = load_scene(str(write_folder(tmp_path)))
    by_name = {item.name: item for item in scene.objects}
    assert set(by_name) == {'table', 'cup', 'shelf'}
    assert scene.class_name(by_name['table']) == 'coffee table'
    assert by_name['shelf'].class_id == UNLABELLED
    assert by_name['cup'].instance_id == 1
    assert len({item.instance_id for item in scene.objects}) == 3
    assert_box(by_name['table'], (-0.5, -1, 0), (0.5, 1, 0.8))
    assert by_name['table'].attributes == {
        'color': 'red', 'width_m': 1.0, 'depth_m': 2.0, 'height_m': 0.8,
    }  # fmt: skip
    (room,) = scene.rooms
    assert {item.room_id for item in scene.objects} == {room.id}
    assert (room.name, room.label) == ('lab', 'office')
    assert scene.lights[0].room_id == room.id
    assert scene.ambient == 0.2
    found = {(e.source, e.type, e.target) for e in build_ground_truth_graph(scene).edges}
    assert (1, 'on', by_name['table'].instance_id) in found


def test_a_folder_goes_before_a_specification_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_scene('kitchen', seed=1).dataset == 'apartment'
    own = tmp_path / 'kitchen'
    own.mkdir()
    write_folder(own)
    assert {item.name for item in load_scene('kitchen').objects} == {'table', 'cup', 'shelf'}


def test_up_and_unit(tmp_path):
    scene = load_scene(str(write_folder(tmp_path, up='z', unit_m=2.0) / 'scene.json'))
    table = next(item for item in scene.objects if item.name == 'table')
    assert_box(table, (-1, 0, -2), (1, 1.6, 2))


def test_classes_of_the_manifest(tmp_path):
    classes = [{'id': 7, 'name': 'cup'}, {'id': 3, 'name': 'coffee table', 'structure': True}]
    scene = load_scene(str(write_folder(tmp_path, classes=classes)))
    assert scene.label_set.ids.tolist() == [3, 7]
    assert scene.label_set.by_id[3].structure


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'nodes': {'tabel': {}}}, 'no triangles below a node "tabel". Did you mean "table"'),
        ({'nodes': {'cup': {'clas': 'cup'}}}, 'cup: unknown key "clas". Did you mean "class"'),
        ({'nodes': {'cup': {'instance': 0}}}, r'nodes\.cup\.instance'),
        ({'nodes': {'cup': {'instance': 2**63}}}, r'nodes\.cup\.instance'),
        ({'nodes': {'cup': {'room': 'lob'}}}, 'no room "lob". Did you mean "lab"'),
        ({'classes': [{'id': 1, 'name': 'cap'}]}, 'is not in "classes"'),
        ({'classes': [{'id': 65535, 'name': 'cup'}]}, 'ids must lie in 0 to 65534'),
        ({'up': 'x'}, 'up: Input should be'),
        ({'unit_m': 0}, 'unit_m'),
        ({'ambient': 'NaN'}, 'ambient'),
        ({'file': 'gone.glb'}, r'gone\.glb does not exist'),
        ({'format': 'osmabench.scene/9'}, 'format'),
        ({'rooms': [{'name': 'lab', 'min': [1, 0, 0], 'max': [0, 1, 1]}]}, r'rooms\.0: box'),
        ({'lights': [{'name': 'l', 'kind': 'laser'}]}, r'lights\.0\.kind'),
        ({'lights': [{'name': 'l', 'room': 'lob'}]}, 'no room "lob"'),
    ],
)  # fmt: skip
def test_faults_are_named(tmp_path, changes, message):
    with pytest.raises(SceneError, match=message):
        load_scene(str(write_folder(tmp_path, **changes)))


def test_repeated_instance_and_wrong_scene(tmp_path):
    rooms = [{'name': 'lab', 'id': 1, 'min': [-3, -3, 0], 'max': [3, 3, 2.5]}]
    nodes = {'cup': {'instance': 1}}
    with pytest.raises(SceneError, match='id 1 occurs more than once'):
        load_scene(str(write_folder(tmp_path, nodes=nodes, rooms=rooms)))
    with pytest.raises(SceneError, match='holds the scene "room", not "hall"'):
        load_scene(str(write_folder(tmp_path)), scene='hall')


def test_nodes_with_one_instance_are_one_object(tmp_path):
    nodes = {
        'table_top': {'class': 'table', 'instance': 4},
        'table_leg': {'instance': 4, 'attributes': {'color': 'red'}},
        'cup': {},
    }
    scene = load_scene(str(write_folder(tmp_path, nodes=nodes)))
    assert {item.name for item in scene.objects} == {'table_top', 'cup', 'shelf'}
    table = scene.by_instance[4]
    assert (scene.class_name(table), table.attributes['color']) == ('table', 'red')
    np.testing.assert_allclose(table.box.minimum, (-0.5, -1, 0), atol=1e-6)
    nodes['table_leg']['class'] = 'leg'
    reason = '"table_top" and "table_leg" have instance 4 and are one'
    with pytest.raises(SceneError, match=reason):
        load_scene(str(write_folder(tmp_path, nodes=nodes)))


def test_a_written_folder_keeps_the_nodes_above_objects(tmp_path):
    parts = {'table_top': {}, 'table_leg': {}, 'cup': {}, 'shelf': {}}
    source = tmp_path / 'source'
    source.mkdir()
    scene = load_scene(str(write_folder(source, nodes=parts)))
    assert {item.parent for item in scene.objects} == {'table', ''}
    assert list(find_parts_of_assemblies(scene)) == ['table']
    assert any('touch under the node "table"' in doubt for doubt in find_doubtful_objects(scene))
    manifest = write_scene_folder(scene, tmp_path / 'copy')
    changed = json.loads(manifest.read_text())
    changed['nodes'] = {'table': {'class': 'table'}, 'cup': {'class': 'cup'}}
    changed['classes'] = []
    manifest.write_text(json.dumps(changed))
    grouped = load_scene(str(tmp_path / 'copy'))
    assert {item.name for item in grouped.objects} == {'table', 'cup', 'shelf/0'}


@pytest.mark.full
def test_an_apartment_and_its_looks_survive_a_folder(tmp_path):
    scene = generate_apartment(5)
    again = load_scene(str(write_scene_folder(scene, tmp_path / 'flat')))
    assert_same_scene(again, scene)
    assert [item.name for item in again.objects] == [item.name for item in scene.objects]
    for first, second in zip(scene.objects[:40], again.objects[:40], strict=True):
        assert len(first.meshes) == len(second.meshes)
        left, right = (sorted(item.meshes, key=_order) for item in (first, second))
        for one, other in zip(left, right, strict=True):
            colors = one.material.base_color, other.material.base_color
            np.testing.assert_allclose(*colors, atol=0.03)
            for name in ('metallic', 'roughness'):
                assert getattr(one.material, name) == getattr(other.material, name)
            np.testing.assert_allclose(one.uv, other.uv, atol=1e-5)
            normals = one.normals @ first.pose.rotation.T
            np.testing.assert_allclose(normals, other.normals, atol=1e-5)
            assert (one.material.texture is None) == (other.material.texture is None)
            np.testing.assert_array_equal(one.material.texture, other.material.texture)


def _order(mesh):
    """Order the meshes of one object, whatever order a file keeps them in."""
    return len(mesh.faces), [round(float(value), 3) for value in np.abs(mesh.uv).sum(axis=0)]


def test_folder_is_not_overwritten_unless_asked(tmp_path):
    scene = load_scene(str(write_folder(tmp_path)))
    write_scene_folder(scene, tmp_path / 'a')
    with pytest.raises(RunError, match='a exists'):
        write_scene_folder(scene, tmp_path / 'a')
    write_scene_folder(scene, tmp_path / 'a', overwrite=True)
    names = {MARKER, PREVIOUS, 'scene.glb', 'scene.json'}
    assert {path.name for path in (tmp_path / 'a').iterdir()} == names


@pytest.mark.full
def test_writing_is_deterministic(tmp_path):
    scene = generate_apartment(2)
    paths = [write_scene_folder(scene, tmp_path / name).parent for name in ('a', 'b')]
    for name in ('scene.glb', 'scene.json'):
        assert (paths[0] / name).read_bytes() == (paths[1] / name).read_bytes()
