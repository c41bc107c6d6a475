"""Conditions of a run: light, motion and sensor, read from YAML files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from osmabench_ros.configuration import config_path
from osmabench_ros.errors import ConfigError, suggestion
from osmabench_ros.simulation.light_sections import LightingSection
from osmabench_ros.simulation.robot_path import Motion
from osmabench_ros.simulation.section import Section, validated


class MotionSection(Section):
    """Speeds of the robot; the paper's by default (arXiv 2503.10331)."""

    linear_m_s: float = Field(0.75, gt=0)
    angular_rad_s: float = Field(0.8, gt=0)
    speed_factor: float = Field(1.0, gt=0)


class Condition(Section):
    """Everything that differs between runs over the same path of the same scene.

    Parameters
    ----------
    name : str
        Name of the file without its ending.
    description : str
        One sentence for people.
    lighting : LightingSection
        What shines.
    motion : MotionSection
        How fast the robot moves.
    """

    name: str
    description: str = ''
    lighting: LightingSection = LightingSection()
    motion: MotionSection = MotionSection()

    @property
    def robot_motion(self) -> Motion:
        """Speeds with the factor applied."""
        motion = Motion(self.motion.linear_m_s, self.motion.angular_rad_s)
        return motion.faster(self.motion.speed_factor)


def list_conditions() -> list[str]:
    """Return the names of the conditions that come with the package."""
    return sorted(path.stem for path in config_path('conditions').glob('*.yaml'))


def load_condition(name_or_path: str) -> Condition:
    """Read a condition.

    Parameters
    ----------
    name_or_path : str
        Name of a file in the package's `config/conditions/`, or a path that ends in ``.yaml``.

    Raises
    ------
    ConfigError
        If there is no such condition, or the file says something wrong; names file and key.
    """
    if name_or_path.endswith(('.yaml', '.yml')):
        path = Path(name_or_path)
    elif name_or_path in list_conditions():
        path = config_path('conditions', f'{name_or_path}.yaml')
    else:
        raise ConfigError(
            f'unknown condition "{name_or_path}". {suggestion(name_or_path, list_conditions())}'
        )
    return parse_condition(path.stem, _read(path), str(path))


def parse_condition(name: str, data: Any, source: str) -> Condition:
    """Check the content of a condition file; `source` is named in errors."""
    data = {} if data is None else data
    if isinstance(data, dict) and 'name' not in data:
        data = {**data, 'name': name}
    return validated(Condition, data, f'condition {source}')


def _read(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding='utf-8'))
    except OSError as error:
        raise ConfigError(f'condition {path}: {error.strerror}; give a YAML file') from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f'condition {path} is not YAML: {error}') from error
