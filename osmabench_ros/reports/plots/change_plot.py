"""Change of a mapper's figures relative to the baseline condition."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from osmabench_ros.metrics.statistics import LEAST_UNITS
from osmabench_ros.reports.comparison import Contrast
from osmabench_ros.reports.headline import Headline
from osmabench_ros.reports.plots.svg import (
    INK,
    MUTED,
    SURFACE,
    inline_svg,
    method_colors,
    name_rows,
    new_figure,
    page_style,
)
from osmabench_ros.reports.report_run import (
    Run,
    baseline_condition,
    computed_headlines,
    distinct,
    reference_mappers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PANELS = 4
_LEAST_RANGE = 2.0
"""Percent; what is smaller looks as small as it is."""


def robustness_plot(contrasts: Sequence[Contrast], runs: Sequence[Run]) -> str:
    """Return relative changes of runs with intervals (Fig. 5 of arXiv 2503.10331), or ''."""
    shown = [item for item in contrasts if math.isfinite(item.comparison.robustness.value)]
    # Two figures that differ only in whose rules they follow would crowd out others.
    names = [name for name in distinct(item.figure for item in shown) if 'compat' not in name]
    names = names[:_MOST_PANELS]
    if not names:
        return ''
    rows = list(dict.fromkeys((item.subject, item.other) for item in shown))
    colors = method_colors(run.mapper for run in runs)
    references = reference_mappers(runs)
    with page_style('robustness'):
        figure = new_figure(9.3, 0.28 * len(rows) + 1.1)
        grid = figure.subplots(1, len(names), squeeze=False, sharey=True, sharex=True)
        for axes, name in zip(grid.flat, names, strict=True):
            found = {(c.subject, c.other): c for c in shown if c.figure == name}
            _robustness_panel(axes, rows, found, colors, references)
            axes.set_title(name)
        low, high = grid.flat[0].get_xlim()
        grid.flat[0].set_xlim(min(low, -_LEAST_RANGE), max(high, _LEAST_RANGE))
        figure.supxlabel(
            f'change relative to "{shown[0].reference}", percent of its value', fontsize=9
        )
        return inline_svg(figure, 'robustness', 'Relative change of figures by condition')


def _robustness_panel(
    axes: Axes,
    rows: Sequence[tuple[str, str]],
    found: dict[tuple[str, str], Contrast],
    colors: Mapping[str, str],
    references: Collection[str],
) -> None:
    axes.axvline(0.0, color=MUTED, linewidth=1.0)
    for y, row in enumerate(rows):
        if row not in found:
            continue
        change = found[row].comparison.robustness
        color = colors[row[0]]
        if math.isfinite(change.low):
            axes.hlines(y, 100 * change.low, 100 * change.high, color=INK, linewidth=1.1)
        _mark(axes, 100 * change.value, y, color, is_line=row[0] in references)
    name_rows(axes, [f'{mapper} · {condition}' for mapper, condition in rows])
    axes.margins(x=0.15)


def _mark(axes: Axes, x: float, y: int, color: str, *, is_line: bool) -> None:
    """Draw a figure as a point, or as the line that a reference is."""
    if is_line:
        axes.vlines(x, y - 0.38, y + 0.38, color=color, linewidth=1.8)
    else:
        axes.plot([x], [y], 'o', color=color, markersize=6)


MOST_PANELS = 5


@dataclass(frozen=True)
class ConditionChange:
    """Mean difference to the baseline condition over the scenes that both have, in points."""

    value: float
    low: float | None
    high: float | None
    scenes: int


PairedInterval = Callable[[Run, Run], 'tuple[float, float] | None']
"""Interval of the change of accuracy on the questions that two runs share."""


def changes(
    runs: Sequence[Run],
    mapper: str,
    condition: str,
    headline: Headline,
    paired_interval: PairedInterval,
) -> ConditionChange | None:
    """Return how a figure of a mapper changes from the baseline to another condition."""
    found = [
        (before, after, 100.0 * (there - here))
        for before, after in _pairs(runs, mapper, condition)
        if (here := before.value(headline)) is not None
        and (there := after.value(headline)) is not None
    ]
    if not found:
        return None
    values = [value for *_, value in found]
    mean = math.fsum(values) / len(values)
    if len(found) >= LEAST_UNITS:
        return ConditionChange(mean, min(values), max(values), len(found))
    if len(found) > 1:
        return ConditionChange(mean, None, None, len(found))
    interval = None
    if headline.suite == 'exact_questions':
        interval = paired_interval(found[0][0], found[0][1])
    low, high = interval or (None, None)
    return ConditionChange(mean, low, high, 1)


def _pairs(runs: Sequence[Run], mapper: str, condition: str) -> Iterator[tuple[Run, Run]]:
    baseline = baseline_condition(runs)
    own = [run for run in runs if run.mapper == mapper]
    before = {run.plan.identity.place: run for run in own if run.condition == baseline}
    for run in own:
        key = run.plan.identity.place
        if run.condition == condition and key in before:
            yield before[key], run


def change_plot(runs: Sequence[Run], paired_interval: PairedInterval) -> str:
    """Return the changes of all headline figures, '' without a second condition."""
    baseline = baseline_condition(runs)
    others = [item for item in distinct(run.condition for run in runs) if item != baseline]
    headlines = [item for item in computed_headlines(runs) if item.percent][:MOST_PANELS]
    if not others or not headlines:
        return ''
    mappers = distinct(run.mapper for run in runs)
    height = 0.28 * len(others) * len(mappers) + 0.95
    with page_style('changes'):
        figure = new_figure(9.3, height)
        grid = figure.subplots(1, len(headlines), squeeze=False, sharey=True)
        for axes, headline in zip(grid.flat, headlines, strict=True):
            _panel(axes, runs, headline, others, mappers, paired_interval)
        _share_range(list(grid.flat))
        figure.supxlabel(f'change from "{baseline}", percentage points', fontsize=9, color=INK)
        return inline_svg(
            figure, 'changes', f'Change of the headline figures relative to "{baseline}"'
        )


def _panel(
    axes: Axes,
    runs: Sequence[Run],
    headline: Headline,
    conditions: list[str],
    mappers: list[str],
    paired_interval: PairedInterval,
) -> None:
    rows = [(condition, mapper) for condition in conditions for mapper in mappers]
    colors, references = method_colors(mappers), reference_mappers(runs)
    axes.axvline(0.0, color=MUTED, linewidth=1.0)
    for y, (condition, mapper) in enumerate(rows):
        change = changes(runs, mapper, condition, headline, paired_interval)
        if change is None:
            continue
        color, is_line = colors[mapper], mapper in references
        if not is_line:
            axes.hlines(y, 0.0, change.value, color=color, linewidth=3.0)
        _mark(axes, change.value, y, color, is_line=is_line)
        if change.low is not None and change.high is not None:
            axes.hlines(y, change.low, change.high, color=INK, linewidth=1.1)
        axes.annotate(
            f'{change.value:+.1f}',
            (change.value, y),
            (0, 6),
            textcoords='offset points',
            ha='center',
            fontsize=8,
            bbox={'facecolor': SURFACE, 'edgecolor': 'none', 'alpha': 0.8, 'pad': 0.5},
        )
    name_rows(axes, [f'{mapper} · {condition}' for condition, mapper in rows], above=0.75)
    axes.set_title(headline.title)


def _share_range(panels: list[Axes]) -> None:
    """Give all panels the same range, so that lengths compare."""
    low = min(axes.get_xlim()[0] for axes in panels)
    high = max(axes.get_xlim()[1] for axes in panels)
    pad = max(1.0, 0.12 * (high - low))
    for axes in panels:
        axes.set_xlim(low - pad, high + pad)
