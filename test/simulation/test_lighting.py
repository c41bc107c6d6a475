from functools import cache

import numpy as np
import pytest
from support.world.scenes import room_scene

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.scenes.scene import Light, Lighting, LightKind, Room, Scene
from osmabench_ros.simulation.conditions import compute_lighting, load_condition, parse_condition
from osmabench_ros.simulation.schedule import Moment


@cache
def two_rooms():
    """A scene with a lamp and a fill light in each half."""
    base = room_scene()
    rooms = (
        Room(101, 'kitchen', 'kitchen', AxisAlignedBox([-3, -2, 0], [0, 2, 2.5])),
        Room(102, 'bedroom 1', 'bedroom', AxisAlignedBox([0, -2, 0], [3, 2, 2.5])),
    )
    lights = (
        Light('kitchen lamp', position=(-1.5, 0, 2), intensity=2.0, room_id=101),
        Light('bedroom lamp', position=(1.5, 0, 2), intensity=4.0, room_id=102),
        Light('fill', position=(0, 0, 1), intensity=0.2, lamp=False, room_id=101),
    )
    return Scene(base.dataset, base.name, base.label_set, base.objects, rooms, lights, ambient=0.1)


def lit(condition, segment=0, progress=0.0, time_s=0.0, x=-1.0):
    moment = Moment(segment, progress, time_s, (x, 0.0, 0.0))
    return compute_lighting(condition, two_rooms(), moment)


def intensities(lighting):
    return {light.name: light.intensity for light in lighting.lights}


def condition(**lighting):
    return parse_condition('test', {'lighting': lighting}, 'test')


def flickering(**flicker):
    return condition(scene_lights=[{'schedule': {'flicker': flicker}}])


def test_baseline_and_velocity_are_the_scenes_own_light_and_nominal_is_unlit():
    scene = two_rooms()
    for name in ('baseline', 'velocity'):
        assert lit(load_condition(name)) == Lighting(scene.lights, scene.ambient)
    assert lit(load_condition('nominal')) == Lighting.unlit()


def test_the_camera_light_replaces_all_others():
    lighting = lit(load_condition('camera'))
    (light,) = lighting.lights
    assert (light.kind, light.position, light.intensity) == (LightKind.POINT, (0, 0, 0), 5.0)
    assert light.attached_to_camera
    assert light.color == (1.0, 1.0, 1.0)
    assert lighting.ambient == 0.0


def test_the_headlight_shines_ahead_beside_the_scenes_lights():
    lighting = lit(load_condition('camera_headlight'))
    assert lighting.lights[:3] == two_rooms().lights
    headlight = lighting.lights[3]
    assert headlight.attached_to_camera
    assert headlight.direction == (0.0, 0.0, 1.0)
    assert headlight.kind is LightKind.SPOT


def test_dynamic_lamps_live_in_the_first_segment_only():
    dynamic = load_condition('dynamic')
    for progress in (0.0, 0.5, 1.0):
        found = set(intensities(lit(dynamic, 0, progress)))
        assert found == {'kitchen lamp', 'bedroom lamp', 'fill'}
    for segment in (1, 4):
        assert set(intensities(lit(dynamic, segment))) == {'fill'}


def test_ramps_go_linearly_and_hold_their_ends():
    ramp = {'span': {'seconds': [2, 4]}, 'start_factor': 1.0, 'end_factor': 0.25}
    dimmed = condition(scene_lights=[{'schedule': {'ramps': [ramp]}}])
    found = [intensities(lit(dimmed, time_s=t))['kitchen lamp'] for t in (0.0, 2.0, 3.0, 4.0, 9.0)]
    np.testing.assert_allclose(found, [2.0, 2.0, 1.25, 0.5, 0.5])


def test_a_ramp_over_segments_follows_the_path_not_the_clock():
    ramp = {'span': {'segments': [1, 2]}, 'start_factor': 0.0, 'end_factor': 1.0}
    dimmed = condition(ambient={'ramps': [ramp]})
    assert lit(dimmed, 0, 0.9, 99.0).ambient == 0.0
    assert lit(dimmed, 1, 0.5, 0.0).ambient == pytest.approx(0.05)
    assert lit(dimmed, 2, 0.0, 0.0).ambient == pytest.approx(0.1)


@pytest.mark.parametrize('pattern', ['sine', 'square', 'random'])
def test_flicker_is_a_function_of_time_within_its_depth(pattern):
    light = flickering(pattern=pattern, frequency_hz=3.0, depth=0.6, seed=4)
    times = np.linspace(0, 3, 200)
    found = [intensities(lit(light, time_s=t))['bedroom lamp'] / 4.0 for t in times]
    again = [intensities(lit(light, time_s=t))['bedroom lamp'] / 4.0 for t in reversed(times)]
    assert found == again[::-1]
    assert min(found) >= 0.4
    assert max(found) <= 1.0
    assert np.ptp(found) > 0.4


def test_random_flicker_differs_between_lights_and_seeds():
    def factors(seed):
        light = flickering(pattern='random', frequency_hz=5.0, depth=1.0, seed=seed)
        names = [intensities(lit(light, time_s=t)) for t in np.arange(0, 2, 0.2)]
        return [(item['kitchen lamp'] / 2, item['bedroom lamp'] / 4) for item in names]

    first, second = factors(0), factors(1)
    assert first != second
    assert any(kitchen != bedroom for kitchen, bedroom in first)


def test_rooms_are_selected_by_name_or_kind():
    off = {'schedule': {'factor': 0.0}}
    dark_bedroom = condition(scene_lights=[{'select': {'rooms': ['bedroom']}, **off}])
    assert set(intensities(lit(dark_bedroom))) == {'kitchen lamp', 'fill'}
    selected = {'rooms': ['kitchen'], 'lamps': True}
    dark_kitchen = condition(scene_lights=[{'select': selected, **off}])
    assert set(intensities(lit(dark_kitchen))) == {'bedroom lamp', 'fill'}
    by_pattern = condition(scene_lights=[{'select': {'names': ['*lamp']}, **off}])
    assert set(intensities(lit(by_pattern))) == {'fill'}


def test_lights_can_follow_the_robot_from_room_to_room():
    following = condition(scene_lights=[{'only_in_robots_room': True}])
    assert set(intensities(lit(following, x=-1.0))) == {'kitchen lamp', 'fill'}
    assert set(intensities(lit(following, x=1.0))) == {'bedroom lamp'}
    with pytest.raises(SimulationError, match='"test" switches lights by the room'):
        compute_lighting(following, two_rooms(), Moment(0, 0.0, 0.0))


def test_rules_multiply():
    rules = [
        {'schedule': {'factor': 0.5}},
        {'select': {'lamps': False}, 'schedule': {'factor': 3.0}},
    ]
    expected = {'kitchen lamp': 1.0, 'bedroom lamp': 2.0, 'fill': 0.3}
    assert intensities(lit(condition(scene_lights=rules))) == pytest.approx(expected)


def test_the_sun_rises_in_the_east_and_stands_in_the_south_at_noon():
    def sun(hour):
        lights = lit(condition(daylight={'hour': hour, 'latitude_deg': 50.0})).lights
        return next((light for light in lights if light.name == 'sun'), None)

    assert sun(5.0) is None
    assert sun(19.0) is None
    morning, noon, evening = sun(7.0), sun(12.0), sun(17.0)
    assert morning.direction[0] < 0 < evening.direction[0]  # light travels away from the sun
    elevation = np.degrees(np.arcsin(-noon.direction[2]))
    assert elevation == pytest.approx(40.0)
    assert noon.direction[1] > 0
    assert morning.intensity < noon.intensity
    assert morning.color[2] / morning.color[0] < noon.color[2] / noon.color[0]


def test_a_low_sun_is_weaker_and_redder():
    drive = condition(daylight={'hour': 8.0, 'latitude_deg': 0.0, 'sun_intensity': 2.0})
    [low] = [light for light in lit(drive).lights if light.name == 'sun']
    # At 30 degrees the light passes twice the air of noon: exp(-0.12 / sin 30) is left.
    assert low.intensity == pytest.approx(2.0 * 0.786628)
    assert low.color == pytest.approx((1.0, 0.903983, 0.850640), abs=1e-6)


def test_the_day_passes_while_the_robot_drives():
    dawn = condition(daylight={'hour': 4.0, 'hours_per_s': 1.0, 'sky_ambient': 0.3})
    ambients = [lit(dawn, time_s=t).ambient for t in range(9)]
    assert ambients[0] == pytest.approx(0.1)
    assert ambients == sorted(ambients)
    assert 0.2 < ambients[-1] < 0.4


def test_a_scene_without_lights_is_refused_by_conditions_that_need_them():
    dark = room_scene(lights=())
    for name in ('baseline', 'dynamic', 'velocity'):
        reason = f'test/room has no lights and condition "{name}"'
        with pytest.raises(SimulationError, match=reason):
            compute_lighting(load_condition(name), dark, Moment(0, 0.0, 0.0))
    for name in ('nominal', 'nominal_velocity', 'camera', 'daytime'):
        compute_lighting(load_condition(name), dark, Moment(0, 0.0, 0.0))
