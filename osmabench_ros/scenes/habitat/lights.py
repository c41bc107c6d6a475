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

LAMP_RULE = 'every point or spot light of positive intensity is a lamp'
"""For lights of a setup that do not say so themselves, with the key "lamp"."""


def read_lights(data: Mapping[str, Any], source: str) -> tuple[Light, ...]:
    """Convert a lighting configuration, y-up, with its scales of intensity, to z-up lights.

    Habitat-Sim knows no lamps: a light is one by `LAMP_RULE` unless it has the key "lamp".
    """
    entries = data.get('lights', {})
    if not isinstance(entries, dict):
        raise SceneError(f'{source}: "lights" must be an object of lights by name')
    scales = tuple(
        number(data, key, 1.0, source)
        for key in ('positive_intensity_scale', 'negative_intensity_scale')
    )
    return tuple(
        _light(name, item, scales, f'{source}: light "{name}"') for name, item in entries.items()
    )


def says_lamps(data: Mapping[str, Any]) -> bool:
    """Return whether every light of a configuration says whether it is a lamp."""
    return all('lamp' in item for item in data.get('lights', {}).values())


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
    lamp = item.get('lamp', intensity > 0 and kind is not LightKind.DIRECTIONAL)
    if not isinstance(lamp, bool):
        raise SceneError(f'{where}: "lamp" must be true or false, not {lamp!r}')
    return Light(
        name,
        kind,
        position=_triple(_optical(position) if on_camera else points_from_habitat(position)),
        direction=_triple(_optical(direction) if on_camera else points_from_habitat(direction)),
        color=_triple(vector(item, 'color', (1.0, 1.0, 1.0), where)),
        intensity=intensity * (scales[0] if intensity >= 0 else scales[1]),
        spot_half_angle_rad=number(cone, 'outerConeAngle', math.pi / 2, where) / 2,
        attached_to_camera=on_camera,
        lamp=lamp,
    )


def _optical(vector_in_camera: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """Turn a vector from a camera with y up and -z forward to optical axes."""
    return vector_in_camera * [1.0, -1.0, -1.0]


def _triple(values: Any) -> tuple[float, float, float]:
    x, y, z = (float(value) for value in values)
    return (x, y, z)
