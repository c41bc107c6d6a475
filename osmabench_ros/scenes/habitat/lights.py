"""Light setups of a scene data set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from osmabench_ros.errors import SceneError, suggestion
from osmabench_ros.geometry.axes import points_from_habitat
from osmabench_ros.scenes.lights import Light, LightKind
from osmabench_ros.scenes.scene_files import number, vector

LAMP_SHARE = 0.3
"""A light is a lamp if its strength is at least this share of the strongest; others are fill."""


def read_lights(data: Mapping[str, Any], source: str) -> tuple[Light, ...]:
    """Convert a lighting configuration, y-up, with its scales of intensity, to z-up lights."""
    entries = data.get('lights', {})
    if not isinstance(entries, dict):
        raise SceneError(f'{source}: "lights" must be an object of lights by name')
    scales = tuple(
        number(data, key, 1.0, source)
        for key in ('positive_intensity_scale', 'negative_intensity_scale')
    )
    lights = [
        _light(name, item, scales, f'{source}: light "{name}"') for name, item in entries.items()
    ]
    strongest = max((abs(light.intensity) for light in lights), default=0.0)
    return tuple(_as_fill(light, strongest) for light in lights)


def _light(name: str, item: Mapping[str, Any], scales: tuple[float, ...], where: str) -> Light:
    # As in Habitat-Sim, a light without a type is directional if it has a direction alone.
    inferred = 'directional' if 'direction' in item and 'position' not in item else 'point'
    try:
        kind = LightKind(str(item.get('type', inferred)).lower())
    except ValueError:
        choices = [kind.value for kind in LightKind]
        raise SceneError(
            f'{where} has type "{item["type"]}". {suggestion(str(item["type"]), choices)}'
        ) from None
    intensity = number(item, 'intensity', 1.0, where)
    cone = item.get('spot', {})
    on_camera = item.get('position_model', 'global') == 'camera'
    position = vector(item, 'position', (0.0, 0.0, 0.0), where)
    direction = vector(item, 'direction', (0.0, -1.0, 0.0), where)
    return Light(
        name,
        kind,
        position=_triple(_optical(position) if on_camera else points_from_habitat(position)),
        direction=_triple(_optical(direction) if on_camera else points_from_habitat(direction)),
        color=_triple(vector(item, 'color', (1.0, 1.0, 1.0), where)),
        intensity=intensity * (scales[0] if intensity >= 0 else scales[1]),
        spot_half_angle_rad=number(cone, 'outerConeAngle', math.pi / 2, where) / 2,
        attached_to_camera=on_camera,
    )


def _optical(vector_in_camera: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """Turn a vector from a camera with y up and -z forward to optical axes."""
    return vector_in_camera * [1.0, -1.0, -1.0]


def _triple(values: Any) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return (x, y, z)


def _as_fill(light: Light, strongest: float) -> Light:
    from dataclasses import replace

    weak = abs(light.intensity) < LAMP_SHARE * strongest
    return replace(light, lamp=not (weak or light.kind is LightKind.DIRECTIONAL))
