"""Headline figures by condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from osmabench_ros.reports.headline import Headline
from osmabench_ros.reports.pacing import TimedRun
from osmabench_ros.reports.plots.svg import (
    INK,
    MUTED,
    SERIES,
    SURFACE,
    inline_svg,
    method_colors,
    method_handles,
    name_rows,
    new_figure,
    page_style,
)
from osmabench_ros.reports.report_run import (
    Run,
    computed_headlines,
    distinct,
    estimate,
    mean_value,
    reference_mappers,
)
from osmabench_ros.runs.results.timings import Participation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_ROWS = 40


def latency_plot(realtime: Sequence[TimedRun]) -> str:
    """Return median, percentiles and maximum of latency, a line a node; '' without any."""
    rows = [
        (f'{node.name} · {item.title}', node)
        for item in realtime
        for node in item.measured.participants
        if node.latency_max_s is not None
    ][:_MOST_ROWS]
    if not rows:
        return ''
    from matplotlib.ticker import LogLocator

    names = list(dict.fromkeys(node.name for _, node in rows))
    with page_style('latency'):
        figure = new_figure(9.3, 0.3 * len(rows) + 0.9)
        axes = figure.subplots()
        for y, (_, node) in enumerate(rows):
            marks = _milliseconds(node)
            color = SERIES[names.index(node.name) % len(SERIES)]
            axes.hlines(y, marks[0], marks[-1], color=color, linewidth=1.2)
            axes.hlines(y, marks[0], marks[1], color=color, linewidth=4.0)
            axes.plot(marks[:1], [y], 'o', color=color, markersize=6)
            axes.plot(marks[2:3], [y], '|', color=INK, markersize=8)
            axes.plot(marks[3:], [y], 'x', color=MUTED, markersize=5)
        name_rows(axes, [title for title, _ in rows])
        axes.set_xscale('log', subs=())
        # The default writes powers as formulas, which the page does not set.
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(lambda value, _position: f'{value:g}')
        axes.set_xlabel('latency, ms')
        return inline_svg(figure, 'latency', 'Latency from publication to acknowledgement')


def _milliseconds(node: Participation) -> list[float]:
    """Return p50, p95, p99 and maximum, above 0 for the logarithmic axis."""
    marks = (node.latency_p50_s, node.latency_p95_s, node.latency_p99_s, node.latency_max_s)
    largest = node.latency_max_s or 0.0
    return [max(1e-3, 1000 * (largest if mark is None else mark)) for mark in marks]


_BAR_GROUP = 0.8
_WIDTH = 9.3
_MOST_BARS_OF_NARROW_PANEL = 6
_NUMBER_IN = 0.3
"""Width of the number over a bar."""
_LETTER_IN = 0.075
_USED_SHARE = 0.85
"""Of the width of a panel, what its axis leaves to bars."""


def condition_plot(runs: Sequence[Run]) -> str:
    """Return bars of every headline figure by condition, one colour a mapper; '' without any."""
    headlines = computed_headlines(runs)
    if not headlines:
        return ''
    conditions = distinct(run.condition for run in runs)
    bars = len(conditions) * len(distinct(run.mapper for run in runs))
    with page_style('conditions'):
        most = len(headlines) if bars <= _MOST_BARS_OF_NARROW_PANEL else 2
        columns = min(len(headlines), most)
        figure, panels = _panels(len(headlines), columns)
        for axes, headline in zip(panels, headlines, strict=True):
            _bars(axes, runs, headline, conditions, _WIDTH / columns)
            axes.set_title(headline.title)
        _legend(figure, runs)
        return inline_svg(
            figure, 'conditions', f'Headline figures under {", ".join(conditions)} by mapper'
        )


def _panels(count: int, columns: int) -> tuple[Figure, list[Axes]]:
    rows = -(-count // columns)
    figure = new_figure(_WIDTH, 2.3 * rows + 0.45)
    grid = figure.subplots(rows, columns, squeeze=False)
    panels = list(grid.flat)
    for unused in panels[count:]:
        unused.remove()
    return figure, panels[:count]


def _bars(
    axes: Axes,
    runs: Sequence[Run],
    headline: Headline,
    conditions: list[str],
    width_in: float,
) -> None:
    mappers = distinct(run.mapper for run in runs)
    references = reference_mappers(runs)
    colors = method_colors(mappers)
    barred = [mapper for mapper in mappers if mapper not in references]
    width = _BAR_GROUP / max(1, len(barred))
    most_numbered = int(_USED_SHARE * _BAR_GROUP * width_in / _NUMBER_IN)
    factor = 100.0 if headline.percent else 1.0
    for mapper in mappers:
        for j, condition in enumerate(conditions):
            found = estimate(runs, mapper, condition, headline)
            if found is None:
                continue
            if mapper in references:
                ends = j - _BAR_GROUP / 2, j + _BAR_GROUP / 2
                axes.hlines(factor * found.value, *ends, color=colors[mapper], linewidth=1.8)
                continue
            x = j + (barred.index(mapper) - (len(barred) - 1) / 2) * width
            value = factor * found.value
            axes.bar(x, value, width * 0.92, color=colors[mapper])
            top = value
            if found.low is not None and found.high is not None:
                top = factor * found.high
                axes.vlines(x, factor * found.low, top, color=INK, linewidth=1.1)
            if len(found.units) > 1:
                heights = [factor * item for item in found.units]
                axes.plot([x] * len(heights), heights, 'o', color=INK, markersize=2.5)
                top = max(heights)
            if len(barred) * len(conditions) <= most_numbered:
                axes.annotate(
                    headline.number(found.value),
                    (x, top),
                    (0, 2),
                    textcoords='offset points',
                    ha='center',
                    fontsize=8,
                    # So that lines of references and intervals do not run through it.
                    bbox={'facecolor': SURFACE, 'edgecolor': 'none', 'alpha': 0.8, 'pad': 0.5},
                )
    _constant(axes, runs, headline)
    longest = max(map(len, conditions))
    axes.set_xticks(range(len(conditions)), conditions)
    if longest * _LETTER_IN > _USED_SHARE * width_in / len(conditions):
        # Names would run into each other.
        for label in axes.get_xticklabels():
            label.set(rotation=35, ha='right', rotation_mode='anchor')
    if headline.percent:
        axes.set_ylim(0, 112)
        axes.set_yticks(range(0, 101, 20))
    axes.margins(y=0.15)
    axes.tick_params(axis='x', length=0)
    axes.grid(axis='y')


def _constant(axes: Axes, runs: Sequence[Run], headline: Headline) -> None:
    """Draw what the most frequent answer scores without a map."""
    key = (headline.suite, headline.mode, 'baseline_most_frequent', '')
    value = mean_value(runs, key) if headline.metric == 'accuracy' else None
    if value is not None:
        axes.axhline(100 * value, color=MUTED, linewidth=1.4, linestyle=(0, (3, 2)))


def _legend(figure: Figure, runs: Sequence[Run]) -> None:
    handles = method_handles(distinct(run.mapper for run in runs), reference_mappers(runs))
    figure.legend(handles=handles, loc='outside upper left', ncols=min(len(handles), 6))
