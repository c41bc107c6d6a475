"""Scores over time: figures of intermediate maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from osmabench_ros.base.strict import read_model
from osmabench_ros.reports.cells import Cell, scaled_cell
from osmabench_ros.reports.charts.chart import Specification, specification
from osmabench_ros.reports.charts.line_chart import line_layers, line_row
from osmabench_ros.reports.headline import Headline, map_headlines
from osmabench_ros.reports.report_run import Run, distinct, full_titles
from osmabench_ros.runs.evaluate.over_time import GROWTH, ReportOverTime

_MOST_FIGURES = 4
SUMMARIES = (
    ('over_frames', 'mean', 100.0, 1),
    ('frames_until_90', 'frames', 1.0, 0),
    ('seconds_until_90', 'seconds', 1.0, 1),
)


@dataclass(frozen=True)
class RunOverTime:
    """A run whose intermediate maps were scored."""

    run: Run
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
        RunOverTime(run, titles[run], read_model(ReportOverTime, run.plan.directory / GROWTH))
        for run in runs
        if (run.plan.directory / GROWTH).exists()
    )
    known = map_headlines([moment.metrics for run in grown for moment in run.growth.moments])
    headlines = tuple(item for item in known if item.mode != 'compat')[:_MOST_FIGURES]
    rows = tuple(
        (
            run.title,
            len(run.growth.moments),
            tuple(
                scaled_cell(record.value if record else None, factor, digits)
                for headline in headlines
                for suffix, _, factor, digits in SUMMARIES
                for record in [headline.record_in(run.growth.metrics, f'_{suffix}')]
            ),
        )
        for run in grown
    )
    final_only = distinct(name for run in grown for name in run.growth.final_only)
    return ViewOverTime(grown, headlines, rows, tuple(final_only))


def chart_over_time(view: ViewOverTime) -> Specification | None:
    """Return the headline figures against frames and seconds, a line a run; None without any."""
    rows = [
        line_row(
            f'{headline.title}, %', x, (100 * record.value, None, None),
            run=shown.title, mapper=shown.run.mapper, condition=shown.run.condition, unit=unit,
        )
        for headline in view.headlines
        for shown in view.runs
        for moment in shown.growth.moments
        for unit, x in (('frames', moment.frames), ('seconds', moment.time_s))
        if (record := headline.record_in(moment.metrics)) is not None and record.value is not None
    ]  # fmt: skip
    if not rows:
        return None
    layers = line_layers(rows, alt.X('x:Q').title(None))
    titles = distinct(row['panel'] for row in rows)
    chart = layers.facet(
        column=alt.Column('panel:N').sort(titles).title(None),
        row=alt.Row('unit:N').title(None),
    ).resolve_scale(x='independent')
    return specification(chart, 'Figures of the maps on the way')
