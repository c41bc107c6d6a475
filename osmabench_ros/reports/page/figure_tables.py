"""Figures of every class, what each class was taken for, and all figures over all classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from osmabench_ros.metrics.confusion import NOTHING, OUTSIDE, read_confusions
from osmabench_ros.reports.cells import Cell, plain, record_cell, scaled_cell
from osmabench_ros.reports.charts.class_chart import SEGMENTATION, class_shares
from osmabench_ros.reports.report_run import (
    Run,
    baseline_condition,
    distinct,
    full_titles,
    mean_value,
    of_group,
    reference_mappers,
)
from osmabench_ros.runs.config import Requirement
from osmabench_ros.runs.evaluate.evaluation import ANSWERS_FOLDER
from osmabench_ros.runs.report_model import Record, concerns, unmet
from osmabench_ros.semantics.labels import LabelSet


@dataclass(frozen=True)
class RequirementRow:
    """A threshold of the configuration and the values found."""

    figure: str
    where: str
    bound: str
    found: str
    holds: bool


def requirement_rows(
    records: Sequence[Record], requirements: Sequence[Requirement]
) -> list[RequirementRow]:
    """Return every requirement with the values it was checked against."""
    return [
        RequirementRow(
            ' '.join(filter(None, (item.suite, item.mode, item.metric, item.class_name))),
            ', '.join(filter(None, (item.mapper, item.condition))) or 'every run',
            _bound(item),
            ', '.join(_found(item, records)) or 'no such figure',
            not unmet((item,), tuple(records)),
        )
        for item in requirements
    ]


def _bound(requirement: Requirement) -> str:
    bounds = (('≥', requirement.at_least), ('≤', requirement.at_most))
    return ' and '.join(f'{sign} {value:g}' for sign, value in bounds if value is not None)


def _found(requirement: Requirement, records: Sequence[Record]) -> list[str]:
    return [
        f'{record.condition}: {plain(record.value)}'
        if requirement.mapper
        else f'{record.mapper} · {record.condition}: {plain(record.value)}'
        for record in records
        if concerns(requirement, record)
    ]


CLASS_FIGURES = (
    ('iou', 'strict', 'IoU strict'),
    ('iou', 'compat', 'IoU compat'),
    ('class_accuracy', 'strict', 'Acc strict'),
    ('class_accuracy', 'compat', 'Acc compat'),
)


@dataclass(frozen=True)
class ClassTable:
    """Figures of every class, with its share of the visible surface, by mapper and condition."""

    groups: tuple[str, ...]
    rows: tuple[tuple[str, Cell, tuple[Cell, ...]], ...]


def class_table(runs: Sequence[Run]) -> ClassTable:
    """Return the strict and compat figures of every class, side by side."""
    scored = [run for run in runs if not run.failed]
    groups = list(dict.fromkeys((run.mapper, run.condition) for run in scored))
    grouped = [of_group(scored, *group) for group in groups]
    surface = class_shares(scored)
    names = list(surface) + sorted(_scored_classes(scored) - set(surface))
    return ClassTable(
        tuple(f'{mapper} · {condition}' for mapper, condition in groups),
        tuple(
            (
                name,
                scaled_cell(surface.get(name), 100, 2),
                tuple(
                    scaled_cell(mean_value(own, (SEGMENTATION, mode, metric, name)), 100, 1)
                    for own in grouped
                    for metric, mode, _ in CLASS_FIGURES
                ),
            )
            for name in names
        ),
    )


def _scored_classes(runs: Sequence[Run]) -> set[str]:
    return {
        name
        for run in runs
        for suite, _, metric, name in run.records
        if suite == SEGMENTATION and metric == 'iou' and name
    }


@dataclass(frozen=True)
class FigureTable:
    """All figures over all classes: rows are metrics, columns runs."""

    runs: tuple[str, ...]
    rows: tuple[tuple[str, str, str, tuple[Cell, ...]], ...]


def figure_table(runs: Sequence[Run]) -> FigureTable:
    """Return every figure that is not about a single class."""
    scored = [run for run in runs if not run.failed]
    keys = list(dict.fromkeys(key for run in scored for key in run.records if not key[3]))
    titles = full_titles(runs)
    return FigureTable(
        tuple(titles[run] for run in scored),
        tuple(
            (
                suite,
                mode or '',
                metric,
                tuple(record_cell(run.records.get((suite, mode, metric, ''))) for run in scored),
            )
            for suite, mode, metric, _ in keys
        ),
    )


MOST_CONFUSED = 14
_CONFUSIONS = 'confusion_strict.npz'
_NOT_CLASSES = {OUTSIDE: 'no class', NOTHING: 'nothing'}
_OTHERS = 'another class'


@dataclass(frozen=True)
class ConfusionTable:
    """Shares of the surface of a class (row) that were taken for classes (columns), in percent."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]


def confusion_tables(
    runs: Sequence[Run], label_sets: Mapping[str, LabelSet]
) -> list[ConfusionTable]:
    """Return a table a mapper under the baseline condition, over its scenes, by strict rules.

    References come last.
    """
    condition, references = baseline_condition(runs), reference_mappers(runs)
    mappers = distinct(run.mapper for run in runs if run.condition == condition)
    tables = []
    for mapper in sorted(mappers, key=lambda name: name in references):
        counts = _counts(of_group(runs, mapper, condition), label_sets)
        if counts:
            tables.append(_confusion_table(f'{mapper} · {condition}', counts))
    return tables


def _counts(runs: Sequence[Run], label_sets: Mapping[str, LabelSet]) -> Counter[tuple[str, str]]:
    """Count points by the names of the true and of the predicted class."""
    counts: Counter[tuple[str, str]] = Counter()
    for run in runs:
        file = run.plan.directory / ANSWERS_FOLDER / _CONFUSIONS
        known = label_sets.get(run.scene)
        if known is None or not file.exists():
            continue
        for matrix in read_confusions(file).values():
            labels = matrix.labels.tolist()
            names = [_NOT_CLASSES.get(item) or known.name_of(item) for item in labels]
            for true, line in zip(names, matrix.counts.tolist(), strict=True):
                for predicted, count in zip(names, line, strict=True):
                    counts[true, predicted] += count
    return counts


def _confusion_table(title: str, counts: Counter[tuple[str, str]]) -> ConfusionTable:
    sizes: Counter[str] = Counter()
    for (true, _), count in counts.items():
        sizes[true] += count if true not in _NOT_CLASSES.values() else 0
    shown = [name for name, count in sizes.most_common(MOST_CONFUSED) if count]
    columns = (*shown, _OTHERS, *_NOT_CLASSES.values())
    rows = []
    for true in shown:
        line: Counter[str] = Counter()
        for (name, predicted), count in counts.items():
            if name == true:
                line[predicted if predicted in columns else _OTHERS] += count
        rows.append((true, tuple(100 * line[name] / sizes[true] for name in columns)))
    return ConfusionTable(title, columns, tuple(rows))
