"""Scores over time: figures of intermediate maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from osmabench_ros.base.strict import read_model
from osmabench_ros.reports.cells import Cell, scaled_cell
from osmabench_ros.reports.headline import HEADLINES, Headline
from osmabench_ros.reports.plots.svg import inline_svg, new_figure, page_style, series_style
from osmabench_ros.reports.report_run import Run, distinct, full_titles
from osmabench_ros.runs.evaluate.over_time import GROWTH, ReportOverTime

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_FIGURES = 4
SUMMARIES = (
    ('over_frames', 'mean', 100.0, 1),
    ('frames_until_90', 'frames', 1.0, 0),
    ('seconds_until_90', 'seconds', 1.0, 1),
)


@dataclass(frozen=True)
class RunOverTime:
    """A run whose intermediate maps were scored."""

    title: str
    growth: ReportOverTime


@dataclass(frozen=True)
class ViewOverTime:
    """Scores over time as the page shows them: columns are figures, rows are runs."""

    runs: tuple[RunOverTime, ...]
    headlines: tuple[Headline, ...]
    rows: tuple[tuple[str, int, tuple[Cell, ...]], ...]
    final_only: tuple[str, ...]


def view_over_time(runs: Sequence[Run]) -> ViewOverTime:
    """Return the scores over time of the runs that have any."""
    titles = full_titles(runs)
    grown = tuple(
        RunOverTime(titles[run], read_model(ReportOverTime, run.plan.directory / GROWTH))
        for run in runs
        if (run.plan.directory / GROWTH).exists()
    )
    headlines = tuple(
        item
        for item in HEADLINES
        if not item.is_baseline
        and item.mode != 'compat'
        and any(item.record_in(moment.metrics) for run in grown for moment in run.growth.moments)
    )[:_MOST_FIGURES]
    rows = tuple(
        (
            run.title,
            len(run.growth.moments),
            tuple(
                _summary(run.growth, headline, suffix, factor, digits)
                for headline in headlines
                for suffix, _, factor, digits in SUMMARIES
            ),
        )
        for run in grown
    )
    final_only = distinct(name for run in grown for name in run.growth.final_only)
    return ViewOverTime(grown, headlines, rows, tuple(final_only))


def _summary(
    growth: ReportOverTime, headline: Headline, suffix: str, factor: float, digits: int
) -> Cell:
    record = headline.record_in(growth.metrics, f'_{suffix}')
    return scaled_cell(None if record is None else record.value, factor, digits)


def plot_over_time(view: ViewOverTime) -> str:
    """Return the headline figures against frames and seconds, a line a run; '' without any."""
    if not view.runs or not view.headlines:
        return ''
    with page_style('growth'):
        figure = new_figure(9.3, 4.6)
        grid = figure.subplots(2, len(view.headlines), squeeze=False, sharey=True)
        for column, headline in enumerate(view.headlines):
            for row, unit in enumerate(('frames', 'seconds')):
                axes = grid[row, column]
                _lines(axes, view.runs, headline, seconds=bool(row))
                axes.set_xlabel(unit)
                axes.set_ylim(-4, 104)
                axes.grid(axis='y')
            grid[0, column].set_title(f'{headline.title}, %')
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc='outside upper left', ncols=min(len(labels), 3))
        return inline_svg(figure, 'growth', 'Figures of the maps on the way')


def _lines(axes: Axes, runs: Sequence[RunOverTime], headline: Headline, *, seconds: bool) -> None:
    for number, run in enumerate(runs):
        points = [
            (moment.time_s if seconds else moment.frames, 100 * record.value)
            for moment in run.growth.moments
            if (record := headline.record_in(moment.metrics)) is not None
            and record.value is not None
        ]
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            marker='o',
            **series_style(number),
            markersize=3,
            linewidth=1.5,
            label=run.title,
        )
