from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from simulation.habitat.test_habitat_lights import REFUSED
from support.world.frames import are_same_images
from support.world.scenes import (
    CAMERA,
    LABELS,
    box_object,
    camera_at,
    grey_wall,
    render_in,
    room_scene,
)

from osmabench_ros.base.images import decode_srgb, decode_srgb_image
from osmabench_ros.errors import MissingDependencyError, SimulationError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Light, Lighting, LightKind, Material, Scene
from osmabench_ros.scenes.visibility import RayCaster
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator
from osmabench_ros.simulation.opengl.textures import create_context

pytestmark = pytest.mark.gl

SMALL = Intrinsics.from_hfov(64, 48, 1.2)
VIEW = camera_at(-2.5, 0.6, 1.4, -0.2)

DOWN = Pose.from_quaternion((-0.25, 0, 0, 0.9682458), (0, 0, 0))


def test_depth_is_within_a_tenth_of_a_millimetre_of_known_planes(make):
    simulator = make(room_scene())
    for yaw in (-0.2, 0.4, 2.0):
        pose = camera_at(-1.5, 0.6, 1.4, yaw) @ Pose.from_quaternion(
            (-0.1736482, 0, 0, 0.9848078), (0, 0, 0)
        )
        seen = simulator.render(pose)
        rays = CAMERA.rays().astype(np.float64) @ pose.rotation.T
        floor = seen.instance == 1
        assert floor.sum() > 1000
        expected = -1.4 / rays[..., 2]
        assert np.abs(seen.depth_m[floor] - expected[floor]).max() < 1e-4


def test_all_256_values_of_a_texture_come_back_unlit(make):
    values = np.arange(256, dtype=np.uint8)
    texture = np.repeat(np.repeat(values.reshape(16, 16), 4, 0), 4, 1)
    texture = np.stack([texture, texture[::-1], texture[:, ::-1]], axis=-1)
    wall = box_object(1, 'wall', (3, -1.5, -1.5), (3.1, 1.5, 1.5), Material((1, 1, 1), texture))
    simulator = make(
        Scene('test', 'wall', LABELS, (wall,)), Intrinsics(256, 256, 256, 256, 127.5, 127.5)
    )
    color = render_in(simulator, Lighting.unlit(), camera_at(0, 0, 0)).color
    # The wall fills the image: 16 pixels for each of 16 x 16 values.
    np.testing.assert_array_equal(color[8::16, 8::16], texture[2::4, 2::4])


def test_albedo_is_the_unlit_image_in_any_light(make):
    simulator = make(grey_wall())
    lamp = Light('a', position=(2.0, 0.5, 0.0), intensity=0.3, color=(1.0, 0.5, 0.2))
    lit = render_in(simulator, Lighting((lamp,), ambient=0.02), camera_at(0, 0, 0))
    unlit = render_in(simulator, Lighting.unlit(), camera_at(0, 0, 0))
    assert (lit.color != unlit.color).any()
    np.testing.assert_array_equal(lit.albedo, unlit.color)
    np.testing.assert_array_equal(unlit.albedo, unlit.color)


def test_light_follows_the_cosine_and_the_inverse_square(make):
    simulator = make(grey_wall())
    for distance, intensity in ((1.0, 0.7), (2.0, 3.0), (2.5, 1.0)):
        light = Light('a', position=(3 - distance, 0.0, 0.0), intensity=intensity)
        simulator.set_lighting(Lighting((light,), ambient=0.05, exposure=1.3))
        seen = simulator.render(camera_at(0, 0, 0))
        point = CAMERA.back_project(seen.depth_m)
        across = np.linalg.norm(point[..., :2], axis=-1)
        reach = np.hypot(across, distance)
        expected = (
            decode_srgb(np.array(0.5)) * 1.3 * (0.05 + intensity * (distance / reach) / reach**2)
        )
        np.testing.assert_allclose(
            decode_srgb_image(seen.color)[..., 0], expected, atol=0.006, rtol=0.01
        )


def test_a_directional_light_is_as_bright_everywhere_and_casts_shadows(make):
    scene = room_scene(lights=())
    simulator = make(scene)
    sun = Light('sun', LightKind.DIRECTIONAL, direction=(0.3, 0.2, -1.0), intensity=0.8)
    simulator.set_lighting(Lighting((sun,)))
    pose = camera_at(2.9, 0.0, 1.4, np.pi) @ DOWN
    seen = simulator.render(pose)
    floor = pose.transform(CAMERA.back_project(seen.depth_m))
    on_floor = seen.instance == 1
    # The table's shadow is beyond it, on the side the light travels to; its top is at 0.7 m.
    shadow = (
        on_floor & (floor[..., 0] > 1.45) & (floor[..., 0] < 1.55) & (np.abs(floor[..., 1]) < 0.4)
    )
    free = on_floor & (np.abs(floor[..., 0] - 1.0) < 0.5) & (np.abs(floor[..., 1] - 1.2) < 0.2)
    assert free.sum() > 0
    assert shadow.sum() > 0
    assert seen.color[shadow].max() == 0
    cosine = 1 / np.linalg.norm([0.3, 0.2, 1.0])
    expected = 0.8 * cosine * decode_srgb(np.array([0.6, 0.5, 0.4]))
    np.testing.assert_allclose(
        decode_srgb_image(seen.color[free]), np.broadcast_to(expected, (free.sum(), 3)), atol=0.01
    )


def test_a_point_light_casts_the_shadow_that_geometry_asks_for(make):
    """Every pixel of the floor is lit exactly if the ray to the light meets nothing."""
    pytest.importorskip('open3d')
    scene = room_scene()
    lamp = np.array([0.0, 0.3, 1.2])
    simulator = make(scene)
    simulator.set_lighting(Lighting((Light('a', position=tuple(lamp), intensity=3.0),)))
    pose = camera_at(2.2, 1.8, 1.9, -np.pi / 2) @ DOWN
    seen = simulator.render(pose)
    mask = seen.instance == 1
    points = pose.transform(CAMERA.back_project(seen.depth_m))[mask] + [0, 0, 1e-3]
    blocked = RayCaster(scene).distances(points, lamp - points) < 1
    dark = seen.color[mask].max(axis=1) == 0
    assert 0.02 < blocked.mean() < 0.9
    # Only pixels on the edge of a shadow may differ, by a texel of the map.
    assert (blocked == dark).mean() > 0.985


def test_lit_surfaces_show_no_acne(make):
    simulator = make(grey_wall(0.8))
    light = Light('a', position=(2.6, 6.0, 0.0), intensity=200.0)
    shaded, plain = (Lighting((light,), shadows=shadows) for shadows in (True, False))
    with_map = render_in(simulator, shaded, camera_at(0, 0, 0)).color
    np.testing.assert_array_equal(with_map, render_in(simulator, plain, camera_at(0, 0, 0)).color)


def test_moved_objects_take_their_shadows_along(make):
    scene = room_scene()
    moved = {6: Pose(np.eye(3), np.array([-0.5, 0.8, 0.35])), 7: Pose.from_yaw(0.5, (1.5, 0, 1.5))}
    simulator = make(scene)
    before = simulator.render(VIEW)
    simulator.move_objects(moved)
    after = simulator.render(VIEW)
    objects = tuple(
        replace(item, pose=moved.get(item.instance_id, item.pose)) for item in scene.objects
    )
    expected = make(replace(scene, objects=objects)).render(VIEW)
    assert (before.instance != after.instance).any()
    assert are_same_images(after, expected)
    with pytest.raises(SimulationError, match='instance id 99'):
        simulator.move_objects({99: Pose.identity()})


def test_nothing_is_seen_beyond_the_range(make):
    seen = make(room_scene(), far_m=3.0).render(VIEW)
    beyond = ~np.isfinite(seen.depth_m)
    assert 0.1 < beyond.mean() < 1
    assert seen.depth_m[~beyond].max() <= 3.0
    assert (seen.instance[beyond] == 0).all()
    assert (seen.semantic[beyond] == UNLABELLED).all()
    assert (seen.color[beyond] == 0).all()


def test_two_simulators_give_the_same_bytes_and_do_not_disturb_each_other(make):
    first, second = make(room_scene()), make(room_scene())
    ours = first.render(VIEW)
    render_in(second, Lighting.unlit(), camera_at(0, 0, 1))
    theirs, again = render_in(second, Lighting(room_scene().lights, 0.1), VIEW), first.render(VIEW)
    assert are_same_images(ours, theirs)
    assert are_same_images(ours, again)


def test_an_off_centre_principal_point_shifts_the_image(make):
    centred = Intrinsics(80, 60, 50, 50, 39.5, 29.5)
    shifted = Intrinsics(80, 60, 50, 50, 44.5, 26.5)
    a, b = (make(room_scene(), camera).render(VIEW).instance for camera in (centred, shifted))
    assert (a[3:, :-5] == b[:-3, 5:]).mean() > 0.999  # an edge may fall on a pixel's middle


def test_more_lights_than_the_atlas_has_rows_keep_their_shadows(make):
    """Rows are reused; a light that lost its row gets a new one when it is needed again."""
    simulator = make(room_scene(), SMALL)
    lamps = [Light(f'l{i}', position=(0.2 * i - 1, 0.5, 2.3)) for i in range(8)]
    first = render_in(simulator, Lighting((lamps[0],)), VIEW).color
    for lamp in lamps:
        render_in(simulator, Lighting((lamp,)), VIEW)
    render_in(simulator, Lighting(tuple(lamps)), VIEW)
    np.testing.assert_array_equal(first, render_in(simulator, Lighting((lamps[0],)), VIEW).color)


def test_another_thread_is_refused(make):
    simulator = make(room_scene(), SMALL)
    calls = (
        lambda: simulator.render(VIEW),
        lambda: simulator.set_lighting(Lighting.unlit()),
        simulator.close,
    )
    with ThreadPoolExecutor(1, 'intruder') as pool:
        for call in calls:
            with pytest.raises(SimulationError, match='"intruder_0"'):
                pool.submit(call).result()


def test_a_machine_without_egl_is_told_what_to_install(monkeypatch):
    def fail(**_):
        raise Exception('libEGL.so.1 not loaded')

    monkeypatch.setattr('moderngl.create_standalone_context', fail)
    with pytest.raises(MissingDependencyError, match=r'libEGL.*apt-get install libegl1'):
        create_context()


@pytest.mark.parametrize(('lighting', 'message'), REFUSED)
def test_bad_lighting_is_refused(make, lighting, message):
    with pytest.raises(SimulationError, match=message):
        make(room_scene(), SMALL).set_lighting(lighting)


def test_an_empty_range_is_refused():
    with pytest.raises(SimulationError, match='range from 5'):
        OpenGLSimulator(room_scene(), SMALL, near_m=5.0, far_m=1.0)


def test_a_profile_counts_what_a_frame_costs(make):
    simulator = make(room_scene())
    first, again = simulator.profile(VIEW), simulator.profile(VIEW)
    assert first['shadow_faces'] == 6
    assert again['shadow_faces'] == 0  # a light that stays keeps its shadows
    assert 12 <= first['triangles'] <= 7 * 12
    assert min(first[step] for step in ('geometry', 'lighting', 'read_back')) > 0
    away = simulator.profile(camera_at(2.9, 0.0, 1.4))
    assert away['triangles'] < first['triangles']


def test_nominal_light_is_what_the_lighting_pass_makes_of_it(make):
    simulator = make(room_scene())
    # Lit by so little that not a level changes, but lit.
    glow = Light('glow', position=(0.0, 0.0, 1e4), intensity=1e-9)
    for pose in (VIEW, VIEW @ DOWN):
        images = []
        for lighting in (Lighting.unlit(), Lighting((glow,), 1.0, shadows=False)):
            images.append(render_in(simulator, lighting, pose).color)
        np.testing.assert_array_equal(*images)
