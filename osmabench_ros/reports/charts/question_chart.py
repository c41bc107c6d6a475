"""Answers by category, of several protocols, with baselines without a map and the ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import altair as alt
import pandas as pd
import yaml

from osmabench_ros.reports.charts.chart import (
    INTERVAL,
    IS_REFERENCE,
    MUTED,
    Specification,
    build_specification,
    build_tooltip,
    encode_method_color,
    label_method,
    step_of_rows,
)
from osmabench_ros.reports.report_run import (
    Run,
    distinct,
    find_reference_mappers,
    means,
    score_table,
)

QUESTIONS = 'exact_questions'
OVERALL = 'all questions'
_RUN_PX = 8
_SHAPES = ('circle', 'square', 'triangle-up', 'diamond', 'triangle-right', 'triangle-left')
_FIGURES = Path(__file__).with_name('question_charts.yaml')


@dataclass(frozen=True)
class QuestionFigure:
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
def list_question_figures() -> tuple[QuestionFigure, ...]:
    """Return the charts of answers, the one of the exact questions first."""
    return tuple(
        QuestionFigure(**row) for row in yaml.safe_load(_FIGURES.read_text(encoding='utf-8'))
    )


def draw_question_chart(
    runs: Sequence[Run], figure: QuestionFigure | None = None
) -> Specification | None:
    """Return a chart by category with intervals, None if nothing was asked."""
    figure = figure or list_question_figures()[0]
    table = score_table(runs)
    table = table[(table['suite'] == figure.suite) & (table['mode'] == figure.mode)]
    answers = _compute_means(
        table[table['metric'] == figure.metric], ['run', 'mapper', 'condition']
    )
    if answers.empty:
        return None
    asked = distinct(table.loc[table['metric'] == figure.metric, 'class_name'])
    categories = [name for name in figure.categories if name in asked] or asked
    titles = {metric: title for metric, title, _ in figure.references}
    without_map = _compute_means(table[table['metric'].isin(titles)], ['metric'])
    without_map['run'] = without_map['metric'].map(titles)
    references = find_reference_mappers(runs)
    answers['method'] = [label_method(name, references) for name in answers['mapper']]
    groups = distinct(answers['run'])
    shown = pd.concat([answers, without_map])
    shown = shown[shown['class_name'].isin(categories)]
    shown['category'] = shown['class_name'].replace('', OVERALL)
    shown['offset'] = shown['run'].where(shown['mapper'].notna(), 'without a map')
    conditions = distinct(answers['condition'])
    marks = [item for item in figure.references if item[1] in set(without_map['run'])]
    shape = alt.Shape('mark:N').scale(
        domain=[*conditions, *(title for _, title, _ in marks)],
        range=[
            *(_SHAPES[i % len(_SHAPES)] for i in range(len(conditions))),
            *(drawn for *_, drawn in marks),
        ],
    )
    shown['mark'] = shown['condition'].fillna(shown['run'])
    shown = shown.drop(columns=['class_name', 'metric'])
    base = (
        alt.Chart()
        .transform_calculate(interval=INTERVAL)
        .encode(
            alt.Y('category:N').title(None).sort([name or OVERALL for name in categories]),
            alt.YOffset('offset:N').sort([*groups, 'without a map']),
            tooltip=build_tooltip(category='category'),
        )
    )
    x = alt.X('value:Q').title(f'{figure.axis}, %, with 95 % interval').scale(domain=[0, 100])
    color = encode_method_color(distinct(run.mapper for run in runs), references)
    of_maps = base.transform_filter('isValid(datum.mapper)')
    layers = alt.layer(
        of_maps.transform_filter('isValid(datum.low)')
        .mark_rule()
        .encode(alt.X('low:Q'), alt.X2('high:Q'), color),
        of_maps.transform_filter(IS_REFERENCE)
        .mark_tick(thickness=2, size=_RUN_PX)
        .encode(x, color),
        of_maps.transform_filter(f'!{IS_REFERENCE}')
        .mark_point(filled=True, size=30, opacity=1)
        .encode(x, color, shape),
        base.transform_filter('!isValid(datum.mapper)')
        .mark_point(size=30, color=MUTED)
        .encode(x, shape),
        data=shown,
    ).properties(width=760, height=step_of_rows(_RUN_PX * (len(groups) + 2)))
    return build_specification(layers, figure.description)


def _compute_means(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return means by `keys` and category in percent, with the interval of a single run."""
    found = means(table, [*keys, 'class_name'])[[*keys, 'class_name', 'value', 'low', 'high']]
    found[['value', 'low', 'high']] *= 100
    return found.astype(dict.fromkeys(keys, str))
