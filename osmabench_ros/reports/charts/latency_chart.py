"""Latency of the nodes of realtime runs."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from osmabench_ros.reports.charts.chart import (
    INK,
    MUTED,
    SERIES,
    Specification,
    build_specification,
)
from osmabench_ros.reports.pacing import TimedRun
from osmabench_ros.runs.timings import Participation

_MOST_ROWS = 40
_SHARES = {'p50': 'latency_p50_s', 'p95': 'latency_p95_s', 'p99': 'latency_p99_s'}


def draw_latency_chart(realtime: Sequence[TimedRun]) -> Specification | None:
    """Return median, percentiles and maximum of latency, a row per node; None without any."""
    rows = [
        {
            'title': f'{node.name} · {item.title}',
            'node': node.name,
            'run': item.title,
            'mapper': item.mapper,
            'condition': item.condition,
            **_compute_milliseconds(node),
        }
        for item in realtime
        for node in item.measured.participants
        if node.latency_max_s is not None
    ][:_MOST_ROWS]
    if not rows:
        return None
    shown = ['run', 'node', *(f'{name}:Q' for name in (*_SHARES, 'max'))]
    base = alt.Chart().encode(alt.Y('title:N').title(None).sort(None), tooltip=shown)
    color = alt.Color('node:N').scale(range=list(SERIES))
    x = alt.X('p50:Q').title('latency, ms').scale(type='log', nice=False).axis(format='~g')
    layers = alt.layer(
        base.mark_rule(strokeWidth=1.2).encode(x, alt.X2('max:Q'), color),
        base.mark_rule(strokeWidth=4).encode(x, alt.X2('p95:Q'), color),
        base.mark_point(filled=True, size=40, opacity=1).encode(x, color),
        base.mark_tick(color=INK, size=10).encode(x='p99:Q'),
        base.mark_point(color=MUTED, shape='cross', angle=45, size=40).encode(x='max:Q'),
        data=pd.DataFrame(rows),
    )
    sized = layers.properties(width=620, height=alt.Step(22))
    return build_specification(sized, 'Latency from publication to acknowledgement')


def _compute_milliseconds(node: Participation) -> dict[str, float]:
    """Return p50, p95, p99 and maximum, above 0 for the logarithmic axis."""
    largest = node.latency_max_s or 0.0
    found = {name: getattr(node, field) for name, field in _SHARES.items()}
    return {
        name: max(1e-3, 1000 * (largest if seconds is None else seconds))
        for name, seconds in {**found, 'max': largest}.items()
    }
