"""Parameters of tests that are too many for `make test`."""

from collections.abc import Iterable
from typing import Any

import pytest


def few(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Return parameters, all but those that are kept for `make test` marked as `full`."""
    return [
        value
        if value in kept
        else pytest.param(
            *(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.full
        )
        for value in values
    ]
