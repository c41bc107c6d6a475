"""What every installed simulator must do, whatever renders; none of it knows the backend."""

import gc
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import psutil
import pytest
from pydantic import TypeAdapter
from support.world import scenes
from support.world.frames import are_same_images

from osmabench_ros.base.configuration import SIMULATORS, extension_names
from osmabench_ros.errors import MissingDependencyError, SimulationError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.changes import Changes, apply_changes
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Light, Lighting, LightKind, Material, Scene
from osmabench_ros.scenes.writing import write_habitat_dataset
from osmabench_ros.semantics.labels import COLOR_EXAMPLES, UNLABELLED
from osmabench_ros.simulation.simulator import Simulator, make_simulator

pytestmark = pytest.mark.gl

STRIPES = np.array([[200, 60, 40], [30, 30, 30], [90, 200, 120], [250, 250, 250]], np.uint8)

POSES = (
    scenes.camera_at(-2.5, 0.6, 1.4, -0.2),
    scenes.camera_at(-1.0, -1.2, 1.0, 0.7),
    scenes.camera_at(2.0, 1.4, 1.9, 3.5)
    @ Pose.from_quaternion((-0.2588190, 0, 0, 0.9659258), (0, 0, 0)),
)


@dataclass(frozen=True)
class World:
    """A scene loaded from disk and who renders it."""

    scene: Scene
    simulator: Simulator


def started(name, scene, camera):
    """Start a simulator, or skip the test with the reason why this machine cannot."""
    try:
        return make_simulator(name, scene, camera, {})
    except MissingDependencyError as error:
        pytest.skip(f'{name}: {error}')


@pytest.fixture(scope='module')
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp('room')
    wall = Material((1.0, 1.0, 1.0), np.repeat(STRIPES[None], 64, axis=1))
    return load_scene(str(write_habitat_dataset(scenes.room_scene(wall=wall), folder)))


@pytest.fixture(scope='module', params=extension_names(SIMULATORS))
def world(request, scene):
    with closing(started(request.param, scene, scenes.CAMERA)) as simulator:
        yield World(scene, simulator)


def instance_of(scene, name):
    return next(item.instance_id for item in scene.objects if item.name.startswith(name))


def rays_in_world(camera, pose):
    return camera.rays().astype(np.float64) @ pose.rotation.T


@pytest.mark.parametrize('pose', POSES)
def test_depth_is_the_distance_of_known_planes_along_the_axis(world, pose):
    seen = world.simulator.render(pose)
    rays = rays_in_world(scenes.CAMERA, pose)
    planes = {'floor_1': (2, 0.0), 'wall_2': (0, 3.0), 'wall_3': (0, -3.0), 'wall_4': (1, 2.0)}
    checked = 0
    for name, (axis, offset) in planes.items():
        mask = seen.instance == instance_of(world.scene, name)
        expected = (offset - pose.translation[axis]) / rays[..., axis]
        # The tops of the walls are other planes; they are at the height of the wall.
        height = pose.translation[2] + rays[..., 2] * seen.depth_m
        mask &= height < 2.49
        np.testing.assert_allclose(seen.depth_m[mask], expected[mask], atol=2e-3)
        checked += int(mask.sum())
    assert checked > 3000


def assert_agrees_with_ray_casting(seen, scene, pose):
    depth_m, instance = scenes.cast_rays(scene, scenes.CAMERA, pose)
    same = seen.instance == instance
    assert same.mean() > 0.995
    both = same & np.isfinite(depth_m)
    assert np.abs(seen.depth_m[both] - depth_m[both]).max() < 0.01
    np.testing.assert_array_equal(seen.semantic, classes_of(scene, seen.instance))


def classes_of(scene, instances):
    """Return the class of each pixel of an image of instances."""
    known = {item.instance_id: item.class_id for item in scene.objects}
    return np.vectorize(lambda instance: known.get(instance, UNLABELLED))(instances)


@pytest.mark.parametrize('pose', POSES)
def test_images_agree_with_ray_casting(world, pose):
    assert_agrees_with_ray_casting(world.simulator.render(pose), world.scene, pose)


@pytest.mark.parametrize('pose', POSES)
def test_images_of_one_pose_agree_pixel_by_pixel(world, pose):
    seen = world.simulator.render(pose)
    np.testing.assert_array_equal(np.isfinite(seen.depth_m), seen.instance > 0)
    assert np.isinf(seen.depth_m[~np.isfinite(seen.depth_m)]).all()
    # All objects are convex, so depth jumps only where another object begins.
    jump = np.abs(np.diff(np.where(np.isfinite(seen.depth_m), seen.depth_m, 99.0), axis=1)) > 0.5
    assert jump.sum() > 10
    assert (seen.instance[:, 1:] != seen.instance[:, :-1])[jump].all()


def test_intrinsics_and_poses_place_a_box_where_they_say(world):
    assert world.simulator.intrinsics == scenes.CAMERA
    cube = world.scene.by_instance[instance_of(world.scene, 'box_7')]
    for yaw in (-0.3, 0.0, 0.25):
        pose = scenes.camera_at(-1.0, 0.2, 1.6, yaw)
        pixels = scenes.CAMERA.project(pose.inverse().transform(cube.world_vertices))
        rows, columns = np.nonzero(world.simulator.render(pose).instance == cube.instance_id)
        found = np.array([[columns.min(), rows.min()], [columns.max(), rows.max()]])
        np.testing.assert_allclose(found, [pixels.min(axis=0), pixels.max(axis=0)], atol=1.01)


def test_lights_change_colour_and_nothing_else(world):
    def images(lighting):
        return scenes.render_in(world.simulator, lighting, POSES[0])

    bright = images(Lighting((Light('a', position=(0.0, 0.0, 2.0), intensity=2.0),), 0.1))
    red = images(
        Lighting((Light('a', position=(0.0, 1.0, 2.0), color=(1.0, 0.0, 0.0), intensity=2.0),))
    )
    assert np.abs(bright.color.astype(int) - red.color).mean() > 5
    surface = red.instance > 0
    assert red.color[surface][:, 0].mean() > 4 * red.color[surface][:, 1:].mean()
    assert are_same_images(bright, red, ('depth_m', 'semantic', 'instance'))


def test_brighter_lights_make_brighter_images_and_none_makes_black(world):
    means = []
    for intensity in (0.5, 1.0, 2.0):
        light = Light('a', position=(-1.0, 0.0, 2.0), intensity=intensity)
        means.append(scenes.render_in(world.simulator, Lighting((light,)), POSES[0]).color.mean())
    assert means[0] < means[1] < means[2]
    world.simulator.set_lighting(Lighting((Light('off', intensity=0.0),)))
    assert world.simulator.render(POSES[0]).color.max() == 0


def test_negative_lights_take_from_other_lights_and_not_from_ambient_light(world):
    lamp = Light('lamp', position=(0.0, 0.0, 2.0), intensity=2.0)
    hole = Light('hole', position=(1.0, 0.5, 1.5), intensity=-0.5)

    def image(*lights):
        world.simulator.set_lighting(Lighting(lights, 0.2, shadows=False))
        return world.simulator.render(POSES[0]).color.astype(np.int64)

    ambient, lit, less = image(), image(lamp), image(lamp, hole)
    assert lit.mean() > less.mean() + 2
    assert (less <= lit + 1).all()
    assert (less >= ambient - 1).all()
    assert np.abs(image(hole) - ambient).max() <= 1


CAMERA_LIGHTS = {
    'point': Light('camera', attached_to_camera=True, intensity=0.8),
    'spot': Light(
        'headlight',
        LightKind.SPOT,
        direction=(0.0, 0.0, 1.0),
        spot_half_angle_rad=0.7,
        attached_to_camera=True,
        intensity=0.8,
    ),
}


@pytest.mark.parametrize('light', CAMERA_LIGHTS.values(), ids=CAMERA_LIGHTS)
def test_a_camera_light_moves_with_the_camera(world, light):
    world.simulator.set_lighting(Lighting((light,)))
    # Two cameras a metre in front of a plain wall, at different places: the same picture.
    left, right = (
        world.simulator.render(scenes.camera_at(x, 1.0, 1.25, np.pi / 2)).color
        for x in (-2.0, -0.4)
    )
    assert np.abs(left.astype(int) - right).max() <= 1
    middle, corner = left[50:70, 70:90].mean(), left[:10, :10].mean()
    assert middle > 1.3 * corner
    flipped = left[:, ::-1].astype(int)
    assert np.abs(left - flipped).max() <= 2


def test_a_spot_lights_its_cone_as_a_point_light_would_and_nothing_else(world):
    pose, half_angle = scenes.camera_at(-1.2, 1.0, 1.25, np.pi / 2), 0.45
    images = []
    for kind in (LightKind.POINT, LightKind.SPOT):
        light = Light('lamp', kind, (-1.0, 1.1, 1.3), (0.1, 1.0, -0.1), intensity=0.7)
        light = replace(light, spot_half_angle_rad=half_angle)
        images.append(scenes.render_in(world.simulator, Lighting((light,), shadows=False), pose))
    point, spot = images
    surface = pose.transform(scenes.CAMERA.back_project(spot.depth_m).reshape(-1, 3))
    offset = (surface - light.position) / np.linalg.norm(
        surface - light.position, axis=1, keepdims=True
    )
    direction = np.array(light.direction) / np.linalg.norm(light.direction)
    angle = np.arccos(np.clip(offset @ direction, -1, 1)).reshape(spot.depth_m.shape)
    inside, outside = angle < 0.79 * half_angle, angle > 1.01 * half_angle
    assert min(inside.sum(), outside.sum()) > 500
    assert spot.color[outside].max() == 0
    assert np.abs(spot.color[inside].astype(int) - point.color[inside]).max() <= 2
    between = ~inside & ~outside
    assert 0.1 < spot.color[between].mean() / point.color[between].mean() < 0.9


def test_nominal_light_shows_textures_as_they_are(world):
    world.simulator.set_lighting(Lighting.unlit())
    pose = scenes.camera_at(1.5, 0.0, 1.4, 0.0)
    seen = world.simulator.render(pose)
    wall = seen.color[seen.instance == instance_of(world.scene, 'wall_2')].astype(int)
    nearest = np.abs(wall[:, None] - STRIPES.astype(int)).max(axis=2)
    # Between stripes the texture is interpolated; every stripe has pixels of its very colour.
    assert ((nearest <= 1).sum(axis=0) > 100).all()
    assert (nearest.min(axis=1) <= 1).mean() > 0.9
    floor = np.unique(world.simulator.render(POSES[0]).color[seen_floor(world)], axis=0)
    assert (np.abs(floor.astype(int) - np.rint(np.array([0.6, 0.5, 0.4]) * 255)) <= 1).all()


def seen_floor(world):
    instance = world.simulator.render(POSES[0]).instance
    return instance == instance_of(world.scene, 'floor_1')


def test_the_same_pose_gives_the_same_bytes_after_other_poses(world):
    first = scenes.render_in(world.simulator, Lighting(world.scene.lights, 0.1), POSES[0])
    for pose in POSES[1:]:
        world.simulator.render(pose)
    assert are_same_images(first, world.simulator.render(POSES[0]))


@pytest.mark.parametrize('name', extension_names(SIMULATORS))
def test_closing_frees_memory_and_processes(name, scene):
    process = psutil.Process()
    used = []
    for _ in range(4):
        children = len(process.children())
        simulator = started(name, scene, scenes.CAMERA)
        simulator.render(POSES[0])
        simulator.close()
        simulator.close()  # twice does no harm
        with pytest.raises(SimulationError, match='closed'):
            simulator.render(POSES[0])
        del simulator
        gc.collect()
        assert len(process.children()) == children
        used.append(process.memory_info().rss)
    assert used[-1] - used[0] < 12e6


@pytest.mark.slow
@pytest.mark.parametrize('name', extension_names(SIMULATORS))
def test_small_house_agrees_with_ray_casting(name, closes):
    scene = scenes.load_small_house()
    camera = Intrinsics.from_hfov(320, 240, np.pi / 2)
    simulator = closes(started(name, scene, camera))
    for yaw in (0.0, 1.6, 3.1, 4.7):
        pose = scenes.camera_at(0.5, 0.0, 1.4, yaw)
        seen = simulator.render(pose)
        depth_m, instance = scenes.cast_rays(scene, camera, pose)
        near = (np.abs(seen.depth_m - depth_m) < 0.01) | (
            np.isinf(depth_m) & np.isinf(seen.depth_m)
        )
        assert near.mean() > 0.99
        assert (seen.semantic == classes_of(scene, instance)).mean() > 0.99


CHANGES = (
    {'kind': 'move', 'object': 'box_5', 'offset_m': [-1.2, -0.4, 0.0], 'turn_deg': 30.0},
    {'kind': 'remove', 'object': 'box_7'},
    {'kind': 'add', 'name': 'crate', 'like': 'box_8', 'position_m': [1.4, -1.6, 0.0]},
    {'kind': 'replace', 'object': 'box_8', 'like': 'box_5', 'name': 'bin'},
    {'kind': 'recolor', 'object': 'wall_3', 'color': 'red'},
    {'kind': 'open', 'object': 'door_4', 'angle_deg': 90.0},
    {'kind': 'switch', 'lamp': 'ceiling', 'on': False},
)


@pytest.mark.parametrize('name', extension_names(SIMULATORS))
def test_a_changed_scene_is_seen_as_it_was_changed(name):
    room = scenes.door_scene()
    boxes = (
        scenes.box_object(7, 'box', (-1.4, -0.7, 0.0), (-1.0, -0.3, 0.4)),
        scenes.box_object(8, 'box', (0.6, -0.9, 0.0), (1.2, -0.5, 0.9)),
    )
    ids = {'class_id': room.label_set.id_of('box')}
    before = replace(
        room,
        objects=(*room.objects, *(replace(item, **ids) for item in boxes)),
        lights=(Light('ceiling', position=(0.0, -1.5, 2.4), intensity=3.0, lamp=True),),
    )
    after = apply_changes(before, TypeAdapter(Changes).validate_python(CHANGES))
    pose, seen, lit = scenes.camera_at(0.0, -2.9, 1.6, np.pi / 2), [], []
    for scene in (before, after):
        simulator = started(name, scene, scenes.CAMERA)
        seen.append(scenes.render_in(simulator, Lighting.unlit(), pose))
        lit.append(float(scenes.render_in(simulator, Lighting(scene.lights), pose).color.mean()))
        simulator.close()
        assert_agrees_with_ray_casting(seen[-1], scene, pose)
    visible = [set(np.unique(image.instance).tolist()) for image in seen]
    new = {item.instance_id for item in after.objects} - set(before.by_instance)
    assert visible[0] - visible[1] == {7, 8}
    assert len(new) == 2
    assert new <= visible[1] - visible[0], 'what was added and what stands for another'
    red = seen[1].color[seen[1].instance == instance_of(after, 'wall_3')].astype(int)
    # Files keep colour factors in 8 bits, linear, which moves dark ones by up to 0.03.
    assert (np.abs(red - COLOR_EXAMPLES['red']) <= 0.03 * 255).all()
    doorway = np.s_[60:80, 78:82]
    assert np.isfinite(seen[0].depth_m[doorway]).all()
    assert seen[1].depth_m[doorway].mean() > seen[0].depth_m[doorway].mean()
    assert lit[0] > 10
    assert lit[1] == 0.0
