from xml.etree import ElementTree

import numpy as np
import pytest
import trimesh
from PIL import Image
from support.habitat_files import (
    TEXT,
    TITLE,
    paint_vertices,
    painted_boxes,
    write_annotated_stage,
    write_dataset,
    write_json,
)

from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.habitat.loader import Urdf
from osmabench_ros.scenes.habitat.semantics import Annotation, read_annotations
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.semantics.labels import UNLABELLED


def painted_by_texture():
    """Return the boxes with one texture with columns in red, green and a colour nobody has."""
    image = np.zeros((8, 9, 3), np.uint8)
    image[:, :3], image[:, 3:6], image[:, 6:] = (255, 0, 0), (0, 255, 0), (9, 9, 9)
    mesh = painted_boxes(lambda box, i: None)
    uv = np.column_stack([mesh.vertices[:, 0] * 0 + 0.5, mesh.vertices[:, 1] * 0.1 + 0.5])
    uv[:, 0] = (np.round(mesh.vertices[:, 0] / 3) + 0.5) / 3
    material = trimesh.visual.material.PBRMaterial(baseColorTexture=Image.fromarray(image))
    mesh.visual = trimesh.visual.TextureVisuals(uv=uv, material=material)
    return mesh


@pytest.mark.parametrize('by_texture', [True, False])
def test_painted_stage_falls_into_objects(tmp_path, by_texture):
    painted = painted_by_texture() if by_texture else painted_boxes(paint_vertices)
    scene = load_scene(str(write_annotated_stage(tmp_path, painted)))
    assert (scene.dataset, scene.name) == ('hm3d', 'abc')
    assert [item.name for item in scene.label_set.classes] == ['dining table, round', 'wall']
    assert scene.label_set.ids.tolist() == [1, 2]
    wall, table, rest = scene.objects
    assert [item.instance_id for item in scene.objects] == [1, 2, 5]
    assert scene.class_name(wall) == 'wall'
    assert scene.class_name(table) == 'dining table, round'
    assert (rest.name, rest.class_id) == ('unannotated', UNLABELLED)
    # The asset has z up, like the world: nothing turns.
    for i, item in enumerate(scene.objects):
        np.testing.assert_allclose(item.box.minimum, (3 * i - 0.5, -1, 0), atol=1e-5)
        np.testing.assert_allclose(item.box.maximum, (3 * i + 0.5, 1, 3), atol=1e-5)
    first, second = scene.rooms
    assert (wall.room_id, table.room_id, rest.room_id) == (first.id, second.id, None)
    np.testing.assert_allclose(second.box.minimum, table.box.minimum)


def test_annotations(write_file):
    path = write_file('a.semantic.txt', TEXT)
    found = read_annotations(path)
    assert found[1] == Annotation(2, 0x00FF00, 'dining table, round', 1)
    assert found[3].region == -1


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('1,FF0000,"wall",0\n', 'does not begin with'),
        ('', 'does not begin with'),
        (TITLE + '1,FF0000,"\0",0\n', 'holds the character NUL'),
        (TITLE + '1,FF0000,"' + 'x' * 200_000 + '",0\n', 'field larger than field limit'),
        (TITLE + '1' * 5000 + ',FF0000,"a",0\n', ':2: "1111'),
        (TITLE + '1,FF0000,"wall"\n', r':2: "1,FF0000,wall" is not id'),
        (TITLE + '\n1,GG0000,"wall",0\n', ':3: '),
        (TITLE + '0,FF0000,"wall",0\n', 'ids begin at 1'),
        (TITLE + '1,1FF0000,"wall",0\n', 'six hexadecimal digits'),
        (TITLE + '1,FF0000,"",0\n', 'instance 1 has no name'),
        (TITLE + '1,FF0000,"a",0\n1,00FF00,"b",0\n', 'id 1 occurs more than once'),
        (TITLE + '1,FF0000,"a",0\n2,FF0000,"b",0\n', 'color .* occurs more than once'),
    ],
)
def test_malformed_text_is_named(write_file, text, message):
    path = write_file('a.semantic.txt', text)
    with pytest.raises(SceneError, match=message):
        read_annotations(path)


def test_colours_of_another_scene(tmp_path):
    text = TITLE + '1,123456,"wall",0\n'
    with pytest.raises(SceneError, match='has none of the colours'):
        load_scene(str(write_annotated_stage(tmp_path, painted_boxes(paint_vertices), text)))


URDF = """<robot name="fridge">
<link name="body"><visual><origin xyz="0 1 0"/><geometry><box size="1 2 1"/></geometry></visual>
</link>
<link name="door"><visual><origin xyz="0.5 0 0"/><geometry><mesh filename="door.glb"/></geometry>
</visual></link>
<joint name="hinge" type="revolute"><parent link="body"/><child link="door"/>
<origin xyz="-0.5 1 0.5"/><axis xyz="0 1 0"/></joint></robot>"""


def write_fridge(root, entry, urdf=URDF, config=None):
    folder = root / 'urdf' / 'fridge'
    folder.mkdir(parents=True)
    (folder / 'fridge.urdf').write_text(urdf)
    trimesh.creation.box((1, 2, 0.1)).export(folder / 'door.glb')
    dataset = {'articulated_objects': {'paths': {'.urdf': ['urdf/*/']}}}
    if config is not None:
        write_json(root / 'ao' / 'fridge.ao_config.json', config)
        dataset = {'articulated_objects': {'paths': {'.json': ['ao']}}}
    entry = {'template_name': 'fridge', **entry}
    scene = {'articulated_object_instances': [entry]}
    return write_dataset(root, objects={}, instances=[], scene=scene, dataset=dataset)


def test_articulated_object_with_closed_door(tmp_path):
    (item,) = load_scene(str(write_fridge(tmp_path, {'semantic_id': 1}))).objects
    assert item.class_id == 1
    np.testing.assert_allclose(item.box.minimum, (-0.5, -0.55, 0), atol=1e-5)
    np.testing.assert_allclose(item.box.maximum, (0.5, 0.5, 2), atol=1e-5)


def test_a_urdf_keeps_the_configuration_beside_it(tmp_path):
    path = write_fridge(tmp_path, {})
    beside = tmp_path / 'urdf' / 'fridge' / 'fridge.ao_config.json'
    write_json(beside, {'semantic_id': 2, 'uniform_scale': 0.5, 'render_asset': 'skin.glb'})
    (item,) = load_scene(str(path)).objects
    assert item.class_id == 2
    np.testing.assert_allclose(item.box.size, (0.5, 0.525, 1), atol=1e-5)


@pytest.mark.parametrize('pose', [[-np.pi / 2], {'hinge': -np.pi / 2}, {'000': -np.pi / 2}])
def test_articulated_object_with_open_door(tmp_path, pose):
    entry = {'initial_joint_pose': pose, 'translation': [10, 0, 0], 'uniform_scale': 0.5}
    config = {
        'urdf_filepath': '../urdf/fridge/fridge.urdf',
        'semantic_id': 1,
        'uniform_scale': 4.0,
    }
    (item,) = load_scene(str(write_fridge(tmp_path, entry, config=config))).objects
    assert item.class_id == 1
    # The door extends 1 m from its hinge at z = 0.5: Habitat's +z is the world's -y.
    np.testing.assert_allclose(item.box.minimum, (10 - 1.1, -3, 0), atol=1e-5)
    np.testing.assert_allclose(item.box.maximum, (11, 1, 4), atol=1e-5)


@pytest.mark.parametrize(
    ('entry', 'urdf', 'message'),
    [
        ({'initial_joint_pose': ['x']}, URDF, 'must hold numbers'),
        ({'initial_joint_pose': [0, 1]}, URDF, 'has 2 values, the URDF 1 moving'),
        ({}, '<robot/>', 'no visual meshes'),
        ({}, '<robot', 'not valid XML'),
        ({}, URDF.replace('filename="door.glb"', 'filename="gone.glb"'), r'gone\.glb does not'),
        ({}, URDF.replace('<child link="door"/>', '<child/>'), 'lacks the attribute "link"'),
        (
            {},
            URDF.replace('"0 1 0"/><geometry>', '"0 1"/><geometry>'),
            '"xyz" must be 3 finite numbers',
        ),
        (
            {},
            URDF.replace('<parent link="body"/>', '<parent link="door"/>'),
            'frames door refer to each other',
        ),
        ({'semantic_id': 'x'}, URDF, '"semantic_id" must be an integer'),
    ],
)
def test_articulated_faults_are_named(tmp_path, entry, urdf, message):
    with pytest.raises(SceneError, match=message):
        load_scene(str(write_fridge(tmp_path, entry, urdf)))


def test_a_colour_of_the_urdf_replaces_that_of_the_mesh(tmp_path):
    red = '<material name="red"><color rgba="0.7 0 0 1"/></material>'
    urdf = URDF.replace('<link name="body">', f'{red}<link name="body">')
    urdf = urdf.replace('</geometry></visual>', '</geometry><material name="red"/></visual>', 1)
    (item,) = load_scene(str(write_fridge(tmp_path, {}, urdf))).objects
    body, door = (mesh.material.base_color for mesh in item.meshes)
    assert body == (0.7, 0.0, 0.0)
    assert door != body


CHAIN = ElementTree.fromstring(
    '<robot><link name="tip"/><link name="base"/><link name="arm"/><link name="lid"/>'
    '<joint name="z" type="revolute"><parent link="base"/><child link="arm"/></joint>'
    '<joint name="glue" type="fixed"><parent link="base"/><child link="plate"/></joint>'
    '<joint name="b" type="prismatic"><parent link="arm"/><child link="tip"/></joint>'
    '<joint name="a" type="continuous"><parent link="base"/><child link="lid"/></joint></robot>'
)


def test_joint_positions_go_link_by_link():
    robot = Urdf(CHAIN, 'test')
    assert robot.list_moving_joints() == ['a', 'z', 'b']
    assert robot.list_moving_joints('urdf_order') == ['b', 'z', 'a']
    assert robot.read_positions([1, 2.5]) == {'a': 1.0, 'z': 2.5}
    assert robot.read_positions({'001': 2, '000': 1}) == {'a': 1.0, 'z': 2.0}
    with pytest.raises(SceneError, match='give a list for a, z, b'):
        robot.read_positions({'a': 1, 'b': 2, 'z': 3})
