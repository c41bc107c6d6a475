"""Cells of tables as plain values; templates only arrange them."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml

from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.trajectory_records import ALIGNED
from osmabench_ros.reports.tidy import NOT_APPLICABLE


@dataclass(frozen=True)
class Cell:
    """A cell with a value; `sort` is the number to sort by, '' sorts last.

    `interval` is such as '[41.2, 55.0]', `best` means that no other run has a better value,
    `note` is the tooltip, `warning` the reason to doubt the value.
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


_COLUMNS = Path(__file__).with_name('columns.yaml')
_NOISE = 1e-9
_LARGEST = 1e15
ABSENT = Cell(NOT_APPLICABLE)
FORMULA_STARTS = ('=', '+', '-', '@', '\t', '\r')


def format_plain(value: float | None) -> str:
    """Return a value of any unit with four significant digits, and whole numbers as they are."""
    if value is None or math.isnan(value):
        return NOT_APPLICABLE
    if abs(value) < _NOISE:
        return '0'
    if abs(value) >= 1000 and abs(value) < _LARGEST:
        return f'{value:.0f}'
    return f'{value:.4g}'


def format_percent(value: float) -> str:
    """Return a fraction in percent."""
    return f'{100 * value:.1f}'


def scale_cell(value: float | None, factor: float, digits: int, absent: Cell = ABSENT) -> Cell:
    """Return the cell of a value times a factor, with so many digits after the point."""
    if value is None or not math.isfinite(value):
        return absent
    return Cell(f'{factor * value:.{digits}f}', repr(float(value)))


class Column(NamedTuple):
    """A column of a table: its title, the field of a row's object, factor and digits."""

    title: str
    field: str
    factor: float = 1.0
    digits: int = 0
    explanation: str = ''


@cache
def read_columns(*tables: str) -> tuple[Column, ...]:
    """Return the columns of one table, or of tables side by side, as `columns.yaml` has them."""
    known = yaml.safe_load(_COLUMNS.read_text(encoding='utf-8'))
    return tuple(Column(**row) for table in tables for row in known[table])


def make_field_cells(item: object, table: str, absent: Cell = ABSENT) -> list[Cell]:
    """Return the cells of the fields of an object, `absent` where it or a field is None."""
    columns = read_columns(table)
    values = [None if item is None else getattr(item, x.field) for x in columns]
    found = zip(values, columns, strict=True)
    return [scale_cell(value, x.factor, x.digits, absent) for value, x in found]


def make_score_cell(row: Any, number: Callable[[float], str] = format_plain) -> Cell:
    """Return the cell of a record or a row of scores; `number` is how values are written."""
    if row is None or _is_absent(row.value):
        return ABSENT
    interval = ''
    if not (_is_absent(row.low) or _is_absent(row.high)):
        interval = f'[{number(row.low)}, {number(row.high)}]'
    return Cell(number(row.value), repr(float(row.value)), interval, note=f'{row.n:g} samples')


def _is_absent(value: float | None) -> bool:
    return value is None or math.isnan(value)


def build_cell_table(
    scores: pd.DataFrame,
    rows: Sequence[str],
    columns: str,
    number: Callable[[float], str] = format_plain,
    order: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return cells by entries of some columns of scores, in the order of first occurrence.

    The columns are in `order` if it is given, others are left out.
    """
    keys = list(rows)
    order = list(scores[columns].unique() if order is None else order)
    values = scores[['value', 'low', 'high', 'n']].itertuples(index=False)
    scores = scores.assign(cell=[make_score_cell(row, number) for row in values])
    found = scores.set_index([*keys, columns])['cell'].unstack(columns)
    found = found.reindex(scores.set_index(keys).index.unique(), columns=order)
    return found.where(found.notna(), ABSENT)


def build_suite_tables(records: Sequence[MetricRecord]) -> dict[str, pd.DataFrame]:
    """Return cells by class, metric and mode of each suite, as recorded and after an alignment."""
    scores = pd.DataFrame([vars(record) for record in records])
    if scores.empty:
        return {}
    rows = ['class_name', 'metric', 'mode']
    aligned = scores['suite'].str.endswith(ALIGNED)
    scores['column'] = aligned.map({True: 'aligned', False: 'as recorded'})
    scores['suite'] = scores['suite'].str.removesuffix(ALIGNED)
    tables = {}
    for suite, own in scores.groupby('suite', sort=False):
        cells = build_cell_table(own, rows, 'column')
        if 'aligned' not in cells:
            cells = cells.rename(columns={'as recorded': 'value'})
        counts = own.drop_duplicates(rows).set_index(rows)['n']
        tables[str(suite)] = cells.assign(n=counts.map(lambda count: Cell(f'{count}')))
    return tables


def write_csv_text(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, names: bool = True
) -> str:
    """Return rows as comma-separated values, below the names of the columns if wanted.

    A formula's text gets an apostrophe in front.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator='\n')
    writer.writerows([columns] if names else [])
    for row in rows:
        values = (row.get(name, '') for name in columns)
        # Most values are numbers, and ten thousand runs have millions.
        writer.writerow([x if type(x) in _NUMBERS else _convert_for_csv(x) for x in values])
    return buffer.getvalue()


_NUMBERS = frozenset({float, int, type(None)})


@lru_cache(maxsize=4096, typed=True)
def _convert_for_csv(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value
