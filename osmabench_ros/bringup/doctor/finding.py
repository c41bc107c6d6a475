"""Findings of the doctor, and the tables of checks that lead to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from osmabench_ros.base.documents import read_yaml
from osmabench_ros.errors import ConfigError, OsmabenchError

_Value = TypeVar('_Value')


class Severity(str, Enum):
    """Severity of a finding."""

    OK = 'ok'
    ABSENT = 'absent'
    WARN = 'warn'
    FAILED = 'failed'


@dataclass(frozen=True)
class Finding:
    """One finding and its remedy, '' if there is nothing to do.

    ABSENT if an optional part is missing, WARN if values may suffer, FAILED if no run is
    possible.
    """

    part: str
    level: Severity
    detail: str
    remedy: str = ''


FINE = 'fine'
"""Name of the row of a table that counts where no other condition holds."""


class CheckTables:
    """Tables of checks from a YAML file of the package: condition, severity, text, remedy."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @cached_property
    def rows(self) -> dict[str, dict[str, dict[str, str]]]:
        """The rows by table and condition."""
        tables: dict[str, dict[str, dict[str, str]]] = read_yaml(self._file, ConfigError)
        return tables

    def find_all(self, table: str, part: str, **values: object) -> list[Finding]:
        """Return a finding for every row with a true value, by the name of the row."""
        rows = self.rows[table]
        holding = [name for name in rows if name != FINE and values[name]]
        if not holding and FINE in rows:
            holding = [FINE]
        return [self._finding(rows[name], part, values) for name in holding]

    def find_first(self, table: str, part: str, **values: object) -> list[Finding]:
        """Return a finding for the first row that holds."""
        return self.find_all(table, part, **values)[:1]

    def find_one(self, table: str, part: str, **values: object) -> Finding:
        """Return the only finding of a table that ends with `fine`: the first row that holds."""
        return self.find_first(table, part, **values)[0]

    @staticmethod
    def _finding(row: dict[str, str], part: str, values: dict[str, object]) -> Finding:
        [(level, detail)] = [(name, text) for name, text in row.items() if name != 'remedy']
        remedy = row.get('remedy', '').format(**values)
        return Finding(part, Severity(level), detail.format(**values), remedy)


def attempt(read: Callable[[], _Value]) -> tuple[_Value | None, Exception | None]:
    """Return what `read` returns, or the error that it ends with."""
    try:
        return read(), None
    except (OsmabenchError, ImportError) as error:
        return None, error
