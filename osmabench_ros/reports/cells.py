"""Cells of tables as plain values; templates only lay them out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from osmabench_ros.reports.headline import NOT_APPLICABLE


@dataclass(frozen=True)
class Cell:
    """A cell with a figure; `sort` is the number to sort by, '' sorts last.

    `interval` is such as '[41.2, 55.0]', `best` means that no other run has a better figure,
    `note` is the tooltip, `warning` what makes the figure doubtful.
    """

    text: str
    sort: str = ''
    interval: str = ''
    best: bool = False
    note: str = ''
    warning: str = ''


_NOISE = 1e-9
_LARGEST = 1e15
ABSENT = Cell(NOT_APPLICABLE)


def plain(value: float | None) -> str:
    """Return a value of any unit with four significant digits, and whole numbers as they are.

    What is less than a billionth is rounding noise, whatever the unit.
    """
    if value is None:
        return NOT_APPLICABLE
    if not math.isfinite(value):
        return str(value)
    if abs(value) < _NOISE:
        return '0'
    if abs(value) >= 1000 and abs(value) < _LARGEST:
        return f'{value:.0f}'
    return f'{value:.4g}'
