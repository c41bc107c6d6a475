"""Robustness: the relative change of figures from the reference condition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from osmabench_ros.reports.comparison import Contrast
from osmabench_ros.reports.run_view import distinct
from osmabench_ros.reports.svg import INK, MUTED, SERIES, inline_svg, new_figure, page_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PANELS = 4
_LEAST_RANGE = 2.0
"""Percent; what is smaller looks as small as it is."""


def robustness_plot(contrasts: Sequence[Contrast]) -> str:
    """Return relative changes with their intervals, a panel a figure; '' without any.

    The quantity of Fig. 5 of arXiv 2503.10331.
    """
    shown = [item for item in contrasts if math.isfinite(item.comparison.robustness.value)]
    # Two figures that differ only in whose rules they follow would crowd out others.
    names = [name for name in distinct(item.figure for item in shown) if 'compat' not in name]
    names = names[:_MOST_PANELS]
    if not names:
        return ''
    rows = list(dict.fromkeys((item.subject, item.other) for item in shown))
    mappers = distinct(subject for subject, _ in rows)
    with page_style('robustness'):
        figure = new_figure(9.3, 0.28 * len(rows) + 1.1)
        grid = figure.subplots(1, len(names), squeeze=False, sharey=True, sharex=True)
        for axes, name in zip(grid.flat, names, strict=True):
            found = {(c.subject, c.other): c for c in shown if c.figure == name}
            _panel(axes, rows, found, mappers)
            axes.set_title(name)
        low, high = grid.flat[0].get_xlim()
        grid.flat[0].set_xlim(min(low, -_LEAST_RANGE), max(high, _LEAST_RANGE))
        figure.supxlabel(
            f'change relative to "{shown[0].reference}", percent of its value', fontsize=9
        )
        return inline_svg(figure, 'robustness', 'Relative change of figures by condition')


def _panel(
    axes: Axes,
    rows: Sequence[tuple[str, str]],
    found: dict[tuple[str, str], Contrast],
    mappers: Sequence[str],
) -> None:
    axes.axvline(0.0, color=MUTED, linewidth=1.0)
    for y, row in enumerate(rows):
        if row not in found:
            continue
        change = found[row].comparison.robustness
        color = SERIES[mappers.index(row[0]) % len(SERIES)]
        if math.isfinite(change.low):
            axes.hlines(y, 100 * change.low, 100 * change.high, color=INK, linewidth=1.1)
        axes.plot([100 * change.value], [y], 'o', color=color, markersize=6)
    axes.set_yticks(range(len(rows)), [f'{mapper} · {condition}' for mapper, condition in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis='y', length=0)
    axes.grid(axis='x')
    axes.margins(x=0.15)
