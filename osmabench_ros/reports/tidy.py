"""Runs, and their scores as one tidy table that groups, pivots and compares."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from osmabench_ros.mappers.mapper import knows_ground_truth
from osmabench_ros.metrics.record import COLUMNS, MetricRecord
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.report_model import RunReport, Status

NOT_APPLICABLE = '–'  # noqa: RUF001 - the en dash is the sign for it
_FILE = Path(__file__).with_name('headlines.yaml')


@dataclass(frozen=True)
class Headline:
    """A value that tables show, by suite, mode and metric; times 100 if `percent`."""

    title: str
    suite: str
    metric: str
    mode: str = ''
    explanation: str = ''
    percent: bool = True
    in_charts: bool = True

    @property
    def key(self) -> tuple[str, str, str]:
        """Suite, mode and metric."""
        return self.suite, self.mode, self.metric

    def find_record(
        self, records: Iterable[MetricRecord], suffix: str = ''
    ) -> MetricRecord | None:
        """Return the record over all classes of the metric with a suffix, None without one."""
        wanted = (self.suite, self.mode, f'{self.metric}{suffix}', '')
        for record in records:
            if (record.suite, record.mode, record.metric, record.class_name) == wanted:
                return record
        return None

    def format_record(self, record: MetricRecord | None) -> str:
        """Return the cell of a table; an en dash if the metric is not applicable."""
        if record is None or record.value is None:
            return NOT_APPLICABLE
        return self.format_value(record.value)

    def format_value(self, value: float) -> str:
        """Return a value as tables write it."""
        return f'{100 * value:.1f}' if self.percent else f'{value:.3f}'

    @property
    def is_baseline(self) -> bool:
        """Whether it is a property of the questions, not of a map."""
        return self.metric.startswith('baseline_')


@cache
def read_headlines() -> tuple[Headline, ...]:
    """Return the headline metrics of all suites."""
    rows = yaml.safe_load(_FILE.read_text(encoding='utf-8'))
    return tuple(Headline(**row) for row in rows)


def select_map_headlines(reports: Sequence[Collection[MetricRecord]]) -> list[Headline]:
    """Return the headline metrics of maps that some of the reports have a record of."""
    shown = (item for item in read_headlines() if item.in_charts and not item.is_baseline)
    return [item for item in shown if any(item.find_record(records) for records in reports)]


def select_table_headlines(reports: Iterable[Collection[MetricRecord]]) -> list[Headline]:
    """Return the metrics that a table of runs shows: those that have a value in some run.

    A suite without a headline metric, such as one of another package, gives its first metric.
    Where no metric has a value, those that were computed stay, so that the table shows that.
    """
    computed: dict[tuple[str, str, str], bool] = {}
    for records in reports:
        for item in records:
            if not item.class_name:
                key = item.suite, item.mode, item.metric
                computed[key] = computed.get(key, False) or item.value is not None
    columns = [item for item in read_headlines() if item.key in computed]
    seen = {item.suite for item in read_headlines()}
    for suite, mode, metric in computed:
        if suite not in seen:
            seen.add(suite)
            explanation = f'{metric} of the suite {suite}, in its own unit.'
            title = f'{suite} {metric}'
            columns.append(Headline(title, suite, metric, mode, explanation, percent=False))
    return [item for item in columns if computed[item.key]] or columns


BASELINE = 'baseline'
# Columns by which scores are paired and averaged: scene, path in it, repetition on that.
PLACE = ['place', 'path', 'repetition']
# Columns that name a metric.
METRIC = ['suite', 'mode', 'metric', 'class_name']

Key = tuple[str, str, str, str]


@dataclass(frozen=True, eq=False)
class Run:
    """A run: its plan, which knows its folders, and its report."""

    plan: RunPlan
    report: RunReport

    @property
    def failed(self) -> bool:
        """Whether it ended with an error."""
        return self.report.status is Status.FAILED

    @property
    def scene(self) -> str:
        """Dataset and scene, once if equal, with the seeds unless its name ends with them."""
        key = self.plan.identity.scene_key
        seed = '' if key.scene.endswith(f'seed_{key.seed}') else f', seed {key.seed}'
        path = '' if key.path_seed is None else f', path {key.path_seed}'
        name = key.scene if key.scene == key.dataset else f'{key.dataset} {key.scene}'
        return f'{name}{seed}{path}'

    @property
    def condition(self) -> str:
        """Name of the condition."""
        return self.plan.identity.condition

    @property
    def mapper(self) -> str:
        """Name of the mapping method."""
        return self.plan.identity.mapper

    @cached_property
    def is_reference(self) -> bool:
        """Whether its mapper is given the ground truth, and so does not compete."""
        bundled = self.plan.mapper.bundled
        return bool(bundled) and knows_ground_truth(bundled)

    @property
    def repetition(self) -> str:
        """Seed of the method where the configuration lists some, else ''."""
        seed = self.plan.identity.method_seed
        return '' if seed is None else f'method seed {seed}'

    @property
    def title(self) -> str:
        """Mapper, condition and repetition."""
        return ' · '.join(filter(None, (self.mapper, self.condition, self.repetition)))

    @cached_property
    def records(self) -> Mapping[Key, MetricRecord]:
        """Records by suite, mode, metric and class name."""
        return {item.key: item for item in self.report.metrics}


def join_runs(plans: Sequence[RunPlan], reports: Sequence[RunReport]) -> list[Run]:
    """Return the runs that have a report, in the order of the plans."""
    by_id = {report.run_id: report for report in reports}
    found = ((plan, by_id.get(plan.identity.run_id)) for plan in plans)
    return [Run(plan, report) for plan, report in found if report]


def build_score_table(runs: Sequence[Run], only: Container[Key] | None = None) -> pd.DataFrame:
    """Return a row per record of the runs that did not fail, by default of all metrics.

    To the columns of report.csv it adds `run` and `title`, the latter with the scene where there
    are several, `where` (the scene), `reference`, and `PLACE`. Conditions and mappers sort in
    the order of the runs.
    """
    titles = make_full_titles(runs)
    rows = []
    for run in runs:
        if not run.failed:
            identity = run.plan.identity
            own = {
                'run_id': identity.run_id,
                'mapper': run.mapper,
                'condition': run.condition,
                'run': run.title,
                'title': titles[run],
                'where': run.scene,
                'reference': run.is_reference,
                **dict(zip(PLACE, identity.place, strict=True)),
            }
            metrics = (x for x in run.report.metrics if only is None or x.key in only)
            rows += [vars(item) | own for item in metrics]
    added = ['run', 'title', 'where', 'reference', *PLACE]
    table = pd.DataFrame(rows, columns=[*COLUMNS, *added])
    table = table.drop_duplicates(['run_id', *METRIC], keep='last')
    for name in ('mapper', 'condition'):
        order = list_distinct(getattr(run, name) for run in runs)
        table[name] = pd.Categorical(table[name], order)
    return table.astype({'value': float, 'low': float, 'high': float, 'reference': bool})


def select_headline_scores(runs: Sequence[Run], columns: Sequence[Headline]) -> pd.DataFrame:
    """Return the scores of some metrics over all classes, with their titles as `headline`."""
    names = [(x.suite, x.mode, x.metric, '', x.title) for x in columns]
    chosen = pd.DataFrame(names, columns=[*METRIC, 'headline']).astype(object)
    table = build_score_table(runs, {(*x.key, '') for x in columns}).merge(chosen, on=METRIC)
    table['headline'] = pd.Categorical(table['headline'], list_distinct(x.title for x in columns))
    return table


def compute_means(scores: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return the mean of each group over its scenes, in `units` the mean of each scene.

    Repetitions are averaged on their path, and paths in their scene, so that each scene counts
    the same. Units are the paths of the only scene, or the repetitions on the only path. A group
    of a single run keeps its interval.
    """
    known = scores.dropna(subset=['value'])
    by = list(by)
    level = next((i for i, name in enumerate(PLACE) if scores[name].nunique() > 1), 0)
    units = known
    for depth in range(len(PLACE), level, -1):
        groups = units.groupby([*by, *PLACE[:depth]], observed=True, sort=False)
        units = groups['value'].mean().reset_index()
    found = units.groupby(by, observed=True)['value'].agg(value='mean', units=list)
    groups = known.groupby(by, observed=True)
    found['runs'] = groups.size()
    found[['low', 'high']] = groups[['low', 'high']].first().where(found['runs'] == 1)
    found[['reference', 'higher_is_better']] = groups[['reference', 'higher_is_better']].first()
    return found.reset_index()


def group_by_place(scores: pd.DataFrame, column: str) -> dict[Any, dict[tuple[str, ...], float]]:
    """Return the values by scene, path and repetition, for each entry of a column."""
    groups = scores.dropna(subset=['value']).groupby(column, observed=True, sort=False)
    return {
        name: dict(zip(own[PLACE].itertuples(index=False, name=None), own['value'], strict=True))
        for name, own in groups
    }


def mark_best_values(scores: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """Return which headline scores are the best of a group in which methods differ.

    References and metrics of the questions do not compete.
    """
    constant = {item.title for item in read_headlines() if item.is_baseline}
    known = scores[~scores['reference'] & ~scores['headline'].isin(constant)]
    known = known.dropna(subset=['value']).astype({'mapper': str})
    groups = known.groupby(list(by), observed=True)
    highest, lowest = (groups['value'].transform(name) for name in ('max', 'min'))
    several = (groups['mapper'].transform('nunique') > 1) & (highest > lowest)
    best = known['value'] == highest.where(known['higher_is_better'].astype(bool), lowest)
    return (best & several).reindex(scores.index, fill_value=False)


def find_reference_mappers(runs: Iterable[Run]) -> set[str]:
    """Return mappers that are given the ground truth; none where there is no other method."""
    known = {run.mapper: run.is_reference for run in runs}
    return set() if all(known.values()) else {name for name, item in known.items() if item}


def list_distinct(texts: Iterable[str]) -> list[str]:
    """Return texts without repetition, in the order of their first occurrence."""
    return list(dict.fromkeys(texts))


def make_full_titles(runs: Sequence[Run]) -> dict[Run, str]:
    """Return mapper and condition of runs, and the scene where there are several."""
    several = len({run.scene for run in runs}) > 1
    return {run: f'{run.title} · {run.scene}' if several else run.title for run in runs}


def find_baseline_condition(runs: Sequence[Run]) -> str:
    """Return the condition that the others are compared with: 'baseline', or the first one."""
    conditions = list_distinct(run.condition for run in runs)
    return BASELINE if BASELINE in conditions or not conditions else conditions[0]
