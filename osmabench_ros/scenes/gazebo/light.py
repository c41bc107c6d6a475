"""Lights of a Gazebo world."""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element

import numpy as np

from osmabench_ros.errors import SceneError, suggestion
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.gazebo.xml import numbers
from osmabench_ros.scenes.lights import Light, LightKind

REFERENCE_M = 2.0
"""Distance at which a light has the brightness that Gazebo's attenuation gives it.

SDF attenuates by constant + linear d + quadratic d^2, a `Light` by d^2 alone.
"""


def read_light(element: Element, pose: Pose, where: str) -> Light:
    """Convert a <light>; `pose` is its own in the world."""
    name = element.get('name', 'light')
    where = f'{where}: light "{name}"'
    word = element.get('type', 'point')
    if word not in {kind.value for kind in LightKind}:
        raise SceneError(
            f'{where}: type "{word}". {suggestion(word, [k.value for k in LightKind])}'
        )
    kind = LightKind(word)
    diffuse = np.maximum(numbers(element.find('diffuse'), 3, (1.0, 1.0, 1.0), where), 0)
    strength = float(diffuse.max())
    color = diffuse / strength if strength > 0 else np.ones(3)
    intensity = strength * float(numbers(element.find('intensity'), 1, (1.0,), where)[0])
    if kind is not LightKind.DIRECTIONAL:
        intensity *= REFERENCE_M**2 / _attenuation(element, where)
    direction = pose.rotation @ numbers(element.find('direction'), 3, (0.0, 0.0, -1.0), where)
    cone = numbers(element.find('spot/outer_angle'), 1, (math.pi / 2,), where)
    x, y, z = (float(value) for value in pose.translation)
    dx, dy, dz = (float(value) for value in direction)
    red, green, blue = (float(value) for value in color)
    return Light(
        name,
        kind,
        (x, y, z),
        (dx, dy, dz),
        (red, green, blue),
        intensity,
        float(cone[0]) / 2,
        lamp=kind is not LightKind.DIRECTIONAL,
    )


def sun() -> Light:
    """Return the light that Gazebo's own model `sun` stands for."""
    return Light(
        'sun', LightKind.DIRECTIONAL, direction=(-0.5, 0.1, -0.9), intensity=0.8, lamp=False
    )


def _attenuation(element: Element, where: str) -> float:
    constant, linear, quadratic = (
        float(numbers(element.find(f'attenuation/{key}'), 1, (default,), where)[0])
        for key, default in (('constant', 1.0), ('linear', 0.0), ('quadratic', 0.0))
    )
    return max(constant + linear * REFERENCE_M + quadratic * REFERENCE_M**2, 1e-3)
