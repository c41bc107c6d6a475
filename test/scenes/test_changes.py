"""Changes of scenes: meshes, graph, light, pixels and navigation after them, and refusals."""

import numpy as np
import pytest
import yaml
from pydantic import TypeAdapter
from support.world.runs import small_config
from support.world.scenes import (
    CAMERA,
    LABELS,
    box_object,
    camera_at,
    door_scene,
    render_in,
    room_scene,
)

from osmabench_ros.base.strict import validated
from osmabench_ros.bringup.definition import bridge_settings
from osmabench_ros.cli.scene import export as export_scene
from osmabench_ros.errors import ConfigError, OsmabenchError, SceneError
from osmabench_ros.ros.node.settings import BridgeSettings
from osmabench_ros.runs.config import MatrixConfig, SceneConfig
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.run_manifest import scene_digest
from osmabench_ros.scenes.changes import (
    Changes,
    apply_changes,
    find_carried_objects,
    find_collision,
    select_lights_of,
)
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Light, Lighting, Material, Scene, SceneObject
from osmabench_ros.scenes.solids import box, make_mesh
from osmabench_ros.scenes.writing import write_scene_folder
from osmabench_ros.semantics.labels import COLOR_EXAMPLES
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator
from osmabench_ros.simulation.walkable_grid import WalkableGrid


def made(scene, *changes):
    return apply_changes(scene, TypeAdapter(Changes).validate_python(list(changes)))


def configured(*changes):
    return validated(SceneConfig, {'changes': list(changes)}, 'a scene')


def named(scene, name):
    return next(item for item in scene.objects if item.name == name)


def carriers(scene):
    """Return the carrier of each carried object, by name, from the scene graph."""
    graph = build_ground_truth_graph(scene)
    names = {node.id: node.source_id for node in graph.nodes}
    return {names[e.source]: names[e.target] for e in graph.edges if e.type == 'on'}


def seen_from(scene, lighting, *at):
    simulator = OpenGLSimulator(scene, CAMERA)
    try:
        return render_in(simulator, lighting, camera_at(*at))
    finally:
        simulator.close()


def test_a_thing_moves_with_all_that_it_carries_and_nothing_else_does():
    top = box_object(8, 'ball', (0.95, -0.05, 0.9), (1.05, 0.05, 1.0))
    scene = room_scene(extra=(top,))
    group = [item.name for item in find_carried_objects(scene, named(scene, 'box_6'))]
    assert group == ['box_7', 'ball_8']
    moved = made(scene, {'kind': 'move', 'object': 'box_6', 'offset_m': [-1.5, 0.5, 0.0]})
    for item in scene.objects:
        shift = named(moved, item.name).world_vertices - item.world_vertices
        expected = [-1.5, 0.5, 0.0] if item.name in ('box_6', *group) else [0, 0, 0]
        np.testing.assert_allclose(shift, np.broadcast_to(expected, shift.shape), atol=1e-6)
    assert carriers(moved)['box_7'] == 'box_6'
    # The scene that was changed is as before.
    assert named(scene, 'box_6').box.minimum[0] == pytest.approx(0.6)


def test_a_turn_is_about_the_middle_and_to_the_left():
    turned = made(room_scene(), {'kind': 'move', 'object': 'box_6', 'turn_deg': 90})
    np.testing.assert_allclose(named(turned, 'box_6').box.minimum, [0.5, -0.4, 0.0], atol=1e-6)
    corner = named(turned, 'box_6').pose.transform(np.array([0.4, 0.0, 0.0]))
    np.testing.assert_allclose(corner, [1.0, 0.4, 0.35], atol=1e-6)


def test_what_carries_another_thing_goes_with_it_or_not_at_all():
    scene = room_scene()
    with pytest.raises(SceneError, match=r'"box_7" would float.*remove it first'):
        made(scene, {'kind': 'remove', 'object': 'box_6'})
    gone = made(scene, {'kind': 'remove', 'object': 'box_6', 'carried': True})
    names = [{item.name for item in each.objects} for each in (scene, gone)]
    assert names[0] - names[1] == {'box_6', 'box_7'}
    in_turn = made(scene, *({'kind': 'remove', 'object': name} for name in ('box_7', 'box_6')))
    assert [i.name for i in in_turn.objects] == [i.name for i in gone.objects]


def test_a_thing_like_another_comes_where_there_is_room():
    copy = {'kind': 'add', 'name': 'third', 'like': 'box_7', 'position_m': [-1, 1, 0]}
    scene = made(room_scene(), copy)
    new = named(scene, 'third')
    assert new.instance_id == 8
    np.testing.assert_allclose(new.box.center, [-1, 1, 0.1], atol=1e-6)
    assert carriers(scene)['third'] == 'floor_1'
    for where, fault in (
        ([1.0, 0.0, 0.3], '"third" would collide with "box_6"'),
        ([-1.0, 1.0, 0.5], '"third" would float'),
        ([4.5, 0.0, 0.0], '"third" would float'),
        ([2.95, 0.0, 0.0], '"third" would collide with "wall_2"'),
    ):
        with pytest.raises(SceneError, match=fault):
            made(room_scene(), {**copy, 'position_m': where})


def test_a_mesh_file_comes_with_the_class_that_it_is_said_to_have(tmp_path):
    cube = SceneObject(1, 'cube', LABELS.id_of('ball'), (make_mesh(box((0.2, 0.4, 0.6))),))
    write_scene_folder(Scene('test', 'cube', LABELS, (cube,)), tmp_path / 'cube')
    file = str(tmp_path / 'cube' / 'scene.glb')
    new = {'kind': 'add', 'name': 'ball', 'file': file, 'label': 'ball', 'position_m': [-1, 0, 0]}
    scene = made(room_scene(), new)
    item = named(scene, 'ball')
    assert scene.class_name(item) == 'ball'
    # The file is y-up, and is upright in the z-up world.
    np.testing.assert_allclose(item.box.size, [0.2, 0.4, 0.6], atol=1e-5)
    assert item.attributes['height_m'] == pytest.approx(0.6)
    with pytest.raises(SceneError, match=r'no class "bull"\. Did you mean "ball"'):
        made(room_scene(), {**new, 'label': 'bull'})


def test_another_thing_takes_the_place_of_one_and_holds_what_that_held():
    tall = box_object(8, 'box', (-2, -1, 0), (-1, 0, 0.7), Material((0.1, 0.8, 0.1)))
    low = box_object(9, 'box', (-2, 1, 0), (-1.4, 1.4, 0.3))
    scene = room_scene(extra=(tall, low))
    new = made(scene, {'kind': 'replace', 'object': 'box_6', 'like': 'box_8', 'name': 'bench'})
    assert 'box_6' not in {item.name for item in new.objects}
    np.testing.assert_allclose(named(new, 'bench').box.center, [1.0, 0.0, 0.35], atol=1e-6)
    assert carriers(new)['box_7'] == 'bench'
    with pytest.raises(SceneError, match='"box_7" would float'):
        made(scene, {'kind': 'replace', 'object': 'box_6', 'like': 'box_9'})


@pytest.mark.gl
def test_a_recoloured_thing_shows_its_colour_and_the_graph_says_it():
    scene = made(room_scene(), {'kind': 'recolor', 'object': 'box_7', 'color': 'green'})
    shot = seen_from(scene, Lighting.unlit(), -1.5, 0.0, 1.5)
    color = np.median(shot.color[shot.instance == 7], axis=0)
    np.testing.assert_allclose(color, COLOR_EXAMPLES['green'], atol=2)
    node = build_ground_truth_graph(scene).by_id[7]
    assert node.attributes['color'] == 'green'
    like = made(room_scene(), {'kind': 'recolor', 'object': 'box_7', 'like': 'box_6'})
    assert named(like, 'box_7').meshes[0].material.base_color == (0.3, 0.5, 0.8)
    with pytest.raises(ConfigError, match='Did you mean "green"'):
        configured({'kind': 'recolor', 'object': 'box_7', 'color': 'gren'})


@pytest.mark.gl
def test_a_lamp_goes_off_with_its_light_and_on_again():
    lamp = Light('ceiling', position=(0.0, 0.0, 2.3), intensity=3.0)
    scene = room_scene(lights=(lamp, Light('fill', position=(1, 1, 1), lamp=False)))
    off = made(scene, {'kind': 'switch', 'lamp': 'ceiling', 'on': False})
    assert [light.intensity for light in off.lights] == [0.0, 1.0]
    lit, dark = (
        seen_from(each, Lighting(each.lights, ambient=0.1), -1.5, 0.0, 1.5).color.mean()
        for each in (scene, off)
    )
    assert dark < lit - 10
    on = made(off, {'kind': 'switch', 'lamp': 'ceiling', 'on': True, 'intensity': 3.0})
    assert on.lights == scene.lights
    with pytest.raises(SceneError, match='"ceiling" is off already'):
        made(off, {'kind': 'switch', 'lamp': 'ceiling', 'on': False})
    with pytest.raises(SceneError, match='no light of the scene belongs to "box_6"'):
        made(scene, {'kind': 'switch', 'lamp': 'box_6', 'on': False})


def test_the_light_of_a_lamp_goes_where_the_lamp_goes():
    light = Light('lamp', position=(-1.0, 1.0, 0.55), intensity=1.0)
    shade = box_object(8, 'ball', (-1.1, 0.9, 0.0), (-0.9, 1.1, 0.5))
    scene = room_scene(lights=(light,), extra=(shade,))
    assert select_lights_of(scene, shade) == (light,)
    moved = made(scene, {'kind': 'move', 'object': 'ball_8', 'offset_m': [0.5, 0, 0]})
    assert moved.lights[0].position == pytest.approx((-0.5, 1.0, 0.55))
    assert made(scene, {'kind': 'remove', 'object': 'ball_8'}).lights == ()


def test_a_door_opens_where_nothing_stands_in_its_way_and_closes_again():
    scene = door_scene()
    opened = made(scene, {'kind': 'open', 'object': 'door_4', 'angle_deg': 90})
    leaf = named(opened, 'door_4')
    assert leaf.attributes['state'] == 'open'
    # Of four ways to turn, boxes block two.
    assert leaf.box.size[1] == pytest.approx(0.9, abs=0.05)
    assert find_collision(opened, leaf, ()) is None
    with pytest.raises(SceneError, match='"door_4" is open already'):
        made(opened, {'kind': 'open', 'object': 'door_4'})
    closed = made(opened, {'kind': 'close', 'object': 'door_4', 'angle_deg': 90})
    assert named(closed, 'door_4').attributes['state'] == 'closed'
    assert named(closed, 'door_4').box.size[0] == pytest.approx(0.9, abs=0.05)
    with pytest.raises(SceneError, match='"box_5" is not a leaf of a door'):
        made(scene, {'kind': 'open', 'object': 'box_5'})


def test_parts_of_the_building_stay_and_unknown_things_are_named():
    for change in ({'kind': 'move', 'turn_deg': 5}, {'kind': 'remove'}):
        with pytest.raises(SceneError, match='"wall_2" is a part of the building'):
            made(room_scene(), {**change, 'object': 'wall_2'})
    removals = [{'kind': 'remove', 'object': name} for name in ('box_7', 'box_8')]
    with pytest.raises(SceneError, match=r'change 2 \(remove\): there is no object "box_8"'):
        made(room_scene(), *removals)


def test_a_moved_thing_may_not_hang_at_a_wall_that_it_did_not_hang_at():
    # Beside a wall it would touch it, and still nothing would bear it.
    lifted = {'kind': 'move', 'object': 'box_7', 'offset_m': [1.88, 0, 0.5]}
    with pytest.raises(SceneError, match='"box_7" would float'):
        made(room_scene(), lifted)


def test_a_thing_within_a_solid_one_collides_although_no_faces_meet():
    big = box_object(8, 'box', (-2, -1, 0), (-1, 0, 1))
    inner = box_object(9, 'ball', (-1.6, -0.6, 0.4), (-1.4, -0.4, 0.6))
    scene = room_scene(extra=(big, inner))
    assert find_collision(scene, inner, ()) is big
    assert find_collision(scene, big, ()) is inner
    assert find_collision(scene, inner, (8,)) is None


def test_navigation_finds_the_way_that_a_change_opens_and_closes():
    scene = room_scene()
    moved = made(scene, {'kind': 'move', 'object': 'box_6', 'offset_m': [-2.0, 0.0, 0.0]})
    maps = [WalkableGrid.of_scene(each, radius_m=0.2, height_m=1.5) for each in (scene, moved)]
    old_place, new_place = (1.0, 0.0), (-1.0, 0.0)
    assert [item.is_free(old_place) for item in maps] == [False, True]
    assert [item.is_free(new_place) for item in maps] == [True, False]


def test_a_changed_scene_is_another_one_and_the_same_each_time():
    change = {'kind': 'move', 'object': 'box_7', 'offset_m': [0.0, 0.1, 0.0]}
    other = {**change, 'offset_m': [0.0, 0.11, 0.0]}
    first, again, different = (made(room_scene(), item) for item in (change, change, other))
    assert (first.name, first.source_sha256) == (again.name, again.source_sha256)
    assert len({room_scene().name, first.name, different.name}) == 3
    assert scene_digest(first) == scene_digest(again)
    assert len({scene_digest(item) for item in (room_scene(), first, different)}) == 3
    assert first.source == ''


def test_a_scene_of_a_configuration_is_changed_by_a_list_or_by_a_file(write_file):
    change = {'kind': 'recolor', 'object': 'sofa_01', 'color': 'red'}
    file = write_file('changes.yaml', yaml.safe_dump([change]))
    given = [change], str(file)
    items = [SceneConfig.model_validate({'seed': 5, 'changes': item}) for item in given]
    assert items[0] == items[1]
    assert hash(items[0]) == hash(items[1])
    scene = items[1].load()
    assert named(scene, 'sofa_01').attributes['color'] == 'red'
    # Of the apartment that is kept for the next run, nothing is changed.
    assert named(load_scene('apartment', seed=5), 'sofa_01').attributes['color'] != 'red'
    assert SceneConfig.model_validate_json(items[0].model_dump_json()) == items[0]


@pytest.mark.parametrize(
    ('change', 'fault'),
    [
        ({'kind': 'move', 'object': 'x'}, 'give "offset_m" or "turn_deg"'),
        ({'kind': 'add', 'name': 'x', 'position_m': [0, 0, 0]}, 'needs either "like" or "file"'),
        ({'kind': 'recolor', 'object': 'x'}, 'give "color" or "like"'),
        ({'kind': 'melt', 'object': 'x'}, 'melt'),
        ({'kind': 'remove', 'object': 'x', 'ofset': 1}, 'ofset'),
    ],
)
def test_wrong_changes_are_refused_with_their_key(change, fault):
    with pytest.raises(OsmabenchError, match=fault):
        configured(change)


def test_the_command_exports_a_changed_scene(tmp_path, write_file):
    write_scene_folder(room_scene(), tmp_path / 'room')
    file = write_file('changes.yaml', '- {kind: move, object: box_6, offset_m: [-1, 0, 0]}\n')
    out = tmp_path / 'habitat'
    export_scene(str(tmp_path / 'room'), out, changes=file)
    box = load_scene(str(next(out.glob('*.json')))).by_instance[7].box
    np.testing.assert_allclose(box.center, [0.0, 0.0, 0.8], atol=1e-4)
    file.write_text('- {kind: move, object: box_9, offset_m: [-1, 0, 0]}\n')
    with pytest.raises(SceneError, match='there is no object "box_9"'):
        export_scene(str(tmp_path / 'room'), tmp_path / 'other', changes=file)


def test_a_changed_scene_is_a_scene_of_its_own_in_a_matrix(tmp_path):
    change = {'kind': 'recolor', 'object': 'sofa_01', 'color': 'red'}
    scenes = [{'seed': 5}, {'seed': 5, 'changes': [change]}]
    config = MatrixConfig.model_validate(small_config(scenes=scenes))
    preparation = Preparation()
    plans = preparation.plans(config, tmp_path)
    assert len({plan.shared_directory for plan in plans}) == 2
    assert len({preparation.digest_of(plan) for plan in plans}) == 2
    # A bridge makes the same scene from its settings.
    told = BridgeSettings.model_validate_json(bridge_settings(plans[1]).model_dump_json())
    assert scene_digest(told.scene.load()) == preparation.digest_of(plans[1])
