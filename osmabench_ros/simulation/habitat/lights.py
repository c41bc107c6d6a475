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


def habitat_lights(lighting: Lighting, factor: float = 1.0) -> list[dict[str, Any]]:
    """Convert the lights that shine, without spots, to the worker's form; see `worker_light`.

    `factor` is on all intensities. Raises SimulationError if there are too many lights, a number
    is not finite or a direction is zero.
    """
    return [
        worker_light(light, factor)
        for light in _shining(lighting)
        if light.kind is not LightKind.SPOT
    ]


def shining_spots(lighting: Lighting) -> list[Light]:
    """Return the spots that shine, which Habitat-Sim does not have; raises as `habitat_lights`."""
    return [light for light in _shining(lighting) if light.kind is LightKind.SPOT]


def worker_light(light: Light, factor: float = 1.0) -> dict[str, Any]:
    """Convert a point or directional light to the worker's form.

    'vector' has 4 numbers, y up (w = 1 a position, w = 0 the way the light travels), 'color' is
    linear, times intensity and factor; 'on_camera' is a bool.
    """
    radiates_from = light.kind is LightKind.POINT
    given = np.array(light.position if radiates_from else light.direction, np.float64)
    turned = OPENGL_FROM_OPTICAL @ given if light.attached_to_camera else points_to_habitat(given)
    if not radiates_from:
        turned = turned / np.linalg.norm(turned)
    return {
        'vector': [*(float(value) for value in turned), 1.0 if radiates_from else 0.0],
        'color': [float(channel * light.intensity * factor) for channel in light.color],
        'on_camera': light.attached_to_camera,
    }


def _shining(lighting: Lighting) -> list[Light]:
    if not (math.isfinite(lighting.ambient) and math.isfinite(lighting.exposure)):
        raise SimulationError('ambient light and exposure must be finite')
    lights = [light for light in lighting.lights if light.intensity and any(light.color)]
    if len(lights) > MAX_LIGHTS:
        raise SimulationError(
            f'{len(lights)} lights are more than the {MAX_LIGHTS} Habitat-Sim renders; take some '
            'out of the condition or the scene'
        )
    for light in lights:
        numbers = [*light.position, *light.direction, *light.color, light.intensity]
        if not np.isfinite(numbers).all():
            raise SimulationError(f'light "{light.name}" holds NaN or infinity')
        if light.kind is not LightKind.POINT and not any(light.direction):
            raise SimulationError(f'light "{light.name}" needs a direction that is not zero')
    return lights
