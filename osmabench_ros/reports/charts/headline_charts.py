"""Charts of the headline metrics: by condition, and as changes from the baseline condition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import altair as alt
import pandas as pd

from osmabench_ros.metrics.statistics import LEAST_UNITS
from osmabench_ros.reports.charts.chart import (
    INK,
    INTERVAL,
    IS_REFERENCE,
    MUTED,
    Specification,
    build_specification,
    build_tooltip,
    encode_method_color,
    label_method,
)
from osmabench_ros.reports.comparison import QUESTIONS, Contrast
from osmabench_ros.reports.headline import map_headlines
from osmabench_ros.reports.report_run import (
    PLACE,
    Run,
    distinct,
    find_baseline_condition,
    find_reference_mappers,
    means,
    select_headline_scores,
)

_WIDTH_PX, _LEAST_PANEL_PX, _LETTER_PX, _ROW_PX = 990, 85, 7, 19
_MOST_PANELS = 4
_LEAST_RANGE = 2.0
"""Percent; the axis is not shortened below this range."""
_BOUNDS = ['value', 'low', 'high']

PairedInterval = Callable[[str, str], 'tuple[float, float] | None']
"""Interval of the change of accuracy on the questions that two runs share, by their names."""


def draw_condition_chart(runs: Sequence[Run]) -> Specification | None:
    """Return bars of every headline metric by condition and mapper; None without any."""
    columns = map_headlines([run.report.metrics for run in runs])
    bars = means(select_headline_scores(runs, columns), ['headline', 'condition', 'mapper'])
    bars['label'] = (100 * bars['value']).map('{:.1f}'.format)
    bars['units'] = bars['units'].map(lambda units: units if len(units) > 1 else [])
    # The score of the most frequent answer, without a map.
    answered = [item for item in columns if item.metric == 'accuracy']
    constants = [replace(item, metric='baseline_most_frequent') for item in answered]
    lines = means(select_headline_scores(runs, constants), ['headline'])
    lines = pd.DataFrame({'headline': lines['headline'], 'constant': 100 * lines['value']})
    title = 'Headline metrics by condition and mapper'
    return _draw_panels(bars, runs, 'percent', title, domain=(0, 112), lines=lines)


def draw_robustness_chart(
    contrasts: Sequence[Contrast], runs: Sequence[Run]
) -> Specification | None:
    """Return relative changes of runs with intervals (Fig. 5 of arXiv 2503.10331), or None."""
    shown = [item for item in contrasts if math.isfinite(item.comparison.robustness.value)]
    # Two metrics that differ only in their rules would crowd out others.
    names = [name for name in distinct(item.figure for item in shown) if 'compat' not in name]
    changes = [(item, item.comparison.robustness) for item in shown]
    rows = [
        (item.figure, item.subject, item.other, change.value, change.low, change.high)
        for item, change in changes
        if item.figure in names[:_MOST_PANELS]
    ]
    table = pd.DataFrame(rows, columns=['headline', 'mapper', 'condition', *_BOUNDS])
    title = f'change from "{shown[0].reference}", percent of its value' if shown else ''
    return _draw_panels(table, runs, title, 'Relative change of metrics by condition')


def compute_changes(runs: Sequence[Run], paired_interval: PairedInterval) -> pd.DataFrame:
    """Return mean differences to the baseline condition on the same scenes and paths.

    From three runs on their range is `low` and `high`; of the answers of one run an interval.
    """
    baseline, pair = find_baseline_condition(runs), ['headline', 'mapper', *PLACE]
    columns = map_headlines([run.report.metrics for run in runs])
    scores = select_headline_scores(runs, columns).dropna(subset=['value'])
    here = scores.loc[scores['condition'] == baseline, [*pair, 'value', 'run_id']]
    both = scores[scores['condition'] != baseline].merge(here, on=pair, suffixes=('', '_before'))
    both['change'] = both['value'] - both['value_before']
    groups = both.groupby(['headline', 'condition', 'mapper'], observed=True)
    found = groups['change'].agg(value='mean', low='min', high='max', scenes='size')
    found.loc[found['scenes'] < LEAST_UNITS, ['low', 'high']] = math.nan
    for key, own in groups:
        only = own.iloc[0]
        if len(own) == 1 and only['suite'] == QUESTIONS:
            bounds = paired_interval(only['run_id_before'], only['run_id'])
            found.loc[key, ['low', 'high']] = bounds or (math.nan, math.nan)
    return found.reset_index()


def draw_change_chart(
    runs: Sequence[Run], paired_interval: PairedInterval
) -> Specification | None:
    """Return the changes of all headline metrics, None without a second condition."""
    baseline = find_baseline_condition(runs)
    return _draw_panels(
        compute_changes(runs, paired_interval),
        runs,
        f'change from "{baseline}", percentage points',
        f'Change of the headline metrics relative to "{baseline}"',
    )


def _draw_panels(
    bars: pd.DataFrame,
    runs: Sequence[Run],
    title: str,
    description: str,
    *,
    domain: tuple[float, float] | None = None,
    lines: pd.DataFrame | None = None,
) -> Specification | None:
    """Return a panel per headline with a bar per run, and its interval; references are ticks.

    `bars` are fractions; those that have `units` show them as dots. `lines` are constant.
    """
    if bars.empty:
        return None
    references, mappers = find_reference_mappers(runs), distinct(run.mapper for run in runs)
    table = pd.DataFrame({'label': (100 * bars['value']).map('{:+.1f}'.format), 'units': ''})
    table = table.assign(**bars).astype({'mapper': str, 'condition': str})
    table['units'] = [[100 * unit for unit in units] for units in table['units']]
    table[_BOUNDS] *= 100
    table['end'] = [
        max(0.0, value, high if high == high else 0.0, *units)
        for value, high, units in table[['value', 'high', 'units']].itertuples(index=False)
    ]
    table['run'] = table['mapper'] + ' · ' + table['condition']
    table['method'] = [label_method(name, references) for name in table['mapper']]
    titles, order = distinct(table['headline']), distinct(table['run'])
    low, high = domain or _compute_range(table)
    shown = ['headline', 'run', 'mapper', 'method', 'condition', *_BOUNDS, 'end', 'label', 'units']
    data = table[shown]
    if lines is not None and not lines.empty:
        data = pd.concat([data, lines.assign(run='most frequent answer, without a map')])
    x = alt.X('value:Q').title(None).scale(domain=[low, high], nice=False)
    base = (
        alt.Chart()
        .transform_calculate(interval=INTERVAL)
        .encode(alt.Y('run:N').title(None).sort(order), tooltip=build_tooltip(headline='metric'))
    )
    runs_only = base.transform_filter('isValid(datum.mapper)')
    color = encode_method_color(mappers, references)
    layers = alt.layer(
        alt.Chart()
        .transform_filter('isValid(datum.constant)')
        .mark_rule(color=MUTED, strokeDash=[4, 3])
        .encode(x='constant:Q', tooltip=[alt.Tooltip('run:N'), alt.Tooltip('constant:Q')]),
        runs_only.transform_filter(f'!{IS_REFERENCE}').mark_bar(height=9).encode(x, color),
        runs_only.transform_filter(IS_REFERENCE)
        .mark_tick(thickness=2.5, size=15)
        .encode(x, color),
        runs_only.transform_filter('isValid(datum.low)')
        .mark_rule(color=INK, strokeWidth=1.2)
        .encode(alt.X('low:Q'), alt.X2('high:Q')),
        runs_only.transform_flatten(['units']).mark_circle(color=INK, size=9, opacity=1)
        .encode(x='units:Q'),
        runs_only.mark_text(align='left', dx=4, fontSize=11).encode(x='end:Q', text='label:N'),
        data=data,
    ).properties(
        width=max(
            _LEAST_PANEL_PX,
            round((_WIDTH_PX - _LETTER_PX * max(map(len, order))) / len(titles)) - 20,
        ),
        height=alt.Step(_ROW_PX),
    )  # fmt: skip
    header = alt.Header(labelAnchor='start', labelFontWeight='bold', titleAnchor='start')
    column = alt.Column('headline:N').sort(titles).title(title).header(header)
    return build_specification(layers.facet(column=column), description)


def _compute_range(table: pd.DataFrame) -> tuple[float, float]:
    """Return the range of all panels, so that lengths compare, with room for labels."""
    low, high = min(0.0, table[_BOUNDS].min().min()), max(0.0, table[_BOUNDS].max().max())
    pad = max(_LEAST_RANGE / 2, 0.05 * (high - low))
    return min(low - pad, -_LEAST_RANGE), max(high + 6 * pad, _LEAST_RANGE)
