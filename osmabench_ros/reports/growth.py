"""Scores over time: figures of the maps that methods had on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from osmabench_ros.base.files import read_json
from osmabench_ros.reports.cells import ABSENT, Cell
from osmabench_ros.reports.headline import HEADLINES, Headline
from osmabench_ros.reports.run_view import Run, distinct
from osmabench_ros.reports.svg import inline_svg, new_figure, page_style, series_style
from osmabench_ros.runs.growth import GROWTH, GrowthReport
from osmabench_ros.runs.report_model import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_FIGURES = 4
SUMMARIES = (
    ('over_frames', 'mean', 100.0, 1),
    ('frames_until_90', 'frames', 1.0, 0),
    ('seconds_until_90', 'seconds', 1.0, 1),
)


@dataclass(frozen=True)
class GrownRun:
    """A run whose maps on the way were scored."""

    title: str
    growth: GrowthReport


@dataclass(frozen=True)
class GrowthView:
    """Scores over time as the page shows them: columns are figures, rows are runs."""

    runs: tuple[GrownRun, ...]
    headlines: tuple[Headline, ...]
    rows: tuple[tuple[str, int, tuple[Cell, ...]], ...]
    final_only: tuple[str, ...]


def growth_view(runs: Sequence[Run]) -> GrowthView:
    """Return the scores over time of the runs that have any.

    Raises RunError if a growth.json cannot be read.
    """
    several = len(distinct(run.scene for run in runs)) > 1
    grown = tuple(
        GrownRun(
            f'{run.title} · {run.scene}' if several else run.title,
            GrowthReport.model_validate(read_json(run.plan.directory / GROWTH)),
        )
        for run in runs
        if (run.plan.directory / GROWTH).exists()
    )
    headlines = tuple(
        item
        for item in HEADLINES
        if not item.is_baseline
        and item.mode != 'compat'
        and any(_found(moment.metrics, item) for run in grown for moment in run.growth.moments)
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
    return GrowthView(grown, headlines, rows, tuple(final_only))


def _found(records: Sequence[Record], headline: Headline, suffix: str = '') -> Record | None:
    wanted = (headline.suite, headline.mode, f'{headline.metric}{suffix}', '')
    for record in records:
        if (record.suite, record.mode, record.metric, record.class_name) == wanted:
            return record
    return None


def _summary(
    growth: GrowthReport, headline: Headline, suffix: str, factor: float, digits: int
) -> Cell:
    record = _found(growth.metrics, headline, f'_{suffix}')
    if record is None or record.value is None:
        return ABSENT
    return Cell(f'{factor * record.value:.{digits}f}', repr(record.value))


def growth_plot(view: GrowthView) -> str:
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


def _lines(axes: Axes, runs: Sequence[GrownRun], headline: Headline, *, seconds: bool) -> None:
    for number, run in enumerate(runs):
        points = [
            (moment.time_s if seconds else moment.frames, 100 * record.value)
            for moment in run.growth.moments
            if (record := _found(moment.metrics, headline)) is not None
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
