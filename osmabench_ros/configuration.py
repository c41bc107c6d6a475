"""Finds the package's own configuration files, in the source tree or where they were installed."""

from __future__ import annotations

import sys
from pathlib import Path

from osmabench_ros.errors import ConfigError


def share_directories() -> list[Path]:
    """Return the folders that may hold `config/` and `launch/`, best first."""
    source = Path(__file__).resolve().parents[1]
    installed = [
        parent / 'share' / 'osmabench_ros' for parent in source.parents if parent.name != 'share'
    ]
    return [source, *installed, Path(sys.prefix) / 'share' / 'osmabench_ros']


def config_path(*parts: str) -> Path:
    """Return the path of a file or folder of the package's configuration.

    Parameters
    ----------
    *parts : str
        Below `config/`, e.g. ``'conditions', 'baseline.yaml'``.

    Raises
    ------
    ConfigError
        If no installation has it.
    """
    for share in share_directories():
        path = share.joinpath('config', *parts)
        if path.exists():
            return path
    raise ConfigError(
        f'config/{"/".join(parts)} is in none of the places it is looked for: '
        f'{", ".join(str(share) for share in share_directories())}; reinstall the package'
    )
