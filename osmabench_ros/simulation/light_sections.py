"""The lighting part of a condition file, and light setups, also of OSMa-Bench."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, field_validator, model_validator

from osmabench_ros.base.configuration import described
from osmabench_ros.base.documents import read_json
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.axes import OPENGL_FROM_OPTICAL, turn_from_habitat
from osmabench_ros.scenes.ground_truth import assign_rooms_to_lights
from osmabench_ros.scenes.scene import Light, LightKind, Scene
from osmabench_ros.simulation.schedule import Schedule, Span

Vector = tuple[float, float, float]


class LightSelection(Strict):
    """Selects lights of the scene; a criterion that is left out is not checked.

    `rooms` holds names or kinds of rooms, `names` patterns such as ``'kitchen*'``.
    """

    lamps: bool | None = None
    """True for lamps, false for lights that fill."""
    rooms: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def matches(self, light: Light, scene: Scene) -> bool:
        """Return whether a light of the scene is selected."""
        if self.lamps is not None and light.lamp != self.lamps:
            return False
        if self.names and not any(fnmatchcase(light.name, pattern) for pattern in self.names):
            return False
        if not self.rooms:
            return True
        room = next((room for room in scene.rooms if room.id == light.room_id), None)
        return room is not None and bool({room.name, room.label} & set(self.rooms))


class SceneLightRule(Strict):
    """What happens to the selected lights of the scene.

    `only_in_robots_room` switches a light off while the robot is in another room.
    """

    select: LightSelection = LightSelection()
    schedule: Schedule = Schedule()
    only_in_robots_room: bool = False


class ExtraLight(Strict):
    """A light that the condition adds.

    Position and direction are in the world, or in the optical frame (x right, y down, z forward)
    of the camera if `attached_to_camera`.
    """

    name: str
    """Unique among the lights of the condition."""
    kind: LightKind = LightKind.POINT
    """How it radiates."""
    position: Vector = (0.0, 0.0, 0.0)
    """Metres; unused by directional lights."""
    direction: Vector = (0.0, 0.0, 1.0)
    """That the light travels along; unused by point lights."""
    color: Vector = (1.0, 1.0, 1.0)
    """Linear RGB from 0 to 1."""
    intensity: float = 1.0
    """Factor on the colour; the irradiance at 1 m of a point light."""
    spot_half_angle_deg: float = Field(45.0, gt=0, lt=90)
    """From the axis to the edge of a spot's cone."""
    attached_to_camera: bool = False
    lamp: bool = True
    """Whether rules that select lamps select it."""
    schedule: Schedule = Schedule()

    @model_validator(mode='after')
    def _is_physical(self) -> ExtraLight:
        if self.kind is not LightKind.POINT and not any(self.direction):
            raise ValueError('a directional or spot light needs a direction that is not zero')
        if not all(0 <= channel <= 1 for channel in self.color):
            raise ValueError('a colour is linear RGB in [0, 1]; brightness goes into "intensity"')
        return self

    def make_light(self) -> Light:
        """Return the light at full intensity."""
        fields = self.model_dump(exclude={'spot_half_angle_deg', 'schedule'})
        return Light(**fields, spot_half_angle_rad=math.radians(self.spot_half_angle_deg))


def _check_names(lights: tuple[ExtraLight, ...]) -> tuple[ExtraLight, ...]:
    if len({light.name for light in lights}) != len(lights):
        raise ValueError('two lights have the same name')
    return lights


ExtraLights = Annotated[tuple[ExtraLight, ...], AfterValidator(_check_names)]


class LightSetup(Strict):
    """Lights that shine in place of the scene's, in scenes of data sets with these patterns."""

    datasets: tuple[str, ...] = ()
    """Patterns of names of data sets, such as ``'replica*'``; () for all."""
    lights: ExtraLights = Field(min_length=1)

    def is_for(self, scene: Scene) -> bool:
        """Return whether the scene's data set matches a pattern, or there is none."""
        name = scene.dataset.lower()
        patterns = (pattern.lower() for pattern in self.datasets)
        return not self.datasets or any(fnmatchcase(name, pattern) for pattern in patterns)


class Daylight(Strict):
    """Sun and sky at an equinox; the sun enters where the building is open.

    `hours_per_s` lets the day pass while the robot drives.
    """

    hour: float = Field(12.0, ge=0, le=24)
    """Of the sun, at the start."""
    hours_per_s: float = Field(0.0, ge=0)
    latitude_deg: float = Field(50.0, ge=-90, le=90)
    """North of the equator."""
    sun_intensity: float = Field(2.0, ge=0)
    """Of the sun at its highest."""
    sky_ambient: float = Field(0.25, ge=0)
    """Light from all sides at noon."""


class LightingSection(Strict):
    """All light of a condition; a file may give `setup` as a name or a path.

    `compat` keeps images as the embedded simulator's rendering of that name makes them, and gives
    Habitat-Sim the shaders and ambient occlusion of OSMa-Bench's code.
    """

    unlit: bool = False
    """Textures as they are, without any light."""
    shadows: bool = True
    """Whether lights cast shadows."""
    compat: bool = False
    exposure: float = Field(1.0, gt=0)
    """Factor on the light before it is encoded."""
    ambient: Schedule = Schedule()
    setup: LightSetup | None = None
    scene_lights: tuple[SceneLightRule, ...] = ()
    lights: ExtraLights = ()
    daylight: Daylight | None = None

    @model_validator(mode='after')
    def _has_no_light_if_unlit(self) -> LightingSection:
        if self.unlit and (self.lights or self.scene_lights or self.daylight or self.setup):
            raise ValueError('an unlit condition has no lights; remove them or "unlit"')
        return self

    def list_lights(self, scene: Scene) -> tuple[tuple[Light, Schedule], ...]:
        """Return the lights that `scene_lights` acts on, each with its own schedule."""
        if self.setup is None or not self.setup.is_for(scene):
            return tuple((light, Schedule()) for light in scene.lights)
        lights = self.setup.lights
        placed = assign_rooms_to_lights([item.make_light() for item in lights], scene.rooms)
        return tuple(zip(placed, (item.schedule for item in lights), strict=True))


# Factors of OSMa-Bench's code on positive and on negative intensities.
POSITIVE_SCALE, NEGATIVE_SCALE = 2.5, 0.1

# Of the package's own setups, below `config/`.
FOLDER = 'lights'


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
        `light_settings_*.json`, with intensities scaled as its code does.
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
        lights = tuple(_make_light(name, item) for name, item in settings.lights.items())
        return {'setup': LightSetup(lights=lights)} if lights else {'unlit': True}
    data, source = described(str(path) if path.suffix == '.yaml' else name_or_path, FOLDER)
    return {'setup': validated(LightSetup, data, f'light setup {source}')}


def _make_light(name: str, item: _SettingsLight) -> ExtraLight:
    """Return a light as it shines in OSMa-Bench; one that dies after a goal is a lamp."""
    place, on_camera = np.array(item.position[:3]), item.type == 'camera'
    at = OPENGL_FROM_OPTICAL @ place if on_camera else turn_from_habitat(place)
    red, green, blue = (min(max(channel, 0.0), 1.0) for channel in item.color)
    return ExtraLight(
        name=name,
        kind=LightKind.POINT,
        position=(float(at[0]), float(at[1]), float(at[2])),
        color=(red, green, blue),
        intensity=item.intensity * (POSITIVE_SCALE if item.intensity >= 0 else NEGATIVE_SCALE),
        attached_to_camera=on_camera,
        lamp=any(end is not None for _, end in item.life_intervals),
        schedule=_make_schedule(item.life_intervals),
    )


def _make_schedule(intervals: tuple[tuple[float | None, float | None], ...]) -> Schedule:
    """Return when a light is alive: while the goal's number is in [start, end) of an interval."""
    if not intervals:
        return Schedule(factor=0.0)
    if any((start or 0) <= 0 and end is None for start, end in intervals):
        return Schedule()
    spans = (
        (max(0, math.ceil(start or 0)), None if end is None else max(0, math.ceil(end)))
        for start, end in intervals
    )
    return Schedule(alive=tuple(Span(segments=(a, b)) for a, b in spans if b is None or a <= b))
