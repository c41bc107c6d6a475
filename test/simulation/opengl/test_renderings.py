"""The changes of the rendering `standard` to colour images, and the images that it keeps."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage
from support.world.runs import small_config
from support.world.scenes import (
    CAMERA,
    LABELS,
    box_mesh,
    camera_at,
    grey_wall,
    render_in,
    room_scene,
)

from osmabench_ros.base.images import decode_srgb, encode_srgb
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.plan import config_digest
from osmabench_ros.scenes.scene import Light, Lighting, Material, Scene, SceneObject
from osmabench_ros.simulation.conditions import compute_lighting, list_conditions, load_condition
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator, compute_automatic_gain
from osmabench_ros.simulation.schedule import Moment

VIEW = camera_at(-2.5, 0.6, 1.4, -0.2)
LAMP = Lighting((Light('ceiling', position=(0.0, 0.3, 2.3), intensity=3.0),), ambient=0.1)

pytestmark = pytest.mark.gl


def hable(x):
    """As published in 2010, with the letters of its author."""
    a, b, c, d, e, f = 0.22, 0.30, 0.10, 0.20, 0.01, 0.30
    return ((x * (a * x + c * b) + d * e) / (x * (a * x + b) + d * f)) - e / f


def test_all_but_colour_is_the_same_to_the_bit(make):
    before = make(room_scene()).render(VIEW)
    seen = make(room_scene(), rendering='standard').render(VIEW)
    for name in ('depth_m', 'semantic', 'instance', 'albedo'):
        np.testing.assert_array_equal(getattr(seen, name), getattr(before, name))
    assert (seen.color != before.color).any(axis=-1).mean() > 0.3


def test_compat_light_makes_the_picture_of_the_rendering_compat(make):
    simulators = make(room_scene()), make(room_scene(), rendering='standard')
    for lighting in (LAMP, Lighting.unlit()):
        compat = replace(lighting, compat=True)
        first, second = (render_in(simulator, compat, VIEW).color for simulator in simulators)
        np.testing.assert_array_equal(first, second)


def test_conditions_of_osma_benchs_code_keep_compat_light():
    scene = room_scene()
    for name in list_conditions():
        lighting = compute_lighting(
            load_condition(name), scene, Moment(0, 0.0, 0.0, (0.0, 0.0, 0.0))
        )
        assert lighting.compat == name.startswith('compat_'), name


def test_edges_are_close_to_a_picture_of_sixteen_times_as_many_pixels(make):
    large = Intrinsics(640, 480, CAMERA.fx * 4, CAMERA.fy * 4, 319.5, 239.5)
    quality = {}
    for rendering in ('compat', 'standard'):
        seen, fine = (make(room_scene(), c, rendering=rendering) for c in (CAMERA, large))
        for simulator in (seen, fine):
            simulator.set_lighting(LAMP)
        found = seen.render(VIEW)
        cells = decode_srgb(fine.render(VIEW).color.reshape(120, 4, 160, 4, 3) / 255.0)
        ids = found.instance
        edge = ndimage.maximum_filter(ids, 5) != ndimage.minimum_filter(ids, 5)
        error = (found.color / 255.0 - encode_srgb(cells.mean(axis=(1, 3))))[edge]
        quality[rendering] = -10 * np.log10(np.mean(error**2))
    assert quality['standard'] > quality['compat'] + 4


def test_no_colour_at_an_edge_is_outside_those_of_its_surfaces(make):
    """A red box before a blue wall without light: colours between them and no others."""
    red, blue = Material((0.9, 0.1, 0.1)), Material((0.1, 0.1, 0.9))
    box = SceneObject(
        2, 'box', LABELS.id_of('box'), (box_mesh((0.5, 1, 1), red),), Pose.from_yaw(0.4, (2, 0, 0))
    )
    scene = Scene('test', 'two', LABELS, (*grey_wall().objects, box))
    wall = replace(scene.objects[0], meshes=(box_mesh((0.1, 40, 40), blue),))
    simulator = make(replace(scene, objects=(wall, box)), rendering='standard')
    seen = render_in(simulator, Lighting.unlit(), camera_at(0, 0, 0))
    light = decode_srgb(seen.color / 255.0)
    red_share = (light[..., 0] - light[..., 0].min()) / np.ptp(light[..., 0])
    blue_share = (light[..., 2] - light[..., 2].min()) / np.ptp(light[..., 2])
    np.testing.assert_allclose(red_share + blue_share, 1.0, atol=0.01)
    mixed = (red_share > 0.02) & (red_share < 0.98)
    assert 20 < mixed.sum() < 600
    # Away from edges the surfaces keep their colours: nominal light has no curve.
    inner = ndimage.maximum_filter(seen.instance, 3) == ndimage.minimum_filter(seen.instance, 3)
    np.testing.assert_array_equal(seen.color[inner], seen.albedo[inner])


def test_the_tone_curve_is_the_published_one(make):
    simulator = make(grey_wall(1.0), rendering='standard')
    levels = np.array([0.02, 0.1, 0.18, 0.5, 0.99, 1.5, 3.0, 5.0])
    found = []
    for level in levels:
        found.append(
            render_in(simulator, Lighting(ambient=float(level)), camera_at(0, 0, 0)).color[
                60, 80, 0
            ]
        )
    curve = hable(1.7583 * levels) / hable(np.array(11.2))
    np.testing.assert_allclose(found, 255 * encode_srgb(curve), atol=1.5)
    assert found[2] == round(255 * float(encode_srgb(np.array(0.18))))
    assert found[-1] < 255  # five times as bright as white is not yet burnt out


def test_automatic_exposure_takes_brightness_out(make):
    scene = grey_wall()
    automatic = make(scene, rendering='standard', exposure='automatic')
    fixed = make(scene, rendering='standard')
    pictures = {'automatic': [], 'fixed': []}
    for intensity in (2.0, 8.0):
        lighting = Lighting((Light('a', position=(0, 0, 0), intensity=intensity),))
        for name, simulator in (('automatic', automatic), ('fixed', fixed)):
            pictures[name].append(
                float(render_in(simulator, lighting, camera_at(0, 0, 0)).color.mean())
            )
    assert pictures['automatic'][0] == pytest.approx(pictures['automatic'][1], abs=0.5)
    assert pictures['fixed'][1] > 1.5 * pictures['fixed'][0]
    automatic.set_lighting(replace(lighting, exposure=0.25))
    assert automatic.render(camera_at(0, 0, 0)).color.mean() < 0.7 * pictures['automatic'][0]


def test_the_gain_brings_the_geometric_mean_to_middle_grey():
    colors = np.array([[0.09, 0.09, 0.09], [0.36, 0.36, 0.36], [0.0, 0.0, 0.0]])
    assert compute_automatic_gain(colors) == pytest.approx(1.0)
    assert compute_automatic_gain(colors / 4) == pytest.approx(4.0)
    assert compute_automatic_gain(np.zeros((5, 3))) == 1.0


def column_without_normals():
    """A column of eight sides with means of its faces' normals, as readers make them up."""
    turns = np.arange(8) * np.pi / 4
    around = np.column_stack([np.cos(turns), np.sin(turns), np.zeros(8)])
    vertices = np.concatenate([around - [0, 0, 1], around + np.array([0, 0, 1])]).astype(
        np.float32
    )
    faces = [(i, (i + 1) % 8, 8 + i) for i in range(8)]
    faces += [((i + 1) % 8, 8 + (i + 1) % 8, 8 + i) for i in range(8)]
    mesh = replace(
        box_mesh((1, 1, 1), Material((0.8, 0.8, 0.8))),
        vertices=vertices,
        faces=np.array(faces, np.int32),
        normals=np.concatenate([around, around]).astype(np.float32),
        uv=np.zeros((16, 2), np.float32),
        has_normals=False,
    )
    item = SceneObject(1, 'ball', LABELS.id_of('ball'), (mesh,), Pose.from_yaw(0.2, (3, 0, 0)))
    return Scene('test', 'ball', LABELS, (item,))


def test_a_mesh_without_normals_has_flat_faces_unless_compat(make):
    scene = column_without_normals()
    lamp = Light('far', position=(-200.0, 150.0, 0.0), intensity=30000.0)
    grades = {}
    for rendering in ('compat', 'standard'):
        simulator = make(scene, rendering=rendering)
        seen = render_in(simulator, Lighting((lamp,), shadows=False), camera_at(0, 0, 0))
        row = seen.color[60, :, 0][seen.instance[60] == 1].astype(int)
        grades[rendering] = int((np.abs(np.diff(row)) > 0).sum())
    assert grades['compat'] > 20
    assert grades['standard'] < 10


@pytest.mark.parametrize('options', [{'rendering': 'film'}, {'exposure': 'automatic'}])
def test_unknown_renderings_are_refused_with_those_there_are(options):
    with pytest.raises(ConfigError, match=r'simulator\.options.*(compat|standard)'):
        OpenGLSimulator(room_scene(), CAMERA, **options)


def test_a_configuration_names_the_rendering_and_its_digest_follows(closes):
    configs = [
        MatrixConfig.model_validate(small_config(simulator={'name': 'opengl', 'options': options}))
        for options in ({}, {'rendering': 'standard', 'exposure': 'automatic'})
    ]
    plain, standard = (
        closes(item.simulator.simulator(room_scene(), item.camera)) for item in configs
    )
    assert 'rendering' not in plain.description
    assert standard.description.endswith(', standard rendering, automatic exposure')
    assert config_digest(configs[0]) != config_digest(configs[1])
