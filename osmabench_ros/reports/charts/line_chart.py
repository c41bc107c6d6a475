"""Figures along frames, seconds or speeds, a line a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from osmabench_ros.reports.charts.chart import MUTED, method_color, tooltip
from osmabench_ros.reports.report_run import distinct

PANEL_WIDTH_PX, PANEL_HEIGHT_PX = 240, 150

Row = dict[str, Any]


def line_row(
    panel: str,
    x: float,
    bounds: tuple[float | None, float | None, float | None],
    *,
    run: str,
    mapper: str,
    **more: Any,
) -> Row:
    """Return a point of a line: value, low and high of a run, in percent, in a panel."""
    setting = run.removeprefix(f'{mapper} · ')
    named = dict(zip(('value', 'low', 'high'), bounds, strict=True))
    return {
        'panel': panel,
        'x': x,
        **named,
        'run': run,
        'mapper': mapper,
        'setting': setting,
        **more,
    }


def line_layers(rows: Sequence[Row], x: alt.X) -> alt.LayerChart:
    """Return a line a run with the intervals of its values, to be divided into panels.

    Rows that are `missed` get a ring, and one with a `limit` is a dashed line.
    """
    columns = {key: None for row in rows for key in row} | {'limit': None, 'missed': None}
    table = pd.DataFrame(rows, columns=list(columns))
    table['method'] = table['mapper']
    color = method_color(distinct(table['mapper'].dropna()))
    y = alt.Y('value:Q').title(None).scale(domain=[0, 100])
    base = alt.Chart().encode(x, color, alt.Detail('run:N'), tooltip=tooltip(panel='figure'))
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
