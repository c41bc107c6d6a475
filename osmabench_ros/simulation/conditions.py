"""Conditions of a run, read from YAML files, and their light and moving objects at a moment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, field_validator, model_validator

from osmabench_ros.base.configuration import bundled_file, described_names
from osmabench_ros.base.documents import parse_json, read_yaml
from osmabench_ros.base.strict import FolderName, Strict, validated
from osmabench_ros.errors import ConfigError, SimulationError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.changes import Changes, displace, find_carried_objects
from osmabench_ros.scenes.scene import Light, Lighting, LightKind, Scene, SceneObject
from osmabench_ros.simulation.effects import AnyEffect, Effect, MotionBlur
from osmabench_ros.simulation.light_sections import (
    Daylight,
    LightingSection,
    SceneLightRule,
    read_light_setup,
)
from osmabench_ros.simulation.robot_path import Motion
from osmabench_ros.simulation.schedule import Moment, Schedule, Span


class MovingObjects(Strict):
    """Some objects, and how they move during a span.

    Parameters
    ----------
    names, classes : tuple of str
        Patterns such as ``'chair*'`` and class names; an object must match one of either.
    count : int, optional
        How many of those that match, drawn with `seed`; all by default.
    offset_m : tuple of float
        Where the object moves, relative to its place in the scene, world axes.
    turn_deg : float
        How far it turns left about its own vertical axis.
    span : Span
        While it moves; before and after it rests.
    returns : bool
        Whether it goes there in the first half of the span and back in the second.
    """

    names: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    count: int | None = Field(None, ge=1)
    seed: int = Field(0, ge=0)
    """Of the draw."""
    offset_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn_deg: float = 0.0
    span: Span
    returns: bool = False

    @model_validator(mode='after')
    def _check_choice_and_way(self) -> MovingObjects:
        if not self.names and not self.classes:
            raise ValueError('say which objects move: give "names" or "classes"')
        if not any(self.offset_m) and not self.turn_deg:
            raise ValueError('say how they move: give "offset_m" or "turn_deg"')
        return self

    def progress(self, moment: Moment) -> float:
        """Return the share of the movement that is done, 0 to 1."""
        done = self.span.progress(moment)
        return 1.0 - abs(2.0 * done - 1.0) if self.returns else done

    def select(self, scene: Scene) -> list[SceneObject]:
        """Return the objects that move, without those on them; SimulationError if none."""
        found = [
            item
            for item in scene.objects
            if scene.class_name(item) in self.classes
            or any(fnmatchcase(item.name, pattern) for pattern in self.names)
        ]
        if not found:
            wanted = ', '.join([*self.names, *self.classes])
            raise SimulationError(
                f'scene {scene.dataset}/{scene.name} has no object that matches {wanted}; '
                'change moving_objects in the condition'
            )
        if self.count is None or self.count >= len(found):
            return found
        chosen = np.random.default_rng(self.seed).permutation(len(found))[: self.count]
        return [found[i] for i in sorted(chosen.tolist())]


# How an object moves, the object, and all that moves: the object and its load.
MovingGroup = tuple[MovingObjects, SceneObject, tuple[SceneObject, ...]]


def find_moving_groups(movements: Sequence[MovingObjects], scene: Scene) -> list[MovingGroup]:
    """Return the groups of a scene that move; their objects are found once for all frames."""
    return [
        (movement, item, (item, *find_carried_objects(scene, item)))
        for movement in movements
        for item in movement.select(scene)
    ]


def compute_object_poses(groups: Iterable[MovingGroup], moment: Moment) -> dict[int, Pose]:
    """Return the world poses of all objects in moving groups, by instance id."""
    poses: dict[int, Pose] = {}
    for movement, item, parts in groups:
        done = movement.progress(moment)
        shift = displace(item, done * movement.turn_deg, done * np.array(movement.offset_m))
        for part in parts:
            poses[part.instance_id] = shift @ poses.get(part.instance_id, part.pose)
    return poses


# 0.75 m/s at 0.03 m a frame.
OSMA_FRAME_RATE_HZ = 25.0


# Length of a step, angle of a turn, and the frames of each, of OSMa-Bench's discrete actions.
ACTION_M, ACTION_DEG, FRAMES_PER_ACTION = 0.06, 4.0, 2


class Stepping(str, Enum):
    """How frames follow the path."""

    SPEED = 'speed'
    ACTIONS = 'actions'


class MotionSection(Strict):
    """How the robot moves; the paper's speeds by default (arXiv 2503.10331).

    With ``stepping: speed`` it drives at these speeds, with limited acceleration if that is given.
    With ``stepping: actions`` every frame is a part of a discrete action, as in OSMa-Bench's
    code: steps of 0.06 m and turns of 4 degrees, two frames each; `speed_factor` divides the
    number of frames per action.
    """

    linear_m_s: float = Field(0.75, gt=0)
    """Speed along the path."""
    angular_rad_s: float = Field(0.8, gt=0)
    """Speed of turns on the spot."""
    speed_factor: float = Field(1.0, gt=0)
    linear_acceleration_m_s2: float | None = Field(None, gt=0)
    """Limit of acceleration; none by default."""
    angular_acceleration_rad_s2: float | None = Field(None, gt=0)
    """Limit of acceleration in turns; none by default."""
    stepping: Stepping = Stepping.SPEED
    """How frames follow the path."""


class SceneChange(Strict):
    """Changes that the scene has during a span; without an end they stay.

    The run keeps the ground truth of the scene as it was before.
    """

    span: Span
    """While the scene is the changed one."""
    changes: Changes = Field(min_length=1)
    """The changes, in order."""


class Condition(Strict):
    """Everything that differs between runs over one path; effects apply in order."""

    name: FolderName
    """In the report and in the names of runs."""
    description: str = ''
    """One sentence for `osmabench conditions`."""
    lighting: LightingSection = LightingSection()
    motion: MotionSection = MotionSection()
    effects: tuple[AnyEffect, ...] = ()
    moving_objects: tuple[MovingObjects, ...] = ()
    scene_change: SceneChange | None = None
    """The changes that apply from a goal on."""

    @field_validator('effects')
    @classmethod
    def _check_shutter(cls, effects: tuple[AnyEffect, ...]) -> tuple[AnyEffect, ...]:
        if sum(isinstance(effect, MotionBlur) for effect in effects) > 1:
            raise ValueError('two effects are motion_blur, but a camera has one shutter; keep one')
        return effects

    @property
    def changes_poses(self) -> bool:
        """Whether an effect changes the poses that the robot believes in."""
        return any(type(item).reported_poses is not Effect.reported_poses for item in self.effects)

    def make_motion(self, frame_rate_hz: float) -> Motion:
        """Return speeds with the factor applied; the rate only matters to discrete actions."""
        section = self.motion
        if section.stepping is Stepping.ACTIONS:
            frames = FRAMES_PER_ACTION / section.speed_factor
            return Motion(
                ACTION_M / frames * frame_rate_hz,
                math.radians(ACTION_DEG) / frames * frame_rate_hz,
                whole_s=1.0 / frame_rate_hz,
            )
        return Motion(
            section.linear_m_s * section.speed_factor,
            section.angular_rad_s * section.speed_factor,
            section.linear_acceleration_m_s2 or math.inf,
            section.angular_acceleration_rad_s2 or math.inf,
        )


# Of light settings of OSMa-Bench, each a condition that differs only in light.
SETTINGS_END = '.json'

FILE_ENDS = ('.yaml', '.yml', SETTINGS_END)


def list_conditions() -> list[str]:
    """Return the names of the conditions that come with the package."""
    return described_names('conditions')


def name_of_condition(name_or_path: str) -> str:
    """Return the name of a condition that is given by its name or its file."""
    is_file = name_or_path.endswith(FILE_ENDS)
    return Path(name_or_path).stem if is_file else name_or_path


def load_condition(name_or_path: str) -> Condition:
    """Read a condition by name, or from a file; ConfigError names file and key.

    The file is a YAML file, or a `light_settings_*.json` of OSMa-Bench.
    """
    if name_or_path.endswith(SETTINGS_END):
        path = Path(name_or_path).absolute()
        return parse_condition(path.stem, {'lighting': {'setup': str(path)}}, name_or_path)
    if name_or_path.endswith(FILE_ENDS):
        path = Path(name_or_path)
    else:
        problem = f'unknown condition "{name_or_path}"'
        path = bundled_file(name_or_path, 'conditions', problem=problem)
    return parse_condition(path.stem, read_yaml(path, ConfigError), str(path))


def parse_condition_text(text: str) -> Condition:
    """Return a condition by value, as `model_dump_json` writes it, else as `load_condition`."""
    if not text.startswith('{'):
        return load_condition(text)
    data = parse_json(text, 'parameter "condition"', ConfigError)
    return parse_condition('given', data, 'of parameter "condition"')


def parse_condition(name: str, data: Any, source: str) -> Condition:
    """Check the content of a condition file; `extends` changes a condition of the package."""
    data = {} if data is None else data
    if isinstance(data, Mapping):
        data = _with_setup(
            {'name': name, **_extend_condition(data, source, ())}, Path(source).parent
        )
    return validated(Condition, data, f'condition {source}')


def _extend_condition(
    data: Mapping[str, Any], source: str, seen: tuple[str, ...]
) -> dict[str, Any]:
    own = dict(data)
    if 'extends' not in own:
        return own
    base = str(own.pop('extends'))
    if base in seen:
        raise ConfigError(f'condition {source}: extends is circular: {" > ".join(seen)}')
    problem = f'condition {source}: extends: unknown condition "{base}"'
    path = bundled_file(base, 'conditions', problem=problem)
    return _merge_change(
        _extend_condition(read_yaml(path, ConfigError) or {}, str(path), (*seen, base)), own
    )


def _with_setup(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Put the content of a light setup where its name or path is."""
    lighting = data.get('lighting')
    if not isinstance(lighting, Mapping) or not isinstance(lighting.get('setup'), str):
        return data
    rest = {key: value for key, value in lighting.items() if key != 'setup'}
    return {**data, 'lighting': {**rest, **read_light_setup(lighting['setup'], folder)}}


def _merge_change(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Put a change over a base; mappings are merged, everything else is replaced."""
    merged = dict(base)
    for key, value in change.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merge_change(merged[key], value) if both else value
    return merged


# The sky is dark once the sun is this far below the horizon (end of civil twilight).
TWILIGHT_RAD = math.radians(6.0)


def compute_hour(daylight: Daylight, time_s: float) -> float:
    """Return the hour of the day, 0 to 24, at a time of the run."""
    return (daylight.hour + daylight.hours_per_s * time_s) % 24.0


def compute_sun_position(daylight: Daylight, hour: float) -> tuple[float, float, float]:
    """Return the unit vector towards the sun at an equinox: x east, y north, z up."""
    angle = math.radians(15.0 * (hour - 12.0))
    latitude = math.radians(daylight.latitude_deg)
    return (
        -math.sin(angle),
        -math.sin(latitude) * math.cos(angle),
        math.cos(latitude) * math.cos(angle),
    )


def make_sun(daylight: Daylight, time_s: float) -> Light | None:
    """Return the sun as a directional light, redder and weaker when low; None at night."""
    east, north, up = compute_sun_position(daylight, compute_hour(daylight, time_s))
    if up <= 0 or daylight.sun_intensity == 0:
        return None
    haze = math.exp(-0.12 / max(up, 0.02))  # the light's way through the air grows as 1 / sin
    color = (1.0, 0.55 + 0.45 * haze, 0.3 + 0.7 * haze)
    return Light(
        'sun',
        LightKind.DIRECTIONAL,
        direction=(-east, -north, -up),
        color=color,
        intensity=daylight.sun_intensity * haze,
        lamp=False,
    )


def compute_sky_ambient(daylight: Daylight, time_s: float) -> float:
    """Return the ambient light of the sky: full at noon at the equator, none after twilight."""
    up = compute_sun_position(daylight, compute_hour(daylight, time_s))[2]
    dusk = math.sin(TWILIGHT_RAD)
    return daylight.sky_ambient * max(0.0, (up + dusk) / (1.0 + dusk))


def compute_lighting(condition: Condition, scene: Scene, moment: Moment) -> Lighting:
    """Return the lighting at a moment of the run; a pure function of its arguments.

    Raises SimulationError if neither the scene nor the condition has any light, or the condition
    asks for the robot's room and the moment has no position.
    """
    section = condition.lighting
    require_light(condition, scene)
    if section.unlit:
        return replace(Lighting.unlit(), exposure=section.exposure, compat=section.compat)
    base = section.list_lights(scene)
    lights = [
        *_schedule_scene_lights(condition.name, section, base, scene, moment),
        *_schedule_extra_lights(section, moment),
    ]
    ambient = scene.ambient * section.ambient.compute_factor('ambient', moment)
    if section.daylight is not None:
        ambient += compute_sky_ambient(section.daylight, moment.time_s)
        shining = make_sun(section.daylight, moment.time_s)
        lights += [shining] if shining is not None else []
    return Lighting(tuple(lights), ambient, section.exposure, section.shadows, section.compat)


def require_light(condition: Condition, scene: Scene) -> None:
    """Raise SimulationError if neither the scene nor the condition has any light."""
    section = condition.lighting
    if not (section.unlit or section.list_lights(scene) or section.lights or section.daylight):
        raise SimulationError(
            f'scene {scene.dataset}/{scene.name} has no lights and condition "{condition.name}" '
            'adds none; use "nominal" or "nominal_velocity", which show textures as they are, or '
            '"camera"'
        )


def _schedule_scene_lights(
    name: str,
    section: LightingSection,
    base: Sequence[tuple[Light, Schedule]],
    scene: Scene,
    moment: Moment,
) -> Iterator[Light]:
    for light, schedule in base:
        factor = schedule.compute_factor(light.name, moment)
        for rule in section.scene_lights:
            if rule.select.matches(light, scene):
                factor *= _compute_rule_factor(name, rule, light, scene, moment)
        if factor != 0.0:
            yield replace(light, intensity=light.intensity * factor)


def _compute_rule_factor(
    condition: str, rule: SceneLightRule, light: Light, scene: Scene, moment: Moment
) -> float:
    if rule.only_in_robots_room and light.room_id is not None:
        if moment.robot_position is None:
            raise SimulationError(
                f'condition "{condition}" switches lights by the room of the robot, but the '
                'position of the robot is not known here'
            )
        room = next((room for room in scene.rooms if room.id == light.room_id), None)
        x, y, _ = moment.robot_position
        if room is not None and not (
            room.box.minimum[0] <= x <= room.box.maximum[0]
            and room.box.minimum[1] <= y <= room.box.maximum[1]
        ):
            return 0.0
    return rule.schedule.compute_factor(light.name, moment)


def _schedule_extra_lights(section: LightingSection, moment: Moment) -> Iterator[Light]:
    for item in section.lights:
        factor = item.schedule.compute_factor(item.name, moment)
        if factor != 0.0:
            yield replace(item.make_light(), intensity=item.intensity * factor)
