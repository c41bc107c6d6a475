"""Accuracy of answers by category, beside the baselines without map and the ceiling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from osmabench_ros.reports.plots.svg import (
    INK,
    MUTED,
    inline_svg,
    method_colors,
    new_figure,
    page_style,
)
from osmabench_ros.reports.report_run import Run, distinct, reference_mappers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

QUESTIONS = 'exact_questions'
OVERALL = 'all questions'
REFERENCES = (
    ('baseline_always_yes', 'always "yes"', '^'),
    ('baseline_always_no', 'always "no"', 'v'),
    ('baseline_most_frequent', 'most frequent', '|'),
    ('baseline_question_only', 'question only', 'x'),
    ('baseline_random_labels', 'random names', '+'),
    ('ceiling_camera', 'what cameras show', 'd'),
    ('ceiling_ground_truth', 'ceiling', 'D'),
)
"""Metric, title and marker of what is shown for comparison."""


def categories(runs: Sequence[Run]) -> list[str]:
    """Return the categories that were asked, '' (all of them) first."""
    return distinct(
        name
        for run in runs
        for suite, _, metric, name in run.records
        if (suite, metric) == (QUESTIONS, 'accuracy')
    )


def accuracy(runs: Sequence[Run], metric: str, category: str) -> float | None:
    """Return the mean of a question figure over runs, None if no run has it."""
    values = [
        record.value
        for run in runs
        if (record := run.records.get((QUESTIONS, None, metric, category))) is not None
        and record.value is not None
    ]
    return math.fsum(values) / len(values) if values else None


def question_plot(runs: Sequence[Run]) -> str:
    """Return accuracies by category with intervals, '' if nothing was asked."""
    names = categories(runs)
    if not names:
        return ''
    groups = distinct(run.title for run in runs if run.records)
    with page_style('questions'):
        figure = new_figure(9.3, (0.16 * len(groups) + 0.22) * len(names) + 1.1)
        axes = figure.subplots()
        for y, category in enumerate(names):
            _references(axes, runs, category, y)
            _runs(axes, runs, groups, category, y)
        axes.set_yticks(range(len(names)), [name or OVERALL for name in names])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(-1, 101)
        axes.tick_params(axis='y', length=0)
        axes.grid(axis='x')
        axes.set_xlabel('accuracy, %, with 95 % interval')
        for y in range(1, len(names)):
            axes.axhline(y - 0.5, color=MUTED, linewidth=0.5 if y > 1 else 1.2)
        _legend(figure, runs, groups)
        return inline_svg(figure, 'questions', 'Accuracy of the answers by category and run')


def _references(axes: Axes, runs: Sequence[Run], category: str, y: int) -> None:
    for metric, _, marker in REFERENCES:
        value = accuracy(runs, metric, category)
        if value is None:
            continue
        if metric == 'ceiling_ground_truth':
            axes.vlines(100 * value, y - 0.42, y + 0.42, color=INK, linewidth=1.6)
        elif metric == 'baseline_most_frequent':
            axes.vlines(
                100 * value, y - 0.42, y + 0.42, color=MUTED, linewidth=1.6, linestyle=(0, (2, 1))
            )
        else:
            axes.plot(
                [100 * value], [y + 0.38], marker, color=MUTED, markersize=5, fillstyle='none'
            )


def _runs(axes: Axes, runs: Sequence[Run], groups: list[str], category: str, y: int) -> None:
    step = 0.72 / max(len(groups), 1)
    for i, title in enumerate(groups):
        own = [run for run in runs if run.title == title]
        value = accuracy(own, 'accuracy', category)
        if value is None:
            continue
        height = y + (i - (len(groups) - 1) / 2) * step
        color = _color(runs, own[0])
        record = own[0].records.get((QUESTIONS, None, 'accuracy', category))
        if len(own) == 1 and record is not None and record.low is not None:
            axes.hlines(height, 100 * record.low, 100 * (record.high or 0.0), color=color)
        if own[0].mapper in reference_mappers(runs):
            axes.vlines(100 * value, height - step / 2, height + step / 2, color, linewidth=1.8)
            continue
        axes.plot([100 * value], [height], _marker(runs, own[0]), color=color, markersize=5)


def _color(runs: Sequence[Run], run: Run) -> str:
    return method_colors(item.mapper for item in runs)[run.mapper]


def _marker(runs: Sequence[Run], run: Run) -> str:
    shapes = ('o', 's', '^', 'v', 'P', '*')
    return shapes[distinct(item.condition for item in runs).index(run.condition) % len(shapes)]


def _legend(figure: Figure, runs: Sequence[Run], groups: list[str]) -> None:
    from matplotlib.lines import Line2D

    references = reference_mappers(runs)
    first = {title: next(run for run in runs if run.title == title) for title in groups}
    handles = [
        Line2D(
            [],
            [],
            marker='' if run.mapper in references else _marker(runs, run),
            color=_color(runs, run),
            markersize=5,
            label=f'{title} (reference)' if run.mapper in references else title,
        )
        for title, run in first.items()
    ]
    for metric, title, marker in REFERENCES:
        if any((QUESTIONS, None, metric, '') in run.records for run in runs):
            handles.append(_reference_handle(metric, title, marker))
    figure.legend(handles=handles, loc='outside upper left', ncols=4)


def _reference_handle(metric: str, title: str, marker: str) -> Line2D:
    from matplotlib.lines import Line2D

    if metric == 'ceiling_ground_truth':
        return Line2D([], [], color=INK, linewidth=1.6, label=title)
    if metric == 'baseline_most_frequent':
        return Line2D([], [], color=MUTED, linewidth=1.6, linestyle=(0, (2, 1)), label=title)
    return Line2D(
        [],
        [],
        color=MUTED,
        linestyle='none',
        marker=marker,
        markersize=5,
        fillstyle='none',
        label=title,
    )
