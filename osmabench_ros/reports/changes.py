"""What changed between two results: paired differences of figures, and thresholds on them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from osmabench_ros.base.files import read_json
from osmabench_ros.base.strict import read_model
from osmabench_ros.errors import ConfigError, RunError, suggestion
from osmabench_ros.metrics.statistics import LEAST_UNITS, PairedDifference, paired_difference
from osmabench_ros.reports.headline import headline_titles
from osmabench_ros.runs.evaluate.evaluation import REPORT
from osmabench_ros.runs.identity import Seeds, is_run_name
from osmabench_ros.runs.matrix_on_disk import RunState, matrices_at
from osmabench_ros.runs.report_model import MatrixReport, Record, RunReport, Status
from osmabench_ros.runs.run_manifest import MANIFEST

RunKey = tuple[str, str, str, str, str, str, float | None]
"""Dataset, scene, seeds, condition, mapper, simulator and speed."""


class ChangeVerdict(str, Enum):
    """What a change means; from three scenes on its interval decides, below its sign."""

    BETTER = 'better'
    WORSE = 'worse'
    UNCLEAR = 'unclear'
    """The interval contains 0."""
    EQUAL = 'equal'


@dataclass(frozen=True, order=True)
class Figure:
    """A figure of a mapper under a condition; `class_name` is '' over all classes."""

    mapper: str
    condition: str
    suite: str
    mode: str
    metric: str
    class_name: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Suite, mode and metric."""
        return self.suite, self.mode, self.metric

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a threshold may call it by, the full one first."""
        full = '/'.join(filter(None, (self.suite, self.mode, self.metric)))
        return full, f'{self.suite}/{self.metric}', f'{self.mode}/{self.metric}', self.metric


@dataclass(frozen=True)
class Change:
    """How a figure changed over the scenes that both results have.

    `before` and `after` are means over the scenes, of each the mean over its seeds. `paired` is
    after - before, with its interval over the scenes.
    """

    figure: Figure
    before: float
    after: float
    higher_is_better: bool
    paired: PairedDifference

    @property
    def gain(self) -> float:
        """The change in the good direction; negative if it got worse."""
        difference = self.paired.difference.value
        return difference if self.higher_is_better else -difference

    @property
    def verdict(self) -> ChangeVerdict:
        """What the change means."""
        interval = self.paired.difference
        if interval.value == 0 and not interval.low < 0:
            return ChangeVerdict.EQUAL
        if math.isfinite(interval.low) and not interval.excludes_zero:
            return ChangeVerdict.UNCLEAR
        return ChangeVerdict.BETTER if self.gain > 0 else ChangeVerdict.WORSE

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serialisable form; bounds are null below three scenes."""
        interval = self.paired.difference
        finite = {'low': interval.low, 'high': interval.high, 'p_value': self.paired.p_value}
        return {
            **vars(self.figure),
            'before': self.before,
            'after': self.after,
            'difference': interval.value,
            **{name: value if math.isfinite(value) else None for name, value in finite.items()},
            'scenes': interval.n,
            'higher_is_better': self.higher_is_better,
            'verdict': self.verdict.value,
        }


@dataclass(frozen=True)
class ResultChanges:
    """All changes, and the runs that only one of the results has."""

    changes: tuple[Change, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    lost: tuple[Figure, ...]
    """Figures that runs of both have, but only the first result has a value of."""

    @property
    def counts(self) -> dict[ChangeVerdict, int]:
        """How many changes have each verdict."""
        found = Counter(item.verdict for item in self.changes)
        return {verdict: found[verdict] for verdict in ChangeVerdict}

    @property
    def shown(self) -> tuple[list[Change], list[Change]]:
        """Changes over all classes and of single ones, the clearest first; none that is equal."""
        moved = [item for item in self.changes if item.verdict is not ChangeVerdict.EQUAL]
        classes = [item for item in moved if item.figure.class_name]
        classes.sort(key=lambda item: (item.verdict is ChangeVerdict.UNCLEAR, -abs(item.gain)))
        return [item for item in moved if not item.figure.class_name], classes

    @property
    def sentence(self) -> str:
        """What changed in the headline figures, and whether that is more than chance."""
        overall, _ = self.shown
        if not overall:
            return 'No figure over all classes changed.'
        titles = headline_titles()
        headlines = [item for item in overall if item.figure.key in titles]
        changed = headlines or overall
        parts = []
        for condition in dict.fromkeys(item.figure.condition for item in changed):
            own = Counter(item.verdict for item in changed if item.figure.condition == condition)
            counts = [
                f'{own[verdict]} {verdict.value}' for verdict in ChangeVerdict if own[verdict]
            ]
            parts.append(f'{", ".join(counts)} under “{condition}”')
        most = max(changed, key=lambda item: abs(item.gain))
        title = titles.get(most.figure.key, most.figure.names[0])
        return (
            f'{"Headline figures" if headlines else "Figures over all classes"}: '
            f'{"; ".join(parts)} ({_test_of(changed)}); most changed {title} of '
            f'{most.figure.mapper} under “{most.figure.condition}”, from {most.before:.4g} to '
            f'{most.after:.4g}.'
        )

    @property
    def missing(self) -> list[tuple[str, Sequence[str]]]:
        """Names of what one of the results lacks, after a title; no empty lists."""
        found = (
            ('only in the first result', self.only_before),
            ('only in the second result', self.only_after),
            ('without a value any more', [item.names[0] for item in self.lost]),
        )
        return [(title, names) for title, names in found if names]

    def to_json(self) -> dict[str, object]:
        """Return the content for programs."""
        return {
            'changes': [change.to_json() for change in self.changes],
            'only_before': self.only_before,
            'only_after': self.only_after,
            'lost': [vars(figure) for figure in self.lost],
        }


def _test_of(changes: Sequence[Change]) -> str:
    if min(item.paired.difference.n for item in changes) >= LEAST_UNITS:
        return 'by 95 % t intervals of the paired differences'
    return 'by sign alone: fewer than three scenes cannot tell a change from chance'


@dataclass(frozen=True)
class Threshold:
    """How much worse figures may get; `pattern` is a name, in which * stands for anything."""

    pattern: str
    amount: float

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """Read METRIC=AMOUNT; raises ConfigError."""
        pattern, found, amount = text.rpartition('=')
        try:
            number = float(amount)
        except ValueError:
            number = math.nan
        if not (found and pattern and math.isfinite(number) and number >= 0):
            raise ConfigError(f'--worse "{text}" is not of the form METRIC=AMOUNT, AMOUNT >= 0')
        return cls(pattern, number)

    def concerns(self, figure: Figure) -> bool:
        """Return whether it is about a figure; those of single classes are not meant."""
        return not figure.class_name and any(
            fnmatchcase(name, self.pattern) for name in figure.names
        )


def read_records(path: Path) -> tuple[Record, ...]:
    """Return the records of the complete runs of a result.

    Parameters
    ----------
    path : Path
        A report.json, of a matrix or of one run or map, the folder that it lies in, or a folder of
        runs, whose reports are read from the folders of the runs.

    Raises
    ------
    RunError
        If there is none, or a file is malformed.
    """
    whole = path.is_dir() and not is_run_name(path.absolute().name)
    if whole and ((path / MANIFEST).exists() or not (path / REPORT).exists()):
        found = (
            matrix.report(run)
            for matrix in matrices_at(path)
            for run in matrix.runs()
            if run.state is RunState.DONE
        )
        return _records(report for report in found if report is not None)
    file = path / REPORT if path.is_dir() else path
    if 'runs' in read_json(file):
        return _records(read_model(MatrixReport, file).runs)
    return _records([read_model(RunReport, file)])


def _records(reports: Iterable[RunReport]) -> tuple[Record, ...]:
    complete = (report for report in reports if report.status is Status.COMPLETE)
    return tuple(record for report in complete for record in report.metrics)


def changes_between(
    before: Sequence[Record],
    after: Sequence[Record],
    *,
    renamed: Mapping[str, str] | None = None,
) -> ResultChanges:
    """Compare two results over the scenes, seeds, conditions and mappers that both have.

    Parameters
    ----------
    before, after : sequence of Record
        The figures of the results.
    renamed : mapping of str to str, optional
        Mappers of the first result and those of the second that they are compared with; without,
        equal names are.

    Raises
    ------
    RunError
        If the results have no run in common.
    """
    renamed = renamed or {}
    if renamed:
        before = [item for item in before if item.mapper in renamed]
        after = [item for item in after if item.mapper in renamed.values()]
    first, second = (_by_run(records) for records in (before, after))
    mapped = {_renamed(key, renamed): key for key in first}
    both = [key for key in mapped if key in second]
    if not both:
        raise RunError(
            f'the results have no run in common: {_some(first)} before, {_some(second)} after; '
            'compare results with equal scenes, seeds, conditions and mappers, or name the '
            'mappers with --mapper OLD=NEW'
        )
    values: dict[Figure, dict[tuple[str, str], list[tuple[float, float]]]] = {}
    higher: dict[Figure, bool] = {}
    lost: dict[Figure, None] = {}
    for key in both:
        old, new = first[mapped[key]], second[key]
        for name, record in old.items():
            other = new.get(name)
            figure = Figure(_title(mapped[key][4], key[4]), key[3], *name)
            if record.value is None:
                continue
            if other is None or other.value is None:
                lost[figure] = None
                continue
            higher[figure] = record.higher_is_better
            scenes = values.setdefault(figure, defaultdict(list))
            scenes[key[:2]].append((record.value, other.value))
    return ResultChanges(
        tuple(_change(figure, values[figure], higher[figure]) for figure in values),
        tuple(_some([key]) for name, key in mapped.items() if name not in second),
        tuple(_some([key]) for key in second if key not in mapped),
        tuple(lost),
    )


def _by_run(records: Iterable[Record]) -> dict[RunKey, dict[tuple[str, str, str, str], Record]]:
    found: dict[RunKey, dict[tuple[str, str, str, str], Record]] = {}
    for item in records:
        key = (
            item.dataset,
            item.scene,
            str(Seeds(item.seed, item.path_seed, item.method_seed)),
            item.condition,
            *(item.mapper, item.simulator, item.speed_factor),
        )
        name = item.suite, item.mode or '', item.metric, item.class_name
        found.setdefault(key, {})[name] = item
    return found


def _renamed(key: RunKey, renamed: Mapping[str, str]) -> RunKey:
    mapper = key[4]
    return (*key[:4], renamed.get(mapper, mapper), *key[5:])


def _title(old: str, new: str) -> str:
    return new if old == new else f'{old} → {new}'


def _change(
    figure: Figure, scenes: Mapping[tuple[str, str], Sequence[tuple[float, float]]], higher: bool
) -> Change:
    # Seeds of one scene are not independent, so scenes are the units.
    before, after = (
        [_mean([pair[side] for pair in pairs]) for pairs in scenes.values()] for side in (0, 1)
    )
    paired = paired_difference(before, after)
    return Change(figure, _mean(before), _mean(after), higher, paired)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _some(keys: Iterable[RunKey]) -> str:
    names = ['.'.join(key[:5]) for key in keys]
    return ', '.join(names[:3]) + (f' and {len(names) - 3} more' if len(names) > 3 else '')


def broken(found: ResultChanges, thresholds: Sequence[Threshold]) -> list[str]:
    """Return a sentence for each figure that got worse than a threshold allows, or got lost.

    Raises ConfigError for a threshold that no figure is concerned by.
    """
    faults = []
    for item in thresholds:
        changes = [change for change in found.changes if item.concerns(change.figure)]
        gone = [figure for figure in found.lost if item.concerns(figure)]
        if not changes and not gone:
            figures = (change.figure for change in found.changes)
            known = {item.names[0] for item in figures if not item.class_name}
            raise ConfigError(
                f'--worse {item.pattern}: no such figure. {suggestion(item.pattern, known)}'
            )
        faults += [
            f'{_of(change.figure)} got worse by {-change.gain:.4g}, from {change.before:.4g} to '
            f'{change.after:.4g}; at most {item.amount:g} may be lost'
            for change in changes
            if -change.gain > item.amount
        ]
        faults += [f'{_of(figure)} has no value any more' for figure in gone]
    if thresholds and found.only_before:
        faults.append(f'runs are missing or did not complete: {", ".join(found.only_before[:3])}')
    return faults


def _of(figure: Figure) -> str:
    return f'{figure.names[0]} of {figure.mapper} under {figure.condition}'
