from dataclasses import replace

import numpy as np
import pytest

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Light, Lighting, LightKind
from osmabench_ros.simulation.habitat.lights import (
    compute_cone_share,
    convert_lights,
    select_spots,
)
from osmabench_ros.simulation.simulator import MAX_LIGHTS

OPTICAL_LEVEL = np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]])


def only(light):
    (converted,) = convert_lights(Lighting((light,)))
    return converted


def test_a_point_light_is_placed_in_y_up_coordinates_with_its_intensity():
    light = Light('lamp', position=(1.0, 2.0, 3.0), color=(1.0, 0.5, 0.0), intensity=-4.0)
    assert only(light) == {
        'vector': [1.0, 3.0, -2.0, 1.0],
        'color': [-4.0, -2.0, 0.0],
        'on_camera': False,
    }


def test_a_directional_light_travels_along_its_unit_direction():
    light = Light('sun', LightKind.DIRECTIONAL, direction=(0.0, 3.0, -4.0))
    np.testing.assert_allclose(only(light)['vector'], [0.0, -0.8, -0.6, 0.0])


def test_a_camera_light_is_given_in_the_axes_of_a_camera_that_looks_along_minus_z():
    light = Light('head', position=(0.1, 0.2, 0.3), attached_to_camera=True)
    np.testing.assert_allclose(only(light)['vector'], [0.1, -0.2, -0.3, 1.0])
    beam = Light('beam', LightKind.DIRECTIONAL, direction=(0, 0, 1), attached_to_camera=True)
    np.testing.assert_allclose(only(beam)['vector'], [0.0, 0.0, -1.0, 0.0])
    assert only(beam)['on_camera']


def test_lights_that_are_off_are_left_out():
    lights = (Light('off', intensity=0.0), Light('black', color=(0.0, 0.0, 0.0)), Light('on'))
    assert len(convert_lights(Lighting(lights))) == 1


def test_spots_are_kept_apart():
    spot, lamp = Light('beam', LightKind.SPOT), Light('lamp', intensity=3.0)
    lighting = Lighting((spot, lamp, Light('off', LightKind.SPOT, intensity=0.0)))
    assert select_spots(lighting) == [spot]
    (converted,) = convert_lights(lighting, 0.5)
    assert converted['color'] == [1.5, 1.5, 1.5]


@pytest.mark.parametrize('attached', [False, True])
def test_a_cone_is_full_in_the_middle_and_ends_at_its_angle(attached):
    camera = Intrinsics.from_hfov(201, 101, 1.8)
    pose = Pose.from_yaw(0.4, (1.0, 2.0, 3.0)) @ Pose(OPTICAL_LEVEL, np.zeros(3))
    spot = Light('beam', LightKind.SPOT, direction=(0, 0, 1), attached_to_camera=attached)
    spot = replace(spot, spot_half_angle_rad=0.5)
    if not attached:
        position, direction = (tuple(v.tolist()) for v in (pose.translation, pose.rotation[:, 2]))
        spot = replace(spot, position=position, direction=direction)
    depth = np.full((101, 201), 2.0, np.float32)
    depth[0], depth[1] = 0.0, np.inf
    share = compute_cone_share(spot, depth, camera, pose)
    angle = np.arctan(np.hypot(*np.moveaxis(camera.rays()[..., :2], 2, 0)))
    assert not share[:2].any()
    assert (share[2:][angle[2:] < 0.39] > 0.999).all()
    assert (share[angle > 0.501] == 0).all()
    t = (np.cos(0.45) - np.cos(0.5)) / (np.cos(0.4) - np.cos(0.5))
    edge = share[2:][np.abs(angle[2:] - 0.45) < 0.004]
    np.testing.assert_allclose(edge, t * t * (3 - 2 * t), atol=0.08)


# Lightings that no simulator can show, with the reason.
REFUSED = [
    (Lighting((Light('s', LightKind.SPOT, direction=(0, 0, 0)),)), 'light "s" .*not zero'),
    (Lighting((Light('n', position=(0.0, float('nan'), 0.0)),)), 'light "n" holds NaN'),
    (Lighting((Light('d', LightKind.DIRECTIONAL, direction=(0, 0, 0)),)), 'not zero'),
    (Lighting((Light('a'),) * (MAX_LIGHTS + 1)), f'more than the {MAX_LIGHTS}'),
    (Lighting(exposure=float('inf')), 'must be finite'),
    (Lighting(ambient=float('inf')), 'must be finite'),
]


@pytest.mark.parametrize(('lighting', 'message'), REFUSED)
def test_what_habitat_sim_cannot_shine_is_named(lighting, message):
    with pytest.raises(SimulationError, match=message):
        convert_lights(lighting)
