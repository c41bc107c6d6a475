"""Metrics along frames, seconds or speeds, a line per run."""

from __future__ import annotations

import altair as alt
import pandas as pd

from osmabench_ros.reports.charts.chart import INTERVAL, MUTED, build_tooltip, encode_method_color
from osmabench_ros.reports.report_run import distinct

PANEL_WIDTH_PX, PANEL_HEIGHT_PX = 240, 150


def draw_line_layers(
    points: pd.DataFrame, x: alt.X, max_loss: float | None = None
) -> alt.LayerChart:
    """Return a line per run with the intervals of its values, to be divided into panels.

    `points` have panel, x, run, mapper, condition and, as fractions, value, low and high. Those
    that are `missed` get a ring. `max_loss` is a dashed line in the first panel.
    """
    table = points.assign(method=points['mapper'])
    table[['value', 'low', 'high']] = 100 * table[['value', 'low', 'high']].astype(float)
    table['setting'] = [
        run.removeprefix(f'{mapper} · ')
        for run, mapper in zip(table['run'], table['mapper'], strict=True)
    ]
    if max_loss is not None:
        limit = pd.DataFrame({'panel': table['panel'].iloc[:1], 'limit': 100 * max_loss})
        table = pd.concat([table, limit])
    color = encode_method_color(distinct(table['mapper'].dropna()))
    y = alt.Y('value:Q').title(None).scale(domain=[0, 100])
    base = (
        alt.Chart()
        .transform_calculate(interval=INTERVAL)
        .encode(x, color, alt.Detail('run:N'), tooltip=build_tooltip(panel='metric'))
    )
    known = base.transform_filter('isValid(datum.value)')
    return alt.layer(
        alt.Chart()
        .transform_filter('isValid(datum.limit)')
        .mark_rule(color=MUTED, strokeDash=[4, 3])
        .encode(y='limit:Q'),
        known.mark_line(strokeWidth=1.6).encode(y, alt.StrokeDash('setting:N')),
        known.transform_filter('isValid(datum.low)')
        .mark_rule()
        .encode(alt.Y('low:Q'), alt.Y2('high:Q')),
        known.mark_point(filled=True, size=22, opacity=1).encode(y),
        known.transform_filter('datum.missed').mark_point(size=90).encode(y),
        data=table,
    ).properties(width=PANEL_WIDTH_PX, height=PANEL_HEIGHT_PX)
