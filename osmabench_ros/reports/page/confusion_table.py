"""What each true class was taken for, of the largest classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from osmabench_ros.metrics.confusion import NOTHING, OUTSIDE, read_confusions
from osmabench_ros.reports.report_run import Run, baseline_condition, distinct, reference_mappers
from osmabench_ros.runs.evaluate.evaluation import ANSWERS_FOLDER
from osmabench_ros.semantics.labels import LabelSet

MOST_CLASSES = 14
_FILE = 'confusion_strict.npz'
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
        own = [run for run in runs if (run.mapper, run.condition) == (mapper, condition)]
        counts = _counts(own, label_sets)
        if counts:
            tables.append(_table(f'{mapper} · {condition}', counts))
    return tables


def _counts(runs: Sequence[Run], label_sets: Mapping[str, LabelSet]) -> Counter[tuple[str, str]]:
    """Count points by the names of the true and of the predicted class."""
    counts: Counter[tuple[str, str]] = Counter()
    for run in runs:
        file = run.plan.directory / ANSWERS_FOLDER / _FILE
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


def _table(title: str, counts: Counter[tuple[str, str]]) -> ConfusionTable:
    sizes: Counter[str] = Counter()
    for (true, _), count in counts.items():
        sizes[true] += count if true not in _NOT_CLASSES.values() else 0
    shown = [name for name, count in sizes.most_common(MOST_CLASSES) if count]
    columns = (*shown, _OTHERS, *_NOT_CLASSES.values())
    rows = []
    for true in shown:
        line: Counter[str] = Counter()
        for (name, predicted), count in counts.items():
            if name == true:
                line[predicted if predicted in columns else _OTHERS] += count
        rows.append((true, tuple(100 * line[name] / sizes[true] for name in columns)))
    return ConfusionTable(title, columns, tuple(rows))
