"""Charts of the headline figures: by condition, and as changes from the baseline condition."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from osmabench_ros.metrics.statistics import LEAST_UNITS
from osmabench_ros.reports.charts.chart import (
    INK,
    IS_REFERENCE,
    MUTED,
    Specification,
    method_color,
    method_name,
    specification,
    tooltip,
)
from osmabench_ros.reports.comparison import Contrast
from osmabench_ros.reports.headline import Headline
from osmabench_ros.reports.report_run import (
    Run,
    baseline_condition,
    computed_headlines,
    distinct,
    estimate,
    mean_value,
    reference_mappers,
)

_WIDTH_PX, _LEAST_PANEL_PX, _LETTER_PX, _ROW_PX = 930, 85, 6.5, 19
_MOST_PANELS = 4
_LEAST_RANGE = 2.0
"""Percent; what is smaller looks as small as it is."""

Row = dict[str, Any]
PairedInterval = Callable[[Run, Run], 'tuple[float, float] | None']
"""Interval of the change of accuracy on the questions that two runs share."""


def condition_chart(runs: Sequence[Run]) -> Specification | None:
    """Return bars of every headline figure by condition and mapper; None without any."""
    rows = [row for headline in computed_headlines(runs) for row in _of_headline(runs, headline)]
    return _panels(rows, runs, 'percent', 'Headline figures by condition and mapper', (0, 112))


def _of_headline(runs: Sequence[Run], headline: Headline) -> Iterator[Row]:
    for condition in distinct(run.condition for run in runs):
        for mapper in distinct(run.mapper for run in runs):
            found = estimate(runs, mapper, condition, headline)
            if found is None:
                continue
            units = found.units if len(found.units) > 1 else ()
            yield _row(
                headline.title, mapper, condition, found.value, found.low, found.high,
                label=headline.number(found.value), units=units,
            )  # fmt: skip
    # What the most frequent answer scores without a map.
    key = (headline.suite, headline.mode, 'baseline_most_frequent', '')
    constant = mean_value(runs, key) if headline.metric == 'accuracy' else None
    if constant is not None:
        run = 'most frequent answer, without a map'
        yield {'panel': headline.title, 'run': run, 'constant': 100 * constant}


def robustness_chart(contrasts: Sequence[Contrast], runs: Sequence[Run]) -> Specification | None:
    """Return relative changes of runs with intervals (Fig. 5 of arXiv 2503.10331), or None."""
    shown = [item for item in contrasts if math.isfinite(item.comparison.robustness.value)]
    # Two figures that differ only in whose rules they follow would crowd out others.
    names = [name for name in distinct(item.figure for item in shown) if 'compat' not in name]
    rows = []
    for item in shown:
        change = item.comparison.robustness
        if item.figure in names[:_MOST_PANELS]:
            bounds = (change.low, change.high) if math.isfinite(change.low) else (None, None)
            rows.append(_row(item.figure, item.subject, item.other, change.value, *bounds))
    title = f'change from "{shown[0].reference}", percent of its value' if shown else ''
    return _panels(rows, runs, title, 'Relative change of figures by condition')


@dataclass(frozen=True)
class ConditionChange:
    """Mean difference to the baseline condition over the scenes that both have."""

    value: float
    low: float | None
    high: float | None
    scenes: int


def change_of(
    runs: Sequence[Run],
    mapper: str,
    condition: str,
    headline: Headline,
    paired_interval: PairedInterval,
) -> ConditionChange | None:
    """Return how a figure of a mapper changes from the baseline to another condition."""
    found = [
        (before, after, there - here)
        for before, after in _pairs(runs, mapper, condition)
        if (here := before.value(headline)) is not None
        and (there := after.value(headline)) is not None
    ]
    if not found:
        return None
    values = [value for *_, value in found]
    mean = math.fsum(values) / len(values)
    if len(found) >= LEAST_UNITS:
        return ConditionChange(mean, min(values), max(values), len(found))
    if len(found) > 1:
        return ConditionChange(mean, None, None, len(found))
    interval = None
    if headline.suite == 'exact_questions':
        interval = paired_interval(found[0][0], found[0][1])
    low, high = interval or (None, None)
    return ConditionChange(mean, low, high, 1)


def _pairs(runs: Sequence[Run], mapper: str, condition: str) -> Iterator[tuple[Run, Run]]:
    baseline = baseline_condition(runs)
    own = [run for run in runs if run.mapper == mapper]
    before = {run.plan.identity.place: run for run in own if run.condition == baseline}
    for run in own:
        key = run.plan.identity.place
        if run.condition == condition and key in before:
            yield before[key], run


def change_chart(runs: Sequence[Run], paired_interval: PairedInterval) -> Specification | None:
    """Return the changes of all headline figures, None without a second condition."""
    baseline = baseline_condition(runs)
    rows = [
        _row(headline.title, mapper, condition, change.value, change.low, change.high)
        for headline in [item for item in computed_headlines(runs) if item.percent]
        for condition in distinct(run.condition for run in runs)
        for mapper in distinct(run.mapper for run in runs)
        if condition != baseline
        and (change := change_of(runs, mapper, condition, headline, paired_interval))
    ]
    return _panels(
        rows,
        runs,
        f'change from "{baseline}", percentage points',
        f'Change of the headline figures relative to "{baseline}"',
    )


def _row(
    panel: str,
    mapper: str,
    condition: str,
    value: float,
    low: float | None,
    high: float | None,
    *,
    label: str = '',
    units: Sequence[float] = (),
) -> Row:
    """Return a bar of a chart, in percent; `units` are shown as dots."""
    bounds = {'low': low, 'high': high}
    return {
        'panel': panel,
        'mapper': mapper,
        'condition': condition,
        'run': f'{mapper} · {condition}',
        'value': 100 * value,
        **{name: None if bound is None else 100 * bound for name, bound in bounds.items()},
        'end': 100 * max(0.0, value, high or 0.0, *units),
        'label': label or f'{100 * value:+.1f}',
        'units': [100 * unit for unit in units],
    }


def _panels(
    rows: Sequence[Row],
    runs: Sequence[Run],
    title: str,
    description: str,
    domain: tuple[float, float] | None = None,
) -> Specification | None:
    """Return a panel a figure with a bar a run, and its interval; references are lines."""
    if not rows:
        return None
    references, mappers = reference_mappers(runs), distinct(run.mapper for run in runs)
    table = pd.DataFrame(
        [{'constant': None, **row, 'method': method_name(row.get('mapper', ''), references)}
         for row in rows]
    )  # fmt: skip
    titles = distinct(row['panel'] for row in rows)
    bars = distinct(row['run'] for row in rows if 'mapper' in row)
    longest = _LETTER_PX * max(map(len, bars))
    low, high = domain or _range(rows)
    x = alt.X('value:Q').title(None).scale(domain=[low, high], nice=False)
    base = alt.Chart().encode(
        alt.Y('run:N').title(None).sort(bars), tooltip=tooltip(panel='figure')
    )
    runs_only = base.transform_filter('isValid(datum.mapper)')
    color = method_color(mappers, references)
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
        runs_only.mark_text(align='left', dx=4, fontSize=10).encode(x='end:Q', text='label:N'),
        data=table,
    ).properties(
        width=max(_LEAST_PANEL_PX, round((_WIDTH_PX - longest) / len(titles)) - 20),
        height=alt.Step(_ROW_PX),
    )  # fmt: skip
    header = alt.Header(labelAnchor='start', labelFontWeight='bold', titleAnchor='start')
    column = alt.Column('panel:N').sort(titles).title(title).header(header)
    return specification(layers.facet(column=column), description)


def _range(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the range of all panels, so that lengths compare, with room for labels."""
    low = min(0.0, *(value for row in rows for value in _finite(row)))
    high = max(0.0, *(value for row in rows for value in _finite(row)))
    pad = max(_LEAST_RANGE / 2, 0.05 * (high - low))
    return min(low - pad, -_LEAST_RANGE), max(high + 6 * pad, _LEAST_RANGE)


def _finite(row: Mapping[str, Any]) -> list[float]:
    return [row[name] for name in ('value', 'low', 'high') if row[name] is not None]
