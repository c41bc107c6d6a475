"""Cells of tables as plain values; templates only lay them out."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any

from osmabench_ros.reports.headline import NOT_APPLICABLE
from osmabench_ros.runs.report_model import Record


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

    def __html__(self) -> str:
        """Return the cell as HTML; of the millions of a large report a template takes long."""
        more = '<span class="star" title="best of the column">★</span>' if self.best else ''
        for kind, text in (('interval', self.interval), ('warning', self.warning)):
            more += f'<span class="{kind}">{escape(text)}</span>' if text else ''
        return (
            f'<td class="number{" best" if self.best else ""}" data-sort="{escape(self.sort)}"'
            f' title="{escape(self.note)}">{escape(self.text)}{more}</td>'
        )


_NOISE = 1e-9
_LARGEST = 1e15
ABSENT = Cell(NOT_APPLICABLE)
FORMULA_STARTS = ('=', '+', '-', '@', '\t', '\r')


def plain(value: float | None) -> str:
    """Return a value of any unit with four significant digits, and whole numbers as they are."""
    if value is None:
        return NOT_APPLICABLE
    if not math.isfinite(value):
        return str(value)
    if abs(value) < _NOISE:
        return '0'
    if abs(value) >= 1000 and abs(value) < _LARGEST:
        return f'{value:.0f}'
    return f'{value:.4g}'


def scaled_cell(value: float | None, factor: float, digits: int, absent: Cell = ABSENT) -> Cell:
    """Return the cell of a value times a factor, with so many digits after the point."""
    return absent if value is None else Cell(f'{factor * value:.{digits}f}', repr(value))


def record_cell(record: Record | None, number: Callable[[float], str] = plain) -> Cell:
    """Return the cell of a figure with its interval; `number` is how values are written."""
    if record is None or record.value is None:
        return ABSENT
    interval = ''
    if record.low is not None and record.high is not None:
        interval = f'[{number(record.low)}, {number(record.high)}]'
    return Cell(number(record.value), repr(record.value), interval, note=f'{record.n} samples')


def csv_text(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, names: bool = True
) -> str:
    """Return rows as comma-separated values, below the names of the columns if wanted.

    A formula's text gets an apostrophe in front.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator='\n')
    if names:
        writer.writerow(columns)
    writer.writerows(
        # Most values are figures, and ten thousand runs have millions.
        [
            value if type(value := row.get(name, '')) in _FIGURES else _in_csv(value)
            for name in columns
        ]
        for row in rows
    )
    return buffer.getvalue()


_FIGURES = frozenset({float, int, type(None)})


@lru_cache(maxsize=4096, typed=True)
def _in_csv(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value
