"""Topic names of a stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from osmabench_ros.base.configuration import config_path, described_names
from osmabench_ros.base.contract import CONTRACT, TF, TF_STATIC
from osmabench_ros.base.limits.documents import read_yaml
from osmabench_ros.errors import ConfigError, suggestion


@dataclass(frozen=True)
class StackNames:
    """A stack's names for the topics of the contract, and its other map topics with types."""

    namespace: str = ''
    remappings: Mapping[str, str] = field(default_factory=dict)
    extra_topics: Mapping[str, str] = field(default_factory=dict)


def names_of_robot(file: Path) -> StackNames:
    """Read the topics of a stack from a YAML file, or a name in config/methods/live."""
    if not file.suffix and not file.exists():
        known = described_names('methods', 'live')
        if str(file) not in known:
            raise ConfigError(
                f'robot "{file}" is neither a file nor a name in config/methods/live. '
                f'{suggestion(str(file), known)}'
            )
        file = config_path('methods', 'live', f'{file}.yaml')
    data = read_yaml(file, ConfigError)
    if not isinstance(data, dict) or not isinstance(data.get('topics', {}), dict):
        raise ConfigError(f'robot file {file}: must be a mapping, and "topics" in it one too')
    remappings = {str(name): str(value) for name, value in data.get('topics', {}).items()}
    check_names_of_topics(remappings, f'robot file {file}')
    said = data.get('map')
    extra = {}
    if (
        isinstance(said, dict)
        and {'topic', 'type'} <= said.keys()
        and '$' not in str(said['topic'])
    ):
        extra = {str(said['topic']): str(said['type'])}
    return StackNames(remappings=remappings, extra_topics=extra)


def check_names_of_topics(remappings: Mapping[str, str], source: str) -> None:
    """Refuse a remapping of a topic that is not examined; raises ConfigError."""
    known = {item.name for item in CONTRACT} | {TF, TF_STATIC}
    for name in remappings:
        if name not in known:
            raise ConfigError(
                f'{source}: "{name}" is no topic of the contract. '
                f'Choose from: {", ".join(sorted(known))}.'
            )
