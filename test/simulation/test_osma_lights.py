"""The light of OSMa-Bench's conditions against the results of its generator's code."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from support.world.scenes import room_scene

from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.axes import turn_to_habitat
from osmabench_ros.scenes.scene import Lighting, LightKind
from osmabench_ros.simulation.conditions import (
    compute_lighting,
    load_condition,
    name_of_condition,
    parse_condition,
)
from osmabench_ros.simulation.schedule import Moment

# Settings of habitat_data_generator, and the lights that its code makes of them.
UPSTREAM = Path(__file__).resolve().parents[1] / 'data' / 'upstream' / 'lights'

# The light settings that its sim_settings name for ReplicaCAD.
SETTINGS = {
    'compat_baseline': 'replica_cad_0',
    'compat_camera': 'camera',
    'compat_dynamic': 'dynamic_lights',
    'compat_nominal': 'no_lights',
    'compat_velocity': 'replica_cad_0',
}

KEYS = 'type', 'position', 'intensity', 'color', 'life_intervals'
ROWS = {
    'lamp': ('point', [1.0, 2.0, 3.0], 2.0, [1, 0.5, 1.5], [[None, 1], [3, 4]]),
    'fill': ('point', [0.0, 1.0, 0.0, 1.0], -4.0, [1, 1, 1], [[None, None]]),
    'torch': ('camera', [0.5, 1.0, -2.0], 1.0, [1, 1, 1], [[1.5, None]]),
    'never': ('point', [0.0, 0.0, 0.0], 1.0, [1, 1, 1], []),
}
LOOK_ALIKE = {'lights': {name: dict(zip(KEYS, row, strict=True)) for name, row in ROWS.items()}}
GOALS = 5


def replica_cad():
    return dataclasses.replace(room_scene(), dataset='replicaCAD')


def lit(condition, goal, progress=0.5):
    return compute_lighting(condition, replica_cad(), Moment(goal, progress, 0.0))


def row(light):
    """Return OSMa-Bench's name of a light's model, and its position (y up) and linear colour."""
    assert light.kind is LightKind.POINT
    x, y, z = light.position
    place = [x, -y, -z] if light.attached_to_camera else turn_to_habitat(np.array([x, y, z]))
    color = light.intensity * np.array(light.color)
    return 'Camera' if light.attached_to_camera else 'Global', np.array([*place, *color])


@pytest.mark.parametrize('name', SETTINGS)
@pytest.mark.parametrize('from_file', [False, True])
def test_lights_are_those_of_osma_bench_goal_by_goal(name, from_file):
    file = UPSTREAM / f'light_settings_{SETTINGS[name]}.json'
    condition = load_condition(str(file) if from_file else name)
    goals = json.loads((UPSTREAM / 'results.json').read_text())[file.stem]
    assert len(goals) == GOALS
    for goal, theirs in enumerate(goals):
        ours = lit(condition, goal)
        if not theirs:
            assert dataclasses.replace(ours, compat=False) == Lighting.unlit()
            continue
        for light, other in zip(ours.lights, theirs, strict=True):
            model, numbers = row(light)
            assert model == other['model']
            expected = [*other['vector'][:3], *other['color']]
            np.testing.assert_allclose(numbers, expected, rtol=1e-5, atol=1e-6)
            assert other['vector'][3] == 1.0


@pytest.fixture
def file(write_file):
    return write_file('light_settings_own.json', LOOK_ALIKE)


def test_light_settings_are_a_condition(file):
    condition = load_condition(str(file))
    assert condition.name == name_of_condition(str(file)) == 'light_settings_own'
    alive = [{light.name for light in lit(condition, goal).lights} for goal in range(GOALS)]
    assert alive == [
        {'lamp', 'fill'}, {'fill'}, {'fill', 'torch'}, {'lamp', 'fill', 'torch'}, {'fill', 'torch'}
    ]  # fmt: skip
    # The last frame of a segment is the goal itself, and still in the old light.
    assert {light.name for light in lit(condition, 0, 1.0).lights} == {'lamp', 'fill'}
    found = {light.name: light for light in lit(condition, 3).lights}
    lamp, fill, torch = found['lamp'], found['fill'], found['torch']
    assert lamp.position == (1.0, -3.0, 2.0)
    assert (lamp.intensity, lamp.color) == (5.0, (1.0, 0.5, 1.0))
    assert fill.intensity == pytest.approx(-0.4)
    assert torch.attached_to_camera
    assert torch.position == (0.5, -1.0, 2.0)
    assert (lamp.lamp, fill.lamp, torch.lamp) == (True, False, False)


def test_light_settings_are_a_setup_of_a_condition_beside_them(file):
    condition = file.with_name('dimmed.yaml')
    condition.write_text(
        f'lighting:\n  setup: {file.name}\n'
        '  scene_lights: [{select: {lamps: true}, schedule: {factor: 0.5}}]\n'
    )
    lights = lit(load_condition(str(condition)), 0).lights
    found = {light.name: light.intensity for light in lights}
    assert found == {'lamp': 2.5, 'fill': pytest.approx(-0.4)}


def test_no_lights_show_textures_as_they_are(write_file):
    path = write_file('light_settings_no_lights.json', '{"lights": {}}')
    assert lit(load_condition(str(path)), 0) == Lighting.unlit()


@pytest.mark.parametrize(
    ('key', 'value', 'named'),
    [
        ('type', 'directional', 'type'),
        ('position', [0, 0, 0, 0], 'position'),
        ('intensity', 'much', 'intensity'),
        ('hue', 1, 'hue'),
    ],
)
def test_what_is_wrong_with_light_settings_is_named(file, key, value, named):
    data = json.loads(file.read_text())
    data['lights']['lamp'][key] = value
    file.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=rf'light_settings_own\.json.*lamp.*{named}'):
        load_condition(str(file))


def test_an_unknown_setup_is_answered_with_the_nearest():
    data = {'lighting': {'setup': 'replica_cat'}}
    with pytest.raises(ConfigError, match=r'config/lights/replica_cat\.yaml.*"replica_cad"'):
        parse_condition('own', data, 'own.yaml')


def test_other_data_sets_keep_their_own_lights():
    room = room_scene()
    for name in ('compat_baseline', 'compat_velocity', 'compat_dynamic'):
        found = compute_lighting(load_condition(name), room, Moment(0, 0.0, 0.0))
        assert found.lights == room.lights


def test_the_camera_condition_is_as_documented_and_its_compat_as_in_the_code():
    for name, intensity in (('camera', 5.0), ('compat_camera', 12.5)):
        [light] = lit(load_condition(name), 0).lights
        assert light.intensity == intensity
