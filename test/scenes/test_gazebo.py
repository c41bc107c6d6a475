import json
import sys

import numpy as np
import pytest
import trimesh
from PIL import Image
from support import TESTS
from support.world.scenes import assert_box, assert_same_scene

from osmabench_ros.errors import (
    ConfigError,
    MissingDependencyError,
    MissingFileError,
    OsmabenchWarning,
    SceneError,
)
from osmabench_ros.scenes.importing import import_scene, read_class_patterns, read_known_classes
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import LightKind
from osmabench_ros.scenes.worlds.gazebo import load_gazebo_world
from osmabench_ros.scenes.worlds.parts import (
    ColladaUp,
    WorldOptions,
    find_common_prefix,
    guess_class,
    match_known_class,
)
from osmabench_ros.semantics.labels import UNLABELLED

HALF_PI = np.pi / 2


def write_world(tmp_path, content, folder='worlds'):
    path = tmp_path / folder / 'test.world'
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'<sdf version="1.7"><world name="w">{content}</world></sdf>')
    return path


def write_model(tmp_path, name, content, config=None):
    folder = tmp_path / 'models' / name
    (folder / 'meshes').mkdir(parents=True, exist_ok=True)
    (folder / 'model.sdf').write_text(
        f'<sdf version="1.6"><model name="{name}">{content}</model></sdf>'
    )
    if config:
        (folder / 'model.config').write_text(config)
    return folder


def shape(geometry, pose='0 0 0 0 0 0', material=''):
    return (
        f'<link name="l"><visual name="v"><pose>{pose}</pose>'
        f'<geometry>{geometry}</geometry>{material}</visual></link>'
    )


BOX = '<box><size>1 2 4</size></box>'


def model(inner, name='m'):
    return f'<model name="{name}">{inner}</model>'


def mesh(uri, more=''):
    return shape(f'<mesh><uri>{uri}</uri>{more}</mesh>')


def textured(uri):
    albedo = f'<material><pbr><metal><albedo_map>{uri}</albedo_map></metal></pbr></material>'
    return shape(BOX, material=albedo)


def included(uri):
    return f'<include><uri>{uri}</uri></include>'


def load(tmp_path, content, **options):
    return load_gazebo_world(write_world(tmp_path, content), WorldOptions(**options))


def only(scene):
    (item,) = scene.objects
    return item


def load_one(tmp_path, content, **options):
    return only(load(tmp_path, content, **options))


def test_poses_of_model_link_and_visual_chain(tmp_path):
    crate = f"""<model name="crate"><pose>10 0 0 0 0 {HALF_PI}</pose><link name="l">
        <pose>0 0 5 0 0 0</pose><visual name="v"><pose>1 0 0 0 0 0</pose>
        <geometry>{BOX}</geometry></visual></link></model>"""
    item = load_one(tmp_path, crate)
    # 1 m along the model's x is 1 m along the world's y.
    assert_box(item, (9, 0.5, 3), (11, 1.5, 7))


def test_roll_pitch_yaw_are_about_fixed_axes(tmp_path):
    item = load_one(tmp_path, model(shape(BOX, f'0 0 0 {HALF_PI} 0 {HALF_PI}')))
    # Roll takes the 4 m from z to y, yaw then from y to x.
    np.testing.assert_allclose(item.box.size, (4, 1, 2), atol=1e-5)


@pytest.mark.parametrize(
    ('geometry', 'size'),
    [
        (BOX, (1, 2, 4)),
        ('<sphere><radius>0.5</radius></sphere>', (1, 1, 1)),
        ('<cylinder><radius>0.5</radius><length>3</length></cylinder>', (1, 1, 3)),
        ('<capsule><radius>0.5</radius><length>3</length></capsule>', (1, 1, 4)),
        ('<ellipsoid><radii>1 2 3</radii></ellipsoid>', (2, 4, 6)),
        ('<plane><size>2 3</size></plane>', (2, 3, 0)),
        ('<plane><normal>1 0 0</normal><size>2 3</size></plane>', None),
    ],
)
def test_shapes(tmp_path, geometry, size):
    item = load_one(tmp_path, model(shape(geometry)))
    if size is None:
        assert item.box.size[0] < 1e-6
        np.testing.assert_allclose(item.meshes[0].normals, np.tile((1, 0, 0), (4, 1)), atol=1e-6)
    else:
        np.testing.assert_allclose(item.box.size, size, atol=0.02)
    corners = item.world_vertices[item.world_faces].astype(float)
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    outward = np.concatenate([m.normals[m.faces[:, 0]] for m in item.meshes])
    assert ((cross * outward).sum(axis=1) > 0).all()


def test_include_finds_models_and_overrides_name_and_pose(tmp_path):
    config = '<model><sdf version="1.4">old.sdf</sdf><sdf version="1.6">model.sdf</sdf></model>'
    folder = write_model(tmp_path, 'table', f'<pose>9 9 9 0 0 0</pose>{shape(BOX)}', config)
    (folder / 'old.sdf').write_text('<sdf/>')
    two = """<include><uri>model://table</uri></include>
        <include><uri>model://table</uri><name>desk</name><pose>1 0 0 0 0 0</pose></include>"""
    first, second = load(tmp_path, two).objects
    np.testing.assert_allclose(first.pose.translation, (9, 9, 9))
    assert (first.name, second.name) == ('table', 'desk')
    np.testing.assert_allclose(second.pose.translation, (1, 0, 0))


def test_models_are_searched_in_named_folders_and_variables(tmp_path, monkeypatch):
    write_model(tmp_path / 'elsewhere', 'lamp', shape(BOX))
    world = write_world(tmp_path, included('model://lamp'))
    with pytest.raises(SceneError, match='model://lamp is in none of'):
        load_gazebo_world(world)
    folder = tmp_path / 'elsewhere' / 'models'
    assert only(load_gazebo_world(world, WorldOptions(models=[folder]))).name == 'lamp'
    monkeypatch.setenv('GZ_SIM_RESOURCE_PATH', f'/nowhere:{folder}')
    assert only(load_gazebo_world(world)).name == 'lamp'


def test_nested_models_are_objects_of_their_own(tmp_path):
    write_model(tmp_path, 'cup', shape('<sphere><radius>0.1</radius></sphere>'))
    nested = f"""<model name="set"><pose>5 0 0 0 0 0</pose>{shape(BOX)}
        <model name="inner"><pose>0 0 3 0 0 0</pose>{shape(BOX)}</model>
        <include><uri>model://cup</uri><pose>0 7 0 0 0 0</pose></include></model>"""
    by_name = {item.name: item for item in load(tmp_path, nested).objects}
    assert set(by_name) == {'set', 'set::inner', 'set::cup'}
    np.testing.assert_allclose(by_name['set::inner'].pose.translation, (5, 0, 3))
    np.testing.assert_allclose(by_name['set::cup'].pose.translation, (5, 7, 0))


def test_a_wrapper_stands_for_the_model_it_wraps(tmp_path):
    write_model(tmp_path, 'cup', shape(BOX))
    wrapper = included('model://cup') + '<pose>1 2 3 0 0 0</pose>'
    item = load_one(tmp_path, model(wrapper, 'cup_3'))
    assert item.name == 'cup_3'
    np.testing.assert_allclose(item.pose.translation, (1, 2, 3))


def test_poses_relative_to_other_frames(tmp_path):
    models = f"""<frame name="corner"><pose>10 0 0 0 0 {HALF_PI}</pose></frame>
        <model name="a"><pose relative_to="corner">1 0 0 0 0 0</pose>{shape(BOX)}</model>
        <model name="b"><pose relative_to="a" degrees="1">1 0 0 0 0 90</pose>{shape(BOX)}</model>
        <model name="c"><pose rotation_format="quat_xyzw">0 0 1 0 0 1 0</pose>{shape(BOX)}</model>
        """
    a, b, c = load(tmp_path, models).objects
    np.testing.assert_allclose(a.pose.translation, (10, 1, 0), atol=1e-9)
    np.testing.assert_allclose(b.pose.translation, (10, 2, 0), atol=1e-9)
    assert abs(b.pose.yaw_rad) == pytest.approx(np.pi)
    assert abs(c.pose.yaw_rad) == pytest.approx(np.pi)


def test_saved_state_moves_models(tmp_path):
    state = f'<state world_name="w">{model("<pose>3 4 0 0 0 0</pose>")}</state>'
    item = load_one(tmp_path, model(shape(BOX)) + state)
    np.testing.assert_allclose(item.pose.translation, (3, 4, 0))


def test_mesh_files_with_scale_and_axes(tmp_path):
    box = trimesh.creation.box((1, 2, 3))
    for suffix, size in (('stl', (1, 2, 6)), ('obj', (1, 2, 6)), ('glb', (1, 3, 4))):
        content = mesh(f'model://m/meshes/box.{suffix}', '<scale>1 1 2</scale>')
        folder = write_model(tmp_path, 'm', content)
        box.export(folder / 'meshes' / f'box.{suffix}')
        item = load_one(tmp_path, included('model://m'))
        np.testing.assert_allclose(item.box.size, size, atol=1e-5)


def test_submesh(tmp_path):
    submesh = '<submesh><name>b</name><center>true</center></submesh>'
    folder = write_model(tmp_path, 'm', mesh('meshes/two.glb', submesh))
    two = trimesh.Scene()
    for name, at in (('a', 0), ('b', 5)):
        box = trimesh.creation.box((1, 1, 1))
        box.apply_translation((at, 0, 0))
        two.add_geometry(box, node_name=name, geom_name=name)
    two.export(folder / 'meshes' / 'two.glb')
    item = load_one(tmp_path, included('model://m'))
    assert_box(item, (-0.5, -0.5, -0.5), (0.5, 0.5, 0.5))


def test_materials(tmp_path):
    Image.new('RGB', (4, 4), (10, 200, 30)).save(tmp_path / 'wood.png')
    inner = '<diffuse>0.2 0.4 0.6 1</diffuse>', '<script><name>Gazebo/Wood</name></script>', ''
    shapes = [shape(BOX, material=f'<material>{item}</material>') for item in inner]
    models = map(model, [*shapes, textured('../wood.png')], 'abdc')
    a, b, d, c = (item.meshes[0].material for item in load(tmp_path, ''.join(models)).objects)
    assert a.base_color == (0.2, 0.4, 0.6)
    assert b.base_color == (0.6, 0.42, 0.26)
    assert tuple(c.texture[0, 0]) == (10, 200, 30)
    assert d.base_color == (0.8, 0.8, 0.8)


def test_lights(tmp_path):
    lights = f"""
        <light name="lamp" type="point"><pose>1 2 3 0 0 0</pose><diffuse>0.5 0.25 0.5 1</diffuse>
        <attenuation><constant>0.5</constant><linear>0.1</linear><quadratic>0.2</quadratic>
        </attenuation></light>
        <light name="day" type="directional"><direction>0 1 -1</direction>
        <pose>0 0 9 0 0 {HALF_PI}</pose></light>
        <light name="spot" type="spot"><spot><outer_angle>1.2</outer_angle></spot></light>
        <include><uri>model://sun</uri></include>"""
    sun, lamp, day, spot = load(tmp_path, model(shape(BOX)) + lights).lights
    assert lamp.position == (1, 2, 3)
    assert lamp.color == (1, 0.5, 1)
    # At 2 m SDF gives 0.5 / (0.5 + 0.2 + 0.8), a Light its intensity / 4.
    assert lamp.intensity == pytest.approx(0.5 / 1.5 * 4)
    assert lamp.lamp
    assert (day.kind, sun.kind) == (LightKind.DIRECTIONAL, LightKind.DIRECTIONAL)
    np.testing.assert_allclose(day.direction, (-1, 0, -1), atol=1e-9)
    assert not day.lamp
    assert not sun.lamp
    assert spot.spot_half_angle_rad == 0.6


def test_classes(tmp_path):
    content = [model(shape(BOX), name) for name in ('x_Chair_01', 'x_Chair_02', 'x_b')]
    scene = load(tmp_path, ''.join(content), classes={'*chair*': 'Arm_Chair', 'x_b': ''})
    assert [item.class_id for item in scene.objects] == [1, 1, UNLABELLED]
    assert scene.label_set.by_id[1].name == 'arm chair'


@pytest.mark.parametrize(
    ('model', 'name'),
    [
        ('aws_robomaker_KitchenTable_01_001', 'kitchen table'),
        ('aws_robomaker_TVCabinet_01', 'tv cabinet'),
        ('aws_robomaker_ChairA_01_002', 'chair'),
        ('aws_robomaker_unit_box_clone_3', 'unit box'),
        ('outer::aws_robomaker_cup-2', 'cup'),
        ('aws_robomaker_hospital_floor_01_walls', 'wall'),
        ('aws_robomaker_hospital_floor_01_ceiling', 'ceiling'),
        ('aws_robomaker_walls', 'wall'),
        ('aws_robomaker_kitchen_walls', 'kitchen wall'),
        ('Sofa_Grey_LOD0', 'sofa grey'),
        ('Lamp.Desk.001', 'desk lamp'),
        ('Chair.LOD2', 'chair'),
        ('Bowl_Fruit.001', 'bowl fruit'),
    ],
)
def test_class_from_the_name(model, name):
    assert guess_class(model, {}, 'aws_robomaker_') == name
    assert guess_class('aws_robomaker_residential_ShoeRack_01', {}) == 'shoe rack'


def test_common_prefix():
    assert find_common_prefix(['a_b_Chair', 'x::a_b_Cup', 'a_b_Table']) == 'a_b_'
    assert find_common_prefix(['a_b', 'a_c']) == ''
    assert find_common_prefix(['Chair', 'Cup', 'Couch']) == ''


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('', 'no visible models'),
        (model('<link name="l"/>'), 'no visible models'),
        (model(mesh('x.stl')), r'"m": x\.stl is in'),
        (model(shape('<mesh/>')), 'no <uri>'),
        (model(shape('<heightmap/>')), '<heightmap> is not supported'),
        (model(shape(BOX, '1 2')), '<pose> needs 6 finite numbers'),
        (model(shape(BOX, '1 2 nan 0 0 0')), '<pose> needs 6 finite'),
        (included('https://x/y'), 'not on this machine'),
        (model('<pose relative_to="x">0 0 0 0 0 0</pose>'), 'no frame "x"'),
        (
            model('<pose relative_to="b"/>', 'a') + model('<pose relative_to="a"/>', 'b'),
            'refer to each other',
        ),
        ('<light name="l" type="laser"/>', 'light "l": type "laser"'),
    ],
)
def test_faults_are_named(tmp_path, content, message):
    with pytest.raises(SceneError, match=message):
        load(tmp_path, content)


def test_models_that_are_broken(tmp_path):
    (tmp_path / 'models' / 'hollow').mkdir(parents=True)
    with pytest.raises(SceneError, match='hollow holds no model.sdf'):
        load(tmp_path, included('model://hollow'))
    file = write_model(tmp_path, 'self', '') / 'model.sdf'
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa">]><sdf><model name="m">&a;</model></sdf>'
    for text, message in (
        (f'<sdf>{model(included("model://self"), "self")}</sdf>', 'includes itself'),
        ('<sdf><model', 'not valid XML'),
        (bomb, 'XML entities are defined'),
    ):
        file.write_text(text)
        with pytest.raises(SceneError, match=message):
            load(tmp_path, included('model://self'))
    with pytest.raises(SceneError, match='does not exist'):
        load_gazebo_world(tmp_path / 'none.world')


# A textured triangle in centimetres, its z up.
COLLADA = (TESTS / 'data' / 'meshes' / 'triangle.dae').read_text()


@pytest.mark.parametrize(('up', 'size'), [('Z', (1, 2, 0)), ('Y', (1, 0, 2)), ('X', (2, 0, 1))])
def test_collada_units_axes_and_texture(tmp_path, up, size):
    pytest.importorskip('collada', reason='Collada files need pycollada')
    folder = write_model(tmp_path, 'm', mesh('model://m/meshes/t.DAE'))
    (folder / 'meshes' / 't.DAE').write_text(COLLADA.replace('Z_UP', f'{up}_UP'))
    (folder / 'materials' / 'textures').mkdir(parents=True)
    Image.new('RGB', (2, 2), (40, 50, 60)).save(folder / 'materials' / 'textures' / 'p.png')
    include = included('model://m')
    item = load_one(tmp_path, include, collada_up=ColladaUp.APPLIED)
    np.testing.assert_allclose(item.box.size, size, atol=1e-6)
    # Gazebo Classic (SDF up to 1.7) reads the units, and ignores the axes.
    for options in ({}, {'collada_up': ColladaUp.IGNORED}):
        item = load_one(tmp_path, include, **options)
        np.testing.assert_allclose(item.box.size, (1, 2, 0), atol=1e-6)
    newer = tmp_path / 'worlds' / 'newer.sdf'
    newer.write_text(f'<sdf version="1.10"><world name="w">{include}</world></sdf>')
    np.testing.assert_allclose(only(load_gazebo_world(newer)).box.size, size, atol=1e-6)
    assert tuple(item.meshes[0].material.texture[0, 0]) == (40, 50, 60)


def test_collada_without_its_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'collada', None)
    folder = write_model(tmp_path, 'm', mesh('model://m/meshes/t.dae'))
    (folder / 'meshes' / 't.dae').write_text(COLLADA)
    with pytest.raises(MissingDependencyError, match='need pycollada'):
        load(tmp_path, included('model://m'))


def test_import_writes_a_folder_that_loads(tmp_path):
    red = '<material><diffuse>1 0 0 1</diffuse></material>'
    write_model(tmp_path, 'table', shape(BOX, material=red))
    content = """<include><uri>model://table</uri><pose>1 2 3 0 0 1</pose></include>
        <include><uri>model://table</uri><pose>7 2 3 0 0 1</pose></include>
        <light name="lamp" type="point"><pose>1 2 3 0 0 0</pose></light>"""
    world = write_world(tmp_path, content)
    imported = import_scene(str(world), tmp_path / 'out')
    scene = load_scene(str(tmp_path / 'out'))
    assert_same_scene(scene, imported)
    np.testing.assert_allclose(scene.objects[0].meshes[0].material.base_color, (1, 0, 0))
    with pytest.raises(SceneError, match='is neither a mesh file nor a world of Gazebo or USD'):
        import_scene('apartment', tmp_path / 'b', world=WorldOptions(classes={'a': 'b'}))


def test_class_patterns(tmp_path, write_file):
    path = write_file('classes.json', {'*chair*': 'chair'})
    assert read_class_patterns(path) == {'*chair*': 'chair'}
    path.write_text('[1]')
    with pytest.raises(ConfigError, match='by pattern'):
        read_class_patterns(path)
    with pytest.raises(ConfigError, match='does not exist'):
        read_class_patterns(tmp_path / 'none.json')


def secret_model(folder):
    """Write a model that no world is to read."""
    folder.mkdir(parents=True)
    (folder / 'model.sdf').write_text(f'<sdf version="1.6">{model(shape(BOX), "secret")}</sdf>')
    Image.new('RGB', (4, 4)).save(folder / 'secret.png')
    trimesh.creation.box((1, 1, 1)).export(folder / 'secret.stl')


OUTSIDE = {
    'include above': included('../../other/secret'),
    'include by model': included('model://../../other/secret'),
    'include by model and root': included('model://{secret}'),
    'include by package': included('package://a/../../../other/secret'),
    'include of an absolute path': included('{secret}'),
    'include of a file': included('file://{secret}/model.sdf'),
    'include of a link': included('model://link'),
    'model file above': included('model://above'),
    'model file that is a link': included('model://linked'),
    'mesh of a file': model(mesh('file://{secret}/secret.stl')),
    'mesh above': model(mesh('../../other/secret/secret.stl')),
    'mesh that is a link': model(mesh('link.stl')),
    'texture above': model(textured('../../other/secret/secret.png')),
    'texture of an absolute path': model(textured('{secret}/secret.png')),
    'system file': model(textured('/etc/passwd')),
    'device': included('file:///dev/zero'),
    'long': included('model://' + 'x' * 5000),
    'other machine': model(mesh('http://localhost/secret.stl')),
}


@pytest.mark.parametrize('name', OUTSIDE)
def test_worlds_name_nothing_outside_of_the_models(tmp_path, name):
    secret, home = tmp_path / 'other' / 'secret', tmp_path / 'home'
    secret_model(secret)
    home.mkdir()
    world = write_world(home, OUTSIDE[name].replace('{secret}', str(secret)))
    (home / 'worlds' / 'link.stl').symlink_to(secret / 'secret.stl')
    (home / 'models').mkdir()
    (home / 'models' / 'link').symlink_to(secret)
    (home / 'models' / 'linked').mkdir()
    (home / 'models' / 'linked' / 'model.sdf').symlink_to(secret / 'model.sdf')
    config = '<model><sdf version="1.6">../../../other/secret/model.sdf</sdf></model>'
    write_model(home, 'above', shape(BOX), config)
    with pytest.raises(SceneError, match=r'test\.world') as caught:
        load_gazebo_world(world)
    assert 'model' in str(caught.value).rpartition(';')[2]


def test_a_world_reads_above_its_folder_only_beside_worlds(tmp_path):
    secret_model(tmp_path / 'secret')
    world = write_world(tmp_path, model(mesh('../secret/secret.stl')), 'mine')
    with pytest.raises(SceneError, match='outside of the folders of models'):
        load_gazebo_world(world)
    assert only(load_gazebo_world(world, WorldOptions(models=[tmp_path / 'secret']))).name == 'm'


@pytest.mark.parametrize(
    ('name', 'found'),
    [
        ('coffee table', 'coffee table'),
        ('big coffee tables', 'coffee table'),
        ('kitchen table', 'table'),
        ('bookshelf', 'bookshelf'),
        ('chair with arms', 'chair'),
        ('mattresses', 'mattress'),
        ('dishes', 'dish'),
        ('glass', 'glass'),
        ('tablet', 'tablet'),
        ('anvil', 'anvil'),
        ('desk lamp', 'desk lamp'),
        ('bowl fruit', 'bowl'),
        ('sofa grey', 'sofa'),
    ],
)
def test_guessed_classes_are_matched_to_known_ones_by_their_words(name, found):
    known = ['Table', 'coffee_table', 'Chairs', 'mattress', 'dish', 'glass', 'glass door']
    known += ['desk', 'floor lamp', 'bowl', 'sofa']
    spelt = {'chair': 'chairs'}.get(found, found)
    assert match_known_class(name, known) == spelt


def test_known_classes_are_read_from_a_file_or_are_those_of_the_apartment(tmp_path):
    assert {'table', 'wall'} <= set(read_known_classes('apartment'))
    file = tmp_path / 'known.json'
    for data in (['cup', 'wall'], {'classes': [{'id': 1, 'name': 'cup'}, 'wall']}):
        file.write_text(json.dumps(data))
        assert read_known_classes(str(file)) == ('cup', 'wall')
    for data in ([], {'names': ['cup']}, {'classes': [{'id': 1}]}):
        file.write_text(json.dumps(data))
        with pytest.raises(ConfigError, match=r'known\.json must hold a list of class names'):
            read_known_classes(str(file))


def test_what_gazebo_has_built_in_needs_no_file(tmp_path):
    built_in = included('model://sun') + included('model://ground_plane')
    scene = load(tmp_path, built_in + model(f'<pose>5 0 2 0 0 0</pose>{shape(BOX)}'))
    ground, box = scene.objects
    assert (ground.name, scene.class_name(ground)) == ('ground_plane', 'ground plane')
    assert scene.label_set.by_id[ground.class_id].structure
    # Cut to the scene, with a metre around it.
    assert_box(ground, (3.5, -2, 0), (6.5, 2, 0))
    assert box.box.minimum[2] == pytest.approx(0)
    assert [light.name for light in scene.lights] == ['sun']


def test_all_that_is_missing_is_listed_at_once_and_can_be_left_out(tmp_path):
    hollow = tmp_path / 'models' / 'hollow'
    hollow.mkdir(parents=True)
    uris = ('model://gone', 'https://fuel/x', 'model://hollow')
    content = ''.join(map(included, uris)) + model(mesh('model://gone/a.dae') + shape(BOX))
    with pytest.raises(MissingFileError, match='names 4 files or models that') as caught:
        load(tmp_path, content)
    parts = ('model://gone is in none', 'https://fuel/x', 'model://gone/a.dae', 'no model.sdf')
    assert all(part in str(caught.value) for part in parts)
    world = write_world(tmp_path, content)
    import_scene(str(world), tmp_path / 'out', world=WorldOptions(skip_missing=True))
    recorded = json.loads((tmp_path / 'out' / 'scene.json').read_text())['left_out']
    assert all(any(part in line for line in recorded) for part in parts)
    scene = load_scene(str(tmp_path / 'out'))
    assert scene.left_out == tuple(recorded)
    assert only(scene).name == 'm'


def test_what_is_broken_or_outside_is_not_left_out(tmp_path):
    write_model(tmp_path, 'bad', '<link')
    with pytest.raises(SceneError, match='not valid XML'):
        load(tmp_path, included('model://bad'), skip_missing=True)
    (tmp_path / 'secret.stl').write_text('x')
    with pytest.raises(SceneError, match='outside'):
        load(tmp_path / 'models', model(mesh('../../secret.stl')), skip_missing=True)


def test_names_that_differ_only_in_case_are_found(tmp_path):
    folder = write_model(tmp_path, 'Table_A', shape(BOX))
    trimesh.creation.box((1, 2, 3)).export(folder / 'meshes' / 'Top.STL', file_type='stl')
    top = model(mesh('model://TABLE_A/Meshes/top.stl'), 'n')
    scene = load(tmp_path, included('model://table_a') + top)
    assert [item.name for item in scene.objects] == ['Table_A', 'n']
    # Of two that differ only in case none is meant.
    (tmp_path / 'models' / 'TABLE_a').mkdir()
    with pytest.raises(MissingFileError, match='model://table_A'):
        load(tmp_path, included('model://table_A'))


def test_a_broken_model_config_is_a_warning(tmp_path):
    write_model(tmp_path, 'table', shape(BOX), '<model><sdf>model.sdf')
    with pytest.warns(OsmabenchWarning, match=r'model\.config.*model\.sdf in the same folder'):
        assert load_one(tmp_path, included('model://table')).name == 'table'


def test_what_a_scene_element_says_is_ignored_with_a_word(tmp_path):
    ignored = '<scene><ambient>1 1 1 1</ambient><shadows>0</shadows></scene>'
    with pytest.warns(OsmabenchWarning, match='<ambient>, <shadows> of <scene> are ignored'):
        load(tmp_path, ignored + model(shape(BOX)))


def test_textures_are_found_anywhere_below_a_named_folder(tmp_path):
    pytest.importorskip('collada', reason='Collada files need pycollada')
    shapes = mesh('model://m/meshes/t.dae') + textured('model://m/far.png')
    folder = write_model(tmp_path, 'm', shapes)
    (folder / 'meshes' / 't.dae').write_text(COLLADA)
    pictures = tmp_path / 'pictures' / 'deep' / 'down'
    pictures.mkdir(parents=True)
    Image.new('RGB', (2, 2), (40, 50, 60)).save(pictures / 'P.png')
    Image.new('RGB', (2, 2), (70, 80, 90)).save(pictures / 'far.png')
    include = included('model://m')
    with pytest.raises(MissingFileError, match='2 files or models'):
        load(tmp_path, include)
    scene = load(tmp_path, include, skip_missing=True)
    triangle, box = only(scene).meshes
    assert tuple(triangle.material.texture[0, 0]) == (204, 204, 204)
    assert box.material.base_color == (0.8, 0.8, 0.8)
    assert len(scene.left_out) == 2
    item = load_one(tmp_path, include, textures=[tmp_path / 'pictures'])
    found = [tuple(part.material.texture[0, 0]) for part in item.meshes]
    assert found == [(40, 50, 60), (70, 80, 90)]


def test_a_model_far_from_the_rest_is_left_out_and_named(tmp_path):
    places = {'a': '0 0 0', 'b': '2 0 0', 'c': '9 3 0', 'book': '0 0 343000', 'lost': '0 900 0'}
    models = [model(shape(BOX, f'{place} 0 0 0'), name) for name, place in places.items()]
    with pytest.warns(OsmabenchWarning) as caught:
        scene = load(tmp_path, ''.join(models))
    texts = [str(item.message) for item in caught if 'from the rest' in str(item.message)]
    assert [item.name for item in scene.objects] == ['a', 'b', 'c']
    assert len(texts) == len(scene.left_out) == 2
    assert '"book" is 3.43e+05 m from the rest' in texts[0]
    assert '"lost" is 895 m from the rest, which is 10 m large' in texts[1]
