"""Metrics of every class, the confusion of classes, and all metrics over all classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from osmabench_ros.metrics.confusion import NOTHING, OUTSIDE, read_confusions
from osmabench_ros.reports import tidy
from osmabench_ros.reports.cells import Cell, build_cell_table, scale_cell
from osmabench_ros.reports.charts.matrix_charts import SEGMENTATION, compute_class_shares
from osmabench_ros.reports.tidy import Run
from osmabench_ros.runs.evaluate.evaluation import ANSWERS_FOLDER
from osmabench_ros.semantics.labels import LabelSet

CLASS_METRICS = (
    ('iou', 'strict', 'IoU strict'),
    ('iou', 'compat', 'IoU compat'),
    ('class_accuracy', 'strict', 'Acc strict'),
    ('class_accuracy', 'compat', 'Acc compat'),
)


def build_class_table(runs: Sequence[Run]) -> tuple[list[str], list[tuple[str, Cell, list[Cell]]]]:
    """Return methods, and of each class its fraction of the visible surface and its metrics.

    The metrics of `CLASS_METRICS` come side by side, for one mapper and condition after the other.
    """
    scores = tidy.build_score_table(runs)
    scores = scores[(scores['suite'] == SEGMENTATION) & (scores['class_name'] != '')]
    found = tidy.compute_means(scores, ['class_name', 'metric', 'mode', 'condition', 'mapper'])
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
                for metric, mode, _ in CLASS_METRICS
            ],
        )
        for name in [*surface, *sorted(others)]
    ]
    return [f'{mapper} · {condition}' for condition, mapper in groups], rows


def build_metric_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Return every metric that is not about a single class, a column per run."""
    scores = tidy.build_score_table(runs)
    table = build_cell_table(scores[scores['class_name'] == ''], tidy.METRIC[:3], 'run_id')
    titles = tidy.make_full_titles(runs)
    return table.rename(columns={run.report.run_id: title for run, title in titles.items()})


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
    condition = tidy.find_baseline_condition(runs)
    references = tidy.find_reference_mappers(runs)
    mappers = tidy.list_distinct(run.mapper for run in runs if run.condition == condition)
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
