"""Finds suites by name through entry points."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from osmabench_ros.errors import ConfigError, suggestion
from osmabench_ros.suites.suite import Suite, SuiteFactory

GROUP = 'osmabench.suites'
"""Entry-point group of suites."""


def _registered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def suite_names() -> list[str]:
    """Return the names of all suites that are installed, in alphabetical order."""
    return sorted(_registered())


def make_suite(name: str, options: Mapping[str, Any] | None = None) -> Suite:
    """Make a suite.

    Parameters
    ----------
    name : str
        Name of its entry point, e.g. ``'osma_segmentation'``.
    options : mapping, optional
        The suite's own options.

    Raises
    ------
    ConfigError
        If there is no such suite, it cannot be imported, or an option is wrong.
    """
    registered = _registered()
    if name not in registered:
        raise ConfigError(
            f'there is no suite "{name}" in the entry points of group "{GROUP}". '
            f'{suggestion(name, registered)}'
        )
    try:
        factory = cast('SuiteFactory', registered[name].load())
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f'suite "{name}" cannot be imported from "{registered[name].value}": {error}; '
            'reinstall the package that provides it'
        ) from error
    return factory(options=dict(options or {}))
