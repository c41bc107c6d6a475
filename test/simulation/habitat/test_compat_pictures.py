"""Pictures of `compat_*` conditions against Habitat-Sim with the settings of OSMa-Bench."""

import math
import os
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.habitat_files import textured_box, write_dataset, write_json
from support.world.scenes import CAMERA, camera_at, render_in

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.axes import turn_camera_to_habitat, turn_to_habitat
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Light, Lighting, LightKind
from osmabench_ros.simulation.conditions import compute_lighting, load_condition
from osmabench_ros.simulation.habitat.simulator import PYTHON_VARIABLE, HabitatSimulator
from osmabench_ros.simulation.schedule import Moment

VIEW = camera_at(-1.8, 0.3, 1.2, -0.15)
LAMP = Light('lamp', position=(-0.8, -0.6, 1.9), color=(1.0, 0.9, 0.8), intensity=2.0)
LIT = Lighting((LAMP,), ambient=0.1, compat=True)
UNLIT = Lighting(ambient=1.0, shadows=False, compat=True)


def corner(folder, shader):
    """Write three boxes with textures that meet in corners, as a data set that asks for a shader.

    A shader '' leaves the choice to the materials, as data sets without `shader_type` do.
    """
    boxes = {
        'floor': ((6.0, 0.2, 6.0), (0.0, -0.1, 0.0)),
        'wall': ((0.2, 3.0, 6.0), (1.6, 1.5, 0.0)),
        'crate': ((0.8, 0.8, 0.8), (0.7, 0.4, -0.3)),
    }
    asked = {'default_attributes': {'shader_type': shader}} if shader else {}
    return write_dataset(
        folder,
        objects={name: (textured_box(size), {}) for name, (size, _) in boxes.items()},
        instances=[
            {'template_name': name, 'translation': list(place), 'motion_type': 'STATIC'}
            for name, (_, place) in boxes.items()
        ],
        lights={},
        dataset={'objects': {'paths': {'.json': ['objects/*.object_config.json']}, **asked}},
    )


def taken_by_habitat_sim(dataset, lights, folder, *, hbao):
    """Return the picture of only Habitat-Sim; without lights, as settings for HM3D do."""
    script = Path(__file__).with_name('osma_bench_picture.py')
    request = {
        'dataset': str(dataset),
        'scene': 'flat',
        'camera': turn_camera_to_habitat(VIEW).matrix.tolist(),
        'width': CAMERA.width,
        'height': CAMERA.height,
        'hfov_deg': math.degrees(CAMERA.hfov_rad),
        'near_m': 0.05,
        'far_m': 50.0,
        'hbao': hbao,
        'lights': [
            [
                *turn_to_habitat(np.array(light.position)).tolist(),
                *(light.intensity * channel for channel in light.color),
            ]
            for light in lights
        ]
        or None,
    }
    out = folder / 'picture.npy'
    file = write_json(folder / 'request.json', request)
    command = [os.environ[PYTHON_VARIABLE], str(script), str(file), str(out)]
    quiet = {'HABITAT_SIM_LOG': 'quiet', 'MAGNUM_LOG': 'quiet'}
    subprocess.run(command, env=quiet, cwd=folder, check=True)
    return np.load(out)


@pytest.fixture(scope='module')
def flat_corner(tmp_path_factory):
    return load_scene(str(corner(tmp_path_factory.mktemp('flat'), 'flat')))


@pytest.fixture(scope='module')
def simulator(habitat, flat_corner):
    with closing(HabitatSimulator(flat_corner, CAMERA)) as started:
        yield started


def picture(simulator, lighting):
    return render_in(simulator, lighting, VIEW).color


def difference(one, other):
    return float(np.abs(one.astype(int) - other).mean())


@pytest.mark.parametrize(
    ('lighting', 'shader'), [(LIT, 'phong'), (UNLIT, 'flat')], ids=['lit', 'nominal']
)
def test_a_data_set_that_asks_for_flat_is_shown_as_osma_bench_shows_hm3d(
    simulator, lighting, shader, tmp_path
):
    """Its users edit the shader by hand for lights; here the data set stays."""
    edited = corner(tmp_path / 'edited', shader)
    expected, without = (
        taken_by_habitat_sim(edited, lighting.lights, tmp_path, hbao=hbao)
        for hbao in (True, False)
    )
    assert difference(expected, without) > 0.3, 'corners are darker'
    found = picture(simulator, lighting)
    assert difference(found, expected) < 0.1
    plain = picture(simulator, replace(lighting, compat=False))
    assert difference(plain, expected) > 1, 'other conditions are not shown so'


@pytest.mark.slow
def test_other_data_sets_keep_their_shaders(habitat, tmp_path, closes):
    dataset = corner(tmp_path / 'pbr', '')
    expected = taken_by_habitat_sim(dataset, LIT.lights, tmp_path, hbao=True)
    simulator = closes(HabitatSimulator(load_scene(str(dataset)), CAMERA))
    found = picture(simulator, LIT)
    assert difference(found, expected) < 0.1


def test_every_look_is_there_again_when_light_changes(simulator, flat_corner):
    crate = next(item for item in flat_corner.objects if item.name.startswith('crate'))
    lightings = (LIT, Lighting((LAMP,), 0.1), UNLIT, Lighting.unlit())
    before = [picture(simulator, lighting) for lighting in lightings]
    ahead = Pose(np.eye(3), np.array([0.0, 0.4, 0.3]))
    simulator.move_objects({crate.instance_id: ahead @ crate.pose})
    moved = [picture(simulator, lighting) for lighting in lightings]
    simulator.move_objects({crate.instance_id: crate.pose})
    after = [picture(simulator, lighting) for lighting in lightings]
    for first, other, again in zip(before, moved, after, strict=True):
        assert difference(first, other) > 1
        np.testing.assert_array_equal(first, again)


def test_options_win_over_compat(habitat, flat_corner, closes):
    options = {'shading': 'pbr', 'ambient_occlusion': False}
    simulator = closes(HabitatSimulator(flat_corner, CAMERA, **options))
    for lighting in (LIT, UNLIT):
        compat = picture(simulator, lighting)
        plain = picture(simulator, replace(lighting, compat=False))
        np.testing.assert_array_equal(compat, plain)


def test_a_spot_has_no_compat_picture(simulator):
    spot = Light('beam', LightKind.SPOT)
    with pytest.raises(SimulationError, match='"beam" is a spot.*"osma_bench".*shading to pbr'):
        simulator.set_lighting(Lighting((spot,), compat=True))


@pytest.mark.parametrize('name', ['compat_camera', 'compat_nominal'])
def test_the_conditions_have_it(simulator, flat_corner, name):
    lighting = compute_lighting(load_condition(name), flat_corner, Moment(0, 0.0, 0.0))
    plain = replace(lighting, compat=False)
    assert difference(picture(simulator, lighting), picture(simulator, plain)) > 1
