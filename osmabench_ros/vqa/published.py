"""Published files of a protocol: one way to read, group and average them for every protocol."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from osmabench_ros.base.documents import number_lines, parse_json, read_json, read_text
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import QuestionError
from osmabench_ros.metrics.record import Mode

if TYPE_CHECKING:
    import pandas as pd

RowT = TypeVar('RowT')
Model = TypeVar('Model')
# A mapping of columns to values for each group.
Scores = list[dict[str, Any]]


class PublishedRow(BaseModel):
    """A part of a published file: other keys are passed over, and numbers may replace texts."""

    model_config = ConfigDict(extra='ignore', frozen=True, coerce_numbers_to_str=True)


def read_document(model: type[Model], path: Path, *, remedy: str = '') -> Model:
    """Read a JSON file into a model; QuestionError names file, key and remedy."""
    data = read_json(path, QuestionError)
    return validated(model, data, str(path), QuestionError, remedy=remedy)


def read_lines(model: type[Model], path: Path) -> Iterator[tuple[str, Model]]:
    """Yield file and line of each JSON line with its model, or a QuestionError that names them."""
    for where, line in number_lines(read_text(path, QuestionError), path):
        data = parse_json(line, where, QuestionError)
        yield where, validated(model, data, where, QuestionError)


def make_line_reader(model: type[Model]) -> Callable[[Sequence[Path]], list[Model]]:
    """Return a `Published.read` of files of JSON lines."""
    return lambda paths: [row for path in paths for _, row in read_lines(model, path)]


def average(_group: Mapping[str, str], part: pd.DataFrame) -> dict[str, Any]:
    """Return the mean of each outcome of a group; None where no row has a value."""
    return {
        name: None if part[name].isna().all() else float(part[name].astype(float).mean())
        for name in part.columns
    }


@dataclass(frozen=True)
class Published(Generic[RowT]):
    """Published files of a protocol, and how each mode scores them.

    Parameters
    ----------
    read : callable
        Returns the rows of files; QuestionError names the file and the row at fault.
    compare : callable
        Yields a mapping for each row that the mode counts. For each column of `groups` it has the
        group of the row, or a tuple if it is in several; all other columns are outcomes.
    groups : tuple of str
        Columns that distinguish groups.
    unit : str
        Column of the number of rows, 'answers' or the like; also in the error without any row.
    modes : tuple of Mode
        Modes that are scored; with `Mode.NONE` the rows have no column for it.
    orders : mapping of str to sequence
        The groups of a column in order; `...` means all others in alphabetical order, and
        without it all must be listed. Other columns have the order in which groups appear.
    always : mapping of str to sequence
        For every column of `groups`, or for none, those that have a row even if they are empty.
    sum_up : callable
        Returns the metrics of a group, named by its columns, from its outcomes. By default the
        mean of each.
    key : callable, optional
        Returns what identifies the question of a row, of which strict counts the first answer.
    arrange : callable
        Returns the scores of all groups in the form in which they are printed.
    """

    read: Callable[[Sequence[Path]], Sequence[RowT]]
    compare: Callable[[Sequence[RowT], Mode], Iterable[Mapping[str, Any]]]
    groups: tuple[str, ...]
    unit: str = 'answers'
    modes: tuple[Mode, ...] = (Mode.COMPAT, Mode.STRICT)
    orders: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    always: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sum_up: Callable[[Mapping[str, str], pd.DataFrame], Mapping[str, Any]] = average
    key: Callable[[RowT], Hashable] | None = None
    arrange: Callable[[Scores], Scores] = list

    def score_files(self, paths: Sequence[Path]) -> Scores:
        """Return the scores of files as they are printed; QuestionError if there is no row."""
        rows = self.read(paths)
        if not rows:
            what = self.unit.removesuffix('s')
            raise QuestionError(f'{", ".join(map(str, paths))}: there is no {what} to score')
        return self.arrange(self.score(rows))

    def score(self, rows: Sequence[RowT]) -> Scores:
        """Return the number of rows and the metrics of each mode and group."""
        found = [scores for mode in self.modes for scores in self._score_mode(rows, mode)]
        # A mode that leaves out all rows has no outcomes to name.
        columns = dict.fromkeys(name for scores in found for name in scores)
        return [scores | {name: scores.get(name) for name in columns} for scores in found]

    def _score_mode(self, rows: Sequence[RowT], mode: Mode) -> Iterator[dict[str, Any]]:
        import pandas as pd

        if mode is Mode.STRICT and self.key is not None:
            # Reversed, so that the first row of a key is kept.
            rows = list({self.key(row): row for row in reversed(rows)}.values())[::-1]
        names = list(self.groups)
        # A mode may leave out all rows.
        table = pd.DataFrame(list(self.compare(rows, mode)) or {name: [] for name in names})
        for name in names:
            table = table.explode(name, ignore_index=True)
        rest = table.columns.difference(names, sort=False)
        parts = {key: part[rest] for key, part in table.groupby(names, sort=False)}
        for key in product(*(self.always.get(name, ()) for name in names)):
            parts.setdefault(key, table[rest][:0])
        ranks = [self._rank(name, [key[i] for key in parts]) for i, name in enumerate(names)]
        for key in sorted(parts, key=lambda key: [r[k] for r, k in zip(ranks, key, strict=True)]):
            group = dict(zip(names, key, strict=True))
            part = parts[key]
            named = {} if mode is Mode.NONE else {'mode': mode.value}
            yield {**named, **group, self.unit: len(part), **self.sum_up(group, part)}

    def _rank(self, name: str, found: Sequence[str]) -> dict[str, int]:
        """Return the place of each group of a column."""
        every = list(dict.fromkeys(found))
        if order := self.orders.get(name):
            others = sorted(set(every).difference(order))
            every = [x for item in order for x in (others if item is ... else [item])]
        return {group: place for place, group in enumerate(every)}
