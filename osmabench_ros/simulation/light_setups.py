"""Light setups: those of the package, and the light settings of OSMa-Bench's generator."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator

from osmabench_ros.base.configuration import described
from osmabench_ros.base.limits.documents import read_json
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.axes import OPENGL_FROM_OPTICAL, points_from_habitat
from osmabench_ros.scenes.lights import LightKind
from osmabench_ros.simulation.light_sections import ExtraLight, LightSetup, Vector
from osmabench_ros.simulation.schedule import Schedule, Span

POSITIVE_SCALE, NEGATIVE_SCALE = 2.5, 0.1
"""Factors of OSMa-Bench's code on positive and on negative intensities."""

FOLDER = 'lights'
"""Of the package's own setups, below `config/`."""


class _SettingsLight(Strict):
    """A light of OSMa-Bench's settings: y up, its life in numbers of goals, from 0."""

    type: Literal['camera', 'point']
    position: Vector | tuple[float, float, float, float]
    intensity: float
    color: Vector
    life_intervals: tuple[tuple[float | None, float | None], ...]

    @field_validator('position')
    @classmethod
    def _is_a_place(cls, position: tuple[float, ...]) -> tuple[float, ...]:
        if position[3:] not in ((), (1.0,)):
            raise ValueError('the fourth number of a position must be 1')
        return position


class _LightSettings(Strict):
    """A `light_settings_*.json`."""

    lights: dict[str, _SettingsLight] = Field(max_length=1024)


def read_light_setup(name_or_path: str, folder: Path) -> dict[str, Any]:
    """Return the keys of a lighting section that make a setup shine in place of the scene's.

    Parameters
    ----------
    name_or_path : str
        Name of a setup of the package, or path of a `.yaml` file with `lights`, or of OSMa-Bench's
        `light_settings_*.json`, whose intensities are scaled as its code does.
    folder : Path
        Where a relative path starts.

    Returns
    -------
    dict
        'setup'; or 'unlit' for settings without lights, under which textures show as they are.

    Raises
    ------
    ConfigError
        If there is no such setup, or its file is malformed.
    """
    path = folder / Path(name_or_path).expanduser()
    if path.suffix == '.json':
        where = f'light settings {path}'
        settings = validated(_LightSettings, read_json(path, ConfigError), where)
        lights = tuple(_shining(name, item) for name, item in settings.lights.items())
        return {'setup': LightSetup(lights=lights)} if lights else {'unlit': True}
    data, source = described(str(path) if path.suffix == '.yaml' else name_or_path, FOLDER)
    return {'setup': validated(LightSetup, data, f'light setup {source}')}


def _shining(name: str, item: _SettingsLight) -> ExtraLight:
    """Return a light as it shines in OSMa-Bench; one that dies after a goal is a lamp."""
    place, on_camera = np.array(item.position[:3]), item.type == 'camera'
    at = OPENGL_FROM_OPTICAL @ place if on_camera else points_from_habitat(place)
    red, green, blue = (min(max(channel, 0.0), 1.0) for channel in item.color)
    return ExtraLight(
        name=name,
        kind=LightKind.POINT,
        position=(float(at[0]), float(at[1]), float(at[2])),
        color=(red, green, blue),
        intensity=item.intensity * (POSITIVE_SCALE if item.intensity >= 0 else NEGATIVE_SCALE),
        attached_to_camera=on_camera,
        lamp=any(end is not None for _, end in item.life_intervals),
        schedule=_life(item.life_intervals),
    )


def _life(intervals: tuple[tuple[float | None, float | None], ...]) -> Schedule:
    """Return when a light is alive: the number of the goal lies in [start, end) of an interval."""
    if not intervals:
        return Schedule(factor=0.0)
    if any((start or 0) <= 0 and end is None for start, end in intervals):
        return Schedule()
    spans = (
        (max(0, math.ceil(start or 0)), None if end is None else max(0, math.ceil(end)))
        for start, end in intervals
    )
    return Schedule(alive=tuple(Span(segments=(a, b)) for a, b in spans if b is None or a <= b))
