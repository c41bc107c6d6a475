"""Loss and map quality against speed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from osmabench_ros.reports.headline import Headline
from osmabench_ros.reports.svg import MUTED, inline_svg, new_figure, page_style, series_style
from osmabench_ros.runs.sweep import SweepPoint, SweepReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 3
Value = Callable[[SweepPoint], 'tuple[float, float | None, float | None] | None']
"""A figure of a run with the bounds of its interval; None without one."""


def sweep_plot(report: SweepReport, headlines: Sequence[Headline]) -> str:
    """Return loss and the headline figures by speed, one line a series; '' without any run."""
    if not any(not point.error for series in report.series for point in series.points):
        return ''
    panels: list[tuple[str, Value]] = [('Loss', _loss)]
    panels += [(item.title, _quality(item)) for item in headlines]
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with page_style('sweep'):
        figure = new_figure(9.3, 2.5 * rows + 0.45)
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes, (title, value) in zip(grid.flat, panels, strict=False):
            _lines(axes, report, value)
            axes.set_title(f'{title}, %')
        for unused in list(grid.flat)[len(panels) :]:
            unused.remove()
        grid.flat[0].axhline(
            100 * report.max_loss, color=MUTED, linewidth=1.4, linestyle=(0, (3, 2))
        )
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc='outside upper left', ncols=min(len(labels), 3))
        figure.supxlabel('speed factor: stamp seconds per wall second', fontsize=9)
        return inline_svg(figure, 'sweep', 'Loss of frames and map quality against speed')


def _lines(axes: Axes, report: SweepReport, value: Value) -> None:
    speeds = sorted({point.speed_factor for series in report.series for point in series.points})
    for number, series in enumerate(report.series):
        style = series_style(number)
        color = style['color']
        found = [
            (point, shown)
            for point in series.points
            if not point.error and (shown := value(point)) is not None
        ]
        xs = [point.speed_factor for point, _ in found]
        axes.plot(
            xs,
            [shown[0] for _, shown in found],
            marker='o',
            **style,
            markersize=4,
            linewidth=1.6,
            label=series.title,
        )
        for x, (_, (_, low, high)) in zip(xs, found, strict=True):
            if low is not None and high is not None:
                axes.vlines(x, low, high, color=color, linewidth=1.1)
        # A speed that was not reached stands hollow.
        slow = [(p.speed_factor, shown[0]) for p, shown in found if not p.reached]
        axes.plot(
            [x for x, _ in slow],
            [y for _, y in slow],
            'o',
            color=color,
            markersize=7,
            markerfacecolor='none',
        )
    axes.set_xscale('log', base=2)
    axes.set_xticks(speeds, [f'{speed:g}' for speed in speeds], rotation=45 * (len(speeds) > 6))
    axes.minorticks_off()
    axes.set_ylim(-4, 104)
    axes.grid(axis='y')


def _loss(point: SweepPoint) -> tuple[float, float | None, float | None] | None:
    return None if point.loss is None else (100 * point.loss, None, None)


def _quality(headline: Headline) -> Value:
    def value(point: SweepPoint) -> tuple[float, float | None, float | None] | None:
        for record in point.metrics:
            key = (record.suite, record.mode, record.metric)
            if key == (headline.suite, headline.mode, headline.metric):
                if record.value is None:
                    return None
                low, high = (
                    None if bound is None else 100 * bound for bound in (record.low, record.high)
                )
                return 100 * record.value, low, high
        return None

    return value
