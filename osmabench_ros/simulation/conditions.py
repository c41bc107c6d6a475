"""Conditions of a run: light, motion and sensor, read from YAML files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from osmabench_ros.base.configuration import config_path, described_names
from osmabench_ros.base.documents import parse_json, read_yaml
from osmabench_ros.base.strict import FolderName, Strict, validated
from osmabench_ros.errors import ConfigError, choose
from osmabench_ros.scenes.changes import Changes
from osmabench_ros.simulation.effects import AnyEffect, Effect, MotionBlur
from osmabench_ros.simulation.light_sections import LightingSection, read_light_setup
from osmabench_ros.simulation.moving_objects import MovingObjects
from osmabench_ros.simulation.robot_path import Motion
from osmabench_ros.simulation.schedule import Span

OSMA_FRAME_RATE_HZ = 25.0
"""0.75 m/s at 0.03 m a frame."""


ACTION_M, ACTION_DEG, FRAMES_PER_ACTION = 0.06, 4.0, 2
"""Length of a step, angle of a turn, and the frames of each, of OSMa-Bench's discrete actions."""


class Stepping(str, Enum):
    """How frames follow the path."""

    SPEED = 'speed'
    ACTIONS = 'actions'


class MotionSection(Strict):
    """How the robot moves; the paper's speeds by default (arXiv 2503.10331).

    With ``stepping: speed`` it drives at these speeds, with limited acceleration if that is given.
    With ``stepping: actions`` every frame is a part of a discrete action, as in OSMa-Bench's
    code: steps of 0.06 m and turns of 4 degrees, two frames each; `speed_factor` divides the
    number of frames an action.
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

    The ground truth of the run is that of the scene as it was before.
    """

    span: Span
    """While the scene is the changed one."""
    changes: Changes = Field(min_length=1)
    """What is changed, one after another."""


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
    """What is moved, gone, new or repainted from some goal on."""

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

    def motion_at(self, frame_rate_hz: float) -> Motion:
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


SETTINGS_END = '.json'
"""Of light settings of OSMa-Bench, each a condition that differs in light alone."""

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
        choose(name_or_path, list_conditions(), ConfigError, problem)
        path = config_path('conditions', f'{name_or_path}.yaml')
    return parse_condition(path.stem, read_yaml(path, ConfigError), str(path))


def condition_of_text(text: str) -> Condition:
    """Return a condition by value, as `model_dump_json` writes it, else as `load_condition`."""
    if not text.startswith('{'):
        return load_condition(text)
    data = parse_json(text, 'parameter "condition"', ConfigError)
    return parse_condition('given', data, 'of parameter "condition"')


def parse_condition(name: str, data: Any, source: str) -> Condition:
    """Check the content of a condition file; `extends` changes a condition of the package."""
    data = {} if data is None else data
    if isinstance(data, Mapping):
        data = _with_setup({'name': name, **_extended(data, source, ())}, Path(source).parent)
    return validated(Condition, data, f'condition {source}')


def _extended(data: Mapping[str, Any], source: str, seen: tuple[str, ...]) -> dict[str, Any]:
    own = dict(data)
    if 'extends' not in own:
        return own
    base = str(own.pop('extends'))
    if base in seen:
        raise ConfigError(f'condition {source}: extends is circular: {" > ".join(seen)}')
    problem = f'condition {source}: extends: unknown condition "{base}"'
    choose(base, list_conditions(), ConfigError, problem)
    path = config_path('conditions', f'{base}.yaml')
    return _merged(_extended(read_yaml(path, ConfigError) or {}, str(path), (*seen, base)), own)


def _with_setup(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Put the content of a light setup where its name or path is."""
    lighting = data.get('lighting')
    if not isinstance(lighting, Mapping) or not isinstance(lighting.get('setup'), str):
        return data
    rest = {key: value for key, value in lighting.items() if key != 'setup'}
    return {**data, 'lighting': {**rest, **read_light_setup(lighting['setup'], folder)}}


def _merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Put a change over a base; mappings are merged, everything else is replaced."""
    merged = dict(base)
    for key, value in change.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merged(merged[key], value) if both else value
    return merged
