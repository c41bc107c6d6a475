"""Answers by category, of several protocols, beside baselines without map and the ceiling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from osmabench_ros.reports.plots.svg import (
    INK,
    MUTED,
    inline_svg,
    method_colors,
    name_rows,
    new_figure,
    page_style,
)
from osmabench_ros.reports.report_run import Run, distinct, mean_value, reference_mappers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

QUESTIONS = 'exact_questions'
OVERALL = 'all questions'
_LINES: Mapping[str, dict[str, Any]] = {
    '-': {'color': INK, 'linewidth': 1.6},
    '--': {'color': MUTED, 'linewidth': 1.6, 'linestyle': (0, (2, 1))},
    ':': {'color': MUTED, 'linewidth': 1.6, 'linestyle': (0, (0.6, 1.2))},
}
CEILINGS = (
    ('baseline_random_labels', 'random names', '+'),
    ('ceiling_camera', 'what cameras show', 'd'),
    ('ceiling_ground_truth', 'ceiling', '-'),
)


@dataclass(frozen=True)
class QuestionFigure:
    """A figure of answers that is plotted by category, and what it is compared with.

    `references` are metric, title, and a marker or the style of a line; `categories` are those
    that are shown, by default all that were asked.
    """

    name: str
    description: str
    suite: str
    metric: str = 'accuracy'
    mode: str | None = None
    axis: str = 'accuracy'
    categories: tuple[str, ...] = ()
    references: tuple[tuple[str, str, str], ...] = ()


EXACT = QuestionFigure(
    'questions',
    'Accuracy of the answers by category and run',
    QUESTIONS,
    references=(
        ('baseline_always_yes', 'always "yes"', '^'),
        ('baseline_always_no', 'always "no"', 'v'),
        ('baseline_most_frequent', 'most frequent', '--'),
        ('baseline_question_only', 'question only', 'x'),
        *CEILINGS,
    ),
)
PROTOCOLS = (
    QuestionFigure(
        'cospace',
        'Accuracy on CoSpace by task and run',
        'cospace',
        mode='strict',
        references=(
            ('baseline_random', 'random', '--'),
            ('baseline_first_option', 'always A', ':'),
            *CEILINGS,
        ),
    ),
    *(
        QuestionFigure(
            f'grounding_{metric}',
            f'{axis} by difficulty and length of the expression, and by run',
            'grounding',
            metric,
            'strict',
            axis,
            ('', 'unique', 'multiple', 'easy', 'hard', 'short', 'medium', 'long'),
            (('baseline_random_of_class', 'random one of the kind', '--'),),
        )
        for metric, axis in (('acc_025', 'Acc@0.25'), ('acc_05', 'Acc@0.5'))
    ),
)
"""Of suites that the page shows under question protocols."""


def categories(runs: Sequence[Run], figure: QuestionFigure) -> list[str]:
    """Return the categories that were asked, '' (all of them) first."""
    asked = distinct(
        name
        for run in runs
        for suite, mode, metric, name in run.records
        if (suite, mode, metric) == (figure.suite, figure.mode, figure.metric)
    )
    return [name for name in figure.categories if name in asked] or asked


def question_plot(runs: Sequence[Run], figure: QuestionFigure = EXACT) -> str:
    """Return a figure by category with intervals, '' if nothing was asked."""
    names = categories(runs, figure)
    if not names:
        return ''
    groups = distinct(run.title for run in runs if run.records)
    with page_style(figure.name):
        drawn = new_figure(9.3, (0.16 * len(groups) + 0.22) * len(names) + 1.1)
        axes = drawn.subplots()
        for y, category in enumerate(names):
            _references(axes, runs, figure, category, y)
            _runs(axes, runs, figure, groups, category, y)
        name_rows(axes, [name or OVERALL for name in names])
        axes.set_xlim(-1, 101)
        axes.set_xlabel(f'{figure.axis}, %, with 95 % interval')
        for y in range(1, len(names)):
            axes.axhline(y - 0.5, color=MUTED, linewidth=0.5 if y > 1 else 1.2)
        _legend(drawn, runs, figure, groups)
        return inline_svg(drawn, figure.name, figure.description)


def _references(
    axes: Axes, runs: Sequence[Run], figure: QuestionFigure, category: str, y: int
) -> None:
    for metric, _, marker in figure.references:
        value = mean_value(runs, (figure.suite, figure.mode, metric, category))
        if value is None:
            continue
        if marker in _LINES:
            axes.vlines(100 * value, y - 0.42, y + 0.42, **_LINES[marker])
        else:
            axes.plot(
                [100 * value], [y + 0.38], marker, color=MUTED, markersize=5, fillstyle='none'
            )


def _runs(
    axes: Axes,
    runs: Sequence[Run],
    figure: QuestionFigure,
    groups: list[str],
    category: str,
    y: int,
) -> None:
    step = 0.72 / max(len(groups), 1)
    for i, title in enumerate(groups):
        own = [run for run in runs if run.title == title]
        key = (figure.suite, figure.mode, figure.metric, category)
        value = mean_value(own, key)
        if value is None:
            continue
        height = y + (i - (len(groups) - 1) / 2) * step
        color = _color(runs, own[0])
        record = own[0].records.get(key)
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


def _legend(drawn: Figure, runs: Sequence[Run], figure: QuestionFigure, groups: list[str]) -> None:
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
    for metric, title, marker in figure.references:
        if any((figure.suite, figure.mode, metric, '') in run.records for run in runs):
            handles.append(_reference_handle(title, marker))
    drawn.legend(handles=handles, loc='outside upper left', ncols=4)


def _reference_handle(title: str, marker: str) -> Line2D:
    from matplotlib.lines import Line2D

    if marker in _LINES:
        return Line2D([], [], label=title, **_LINES[marker])
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
