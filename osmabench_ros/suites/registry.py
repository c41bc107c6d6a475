"""Finds suites by name through entry points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast

from osmabench_ros.extensions import SUITES, extension_names, load_extension
from osmabench_ros.suites.suite import Suite, SuiteFactory


def suite_names() -> list[str]:
    """Return the names of all suites that are installed, in alphabetical order."""
    return extension_names(SUITES)


def make_suite(name: str, options: Mapping[str, Any] | None = None) -> Suite:
    """Make the suite of an entry point, e.g. ``'osma_segmentation'``.

    Raises ConfigError if there is none, it cannot be imported, or an option is wrong.
    """
    factory = cast('SuiteFactory', load_extension(SUITES, name))
    return factory(options=dict(options or {}))


def repeated_suite(names: Iterable[str]) -> str | None:
    """Return the first name that is there twice, None if there is none."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def told_twice(name: str) -> str:
    """Return why a suite may not be there twice, as the start of an error."""
    return f'suite "{name}" is there twice, and its figures would have equal names in the report'
