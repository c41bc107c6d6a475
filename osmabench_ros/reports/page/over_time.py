"""Scores over time: metrics of intermediate maps; lines of metrics by frames, time or speed."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from osmabench_ros.base.strict import read_model
from osmabench_ros.reports import tidy, vega
from osmabench_ros.runs.evaluation import OVER_TIME, ReportOverTime
from osmabench_ros.runs.sweep import SweepPoint, SweepReport, SweepSeries

PANEL_WIDTH_PX, PANEL_HEIGHT_PX = 240, 150
_MOST_METRICS = 4
_PANELS_IN_A_ROW = 3


def view_over_time(runs: Sequence[tidy.Run]) -> dict[str, Any]:
    """Return the scores over time, by the title of the run, and their chart, for the page."""
    titles = tidy.make_full_titles(runs)
    files = [(run, run.plan.directory / OVER_TIME) for run in runs]
    found = [(run, read_model(ReportOverTime, file)) for run, file in files if file.exists()]
    moments = [(run, moment) for run, report in found for moment in report.moments]
    known = tidy.select_map_headlines([moment.metrics for _, moment in moments])
    headlines = [item for item in known if item.mode != 'compat'][:_MOST_METRICS]
    points = [
        (f'{headline.title}, %', unit, x, record.value, titles[run], run.mapper, run.condition)
        for headline in headlines
        for run, moment in moments
        if (record := headline.find_record(moment.metrics)) and record.value is not None
        for unit, x in (('frames', moment.frames), ('seconds', moment.time_s))
    ]
    return {
        'headlines': headlines,
        'rows': [(titles[run], report) for run, report in found],
        'final_only': tidy.list_distinct(x for _, report in found for x in report.final_only),
        'chart': _draw_chart(points),
    }


def _draw_chart(points: Sequence[tuple[object, ...]]) -> vega.Chart | None:
    """Return the headline metrics against frames and seconds, a line per run."""
    columns = ['panel', 'unit', 'x', 'value', 'run', 'mapper', 'condition']
    table = pd.DataFrame(points, columns=columns).assign(low=None, high=None, missed=False)
    if table.empty:
        return None
    chart = draw_line_layers(table, alt.X('x:Q').title(None)).facet(
        column=alt.Column('panel:N').sort(tidy.list_distinct(table['panel'])).title(None),
        row=alt.Row('unit:N').title(None),
    )
    chart = chart.resolve_scale(x='independent')
    return vega.build_specification(chart, 'Metrics of the maps over time')


def draw_line_layers(
    points: pd.DataFrame, x: alt.X, max_loss: float | None = None
) -> alt.LayerChart:
    """Return a line per run with the intervals of its values, to be divided into panels.

    `points` have panel, x, run, mapper, condition and, as fractions, value, low and high. Those
    that are `missed` get a ring. `max_loss` is a dashed line in the first panel.
    """
    table = points.assign(method=points['mapper'])
    table[['value', 'low', 'high']] = 100 * table[['value', 'low', 'high']].astype(float)
    names = zip(table['run'], table['mapper'], strict=True)
    table['setting'] = [run.removeprefix(f'{mapper} · ') for run, mapper in names]
    if max_loss is not None:
        limit = pd.DataFrame({'panel': table['panel'].iloc[:1], 'limit': 100 * max_loss})
        table = pd.concat([table, limit])
    color = vega.encode_method_color(tidy.list_distinct(table['mapper'].dropna()))
    y = alt.Y('value:Q').title(None).scale(domain=[0, 100])
    base = vega.make_base(x, color, alt.Detail('run:N'), panel='metric')
    known = base.transform_filter('isValid(datum.value)')
    *_, bounded = vega.split_base(known)
    return alt.layer(
        vega.draw_level('limit', y='limit:Q'),
        known.mark_line(strokeWidth=1.6).encode(y, alt.StrokeDash('setting:N')),
        bounded.mark_rule().encode(y='low:Q', y2='high:Q'),
        known.mark_point(filled=True, size=22, opacity=1).encode(y),
        known.transform_filter('datum.missed').mark_point(size=90).encode(y),
        data=table,
    ).properties(width=PANEL_WIDTH_PX, height=PANEL_HEIGHT_PX)


def draw_sweep_chart(report: SweepReport, headlines: Sequence[tidy.Headline]) -> vega.Chart | None:
    """Return loss and the headline metrics by speed, one line a series; None without any run."""
    rows = []
    for series, point in list_points(report):
        own = point.speed_factor, series.title, series.mapper, series.condition, not point.reached
        found = [(f'{x.title}, %', x.find_record(point.metrics)) for x in headlines]
        values = [(panel, x.value, x.low, x.high) for panel, x in found if x is not None]
        loss = 'Loss, %', point.loss, None, None
        rows += [(*item, *own) for item in (loss, *values) if not point.error]
    columns = ['panel', 'value', 'low', 'high', 'x', 'run', 'mapper', 'condition', 'missed']
    table = pd.DataFrame(rows, columns=columns)
    if table.empty:
        return None
    speeds = sorted(set(table['x']))
    domain = [speeds[0] / 1.2, speeds[-1] * 1.2]
    x = alt.X('x:Q').title('speed factor: stamp seconds per wall second')
    x = x.scale(type='log', base=2, domain=domain, nice=False).axis(values=speeds, format='~g')
    panel = alt.Facet('panel:N').sort(tidy.list_distinct(table['panel'])).title(None)
    chart = draw_line_layers(table, x, report.max_loss).facet(panel, columns=_PANELS_IN_A_ROW)
    return vega.build_specification(chart, 'Loss of frames and map quality against speed')


def list_points(report: SweepReport) -> list[tuple[SweepSeries, SweepPoint]]:
    """Return the points of all series, each after its series."""
    return [(series, point) for series in report.series for point in series.points]
