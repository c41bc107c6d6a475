"""Extension points: everything that can be added by name is an entry point."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any

from osmabench_ros.errors import ConfigError, choose

SIMULATORS = 'osmabench.simulators'
MAP_IMPORTERS = 'osmabench.map_importers'
MAPPERS = 'osmabench.mappers'
SUITES = 'osmabench.suites'
LANGUAGE_MODELS = 'osmabench.language_models'
EFFECTS = 'osmabench.effects'
ANSWERERS = 'osmabench.answerers'

KINDS = {
    SIMULATORS: 'simulator',
    MAP_IMPORTERS: 'importer',
    MAPPERS: 'mapper',
    SUITES: 'suite',
    LANGUAGE_MODELS: 'language model',
    EFFECTS: 'effect',
    ANSWERERS: 'answerer',
}
"""What the extensions of a group are called in messages."""


def extension_names(group: str) -> list[str]:
    """Return the names that are installed in a group, in alphabetical order."""
    return sorted(_registered(group))


def load_extension(group: str, name: str) -> Any:
    """Return what an entry point names; ConfigError if there is none, or it cannot be imported."""
    registered, kind = _registered(group), KINDS[group]
    problem = f'there is no {kind} "{name}" in the entry points of group "{group}"'
    choose(name, registered, ConfigError, problem)
    try:
        return registered[name].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f'{kind} "{name}" cannot be imported from "{registered[name].value}": {error}; '
            'reinstall the package that provides it'
        ) from error


def _registered(group: str) -> dict[str, EntryPoint]:
    places = tuple((path, _changed_ns(path)) for path in sys.path)
    return {point.name: point for point in _entry_points_of(group, places)}


@lru_cache(maxsize=32)
def _entry_points_of(group: str, _places: tuple[tuple[str, int], ...]) -> EntryPoints:
    """Return the entry points of a group; all distributions are read again as places change."""
    return entry_points(group=group)


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path or os.curdir).st_mtime_ns
    except OSError:
        return 0
