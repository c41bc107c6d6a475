import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import trimesh
from support.habitat_files import textured_box, write_dataset, write_json
from support.world.scenes import assert_box, load_small_house

from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.scenes.habitat.loader import read_lights
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import LightKind
from osmabench_ros.scenes.specification import SceneSpecification, facts
from osmabench_ros.semantics.labels import UNLABELLED

BOX = (1.0, 2.0, 4.0)


def raised_box():
    """Return a box with its lower side at y = 0."""
    mesh = textured_box(BOX)
    mesh.apply_translation((0, BOX[1] / 2, 0))
    return mesh


def entry(**keys):
    return {'template_name': 'table', 'translation_origin': 'asset_local', **keys}


def write_table(tmp_path, instances=None, attributes=None, mesh=None, **parts):
    """Write a data set with a table, by default once in its scene."""
    objects = {'table': (mesh or raised_box(), {'semantic_id': 1, **(attributes or {})})}
    instances = [entry()] if instances is None else instances
    return write_dataset(tmp_path, objects=objects, instances=instances, **parts)


def load(tmp_path, *args, **parts):
    return load_scene(str(write_table(tmp_path, *args, **parts)))


def test_world_is_z_up(tmp_path):
    scene = load(tmp_path, [entry(translation=[10, 20, 30])])
    (item,) = scene.objects
    # Habitat (x, y, z) is (x, -z, y) here.
    assert_box(item, (9.5, -32, 20), (10.5, -28, 22))
    np.testing.assert_allclose(item.pose.translation, (10, -30, 20))
    assert scene.class_name(item) == 'coffee table'
    assert (scene.dataset, scene.name, item.name) == ('test', 'flat', 'table.1')
    assert item.attributes == {'width_m': 1.0, 'depth_m': 4.0, 'height_m': 2.0}


def test_rotation_is_w_x_y_z_and_about_habitat_axes(tmp_path):
    quarter = [math.cos(math.pi / 4), 0, math.sin(math.pi / 4), 0]
    scene = load(tmp_path, [entry(rotation=quarter)])
    # A quarter turn left about the vertical swaps the footprint and takes +x to +y.
    np.testing.assert_allclose(scene.objects[0].box.size, (4, 1, 2), atol=1e-5)
    np.testing.assert_allclose(scene.objects[0].pose.rotation @ [1, 0, 0], (0, 1, 0), atol=1e-9)


def test_faces_point_outwards(tmp_path):
    scene = load(tmp_path, [entry(), entry(non_uniform_scale=[-1, 1, 1], translation=[9, 0, 0])])
    for item in scene.objects:
        (mesh,) = item.meshes
        solid = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
        assert solid.volume == pytest.approx(8, rel=1e-5)
        outward = mesh.normals[mesh.faces[:, 0]]
        assert ((solid.face_normals * outward).sum(axis=1) > 0.9).all()


def test_origin_is_the_middle_of_the_box_unless_told(tmp_path):
    by_center = {'template_name': 'table', 'translation': [0, 5, 0]}
    scene = load(tmp_path, [by_center])
    np.testing.assert_allclose(scene.objects[0].box.minimum[2], 4, atol=1e-5)
    given = load(tmp_path / 'b', [by_center], {'COM': [0, 0.5, 0]})
    np.testing.assert_allclose(given.objects[0].box.minimum[2], 4.5, atol=1e-5)
    local = load(tmp_path / 'c', [by_center], scene={'translation_origin': 'asset_local'})
    np.testing.assert_allclose(local.objects[0].box.minimum[2], 5, atol=1e-5)


def test_scales_multiply(tmp_path):
    attributes = {'scale': [2, 1, 1], 'units_to_meters': 0.5}
    scene = load(tmp_path, [entry(uniform_scale=3.0, non_uniform_scale=[1, 1, 2])], attributes)
    np.testing.assert_allclose(scene.objects[0].box.size, (3, 12, 3), atol=1e-4)


def test_up_and_front_turn_the_asset(tmp_path):
    # An asset with z up, as Blender has it: its y becomes Habitat's -z, the world's y.
    scene = load(tmp_path, [entry()], {'up': [0, 0, 1], 'front': [0, 1, 0]})
    assert_box(scene.objects[0], (-0.5, 0, -2), (0.5, 2, 2))


def test_texture_rows_start_at_v_0(tmp_path):
    (mesh,) = load(tmp_path).objects[0].meshes
    texture = mesh.material.texture
    assert texture.dtype == np.uint8
    assert mesh.material.base_color == (1.0, 1.0, 1.0)
    # The face towards Habitat's +z (the world's -y) is red in its upper half.
    face = mesh.normals[:, 1] < -0.9
    for vertex, uv in zip(mesh.vertices[face], mesh.uv[face], strict=True):
        row = int(np.clip(uv[1] * 16, 0, 15))
        expected = (255, 0, 0) if vertex[2] > 1 else (0, 255, 0)
        assert tuple(texture[row, 8]) == expected


def test_colour_factors_are_linear_in_the_file(tmp_path):
    mesh = raised_box()
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=[0.5, 0.0, 1.0, 1.0])
    mesh.visual = trimesh.visual.TextureVisuals(uv=mesh.visual.uv, material=material)
    (loaded,) = load(tmp_path, mesh=mesh).objects[0].meshes
    np.testing.assert_allclose(loaded.material.base_color, (0.735, 0, 1), atol=0.005)


def test_rooms_come_from_regions(tmp_path):
    loop = [[0, 0, 0], [-5, 0, 0], [-5, 0, 5], [0, 0, 5]]
    regions = [
        {'name': 'bath_1', 'label': 'Bathroom', 'min_bounds': [0, 0, -5], 'max_bounds': [5, 3, 0]},
        {'name': 'hall', 'poly_loop': loop, 'floor_height': 0.0, 'extrusion_height': 2.5},
    ]
    instances = [entry(translation=[2, 0, -2.5]), entry(translation=[-2, 0, 2.5])]
    scene = load(tmp_path, instances, regions=regions)
    bath, hall = scene.rooms
    assert (bath.name, bath.label, hall.label) == ('bath 1', 'bathroom', 'hall')
    np.testing.assert_allclose(bath.box.minimum, (0, 0, 0))
    assert_box(hall, (-5, -5, 0), (0, 0, 2.5))
    assert [item.room_id for item in scene.objects] == [bath.id, hall.id]


def test_stage_is_an_unlabelled_object(tmp_path):
    write_json(tmp_path / 'stages' / 'hull.stage_config.json', {'render_asset': 'hull.glb'})
    trimesh.creation.box((10, 3, 10)).export(tmp_path / 'stages' / 'hull.glb')
    # Habitat-Sim does not move stages.
    stage = {'template_name': 'stages/hull', 'translation': [1, 2, 3], 'uniform_scale': 1.0}
    scene = load(tmp_path, scene={'stage_instance': stage})
    assert scene.objects[0].name == 'stage'
    assert scene.objects[0].class_id == UNLABELLED
    assert [item.instance_id for item in scene.objects] == [1, 2]
    assert_box(scene.objects[0], (-5, -5, -1.5), (5, 5, 1.5))


@pytest.mark.parametrize(
    ('stages', 'config', 'upright'),
    [
        ({}, None, True),
        ({'default_attributes': {'scale': [1, 1, 1]}}, None, False),
        ({'default_attributes': {'up': [0, 0, 1], 'front': [0, 1, 0]}}, None, True),
        ({}, {'render_asset': 'hull.glb'}, False),
        ({}, {'up': [0, 0, 1], 'front': [0, 1, 0]}, True),
    ],
)
def test_a_stage_that_is_listed_as_a_glb_has_the_axes_that_habitat_gives_it(
    tmp_path, stages, config, upright
):
    (tmp_path / 'stages').mkdir()
    trimesh.creation.box((10, 8, 3)).export(tmp_path / 'stages' / 'hull.glb')
    if config is not None:
        write_json(tmp_path / 'stages' / 'hull.stage_config.json', config)
    dataset = {'stages': {'paths': {'.glb': ['stages']}, **stages}}
    instance = {'stage_instance': {'template_name': 'hull'}}
    scene = load(tmp_path, [], scene=instance, dataset=dataset)
    expected = (10, 8, 3) if upright else (10, 3, 8)
    np.testing.assert_allclose(scene.objects[0].box.size, expected, atol=1e-5)


def test_class_0_named_unknown_means_no_class(tmp_path):
    classes = [{'id': 0, 'name': 'unknown'}, {'id': 1, 'name': 'table'}, {'id': 4, 'name': 'Wall'}]
    scene = load(tmp_path, [entry(semantic_id=0), entry()], classes=classes)
    assert [item.class_id for item in scene.objects] == [UNLABELLED, 1]
    assert [item.name for item in scene.label_set.classes] == ['table', 'wall']
    assert [item.structure for item in scene.label_set.classes] == [False, True]


def test_lights_are_in_the_rooms_they_hang_in(tmp_path):
    bounds = {'min_bounds': [0, 0, 0], 'max_bounds': [3, 3, 3]}
    region = {'name': 'bath', 'label': 'bathroom', **bounds}
    entries = {
        'lamp': {'position': [1.0, 2.5, 1.0], 'type': 'point'},
        'away': {'position': [9.0, 2.5, 1.0], 'type': 'point'},
        'sun': {'direction': [0, -1, 0], 'type': 'directional'},
        'torch': {'position': [1, 1, 1], 'type': 'point', 'position_model': 'camera'},
    }
    scene = load(tmp_path, regions=[region], lights={'day': {'lights': entries}})
    [room] = scene.rooms
    found = {light.name: light.room_id for light in scene.lights}
    assert found == {'lamp': room.id, 'away': None, 'sun': None, 'torch': None}


def test_lights_are_converted_and_scaled():
    entries = {
        'lamp': {'position': [1, 2, 3], 'intensity': 4.0, 'color': [1, 0.9, 0.8]},
        'dark': {'position': [0, 1, 0], 'intensity': -5.0, 'type': 'point'},
        'sun': {'direction': [0, -1, 1], 'intensity': 9.0, 'type': 'directional'},
        'torch': {'position': [0, 0, -1], 'position_model': 'camera', 'type': 'point'},
    }
    scales = {'positive_intensity_scale': 2.0, 'negative_intensity_scale': 0.1}
    lamp, dark, sun, torch = read_lights({**scales, 'lights': entries}, 'test')
    assert lamp.position == (1, -3, 2)
    assert (lamp.intensity, dark.intensity) == (8.0, -0.5)
    assert (lamp.lamp, dark.lamp, sun.lamp, torch.lamp) == (True, False, False, True)
    assert sun.kind is LightKind.DIRECTIONAL
    assert sun.direction == (0, -1, -1)
    assert torch.attached_to_camera
    assert torch.position == (0, 0, 1)


def test_lamps_are_what_the_setup_says_and_else_what_a_rule_says(tmp_path):
    said = {
        'a': {'position': [0, 1, 0], 'lamp': False},
        'b': {'position': [0, 2, 0], 'lamp': True},
    }
    entries = {**said, 'weak': {'position': [0, 1, 0], 'intensity': 0.01}}
    found = {light.name: light.lamp for light in read_lights({'lights': entries}, 'test')}
    assert found == {'a': False, 'b': True, 'weak': True}
    words = load(tmp_path / 'said', lights={'day': {'lights': said}}).lamps_in_words
    assert words == 'lamps of scene test/flat: "b" of 2 lights (as it says)'
    words = load(tmp_path / 'half', lights={'day': {'lights': entries}}).lamps_in_words
    assert words.startswith('lamps of scene test/flat: "b", "weak" of 3 lights (it does not say')
    with pytest.raises(SceneError, match='light "a": "lamp" must be true or false, not 1'):
        read_lights({'lights': {'a': {'lamp': 1}}}, 'test')


def test_a_light_without_a_type_is_what_it_has():
    entries = {'a': {'direction': [0, -1, 0]}, 'b': {'position': [0, 1, 0]}, 'c': {'type': 'Spot'}}
    kinds = [light.kind for light in read_lights({'lights': entries}, 'test')]
    assert kinds == [LightKind.DIRECTIONAL, LightKind.POINT, LightKind.SPOT]


def test_templates_that_the_configuration_itself_describes(tmp_path):
    changed = {'original_file': 'objects/table.object_config.json', 'template_handle': 'big table'}
    objects = {
        'paths': {'.json': ['objects/*.object_config.json']},
        'configs': [
            {**changed, 'attributes': {'scale': [2, 2, 2]}},
            {'template_handle': 'new', 'attributes': {'render_asset': 'objects/table.glb'}},
        ],
    }
    lights = {'day': {'lights': {'a': {'intensity': 1.0}, 'b': {'intensity': 1.0}}}}
    dusk = {
        'original_file': 'day.lighting_config.json',
        'template_handle': 'dusk',
        'attributes': {'lights': {'b': {'intensity': 0.1}}},
    }
    setups = {'paths': {'.json': ['lights']}, 'configs': [dusk]}
    scene = load(
        tmp_path,
        [entry(), entry(template_name='big table'), entry(template_name='new')],
        dataset={'objects': objects, 'light_setups': setups},
        lights=lights,
        scene={'default_lighting': 'dusk'},
    )
    assert [item.name for item in scene.objects] == ['table.1', 'big table.1', 'new.1']
    heights = [item.box.size[2] for item in scene.objects]
    np.testing.assert_allclose(heights, [2, 4, 2], atol=1e-5)
    assert {light.name: light.intensity for light in scene.lights} == {'a': 1.0, 'b': 0.1}
    objects['configs'][0]['original_file'] = 'objects/tabel.object_config.json'
    with pytest.raises(SceneError, match='changes "objects/tabel.object_config.json"'):
        load(tmp_path / 'b', dataset={'objects': objects})
    for i, (cells, message) in enumerate(
        [({}, 'must be a list'), ([{'attributes': {}}], '"original_file" or a "template_handle"')]
    ):
        objects['configs'] = cells
        with pytest.raises(SceneError, match=message):
            load(tmp_path / f'c{i}', dataset={'objects': objects})


def test_a_part_of_a_template_name_will_do_if_only_one_has_it(tmp_path):
    objects = {name: (raised_box(), {}) for name in ('oak_table', 'oak_chair')}
    path = write_dataset(tmp_path, objects=objects, instances=[entry()])
    assert load_scene(str(path)).objects[0].name == 'oak_table.1'
    oak = [entry(template_name='oak')]
    ambiguous = write_dataset(tmp_path / 'b', objects=objects, instances=oak)
    with pytest.raises(SceneError, match='no template "oak"'):
        load_scene(str(ambiguous))


def test_a_descriptor_named_like_its_scene(tmp_path):
    token = '%%CONFIG_NAME_AS_ASSET_FILENAME%%'
    dataset = {
        'scene_instances': {
            'default_attributes': {'semantic_scene_instance': f'{token}.semantic_config.json'},
            'paths': {'.json': ['scenes']},
        },
        'semantic_scene_descriptor_instances': {'paths': {'.json': ['ssd/*']}},
    }
    region = {'name': 'hall', 'min_bounds': [-9, -1, -9], 'max_bounds': [9, 3, 9]}
    write_json(tmp_path / 'ssd' / 'flat.semantic_config.json', {'region_annotations': [region]})
    objects = {'table': (raised_box(), {})}
    path = write_dataset(tmp_path, objects=objects, instances=[entry()], dataset=dataset)
    instance = tmp_path / 'scenes' / 'flat.scene_instance.json'
    described = json.loads(instance.read_text())
    del described['semantic_scene_instance']
    write_json(instance, described)
    write_json(tmp_path / 'scenes' / 'other.scene_instance.json', described)
    scene = load_scene(str(path), scene='flat')
    assert [room.name for room in scene.rooms] == ['hall']
    assert scene.label_set.classes == ()
    assert load_scene(str(path), scene='other').rooms == ()


def test_default_lighting(tmp_path):
    setups = {'day': {'lights': {'a': {'intensity': 1.0}}}, 'night': {'lights': {}}}
    named = load(tmp_path, lights=setups, scene={'default_lighting': 'lights/day'})
    assert [light.name for light in named.lights] == ['a']
    ambiguous = load(tmp_path / 'b', lights=setups)
    assert ambiguous.lights == ()
    only = load(tmp_path / 'c', lights={'day': setups['day']})
    assert len(only.lights) == 1
    none = load(tmp_path / 'd', lights=setups, scene={'default_lighting': 'no_lights'})
    assert none.lights == ()


def test_digest_follows_every_file(tmp_path):
    first = load(tmp_path / 'a')
    assert load(tmp_path / 'b').source_sha256 == first.source_sha256
    moved = load(tmp_path / 'c', [entry(translation=[1, 0, 0])])
    other = load(tmp_path / 'd', mesh=textured_box((1, 1, 1)))
    assert len({first.source_sha256, moved.source_sha256, other.source_sha256}) == 3


@pytest.mark.parametrize(
    ('broken', 'message'),
    [
        ({'instances': [entry(template_name='tabel')]}, 'Did you mean "table"'),
        ({'instances': [{}]}, 'no "template_name"'),
        ({'instances': [entry(semantic_id=9)]}, 'semantic id 9, which has no name'),
        ({'instances': [entry(semantic_id=70000)]}, '70000; ids must lie in 0 to 65534'),
        ({'instances': [entry(translation=[0, float('nan'), 0])]}, 'is not JSON'),
        ({'instances': [entry(translation=[0, 0])]}, '"translation" must be 3'),
        ({'instances': [entry(rotation=[0, 0, 0, 0])]}, 'quaternion of length 0'),
        ({'instances': [entry(uniform_scale=0)]}, 'must not be 0'),
        ({'instances': 7}, '"object_instances" must be a list'),
        ({'classes': [{'id': 1}]}, 'classes: 0.name: Field required'),
        ({'classes': [{'id': 1, 'name': 'a'}, {'id': 1, 'name': 'b'}]}, 'more than once'),
        ({'classes': [{'id': 99999, 'name': 'a'}]}, '99999'),
        ({'attributes': {'render_asset': 'gone.glb'}}, r'gone\.glb does not exist'),
        ({'attributes': {'render_asset': ''}}, 'no "render_asset"'),
        ({'attributes': {'up': [0, 2, 0]}}, 'perpendicular unit vectors'),
        ({'scene': {'default_lighting': 'moon'}}, 'no light setup "moon"'),
        ({'scene': {'semantic_scene_instance': 'other'}}, 'no semantic scene descriptor "other"'),
        ({'scene': {'stage_instance': {'template_name': 'hul'}}}, 'no template "hul"'),
        (
            {'scene': {'articulated_object_instances': [{'template_name': 'fridge'}]}},
            '"articulated_objects" has no template "fridge"',
        ),
        ({'lights': {'d': {'lights': {'x': {'type': 'lazer'}}}}}, 'light "x" has type "lazer"'),
        ({'regions': [{'name': 'r'}]}, 'region "r" has neither bounds nor'),
    ],
)
def test_faults_are_named(tmp_path, broken, message):
    with pytest.raises(SceneError, match=message):
        load(tmp_path, **broken)


def test_files_that_are_missing_or_broken(tmp_path):
    with pytest.raises(SceneError, match='does not exist'):
        load_scene(str(tmp_path / 'x.scene_dataset_config.json'))
    path = write_table(tmp_path)
    with pytest.raises(SceneError, match='no scene "flut". Did you mean "flat"'):
        load_scene(str(path), scene='flut')
    asset = tmp_path / 'objects' / 'table.glb'
    asset.write_bytes(asset.read_bytes()[:200])
    with pytest.raises(SceneError, match=r'table\.glb: ValueError: it claims \d+ bytes and has'):
        load_scene(str(path))
    (tmp_path / 'scenes' / 'flat.scene_instance.json').write_text('{"a": ')
    with pytest.raises(SceneError, match='is not JSON'):
        load_scene(str(path))


def moved_behind_links(root, place):
    """Move the files of a data set, and leave links to them."""
    place.mkdir(parents=True)
    for number, path in enumerate(sorted(path for path in root.rglob('*') if path.is_file())):
        target = place / f'{number}'
        path.rename(target)
        path.symlink_to(os.path.relpath(target, path.parent))


@pytest.fixture
def dataset(tmp_path):
    """Return the folder of a small data set; outside of it is a secret mesh."""
    folder = tmp_path / 'hub' / 'snapshots' / '0a1b' / 'set'
    write_table(folder)
    raised_box().export(tmp_path / 'secret.glb')
    return folder


def config_of(folder):
    (path,) = folder.glob('*.scene_dataset_config.json')
    return str(path)


@pytest.mark.parametrize(
    'name',
    ['{secret}', '../../../../../secret.glb', 'link.glb', 'folder/secret.glb', '.', 'x' * 5000],
)
@pytest.mark.parametrize('suffix', ['.glb', '.urdf'])
def test_a_data_set_names_nothing_outside(tmp_path, dataset, name, suffix):
    secret = tmp_path / 'secret.glb'
    if suffix == '.urdf':
        secret = secret.rename(tmp_path / 'secret.urdf')
    (dataset / 'objects' / f'link{suffix}').symlink_to(secret)
    (dataset / 'objects' / 'folder').symlink_to(tmp_path)
    named = name.replace('{secret}', str(secret)).replace('.glb', suffix)
    write_json(dataset / 'objects' / 'table.object_config.json', {'render_asset': named})
    with pytest.raises(SceneError, match='object "table'):
        load_scene(config_of(dataset))


@pytest.mark.parametrize('named', ['../*.glb', '/etc/*', 'objects/../../*'])
def test_patterns_of_a_data_set_stay_in_it(dataset, named):
    path = Path(config_of(dataset))
    data = json.loads(path.read_text())
    data['objects']['paths']['.json'] = [named]
    path.write_text(json.dumps(data))
    with pytest.raises(SceneError, match=r'leaves the data set|is not a pattern'):
        load_scene(str(path))


def test_a_data_set_behind_a_link_and_a_download_from_hugging_face_load(tmp_path, dataset):
    (tmp_path / 'data').symlink_to(dataset)
    assert load_scene(config_of(tmp_path / 'data')).objects
    moved_behind_links(dataset, tmp_path / 'hub' / 'blobs')
    assert load_scene(config_of(dataset)).objects


def test_links_lead_only_to_folders_that_the_user_names(tmp_path, dataset, monkeypatch):
    moved_behind_links(dataset, tmp_path / 'elsewhere')
    (tmp_path / 'hub' / 'blobs').symlink_to(tmp_path / 'elsewhere')
    with pytest.raises(SceneError, match='outside of .* OSMABENCH_LINKED_FOLDERS'):
        load_scene(config_of(dataset))
    monkeypatch.setenv('OSMABENCH_LINKED_FOLDERS', f'/nowhere:{tmp_path / "elsewhere"}')
    assert load_scene(config_of(dataset)).objects


def test_unknown_references():
    with pytest.raises(SceneError, match='Did you mean "apartment"'):
        load_scene('appartment')
    with pytest.raises(SceneError, match='is called "seed_3", not "seed_4"'):
        load_scene('apartment', scene='seed_4', seed=3)
    with pytest.raises(SceneError, match='is not a scene this package can load'):
        load_scene(__file__)


@pytest.fixture(scope='module')
def small_house():
    return load_small_house()


def test_small_house(small_house):
    assert small_house.name == 'small_house'
    assert len(small_house.objects) == 88
    assert len(small_house.label_set.classes) == 39
    triangles = sum(len(mesh.faces) for item in small_house.objects for mesh in item.meshes)
    assert 140_000 < triangles < 155_000
    np.testing.assert_allclose(small_house.box.size[:2], (19, 11.4), atol=0.05)
    assert all(item.class_id != UNLABELLED for item in small_house.objects)
    structure = {c.name for c in small_house.label_set.classes if c.structure}
    assert structure == {'wall', 'floor', 'ceiling', 'door', 'window'}
    assert [light.lamp for light in small_house.lights] == [True, True, True, False]


def test_small_house_graph(small_house):
    graph = build_ground_truth_graph(small_house)
    found = {
        (graph.by_id[e.source].source_id, e.type, graph.by_id[e.target].source_id)
        for e in graph.edges
    }
    assert {
        ('Bed_01.1', 'on', 'FloorB_01.1'),
        ('CoffeeTable_01.1', 'on', 'Carpet_01.1'),
        ('Tablet_01.1', 'on', 'CoffeeTable_01.1'),
        ('Tableware_01.1', 'on', 'KitchenTable_01.1'),
        ('Chandelier_01.1', 'attached to', 'RoomCeiling_01.1'),
        ('PortraitC_01.1', 'attached to', 'HouseWallB_01.1'),
        ('CookingBench_01.1', 'under', 'Rangehood_01.1'),
        ('Handle_01.1', 'attached to', 'Door_01.1'),
    } <= found


NAME = 'furniture_stage__scene_000'
PLACED = (
    ('room_geometry_floor', 'floor', 'semantic_floor', (5, 0.1, 4), (0, -0.05, 0)),
    ('room_geometry_north_wall', 'wall', 'wall_north_wall', (5, 2.5, 0.1), (0, 1.25, -2)),
    ('office_desk_0', 'object', 'desk_top_visual', (1.2, 0.04, 0.6), (1, 0.72, 0)),
    ('office_desk_0', 'object', 'desk_body_visual', (1.1, 0.7, 0.5), (1, 0.35, 0)),
    ('chair_1', 'object', 'chair_visual', (0.4, 0.8, 0.4), (1, 0.4, 0.6)),
    ('chair_2', 'object', 'chair_visual', (0.4, 0.8, 0.4), (-1, 0.4, 0.6)),
)


def packed(root):
    """Write the data set; templates are shared, ids run on from 1 and 1000."""
    instances, summary = [], []
    for number, (thing, category, template, size, place) in enumerate(PLACED):
        mesh = root / 'meshes' / f'{template}.obj'
        mesh.parent.mkdir(parents=True, exist_ok=True)
        trimesh.creation.box(size).export(mesh)
        config = {
            'render_asset': str(mesh), 'collision_asset': str(mesh), 'mass': 1.0,
            'semantic_id': 1 + number if category != 'object' else 1000 + number,
            'scale': [1, 1, 1], 'shader_type': 'phong',
        }  # fmt: skip
        write_json(root / f'objects/{NAME}__{template}.object_config.json', config)
        entry = {
            'translation': list(place), 'rotation': [1, 0, 0, 0],
            'translation_origin': 'asset_local', 'motion_type': 'STATIC',
        }  # fmt: skip
        instances.append({'template_name': f'{NAME}__{template}', **entry})
        named = {'_meta_instance_name': thing, '_meta_category': category}
        summary.append({'template_name': template, **entry, **named})
    floor = root / 'meshes' / 'floor.glb'
    trimesh.creation.box((6, 0.02, 5)).export(floor)
    stage = {'render_asset': str(floor), 'up': [0, 1, 0], 'front': [0, 0, -1]}
    write_json(root / f'stages/{NAME}.stage_config.json', stage)
    scene = {'stage_instance': {'template_name': NAME}, 'object_instances': instances}
    write_json(root / f'scenes/{NAME}.scene_instance.json', scene)
    write_json(root / f'debug/{NAME}.debug_summary.json', {'instances': summary})
    paths = {'stages': 'stage_config', 'objects': 'object_config'}
    config = {key: {'paths': {f'.{kind}.json': [f'{key}/']}} for key, kind in paths.items()}
    config['scene_instances'] = {'paths': {'.scene_instance.json': ['scenes/']}}
    return write_json(root / 'sceneSmith.scene_dataset_config.json', config)


def test_things_have_names_and_are_whole(tmp_path):
    scene = load_scene(str(packed(tmp_path)), scene=NAME)
    of = {item.name: item for item in scene.objects}
    assert {scene.class_name(of[name]) for name in ('chair_1', 'chair_2')} == {'chair'}
    assert scene.class_name(of['office_desk_0']) == 'office desk'
    assert [item.structure for item in scene.label_set.classes] == [False, True, False, True]
    desk = of['office_desk_0'].box
    np.testing.assert_allclose(desk.minimum, [0.4, -0.3, 0], atol=1e-6)
    np.testing.assert_allclose(desk.maximum, [1.6, 0.3, 0.74], atol=1e-6)
    assert of['office_desk_0'].attributes['height_m'] == pytest.approx(0.74)
    wanted = {
        'room': 'office',
        'objects': [{'class': 'chair', 'count': 3}, {'class': 'office desk'}],
        'relations': [{'subject': 'office desk', 'relation': 'next to', 'object': 'chair'}],
    }
    graph = build_ground_truth_graph(scene)
    specification = SceneSpecification.model_validate({'name': 'office', 'rooms': [wanted]})
    assert [fact.holds for fact in facts(specification, graph)] == [False, True, True]


def test_a_summary_of_another_scene_is_refused(tmp_path):
    path = packed(tmp_path)
    write_json(tmp_path / f'debug/{NAME}.debug_summary.json', {'instances': []})
    with pytest.raises(SceneError, match='names 0 instances, the scene has 6'):
        load_scene(str(path))
