"""The package's own configuration files, and its version."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.documents import read_yaml
from osmabench_ros.errors import ConfigError, suggestion


def version() -> str:
    """Return the version of the installed distribution, 'unknown' in a bare source tree."""
    try:
        return installed_version('osmabench_ros')
    except PackageNotFoundError:
        return 'unknown'


def share_directories() -> list[Path]:
    """Return the folders that may hold `config/` and `launch/`, best first."""
    source = Path(__file__).resolve().parents[2]
    installed = [
        parent / 'share' / 'osmabench_ros' for parent in source.parents if parent.name != 'share'
    ]
    return [source, *installed, Path(sys.prefix) / 'share' / 'osmabench_ros']


def config_path(*parts: str) -> Path:
    """Return the path below `config/` of the package; ConfigError if no installation has it."""
    return shared_path('config', *parts)


def shared_path(*parts: str) -> Path:
    """Return the path of a file or folder beside `config/`; raises as `config_path`."""
    for share in share_directories():
        path = share.joinpath(*parts)
        if path.exists():
            return path
    raise ConfigError(
        f'{"/".join(parts)} is in none of the places it is looked for: '
        f'{", ".join(str(share) for share in share_directories())}; reinstall the package'
    )


def described_names(*folder: str) -> list[str]:
    """Return the names of the YAML files in a folder below `config/`."""
    return sorted(path.stem for path in config_path(*folder).glob('*.yaml'))


def described(name_or_path: str, *folder: str) -> tuple[Any, str]:
    """Read a YAML file, by path or by name below `config/`; return its data and its path."""
    path = Path(name_or_path)
    if path.suffix != '.yaml':
        known = described_names(*folder)
        if name_or_path not in known:
            raise ConfigError(
                f'there is no config/{"/".join(folder)}/{name_or_path}.yaml. '
                f'{suggestion(name_or_path, known)}'
            )
        path = config_path(*folder, f'{name_or_path}.yaml')
    return read_yaml(path, ConfigError), str(path)
