"""Intersection over union of every class, largest surfaces first."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from osmabench_ros.reports.charts.chart import (
    IS_REFERENCE,
    MUTED,
    Specification,
    method_color,
    method_name,
    specification,
    step_of_rows,
)
from osmabench_ros.reports.report_run import Run, distinct, reference_mappers, score_table

SEGMENTATION = 'osma_segmentation'
MOST_CLASSES = 60


def class_shares(runs: Sequence[Run]) -> dict[str, float]:
    """Return every class' share of the visible ground-truth surface, the largest first."""
    samples: dict[str, dict[object, int]] = {}
    for run in runs:
        for (suite, mode, metric, name), record in run.records.items():
            if (suite, mode, metric) == (SEGMENTATION, 'strict', 'iou') and name:
                samples.setdefault(name, {})[run.plan.identity.scene_key] = record.n
    totals = {name: sum(counts.values()) for name, counts in samples.items()}
    whole = max(sum(totals.values()), 1)
    ordered = sorted(totals, key=lambda name: (-totals[name], name))
    return {name: totals[name] / whole for name in ordered}


def class_chart(runs: Sequence[Run]) -> Specification | None:
    """Return surface shares and strict IoUs of the classes, None if no class was scored."""
    shares = dict(list(class_shares(runs).items())[:MOST_CLASSES])
    if not shares:
        return None
    mappers, references = distinct(run.mapper for run in runs), reference_mappers(runs)
    y = alt.Y('class_name:N').title(None).sort(list(shares))
    height = step_of_rows(max(14, 6 * len(mappers)))
    surface = (
        alt.Chart(pd.DataFrame({'class_name': list(shares), 'share': list(shares.values())}))
        .mark_bar(color=MUTED, height={'band': 0.7})
        .encode(
            y,
            alt.X('share:Q')
            .title('surface')
            .scale(type='symlog', constant=0.01, domain=[0, 1])
            .axis(format='%', values=[0, 0.01, 0.1, 1]),
            tooltip=['class_name:N', alt.Tooltip('share:Q', format='.2%')],
        )
        .properties(width=130, height=height)
    )
    ious = alt.Chart(_ious(runs, shares)).encode(
        y.axis(labels=False),
        alt.YOffset('method:N').sort([method_name(name, references) for name in mappers]),
        method_color(mappers, references),
        tooltip=['class_name:N', 'mapper:N', 'condition:N', alt.Tooltip('value:Q', format='.1f')],
    )
    x = alt.X('value:Q').title('strict IoU, %').scale(domain=[0, 100])
    shape = alt.Shape('condition:N').sort(distinct(run.condition for run in runs))
    joined = ious.mark_rule().encode(alt.X('min(value):Q'), alt.X2('max(value):Q'), tooltip=[])
    lines = ious.transform_filter(IS_REFERENCE).mark_tick(thickness=2, size=6).encode(x)
    points = ious.transform_filter(f'!{IS_REFERENCE}').mark_point(size=26, filled=True, opacity=1)
    right = alt.layer(joined, lines, points.encode(x, shape)).properties(width=600, height=height)
    return specification(
        alt.hconcat(surface, right).resolve_scale(y='shared'),
        'Share of the visible surface and strict intersection over union of every class',
    )


def _ious(runs: Sequence[Run], shares: dict[str, float]) -> pd.DataFrame:
    """Return means over the scenes, in percent."""
    table = score_table(runs)
    chosen = (
        (table['suite'] == SEGMENTATION)
        & (table['mode'] == 'strict')
        & (table['metric'] == 'iou')
        & table['class_name'].isin(shares)
    )
    groups = table[chosen].groupby(['class_name', 'mapper', 'condition'], sort=False)
    means = 100 * groups['value'].mean().dropna()
    references = reference_mappers(runs)
    found = means.reset_index()
    found['method'] = [method_name(name, references) for name in found['mapper']]
    return found
