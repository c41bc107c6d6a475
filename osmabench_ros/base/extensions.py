"""Extension points: everything that can be added by name is an entry point."""

import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from osmabench_ros.errors import ConfigError, choose, errors_as

SIMULATORS = 'osmabench.simulators'
MAP_IMPORTERS = 'osmabench.map_importers'
MAPPERS = 'osmabench.mappers'
SUITES = 'osmabench.suites'
LANGUAGE_MODELS = 'osmabench.language_models'
EFFECTS = 'osmabench.effects'
ANSWERERS = 'osmabench.answerers'

# Names of the kinds of extensions in messages.
KINDS = {
    SIMULATORS: 'simulator',
    MAP_IMPORTERS: 'importer',
    MAPPERS: 'mapper',
    SUITES: 'suite',
    LANGUAGE_MODELS: 'language model',
    EFFECTS: 'effect',
    ANSWERERS: 'answerer',
}


def extension_names(group: str) -> list[str]:
    """Return the names that are installed in a group, in alphabetical order."""
    return sorted(_find_registered(group, tuple(sys.path)))


def load_extension(group: str, name: str) -> Any:
    """Return the object of an entry point; ConfigError without one or if it is not importable."""
    registered = _find_registered(group, tuple(sys.path))
    kind = KINDS[group]
    problem = f'there is no {kind} "{name}" in the entry points of group "{group}"'
    choose(name, registered, ConfigError, problem)
    problem = f'{kind} "{name}" cannot be imported from "{registered[name].value}"'
    remedy = 'reinstall its package'
    with errors_as(ConfigError, problem, ImportError, AttributeError, remedy=remedy):
        return registered[name].load()


@lru_cache(maxsize=32)
def _find_registered(group: str, _places: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group, for the distributions in some places."""
    return {point.name: point for point in entry_points(group=group)}
