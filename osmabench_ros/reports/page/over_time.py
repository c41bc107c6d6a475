"""Scores over time: figures of intermediate maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from osmabench_ros.base.strict import read_model
from osmabench_ros.reports.cells import Cell, scaled_cell
from osmabench_ros.reports.charts.chart import Specification, specification
from osmabench_ros.reports.charts.line_chart import line_layers
from osmabench_ros.reports.headline import HEADLINES, Headline
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

    title: str
    mapper: str
    condition: str
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
        RunOverTime(
            titles[run],
            run.mapper,
            run.condition,
            read_model(ReportOverTime, run.plan.directory / GROWTH),
        )
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


def chart_over_time(view: ViewOverTime) -> Specification | None:
    """Return the headline figures against frames and seconds, a line a run; None without any."""
    rows: list[dict[str, Any]] = [
        {
            'panel': f'{headline.title}, %',
            'unit': unit,
            'x': x,
            'value': 100 * record.value,
            'low': None,
            'high': None,
            'run': run.title,
            'mapper': run.mapper,
            'condition': run.condition,
            'setting': run.title.removeprefix(f'{run.mapper} · '),
        }
        for headline in view.headlines
        for run in view.runs
        for moment in run.growth.moments
        for unit, x in (('frames', moment.frames), ('seconds', moment.time_s))
        if (record := headline.record_in(moment.metrics)) is not None and record.value is not None
    ]
    if not rows:
        return None
    layers = line_layers(rows, alt.X('x:Q').title(None))
    titles = distinct(row['panel'] for row in rows)
    chart = layers.facet(
        column=alt.Column('panel:N').sort(titles).title(None),
        row=alt.Row('unit:N').title(None),
    ).resolve_scale(x='independent')
    return specification(chart, 'Figures of the maps on the way')
