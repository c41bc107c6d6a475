"""Finds mappers by name through entry points, so that other packages can add theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from osmabench_ros.extensions import MAPPERS, extension_names, load_extension
from osmabench_ros.mappers.mapper import Mapper, MapperFactory
from osmabench_ros.semantics.labels import LabelSet


def mapper_names() -> list[str]:
    """Return the names of all mappers that are installed, in alphabetical order."""
    return extension_names(MAPPERS)


def mapper_class(name: str) -> MapperFactory:
    """Return the constructor of a mapper by its entry point, e.g. ``'oracle'``.

    Raises ConfigError if there is no such mapper, or it cannot be imported.
    """
    return cast('MapperFactory', load_extension(MAPPERS, name))


def make_mapper(
    name: str, *, label_set: LabelSet, seed: int = 0, options: Mapping[str, Any] | None = None
) -> Mapper:
    """Make a mapper for one run by its entry point, e.g. ``'oracle'``, with its own options.

    Raises ConfigError if there is no such mapper, it cannot be imported, or an option is wrong.
    """
    factory = mapper_class(name)
    return factory(label_set=label_set, seed=seed, options=dict(options or {}))
