"""An exported Habitat data set is read back as it was, and follows Habitat's documentation."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from support.sizes import few
from support.world.scenes import (
    CAMERA,
    assert_same_scene,
    box_object,
    camera_at,
    cast_rays,
    room_scene,
)

from osmabench_ros.errors import OsmabenchWarning, SceneError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.runs.config import RobotConfig
from osmabench_ros.scenes.importing import import_scene
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Light, LightKind, Room, Scene
from osmabench_ros.scenes.worlds.parts import WorldOptions
from osmabench_ros.scenes.writing import CLASSES_FILE, write_habitat_dataset
from osmabench_ros.semantics.labels import UNLABELLED, LabelClass, LabelSet
from osmabench_ros.simulation.walkable_grid import CELL_M

BOX = '<link name="l"><visual name="v"><geometry><box><size>{}</size></box></geometry></visual>'
WORLD = f"""<sdf version="1.7"><world name="w">
<model name="floor">{BOX.format('6 4 0.1')}</link><pose>0 0 -0.05 0 0 0</pose></model>
<model name="Big.Chair_01">{BOX.format('0.5 0.4 0.9')}</link><pose>1 0.2 0.5 0.3 0.1 0.7</pose>
</model>
<model name="Big_Chair_01">{BOX.format('0.5 0.4 0.9')}</link><pose>-1 0.2 0.5 0 0 -2</pose></model>
<model name="helper_9">{BOX.format('0.2 0.2 1.6')}</link><pose>2 -1 0.8 0 0 0.4</pose></model>
<model name="outer"><model name="inner">{BOX.format('0.3 0.3 0.3')}</link></model>
<model name="lamp">{BOX.format('0.1 0.6 0.3')}</link><pose>0 1 0.2 0 0 1</pose></model></model>
<light name="spot" type="spot"><pose>0 0 2.5 0 0.2 0</pose><diffuse>1 0.5 0.2 1</diffuse>
<direction>0 0 -1</direction><spot><outer_angle>1.1</outer_angle></spot></light>
<light name="sun" type="directional"><pose>0 0 5 0 0 0</pose>
<direction>0.2 0.1 -1</direction></light>
</world></sdf>"""


def apartment(folder):
    return load_scene('apartment', seed=3)


def gazebo(folder):
    (folder / 'room.world').write_text(WORLD)
    options = WorldOptions(classes={'helper*': ''})
    import_scene(str(folder / 'room.world'), folder / 'imported', world=options)
    return load_scene(str(folder / 'imported'))


@pytest.fixture(scope='module', params=few([apartment, gazebo], apartment))
def both(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp('exported')
    scene = request.param(folder)
    return scene, load_scene(str(write_habitat_dataset(scene, folder / 'out')))


def triangles(item):
    """Return the triangles (F, 3, 3), in one order whatever the order of the meshes."""
    found = item.world_vertices[item.world_faces]
    rounded = np.round(found.reshape(len(found), 9), 3)
    return found[np.lexsort(rounded.T)]


def test_geometry_comes_back(both):
    before, after = both
    assert len(before.objects) == len(after.objects)
    for item, found in zip(before.objects, after.objects, strict=True):
        np.testing.assert_allclose(triangles(found), triangles(item), rtol=0, atol=1e-5)
        np.testing.assert_allclose(found.pose.matrix, item.pose.matrix, rtol=0, atol=1e-9)


def test_ids_classes_rooms_attributes_and_lights_come_back(both):
    before, after = both
    assert before.lights
    assert_same_scene(after, before)
    assert after.lamp_rule == ''


def test_a_camera_sees_the_same(both):
    before, _ = both
    x, y = before.box.center[:2]
    z = before.box.minimum[2] + 0.3 * before.box.size[2]
    seen = 0
    for yaw in (0.4, 2.6, -2.0, -1.0):
        pose = camera_at(x - 0.3, y - 0.2, z, yaw)
        (depth, ids), (found, found_ids) = (cast_rays(scene, CAMERA, pose) for scene in both)
        same = ids == found_ids
        # A ray through an edge may meet either side.
        assert same.mean() > 0.9995
        seen += len(np.unique(ids))
        np.testing.assert_allclose(found[same], depth[same], rtol=0, atol=1e-4)
    assert seen >= 8


# Those of "Using JSON Files to configure Attributes" of Habitat-Sim, and `user_defined`.
DOCUMENTED = {
    'dataset': {
        'objects', 'light_setups', 'scene_instances', 'semantic_scene_descriptor_instances'
    },
    'scene': {
        'stage_instance', 'default_lighting', 'semantic_scene_instance', 'object_instances',
        'user_defined',
    },
    'instance': {
        'template_name', 'translation', 'rotation', 'translation_origin', 'motion_type',
        'user_defined',
    },
    'object': {'render_asset', 'up', 'front', 'semantic_id'},
    'light': {'type', 'position', 'direction', 'color', 'intensity', 'position_model', 'spot'},
    'region': {
        'name', 'label', 'poly_loop', 'floor_height', 'extrusion_height', 'min_bounds',
        'max_bounds', 'user_defined',
    },
}  # fmt: skip


def read(path):
    return json.loads(path.read_text())


def test_every_key_is_one_that_habitat_knows(tmp_path):
    camera = Light('c', LightKind.SPOT, attached_to_camera=True, lamp=False)
    room = Room(20, 'room', 'office', AxisAlignedBox([-3, -2, 0], [3, 2, 2.5]))
    scene = replace(room_scene(lights=(camera,)), rooms=(room,))
    config = write_habitat_dataset(scene, tmp_path / 'out')
    folder = config.parent
    data = read(config)
    assert data.keys() == DOCUMENTED['dataset']
    instance = read(folder / 'scenes' / 'room.scene_instance.json')
    assert instance.keys() == DOCUMENTED['scene']
    assert instance['stage_instance'] == {'template_name': 'NONE'}
    for entry in instance['object_instances']:
        assert entry.keys() == DOCUMENTED['instance']
        template = read(folder / 'objects' / f'{entry["template_name"]}.object_config.json')
        assert template.keys() == DOCUMENTED['object']
        assert (folder / 'objects' / template['render_asset']).read_bytes()[:4] == b'glTF'
        assert len(entry['rotation']) == 4
        assert math.isclose(math.hypot(*entry['rotation']), 1)
        assert entry['motion_type'] == 'STATIC'
    assert len(list((folder / 'objects').glob('*.glb'))) == len(scene.objects)
    (light,) = read(folder / 'lights' / 'lights.lighting_config.json')['lights'].values()
    assert light.keys() - {'lamp'} == DOCUMENTED['light']
    assert light['spot']['outerConeAngle'] == pytest.approx(math.pi / 2)
    (region,) = read(folder / CLASSES_FILE)['region_annotations']
    assert region.keys() == DOCUMENTED['region']
    assert region['floor_height'] == 0
    assert region['extrusion_height'] == 2.5
    assert np.ptp(region['poly_loop'], axis=0).tolist() == [6, 0, 4]
    assert load_scene(str(config)).lights == (camera,)


def test_the_navigation_mesh_is_that_of_a_run(tmp_path):
    folder = write_habitat_dataset(room_scene(), tmp_path / 'out').parent
    robot = RobotConfig()
    assert read(folder / 'navmesh_settings.json') == {
        'agent_radius': robot.radius_m,
        'agent_height': robot.height_m,
        'cell_size': CELL_M,
        'cell_height': CELL_M,
        'include_static_objects': True,
    }


def test_without_lights_there_is_no_setup(tmp_path):
    config = write_habitat_dataset(room_scene(lights=()), tmp_path / 'out')
    assert load_scene(str(config)).lights == ()
    instance = read(config.parent / 'scenes' / 'room.scene_instance.json')
    assert instance['default_lighting'] == 'no_lights'


def test_what_cannot_be_said_is_told(tmp_path):
    classes = (LabelClass(1, 'floor', True), LabelClass(2, 'unknown'), LabelClass(3, 'tree', True))
    item = box_object(7, 'box', (0, 0, 0), (1, 1, 1))
    objects = (replace(item, class_id=2), replace(item, instance_id=3, class_id=3))
    room = Room(9, 'Living_Room', 'lounge', AxisAlignedBox([-3, -3, 0], [3, 3, 2]))
    light = Light('lamp', position=(0.0, 0.0, 1.0))
    scene = Scene('test', 'a/b c', LabelSet('test', classes), objects, (room,), (light,))
    with pytest.warns(OsmabenchWarning) as told:
        config = write_habitat_dataset(scene, tmp_path / 'out')
    texts = [str(item.message) for item in told]
    assert any('lights lamp will belong to the rooms' in text for text in texts)
    assert any('class "unknown" means no class' in text for text in texts)
    assert any('lower case' in text and 'Living_Room' in text for text in texts)
    loaded = load_scene(str(config))
    assert loaded.name == 'a_b_c'
    assert [found.instance_id for found in loaded.objects] == [7, 3]
    assert [found.class_id for found in loaded.objects] == [UNLABELLED, 3]
    assert loaded.label_set.by_id[3].structure
    assert loaded.lights[0].room_id == 9
    assert loaded.rooms[0].name == 'living room'


def test_class_0_is_no_class(tmp_path):
    scene = replace(room_scene(), label_set=LabelSet('l', (LabelClass(0, 'zero'),)), objects=(
        replace(room_scene().objects[0], class_id=0),))  # fmt: skip
    with pytest.raises(SceneError, match='"zero" has id 0.*number the classes from 1'):
        write_habitat_dataset(scene, tmp_path / 'out')
    lights = (Light('a'), Light('a'))
    with pytest.raises(SceneError, match='two lights have the same name'):
        write_habitat_dataset(room_scene(lights=lights), tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


def test_an_object_added_by_hand_gets_a_free_id(tmp_path):
    config = write_habitat_dataset(room_scene(), tmp_path / 'out')
    file = config.parent / 'scenes' / 'room.scene_instance.json'
    instance = read(file)
    first = instance['object_instances'][0]
    instance['object_instances'].append({**first, 'user_defined': {'theirs': 1}})
    instance['object_instances'][1]['user_defined']['osmabench']['instance_id'] = 50
    file.write_text(json.dumps(instance))
    loaded = load_scene(str(config))
    assert [item.instance_id for item in loaded.objects] == [1, 50, 3, 4, 5, 6, 7, 2]
    instance['object_instances'][2]['user_defined']['osmabench']['instance_id'] = 'x'
    file.write_text(json.dumps(instance))
    with pytest.raises(SceneError, match=r'user_defined\.osmabench.*instance_id'):
        load_scene(str(config))
