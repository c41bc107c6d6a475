"""Latencies of the nodes of realtime runs."""

from __future__ import annotations

from collections.abc import Sequence

from osmabench_ros.reports.pacing import TimedRun
from osmabench_ros.reports.svg import INK, MUTED, SERIES, inline_svg, new_figure, page_style
from osmabench_ros.runs.participation import Participation

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
        axes.set_yticks(range(len(rows)), [title for title, _ in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xscale('log', subs=())
        # The default writes powers as formulas, which the page does not set.
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(lambda value, _position: f'{value:g}')
        axes.tick_params(axis='y', length=0)
        axes.grid(axis='x')
        axes.set_xlabel('latency, ms')
        return inline_svg(figure, 'latency', 'Latency from publication to acknowledgement')


def _milliseconds(node: Participation) -> list[float]:
    """Return p50, p95, p99 and maximum, above 0 for the logarithmic axis."""
    marks = (node.latency_p50_s, node.latency_p95_s, node.latency_p99_s, node.latency_max_s)
    largest = node.latency_max_s or 0.0
    return [max(1e-3, 1000 * (largest if mark is None else mark)) for mark in marks]
