"""Figures of every class, and all figures over all classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osmabench_ros.reports.cells import ABSENT, Cell, plain
from osmabench_ros.reports.class_plot import SEGMENTATION, class_shares, class_value
from osmabench_ros.reports.run_view import Run, distinct
from osmabench_ros.runs.report_model import Record

CLASS_FIGURES = (
    ('iou', 'strict', 'IoU strict'),
    ('iou', 'compat', 'IoU compat'),
    ('class_accuracy', 'strict', 'Acc strict'),
    ('class_accuracy', 'compat', 'Acc compat'),
)


@dataclass(frozen=True)
class ClassTable:
    """Figures of every class; each group, a mapper and condition, has the columns CLASS_FIGURES.

    A row is the class, its share of the visible surface, and the figures.
    """

    groups: tuple[str, ...]
    rows: tuple[tuple[str, Cell, tuple[Cell, ...]], ...]


def class_table(runs: Sequence[Run]) -> ClassTable:
    """Return the strict and compat figures of every class, side by side."""
    scored = [run for run in runs if not run.failed]
    groups = list(dict.fromkeys((run.mapper, run.condition) for run in scored))
    surface = class_shares(scored)
    names = list(surface) + sorted(_scored_classes(scored) - set(surface))
    return ClassTable(
        tuple(f'{mapper} · {condition}' for mapper, condition in groups),
        tuple(
            (
                name,
                _percent(surface.get(name), digits=2),
                tuple(
                    _percent(
                        class_value(scored, *group, (SEGMENTATION, mode, metric), name), digits=1
                    )
                    for group in groups
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


def _percent(share: float | None, digits: int) -> Cell:
    return ABSENT if share is None else Cell(f'{100 * share:.{digits}f}', repr(share))


@dataclass(frozen=True)
class FigureTable:
    """All figures over all classes: rows are metrics, columns runs."""

    runs: tuple[str, ...]
    rows: tuple[tuple[str, str, str, tuple[Cell, ...]], ...]


def figure_table(runs: Sequence[Run]) -> FigureTable:
    """Return every figure that is not about a single class."""
    scored = [run for run in runs if not run.failed]
    keys = list(dict.fromkeys(key for run in scored for key in run.records if not key[3]))
    several = len(distinct(run.scene for run in runs)) > 1
    return FigureTable(
        tuple(f'{run.title} · {run.scene}' if several else run.title for run in scored),
        tuple(
            (
                suite,
                mode or '',
                metric,
                tuple(_figure_cell(run.records.get((suite, mode, metric, ''))) for run in scored),
            )
            for suite, mode, metric, _ in keys
        ),
    )


def _figure_cell(record: Record | None) -> Cell:
    if record is None or record.value is None:
        return ABSENT
    interval = ''
    if record.low is not None and record.high is not None:
        interval = f'[{plain(record.low)}, {plain(record.high)}]'
    return Cell(plain(record.value), repr(record.value), interval, note=f'{record.n} samples')
