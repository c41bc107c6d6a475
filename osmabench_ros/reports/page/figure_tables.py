"""Metrics of every class, the confusion of classes, and all metrics over all classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from osmabench_ros.metrics.confusion import NOTHING, OUTSIDE, read_confusions
from osmabench_ros.reports.cells import Cell, build_cell_table, format_plain, scale_cell
from osmabench_ros.reports.charts.class_chart import SEGMENTATION, compute_class_shares
from osmabench_ros.reports.report_run import (
    METRIC,
    Run,
    distinct,
    find_baseline_condition,
    find_reference_mappers,
    make_full_titles,
    means,
    score_table,
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


def build_requirement_rows(
    records: Sequence[Record], requirements: Sequence[Requirement]
) -> list[RequirementRow]:
    """Return every requirement with the values it was checked against."""
    return [
        RequirementRow(
            ' '.join(filter(None, (item.suite, item.mode, item.metric, item.class_name))),
            ', '.join(filter(None, (item.mapper, item.condition))) or 'every run',
            _bound(item),
            ', '.join(_list_values(item, records)) or 'no such metric',
            not unmet((item,), tuple(records)),
        )
        for item in requirements
    ]


def _bound(requirement: Requirement) -> str:
    bounds = (('≥', requirement.at_least), ('≤', requirement.at_most))
    return ' and '.join(f'{sign} {value:g}' for sign, value in bounds if value is not None)


def _list_values(requirement: Requirement, records: Sequence[Record]) -> list[str]:
    return [
        f'{record.condition}: {format_plain(record.value)}'
        if requirement.mapper
        else f'{record.mapper} · {record.condition}: {format_plain(record.value)}'
        for record in records
        if concerns(requirement, record)
    ]


CLASS_FIGURES = (
    ('iou', 'strict', 'IoU strict'),
    ('iou', 'compat', 'IoU compat'),
    ('class_accuracy', 'strict', 'Acc strict'),
    ('class_accuracy', 'compat', 'Acc compat'),
)


def build_class_table(
    runs: Sequence[Run],
) -> tuple[list[str], list[tuple[str, Cell, list[Cell]]]]:
    """Return methods, and of each class its fraction of the visible surface and its metrics.

    The metrics of `CLASS_FIGURES` come side by side, for one mapper and condition after the other.
    """
    scores = score_table(runs)
    scores = scores[(scores['suite'] == SEGMENTATION) & (scores['class_name'] != '')]
    found = means(scores, ['class_name', 'metric', 'mode', 'condition', 'mapper'])
    values = found.set_index(['class_name', 'metric', 'mode', 'condition', 'mapper'])['value']
    groups = list(dict.fromkeys((run.condition, run.mapper) for run in runs if not run.failed))
    surface = compute_class_shares(scores)
    others = set(scores.loc[scores['metric'] == 'iou', 'class_name']) - set(surface)
    rows = [
        (
            name,
            scale_cell(surface.get(name), 100, 2),
            [
                scale_cell(values.get((name, metric, mode, *group)), 100, 1)
                for group in groups
                for metric, mode, _ in CLASS_FIGURES
            ],
        )
        for name in [*surface, *sorted(others)]
    ]
    return [f'{mapper} · {condition}' for condition, mapper in groups], rows


def build_figure_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Return every metric that is not about a single class, a column per run."""
    scores = score_table(runs)
    table = build_cell_table(scores[scores['class_name'] == ''], METRIC[:3], 'run_id')
    titles = {run.plan.identity.run_id: title for run, title in make_full_titles(runs).items()}
    return table.rename(columns=titles)


MOST_CONFUSED = 14
_CONFUSIONS = 'confusion_strict.npz'
_NOT_CLASSES = {OUTSIDE: 'no class', NOTHING: 'nothing'}
_OTHERS = 'another class'


def build_confusion_tables(
    runs: Sequence[Run], label_sets: Mapping[str, LabelSet]
) -> dict[str, pd.DataFrame]:
    """Return of each mapper under the baseline condition what classes were taken for, in percent.

    By strict rules, over its scenes: rows are classes, the largest first, columns predictions.
    References come last.
    """
    condition, references = find_baseline_condition(runs), find_reference_mappers(runs)
    mappers = distinct(run.mapper for run in runs if run.condition == condition)
    tables = {}
    for mapper in sorted(mappers, key=lambda name: name in references):
        own = [run for run in runs if (run.mapper, run.condition) == (mapper, condition)]
        counts = list(_read_counts(own, label_sets))
        if counts:
            tables[f'{mapper} · {condition}'] = _compute_fractions(pd.concat(counts))
    return tables


def _read_counts(runs: Sequence[Run], label_sets: Mapping[str, LabelSet]) -> Iterator[pd.Series]:
    """Yield numbers of points by the names of the true and of the predicted class."""
    for run in runs:
        file = run.plan.directory / ANSWERS_FOLDER / _CONFUSIONS
        known = label_sets.get(run.scene)
        if known is None or not file.exists():
            continue
        for matrix in read_confusions(file).values():
            labels = matrix.labels.tolist()
            names = [_NOT_CLASSES.get(item) or known.name_of(item) for item in labels]
            yield pd.DataFrame(matrix.counts, names, names).stack()


def _compute_fractions(counts: pd.Series) -> pd.DataFrame:
    others = list(_NOT_CLASSES.values())
    table = counts.groupby(level=[0, 1], sort=False).sum().unstack(fill_value=0)
    sizes = table.drop(index=others, errors='ignore').sum(axis=1)
    shown = sizes[sizes > 0].sort_values(ascending=False, kind='stable').index[:MOST_CONFUSED]
    rows = table.loc[shown].reindex(columns=[*shown, *others], fill_value=0)
    rows.insert(len(shown), _OTHERS, sizes[shown] - rows.sum(axis=1))
    return 100 * rows.div(sizes[shown], axis=0)
