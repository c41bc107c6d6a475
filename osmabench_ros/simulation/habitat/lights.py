"""Lights as Habitat-Sim wants them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.axes import OPENGL_FROM_OPTICAL, points_to_habitat
from osmabench_ros.scenes.lights import Light, Lighting, LightKind

MAX_LIGHTS = 64
"""More do not fit into the uniforms that every OpenGL driver grants."""


def habitat_lights(lighting: Lighting) -> list[dict[str, Any]]:
    """Convert the lights that shine to the worker's form.

    Parameters
    ----------
    lighting : Lighting
        Point and directional lights, in the world or on the camera.

    Returns
    -------
    list of dict
        'vector' (4 numbers, y up; w = 1 a position, w = 0 the way the light travels), 'color'
        (linear, times intensity), 'on_camera'.

    Raises
    ------
    SimulationError
        If a light is a spot, which Habitat-Sim does not have, or a number is not finite.
    """
    if not (math.isfinite(lighting.ambient) and math.isfinite(lighting.exposure)):
        raise SimulationError('ambient light and exposure must be finite')
    lights = [light for light in lighting.lights if light.intensity and any(light.color)]
    if len(lights) > MAX_LIGHTS:
        raise SimulationError(
            f'{len(lights)} lights are more than the {MAX_LIGHTS} Habitat-Sim renders; take some '
            'out of the condition or the scene'
        )
    return [_converted(light) for light in lights]


def _converted(light: Light) -> dict[str, Any]:
    if light.kind is LightKind.SPOT:
        raise SimulationError(
            f'light "{light.name}" is a spot; Habitat-Sim has point and directional lights only. '
            'Change its kind, or use the simulator "opengl"'
        )
    radiates_from = light.kind is LightKind.POINT
    given = np.array(light.position if radiates_from else light.direction, np.float64)
    numbers = [*given, *light.color, light.intensity]
    if not np.isfinite(numbers).all():
        raise SimulationError(f'light "{light.name}" holds NaN or infinity')
    if not radiates_from and not given.any():
        raise SimulationError(f'light "{light.name}" needs a direction that is not zero')
    turned = OPENGL_FROM_OPTICAL @ given if light.attached_to_camera else points_to_habitat(given)
    if not radiates_from:
        turned = turned / np.linalg.norm(turned)
    return {
        'vector': [*(float(value) for value in turned), 1.0 if radiates_from else 0.0],
        'color': [float(channel * light.intensity) for channel in light.color],
        'on_camera': light.attached_to_camera,
    }
