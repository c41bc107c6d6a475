"""A trajectory and the true one from above, and its error over time."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from osmabench_ros.metrics.trajectory_records import TrajectoryScore
from osmabench_ros.reports.charts.chart import (
    INK,
    MUTED,
    SERIES,
    Specification,
    build_specification,
)

_MOST_POINTS = 4000
_EDGE_PX, _ERRORS_PX = 400, 440


def draw_trajectory_chart(score: TrajectoryScore) -> Specification:
    """Return both trajectories from above and the errors after alignment."""
    errors = score.errors
    return build_specification(
        alt.hconcat(
            _draw_from_above(score),
            alt.vconcat(
                _draw_over_time(score, errors.translation_m, 'translation error, m'),
                _draw_over_time(score, errors.rotation_deg, 'rotation error, deg'),
            ),
        ),
        'The estimated trajectory and the true one from above, and the errors over time',
    )


def _draw_from_above(score: TrajectoryScore) -> alt.LayerChart:
    rows = _select_rows(len(score.reference))
    paths = {'reference': score.reference, 'estimate': score.aligned}
    table = pd.concat(
        pd.DataFrame(path.positions[rows, :2], columns=['x', 'y']).assign(path=name, order=rows)
        for name, path in paths.items()
    )
    # Equal scales: both axes are as long as the longer side.
    center = (table[['x', 'y']].max() + table[['x', 'y']].min()) / 2
    half = max(0.55 * float((table[['x', 'y']].max() - table[['x', 'y']].min()).max()), 1e-6)
    x, y = (
        kind(f'{name}:Q')
        .title(f'{name}, m')
        .scale(domain=[center[name] - half, center[name] + half], nice=False)
        for kind, name in ((alt.X, 'x'), (alt.Y, 'y'))
    )
    color = alt.Color('path:N').scale(domain=list(paths), range=[MUTED, SERIES[0]])
    lines = alt.Chart(table).mark_line(strokeWidth=1.6).encode(x, y, color, order='order:Q')
    start = alt.Chart(table.iloc[:1]).mark_point(color=INK, filled=True, size=50).encode(x, y)
    kind = score.settings.alignment.value
    title = 'from above, start at the dot' + ('' if kind == 'none' else f', aligned by {kind}')
    return alt.layer(lines, start).properties(width=_EDGE_PX, height=_EDGE_PX, title=title)


def _draw_over_time(
    score: TrajectoryScore, values: NDArray[np.float64], title: str
) -> alt.LayerChart:
    rows = _select_rows(len(values))
    seconds = (score.aligned.stamps_ns - score.aligned.stamps_ns[0]) / 1e9
    rmse = float(np.sqrt(np.mean(np.square(values))))
    table = pd.DataFrame({'seconds': seconds[rows], 'error': values[rows]})
    mean = pd.DataFrame({'rmse': [rmse], 'label': [f'rmse {rmse:.3g}']})
    lines = (
        alt.Chart(table)
        .mark_line(color=SERIES[0], strokeWidth=1.2)
        .encode(
            alt.X('seconds:Q').title('seconds since the first pose'),
            alt.Y('error:Q').title(None),
            tooltip=[
                alt.Tooltip('seconds:Q', format='.2f'),
                alt.Tooltip('error:Q', format='.3~g'),
            ],
        )
    )
    level = alt.Chart(mean).encode(y='rmse:Q')
    return alt.layer(
        lines,
        level.mark_rule(color=SERIES[1], strokeDash=[6, 3]),
        level.mark_text(align='right', dy=-6, x='width').encode(text='label:N'),
    ).properties(width=_ERRORS_PX, height=150, title=title)


def _select_rows(count: int) -> NDArray[np.intp]:
    """Return rows to draw: all, or evenly spread ones of very many."""
    if count <= _MOST_POINTS:
        return np.arange(count)
    return np.linspace(0, count - 1, _MOST_POINTS).astype(np.intp)
