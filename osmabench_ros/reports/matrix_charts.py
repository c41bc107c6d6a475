"""Charts of a matrix: headline metrics, changes, classes, answers by category, latency."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import altair as alt
import pandas as pd
import yaml

from osmabench_ros.metrics.statistics import LEAST_UNITS
from osmabench_ros.reports import tidy, vega
from osmabench_ros.reports.comparison import QUESTIONS, Contrast
from osmabench_ros.reports.content import Dialogue, compute_paired_interval
from osmabench_ros.reports.pacing import TimedRun
from osmabench_ros.reports.tidy import Run, find_reference_mappers, select_map_headlines

_WIDTH_PX, _LEAST_PANEL_PX, _LETTER_PX, _ROW_PX = 990, 85, 7, 19
_MOST_PANELS = 4
# Percent; the axis is not shortened below this range.
_LEAST_RANGE = 2.0
_BOUNDS = ['value', 'low', 'high']


def draw_matrix_charts(
    runs: Sequence[Run], contrasts: Sequence[Contrast], dialogues: Mapping[str, Dialogue]
) -> vega.Charts:
    """Return the charts of a matrix by name; `contrasts` are of its conditions."""
    scored = [run for run in runs if not run.failed]
    found = {
        'conditions': draw_condition_chart(scored),
        'changes': draw_change_chart(scored, dialogues),
        'classes': draw_class_chart(scored),
        **{chart.name: draw_question_chart(scored, chart) for chart in list_question_charts()},
        'robustness': draw_robustness_chart(contrasts, runs),
    }
    return {name: chart for name, chart in found.items() if chart is not None}


def draw_condition_chart(runs: Sequence[Run]) -> vega.Chart | None:
    """Return bars of every headline metric by condition and mapper; None without any."""
    columns = select_map_headlines([run.report.metrics for run in runs])
    scores = tidy.select_headline_scores(runs, columns)
    bars = tidy.compute_means(scores, ['headline', 'condition', 'mapper'])
    # The score of the most frequent answer, without a map.
    answered = [item for item in columns if item.metric == 'accuracy']
    constants = [replace(item, metric='baseline_most_frequent') for item in answered]
    lines = tidy.compute_means(tidy.select_headline_scores(runs, constants), ['headline'])
    lines = pd.DataFrame({'headline': lines['headline'], 'constant': 100 * lines['value']})
    title = 'Headline metrics by condition and mapper'
    return _draw_panels(bars, runs, 'percent', title, '{:.1f}', domain=(0, 112), lines=lines)


def draw_robustness_chart(contrasts: Sequence[Contrast], runs: Sequence[Run]) -> vega.Chart | None:
    """Return relative changes of runs with intervals (Fig. 5 of arXiv 2503.10331), or None."""
    shown = [item for item in contrasts if math.isfinite(item.comparison.robustness.value)]
    # Two metrics that differ only in their rules would crowd out others.
    names = [name for name in tidy.list_distinct(x.metric for x in shown) if 'compat' not in name]
    rows = [
        (item.metric, item.subject, item.other, change.value, change.low, change.high)
        for item in shown
        for change in [item.comparison.robustness]
        if item.metric in names[:_MOST_PANELS]
    ]
    bars = pd.DataFrame(rows, columns=['headline', 'mapper', 'condition', *_BOUNDS])
    title = f'change from "{shown[0].reference}", percent of its value' if shown else ''
    return _draw_panels(bars, runs, title, 'Relative change of metrics by condition')


def compute_changes(runs: Sequence[Run], dialogues: Mapping[str, Dialogue]) -> pd.DataFrame:
    """Return mean differences to the baseline condition on the same scenes and paths.

    From three runs on their range is `low` and `high`; of the answers of one run an interval.
    """
    baseline = tidy.find_baseline_condition(runs)
    pair = ['headline', 'mapper', *tidy.PLACE]
    columns = select_map_headlines([run.report.metrics for run in runs])
    scores = tidy.select_headline_scores(runs, columns).dropna(subset=['value'])
    here = scores.loc[scores['condition'] == baseline, [*pair, 'value', 'run_id']]
    both = scores[scores['condition'] != baseline].merge(here, on=pair, suffixes=('', '_before'))
    both['change'] = both['value'] - both['value_before']
    groups = both.groupby(['headline', 'condition', 'mapper'], observed=True)
    found = groups['change'].agg(value='mean', low='min', high='max', scenes='size')
    found.loc[found['scenes'] < LEAST_UNITS, ['low', 'high']] = math.nan
    for key, own in groups:
        only = own.iloc[0]
        if len(own) == 1 and only['suite'] == QUESTIONS:
            compared = dialogues[only['run_id_before']], dialogues[only['run_id']]
            found.loc[key, ['low', 'high']] = compute_paired_interval(*compared)
    return found.reset_index()


def draw_change_chart(runs: Sequence[Run], dialogues: Mapping[str, Dialogue]) -> vega.Chart | None:
    """Return the changes of all headline metrics, None without a second condition."""
    baseline = tidy.find_baseline_condition(runs)
    changes = compute_changes(runs, dialogues)
    title = f'Change of the headline metrics relative to "{baseline}"'
    return _draw_panels(changes, runs, f'change from "{baseline}", percentage points', title)


def _draw_panels(
    bars: pd.DataFrame,
    runs: Sequence[Run],
    title: str,
    description: str,
    number: str = '{:+.1f}',
    *,
    domain: tuple[float, float] | None = None,
    lines: pd.DataFrame | None = None,
) -> vega.Chart | None:
    """Return a panel per headline with a bar per run, and its interval; references are ticks.

    `bars` are fractions, labelled as `number` says; several `units` are dots, `lines` constant.
    """
    if bars.empty:
        return None
    color, labels = _encode_methods(runs)
    table = bars.assign(units=bars.get('units', '')).astype({'mapper': str, 'condition': str})
    table['units'] = [[100 * x for x in own] if len(own) > 1 else [] for own in table['units']]
    table[_BOUNDS] *= 100
    table['label'] = table['value'].map(number.format)
    ends = table[['value', 'high']].max(axis=1).clip(lower=0.0)
    table['end'] = [max(pair[0], *pair[1], 0.0) for pair in zip(ends, table['units'], strict=True)]
    table['run'] = table['mapper'] + ' · ' + table['condition']
    table['method'] = table['mapper'].map(labels)
    titles = tidy.list_distinct(table['headline'])
    order = tidy.list_distinct(table['run'])
    shown = ['headline', 'run', 'mapper', 'method', 'condition', *_BOUNDS, 'end', 'label', 'units']
    data = table[shown]
    if lines is not None and not lines.empty:
        data = pd.concat([data, lines.assign(run='most frequent answer, without a map')])
    x = alt.X('value:Q').title(None).scale(domain=domain or _compute_range(table), nice=False)
    base = vega.make_base(alt.Y('run:N').title(None).sort(order), headline='metric')
    base = base.transform_filter('isValid(datum.mapper)')
    methods, references, bounded = vega.split_base(base)
    dots = base.transform_flatten(['units']).mark_circle(color=vega.INK, size=9, opacity=1)
    space_px = _WIDTH_PX - _LETTER_PX * max(map(len, order))
    layers = alt.layer(
        vega.draw_level('constant', x='constant:Q', tooltip=['run:N', 'constant:Q']),
        methods.mark_bar(height=9).encode(x, color),
        references.mark_tick(thickness=2.5, size=15).encode(x, color),
        bounded.mark_rule(color=vega.INK, strokeWidth=1.2).encode(x='low:Q', x2='high:Q'),
        dots.encode(x='units:Q'),
        base.mark_text(align='left', dx=4, fontSize=11).encode(x='end:Q', text='label:N'),
        data=data,
    )
    width_px = max(_LEAST_PANEL_PX, round(space_px / len(titles)) - 20)
    header = alt.Header(labelAnchor='start', labelFontWeight='bold', titleAnchor='start')
    column = alt.Column('headline:N').sort(titles).title(title).header(header)
    sized = layers.properties(width=width_px, height=alt.Step(_ROW_PX))
    return vega.build_specification(sized.facet(column=column), description)


def _encode_methods(runs: Sequence[Run]) -> tuple[alt.Color, dict[str, str]]:
    """Return the colour of marks by mapper, and the names of mappers as legends give them."""
    mappers = tidy.list_distinct(x.mapper for x in runs)
    references = find_reference_mappers(runs)
    labels = {x: f'{x}{vega.REFERENCE}' if x in references else x for x in mappers}
    return vega.encode_method_color(mappers, labels), labels


def _compute_range(table: pd.DataFrame) -> tuple[float, float]:
    """Return the range of all panels, so that lengths compare, with room for labels."""
    low = min(0.0, table[_BOUNDS].min().min())
    high = max(0.0, table[_BOUNDS].max().max())
    pad = max(_LEAST_RANGE / 2, 0.05 * (high - low))
    return min(low - pad, -_LEAST_RANGE), max(high + 6 * pad, _LEAST_RANGE)


SEGMENTATION = 'osma_segmentation'
MOST_CLASSES = 60


def select_class_ious(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the strict IoU of every class of every run."""
    metric = (scores['suite'] == SEGMENTATION) & (scores['metric'] == 'iou')
    return scores[metric & (scores['mode'] == 'strict') & (scores['class_name'] != '')]


def compute_class_shares(scores: pd.DataFrame) -> dict[str, float]:
    """Return each class' fraction of the visible ground-truth surface, the largest first."""
    # Runs of a scene share its surface.
    columns = ['class_name', *tidy.PLACE[:2]]
    points = select_class_ious(scores).drop_duplicates(columns, keep='last')
    totals = points.groupby('class_name')['n'].sum().sort_values(ascending=False, kind='stable')
    return dict(totals / max(totals.sum(), 1))


def draw_class_chart(runs: Sequence[Run]) -> vega.Chart | None:
    """Return surface shares and strict IoUs of the classes, None if no class was scored."""
    scores = tidy.build_score_table(runs)
    shares = dict(list(compute_class_shares(scores).items())[:MOST_CLASSES])
    if not shares:
        return None
    color, labels = _encode_methods(runs)
    y = alt.Y('class_name:N').title(None).sort(list(shares))
    height = vega.compute_row_step(max(14, 6 * len(labels)))
    x = alt.X('share:Q').title('surface').axis(format='%', values=[0, 0.01, 0.1, 1])
    x = x.scale(type='symlog', constant=0.01, domain=[0, 1])
    bars = alt.Chart(pd.DataFrame(shares.items(), columns=['class_name', 'share']))
    surface = bars.mark_bar(color=vega.MUTED, height={'band': 0.7}).encode(
        y, x, tooltip=['class_name:N', alt.Tooltip('share:Q', format='.2%')]
    )
    chosen = select_class_ious(scores)
    chosen = chosen[chosen['class_name'].isin(shares)]
    found = tidy.compute_means(chosen, ['class_name', 'mapper', 'condition'])
    found['value'] *= 100
    found['method'] = found['mapper'].astype(str).map(labels)
    ious = alt.Chart(found[['class_name', 'mapper', 'condition', 'value', 'method']]).encode(
        y.axis(labels=False),
        alt.YOffset('method:N').sort(list(labels.values())),
        color,
        tooltip=['class_name:N', 'mapper:N', 'condition:N', alt.Tooltip('value:Q', format='.1f')],
    )
    x = alt.X('value:Q').title('strict IoU, %').scale(domain=[0, 100])
    shape = alt.Shape('condition:N').sort(tidy.list_distinct(run.condition for run in runs))
    methods, references, _ = vega.split_base(ious)
    right = alt.layer(
        ious.mark_rule().encode(x='min(value):Q', x2='max(value):Q', tooltip=[]),
        references.mark_tick(thickness=2, size=6).encode(x),
        methods.mark_point(size=26, filled=True, opacity=1).encode(x, shape),
    )
    surface = surface.properties(width=130, height=height)
    right = right.properties(width=600, height=height)
    return vega.build_specification(
        alt.hconcat(surface, right).resolve_scale(y='shared'),
        'Fraction of the visible surface and strict intersection over union of every class',
    )


OVERALL = 'all questions'
_RUN_PX = 8
_SHAPES = ('circle', 'square', 'triangle-up', 'diamond', 'triangle-right', 'triangle-left')
_QUESTION_CHARTS = Path(__file__).with_name('question_charts.yaml')


@dataclass(frozen=True)
class QuestionChart:
    """An answer metric drawn by category, with its reference.

    `references` are metric, title and shape; `categories` are those that are shown, by default
    all that were asked.
    """

    name: str
    description: str
    suite: str
    metric: str = 'accuracy'
    mode: str = ''
    axis: str = 'accuracy'
    categories: Sequence[str] = ()
    references: Sequence[tuple[str, str, str]] = ()


@cache
def list_question_charts() -> tuple[QuestionChart, ...]:
    """Return the charts of answers, the one of the exact questions first."""
    rows = yaml.safe_load(_QUESTION_CHARTS.read_text(encoding='utf-8'))
    return tuple(QuestionChart(**row) for row in rows)


def draw_question_chart(runs: Sequence[Run], chart: QuestionChart) -> vega.Chart | None:
    """Return a chart by category with intervals, None if nothing was asked."""
    table = tidy.build_score_table(runs)
    table = table[(table['suite'] == chart.suite) & (table['mode'] == chart.mode)]
    own = table[table['metric'] == chart.metric]
    answers = _compute_percent(own, ['run', 'mapper', 'condition'])
    if answers.empty:
        return None
    asked = tidy.list_distinct(own['class_name'])
    categories = [name for name in chart.categories if name in asked] or asked
    titles = {metric: title for metric, title, _ in chart.references}
    without_map = _compute_percent(table[table['metric'].isin(titles)], ['metric'])
    without_map['run'] = without_map['metric'].map(titles)
    color, labels = _encode_methods(runs)
    answers['method'] = answers['mapper'].map(labels)
    groups, conditions = map(tidy.list_distinct, (answers['run'], answers['condition']))
    shown = pd.concat([answers, without_map])
    shown = shown[shown['class_name'].isin(categories)]
    shown['category'] = shown['class_name'].replace('', OVERALL)
    shown['offset'] = shown['run'].where(shown['mapper'].notna(), 'without a map')
    shown['mark'] = shown['condition'].fillna(shown['run'])
    shown = shown.drop(columns=['class_name', 'metric'])
    shapes = dict(zip(conditions, itertools.cycle(_SHAPES)))
    drawn = set(without_map['run'])
    shapes |= {title: shape for _, title, shape in chart.references if title in drawn}
    shape = alt.Shape('mark:N').scale(domain=list(shapes), range=list(shapes.values()))
    base = vega.make_base(
        alt.Y('category:N').title(None).sort([name or OVERALL for name in categories]),
        alt.YOffset('offset:N').sort([*groups, 'without a map']),
        category='category',
    )
    x = alt.X('value:Q').title(f'{chart.axis}, %, with 95 % interval').scale(domain=[0, 100])
    methods, references, bounded = vega.split_base(base.transform_filter('isValid(datum.mapper)'))
    others = base.transform_filter('!isValid(datum.mapper)')
    layers = alt.layer(
        bounded.mark_rule().encode(color, x='low:Q', x2='high:Q'),
        references.mark_tick(thickness=2, size=_RUN_PX).encode(x, color),
        methods.mark_point(filled=True, size=30, opacity=1).encode(x, color, shape),
        others.mark_point(size=30, color=vega.MUTED).encode(x, shape),
        data=shown,
    ).properties(width=760, height=vega.compute_row_step(_RUN_PX * (len(groups) + 2)))
    return vega.build_specification(layers, chart.description)


def _compute_percent(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return means by `keys` and category in percent, with the interval of a single run."""
    found = tidy.compute_means(table, [*keys, 'class_name'])[[*keys, 'class_name', *_BOUNDS]]
    found[_BOUNDS] *= 100
    return found.astype(dict.fromkeys(keys, str))


_MOST_ROWS = 40
_LATENCIES = {name: f'latency_{name}_s' for name in ('p50', 'p95', 'p99', 'max')}


def draw_latency_chart(realtime: Sequence[TimedRun]) -> vega.Chart | None:
    """Return median, percentiles and maximum of latency, a row per node; None without any."""
    rows = [
        {
            'title': f'{node.name} · {item.title}',
            'node': node.name,
            'run': item.title,
            'mapper': item.mapper,
            'condition': item.condition,
            **{name: getattr(node, field) for name, field in _LATENCIES.items()},
        }
        for item in realtime
        for node in item.measured.participants
        if node.latency_max_s is not None
    ][:_MOST_ROWS]
    if not rows:
        return None
    table = pd.DataFrame(rows)
    names = list(_LATENCIES)
    # A percentile that is not known is at most the next; the axis is logarithmic.
    milliseconds = 1000 * table[names].astype(float).bfill(axis='columns')
    table[names] = milliseconds.clip(lower=1e-3)
    shown = ['run', 'node', *(f'{name}:Q' for name in names)]
    base = alt.Chart().encode(alt.Y('title:N').title(None).sort(None), tooltip=shown)
    color = alt.Color('node:N').scale(range=list(vega.SERIES))
    x = alt.X('p50:Q').title('latency, ms').scale(type='log', nice=False).axis(format='~g')
    layers = alt.layer(
        base.mark_rule(strokeWidth=1.2).encode(x, alt.X2('max:Q'), color),
        base.mark_rule(strokeWidth=4).encode(x, alt.X2('p95:Q'), color),
        base.mark_point(filled=True, size=40, opacity=1).encode(x, color),
        base.mark_tick(color=vega.INK, size=10).encode(x='p99:Q'),
        base.mark_point(color=vega.MUTED, shape='cross', angle=45, size=40).encode(x='max:Q'),
        data=table,
    )
    sized = layers.properties(width=620, height=alt.Step(22))
    return vega.build_specification(sized, 'Latency from publication to acknowledgement')
