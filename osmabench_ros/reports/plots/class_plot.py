"""Intersection over union of every class, largest surfaces first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from osmabench_ros.reports.plots.svg import (
    INK,
    MUTED,
    SURFACE,
    inline_svg,
    method_colors,
    method_handles,
    new_figure,
    page_style,
)
from osmabench_ros.reports.report_run import (
    Run,
    baseline_condition,
    distinct,
    mean_value,
    of_group,
    reference_mappers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SEGMENTATION = 'osma_segmentation'
MOST_CLASSES = 60
_MARKERS = ('o', 's', '^', 'D', 'v', 'P')


def class_shares(runs: Sequence[Run]) -> dict[str, float]:
    """Return every class' share of the visible ground-truth surface, the largest first."""
    samples: dict[str, dict[object, int]] = {}
    for run in runs:
        for (suite, mode, metric, name), record in run.records.items():
            if (suite, mode, metric) == (SEGMENTATION, 'strict', 'iou') and name:
                samples.setdefault(name, {})[run.plan.identity.scene_key] = record.n
    totals = {name: sum(counts.values()) for name, counts in samples.items()}
    whole = max(sum(totals.values()), 1)
    ordered = sorted(totals, key=lambda name: (-totals[name], name))
    return {name: totals[name] / whole for name in ordered}


def class_plot(runs: Sequence[Run]) -> str:
    """Return surface shares and strict IoUs of the classes, '' if no class was scored."""
    shares = dict(list(class_shares(runs).items())[:MOST_CLASSES])
    if not shares:
        return ''
    with page_style('classes'):
        rows_in = max(0.21, 0.1 * len(distinct(run.mapper for run in runs)))
        figure = new_figure(9.3, rows_in * len(shares) + 1.1)
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1, 4])
        _share_bars(left, shares)
        _iou_dots(right, runs, list(shares))
        _legend(figure, runs)
        return inline_svg(
            figure,
            'classes',
            'Share of the visible surface and strict intersection over union of every class',
        )


def _share_bars(axes: Axes, shares: Mapping[str, float]) -> None:
    axes.barh(range(len(shares)), [100 * share for share in shares.values()], color=MUTED)
    axes.set_xscale('symlog', linthresh=1.0)
    axes.set_xticks([0, 1, 10, 100], ['0', '1', '10', '100'])
    axes.set_yticks(range(len(shares)), list(shares), fontsize=8)
    axes.set_ylim(len(shares) - 0.4, -0.6)
    axes.tick_params(axis='y', length=0)
    axes.grid(axis='x')
    axes.set_title('surface, %')


def _iou_dots(axes: Axes, runs: Sequence[Run], names: list[str]) -> None:
    mappers = distinct(run.mapper for run in runs)
    conditions = distinct(run.condition for run in runs)
    colors, references = method_colors(mappers), reference_mappers(runs)
    step = min(0.28, 0.8 / len(mappers))
    for y in range(len(names)):
        axes.axhline(y, color=SURFACE, linewidth=8.5, zorder=0)
    for i, mapper in enumerate(mappers):
        color, offset = colors[mapper], (i - (len(mappers) - 1) / 2) * step
        groups = [of_group(runs, mapper, condition) for condition in conditions]
        for y, name in enumerate(names):
            values = [mean_value(own, (SEGMENTATION, 'strict', 'iou', name)) for own in groups]
            known = [100 * value for value in values if value is not None]
            if known:
                axes.hlines(y + offset, min(known), max(known), color=color, linewidth=1.4)
            if mapper in references:
                axes.vlines(known, y + offset - 0.3, y + offset + 0.3, color=color, linewidth=1.8)
                continue
            for j, value in enumerate(values):
                if value is not None:
                    filled = conditions[j] == baseline_condition(runs)
                    axes.plot(
                        [100 * value],
                        [y + offset],
                        _MARKERS[j % len(_MARKERS)],
                        markersize=4.2,
                        color=color,
                        markerfacecolor=color if filled else 'none',
                        clip_on=False,
                    )
    axes.set_xlim(0, 100)
    axes.tick_params(axis='y', length=0)
    axes.grid(axis='x')
    axes.set_title('strict IoU, %')


def _legend(figure: Figure, runs: Sequence[Run]) -> None:
    from matplotlib.lines import Line2D

    handles = method_handles(distinct(run.mapper for run in runs), reference_mappers(runs))
    for j, condition in enumerate(distinct(run.condition for run in runs)):
        filled = condition == baseline_condition(runs)
        handles.append(
            Line2D(
                [],
                [],
                linestyle='none',
                marker=_MARKERS[j % len(_MARKERS)],
                color=INK,
                markerfacecolor=INK if filled else 'none',
                markersize=5,
                label=condition,
            )
        )
    figure.legend(handles=handles, loc='outside upper left', ncols=min(len(handles), 8))
