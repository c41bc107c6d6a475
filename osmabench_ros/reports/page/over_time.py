"""Scores over time: metrics of intermediate maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

from osmabench_ros.base.strict import read_model
from osmabench_ros.reports.cells import Cell, scale_cell
from osmabench_ros.reports.charts.chart import Specification, build_specification
from osmabench_ros.reports.charts.line_chart import draw_line_layers
from osmabench_ros.reports.headline import Headline, map_headlines
from osmabench_ros.reports.report_run import Run, distinct, make_full_titles
from osmabench_ros.runs.evaluate.over_time import GROWTH, ReportOverTime

_MOST_FIGURES = 4
SUMMARIES = (
    ('over_frames', 'mean', 100.0, 1),
    ('frames_until_90', 'frames', 1.0, 0),
    ('seconds_until_90', 'seconds', 1.0, 1),
)


@dataclass(frozen=True)
class ViewOverTime:
    """Scores over time as the page shows them: `rows` have run, number of maps and cells."""

    headlines: tuple[Headline, ...]
    rows: tuple[tuple[str, int, tuple[Cell, ...]], ...]
    final_only: tuple[str, ...]
    chart: Specification | None


def view_over_time(runs: Sequence[Run]) -> ViewOverTime:
    """Return the scores over time of the runs that have any."""
    titles = make_full_titles(runs)
    grown = [
        (run, read_model(ReportOverTime, run.plan.directory / GROWTH))
        for run in runs
        if (run.plan.directory / GROWTH).exists()
    ]
    known = map_headlines([moment.metrics for _, growth in grown for moment in growth.moments])
    headlines = tuple(item for item in known if item.mode != 'compat')[:_MOST_FIGURES]
    points = [
        (f'{headline.title}, %', unit, x, record.value, titles[run], run.mapper, run.condition)
        for headline in headlines
        for run, growth in grown
        for moment in growth.moments
        for unit, x in (('frames', moment.frames), ('seconds', moment.time_s))
        if (record := headline.record_in(moment.metrics)) is not None and record.value is not None
    ]
    rows = tuple(
        (
            titles[run],
            len(growth.moments),
            tuple(
                scale_cell(record.value if record else None, factor, digits)
                for headline in headlines
                for suffix, _, factor, digits in SUMMARIES
                for record in [headline.record_in(growth.metrics, f'_{suffix}')]
            ),
        )
        for run, growth in grown
    )
    final_only = distinct(name for _, growth in grown for name in growth.final_only)
    return ViewOverTime(headlines, rows, tuple(final_only), _draw_chart(points))


def _draw_chart(points: Sequence[tuple[object, ...]]) -> Specification | None:
    """Return the headline metrics against frames and seconds, a line per run."""
    columns = ['panel', 'unit', 'x', 'value', 'run', 'mapper', 'condition']
    table = pd.DataFrame(points, columns=columns).assign(low=None, high=None, missed=False)
    if table.empty:
        return None
    chart = draw_line_layers(table, alt.X('x:Q').title(None)).facet(
        column=alt.Column('panel:N').sort(distinct(table['panel'])).title(None),
        row=alt.Row('unit:N').title(None),
    )
    return build_specification(
        chart.resolve_scale(x='independent'), 'Metrics of the maps over time'
    )
