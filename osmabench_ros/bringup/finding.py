"""Findings of the doctor, and the tables of checks that lead to them."""

import string
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, StrictUndefined
from jinja2.environment import TemplateExpression

from osmabench_ros.base.documents import read_yaml
from osmabench_ros.errors import ConfigError, OsmabenchError

_Value = TypeVar('_Value')

# Key of a row with an expression of Jinja over the values of a check; texts have more of them.
CONDITION = 'when'


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

    def __str__(self) -> str:
        return f'{self.part}: {self.detail} ({self.remedy})'


class CheckTables:
    """Tables of checks from a YAML file of the package: condition, severity, text, remedy."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @cached_property
    def rows(self) -> dict[str, dict[str, dict[str, str]]]:
        """The rows by table and name."""
        tables: dict[str, dict[str, dict[str, str]]] = read_yaml(self._file, ConfigError)
        return tables

    def find_all(self, table: str, part: str, **values: object) -> list[Finding]:
        """Return a finding for every row with a condition that holds, else for those without."""
        return [_make_finding(row, part, values) for row in self._select_rows(table, values)]

    def find_first(self, table: str, part: str, **values: object) -> list[Finding]:
        """Return a finding for the first row that holds."""
        return [_make_finding(row, part, values) for row in self._select_rows(table, values)[:1]]

    def _select_rows(self, table: str, values: dict[str, object]) -> list[dict[str, str]]:
        rows = self.rows[table].values()
        found = [row for row in rows if CONDITION in row and _compile(row[CONDITION])(**values)]
        return found or [row for row in rows if CONDITION not in row]

    def find_one(self, table: str, part: str, **values: object) -> Finding:
        """Return the finding for the first row of a table of which one always holds."""
        return self.find_first(table, part, **values)[0]


@cache
def _compile(condition: str) -> TemplateExpression:
    environment = Environment(undefined=StrictUndefined, autoescape=True)
    return environment.compile_expression(condition, undefined_to_none=False)


class _Filler(string.Formatter):
    """Fills the fields of a text, which are expressions of Jinja."""

    def get_field(self, field_name: str, _args: Any, kwargs: Any) -> tuple[Any, str]:
        return _compile(field_name)(**kwargs), field_name


def _make_finding(row: dict[str, str], part: str, values: dict[str, object]) -> Finding:
    [level] = row.keys() - {CONDITION, 'remedy'}
    detail, remedy = (_Filler().format(row.get(key, ''), **values) for key in (level, 'remedy'))
    return Finding(part, Severity(level), detail, remedy)


def attempt(read: Callable[[], _Value]) -> tuple[_Value | None, Exception | None]:
    """Return what `read` returns, or the error that it ends with."""
    try:
        return read(), None
    except (OsmabenchError, ImportError) as error:
        return None, error
