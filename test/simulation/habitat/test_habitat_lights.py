import numpy as np
import pytest

from osmabench_ros.errors import SimulationError
from osmabench_ros.scenes.lights import Light, Lighting, LightKind
from osmabench_ros.simulation.habitat.lights import MAX_LIGHTS, habitat_lights


def only(light: Light) -> dict:
    (converted,) = habitat_lights(Lighting((light,)))
    return converted


def test_a_point_light_is_placed_in_y_up_coordinates_with_its_intensity() -> None:
    light = Light('lamp', position=(1.0, 2.0, 3.0), color=(1.0, 0.5, 0.0), intensity=-4.0)
    assert only(light) == {
        'vector': [1.0, 3.0, -2.0, 1.0],
        'color': [-4.0, -2.0, 0.0],
        'on_camera': False,
    }


def test_a_directional_light_travels_along_its_unit_direction() -> None:
    light = Light('sun', LightKind.DIRECTIONAL, direction=(0.0, 3.0, -4.0))
    np.testing.assert_allclose(only(light)['vector'], [0.0, -0.8, -0.6, 0.0])


def test_a_camera_light_is_given_in_the_axes_of_a_camera_that_looks_along_minus_z() -> None:
    light = Light('head', position=(0.1, 0.2, 0.3), attached_to_camera=True)
    np.testing.assert_allclose(only(light)['vector'], [0.1, -0.2, -0.3, 1.0])
    beam = Light('beam', LightKind.DIRECTIONAL, direction=(0, 0, 1), attached_to_camera=True)
    np.testing.assert_allclose(only(beam)['vector'], [0.0, 0.0, -1.0, 0.0])
    assert only(beam)['on_camera']


def test_lights_that_are_off_are_left_out() -> None:
    lights = (Light('off', intensity=0.0), Light('black', color=(0.0, 0.0, 0.0)), Light('on'))
    assert len(habitat_lights(Lighting(lights))) == 1


@pytest.mark.parametrize(
    ('lighting', 'message'),
    [
        (Lighting((Light('s', LightKind.SPOT),)), 'light "s" is a spot'),
        (Lighting((Light('n', position=(0.0, float('nan'), 0.0)),)), 'light "n" holds NaN'),
        (Lighting((Light('d', LightKind.DIRECTIONAL, direction=(0, 0, 0)),)), 'not zero'),
        (Lighting((Light('a'),) * (MAX_LIGHTS + 1)), f'more than the {MAX_LIGHTS}'),
        (Lighting(exposure=float('inf')), 'must be finite'),
    ],
)
def test_what_habitat_sim_cannot_shine_is_named(lighting: Lighting, message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        habitat_lights(lighting)
