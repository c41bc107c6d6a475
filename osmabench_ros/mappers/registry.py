"""Finds mappers by name through entry points, so that other packages can add theirs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from osmabench_ros.errors import ConfigError, suggestion
from osmabench_ros.mappers.mapper import Mapper, MapperFactory
from osmabench_ros.semantics.labels import LabelSet

GROUP = 'osmabench.mappers'
"""Entry-point group of mappers."""


def _registered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def mapper_names() -> list[str]:
    """Return the names of all mappers that are installed, in alphabetical order."""
    return sorted(_registered())


def mapper_class(name: str) -> MapperFactory:
    """Return the constructor of a mapper.

    Parameters
    ----------
    name : str
        Name of its entry point, e.g. ``'oracle'``.

    Raises
    ------
    ConfigError
        If there is no such mapper, or it cannot be imported.
    """
    registered = _registered()
    if name not in registered:
        raise ConfigError(
            f'there is no mapper "{name}" in the entry points of group "{GROUP}". '
            f'{suggestion(name, registered)}'
        )
    try:
        return cast('MapperFactory', registered[name].load())
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f'mapper "{name}" cannot be imported from "{registered[name].value}": {error}; '
            'reinstall the package that provides it'
        ) from error


def make_mapper(
    name: str, *, label_set: LabelSet, seed: int = 0, options: Mapping[str, Any] | None = None
) -> Mapper:
    """Make a mapper for one run.

    Parameters
    ----------
    name : str
        Name of its entry point, e.g. ``'oracle'``.
    label_set : LabelSet
        Vocabulary of the run.
    seed : int
        Seed of everything random in the mapper.
    options : mapping, optional
        The mapper's own options.

    Raises
    ------
    ConfigError
        If there is no such mapper, it cannot be imported, or an option is wrong.
    """
    factory = mapper_class(name)
    return factory(label_set=label_set, seed=seed, options=dict(options or {}))
