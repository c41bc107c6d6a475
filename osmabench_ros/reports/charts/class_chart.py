"""Intersection over union of every class, largest surfaces first."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from osmabench_ros.reports.charts.chart import (
    IS_REFERENCE,
    MUTED,
    Specification,
    build_specification,
    encode_method_color,
    label_method,
    step_of_rows,
)
from osmabench_ros.reports.report_run import (
    PLACE,
    Run,
    distinct,
    find_reference_mappers,
    means,
    score_table,
    select_metric,
)

SEGMENTATION = 'osma_segmentation'
MOST_CLASSES = 60


def compute_class_shares(scores: pd.DataFrame) -> dict[str, float]:
    """Return each class' fraction of the visible ground-truth surface, the largest first."""
    own = select_metric(scores, SEGMENTATION, 'strict', 'iou')
    own = own[own['class_name'] != '']
    # Runs of a scene share its surface.
    points = own.drop_duplicates(['class_name', *PLACE[:2]], keep='last')
    totals = points.groupby('class_name')['n'].sum().sort_values(ascending=False, kind='stable')
    return dict(totals / max(totals.sum(), 1))


def draw_class_chart(runs: Sequence[Run]) -> Specification | None:
    """Return surface shares and strict IoUs of the classes, None if no class was scored."""
    scores = score_table(runs)
    shares = dict(list(compute_class_shares(scores).items())[:MOST_CLASSES])
    if not shares:
        return None
    mappers, references = distinct(run.mapper for run in runs), find_reference_mappers(runs)
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
    chosen = select_metric(scores, SEGMENTATION, 'strict', 'iou')
    chosen = chosen[chosen['class_name'].isin(shares)]
    found = means(chosen, ['class_name', 'mapper', 'condition'])
    found['value'] *= 100
    found['method'] = [label_method(name, references) for name in found['mapper']]
    ious = alt.Chart(found[['class_name', 'mapper', 'condition', 'value', 'method']]).encode(
        y.axis(labels=False),
        alt.YOffset('method:N').sort([label_method(name, references) for name in mappers]),
        encode_method_color(mappers, references),
        tooltip=['class_name:N', 'mapper:N', 'condition:N', alt.Tooltip('value:Q', format='.1f')],
    )
    x = alt.X('value:Q').title('strict IoU, %').scale(domain=[0, 100])
    shape = alt.Shape('condition:N').sort(distinct(run.condition for run in runs))
    joined = ious.mark_rule().encode(alt.X('min(value):Q'), alt.X2('max(value):Q'), tooltip=[])
    lines = ious.transform_filter(IS_REFERENCE).mark_tick(thickness=2, size=6).encode(x)
    points = ious.transform_filter(f'!{IS_REFERENCE}').mark_point(size=26, filled=True, opacity=1)
    right = alt.layer(joined, lines, points.encode(x, shape)).properties(width=600, height=height)
    return build_specification(
        alt.hconcat(surface, right).resolve_scale(y='shared'),
        'Fraction of the visible surface and strict intersection over union of every class',
    )
