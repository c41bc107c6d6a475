"""Runs in the form that tables and plots use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from osmabench_ros.mappers.mapper import knows_ground_truth
from osmabench_ros.metrics.comparison import nested_level, nested_means
from osmabench_ros.reports.headline import Headline, map_headlines
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.report_model import Record, RunReport, Status

BASELINE = 'baseline'

Key = tuple[str, str | None, str, str]


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
        """Dataset and scene, with the seeds unless the scene's name ends with the only one."""
        key = self.plan.identity.scene_key
        seed = '' if key.scene.endswith(f'seed_{key.seed}') else f', seed {key.seed}'
        path = '' if key.path_seed is None else f', path {key.path_seed}'
        return f'{key.dataset} {key.scene}{seed}{path}'

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
        """Whether its mapper is given the truth: a line to compare with, not a competitor."""
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
    def records(self) -> Mapping[Key, Record]:
        """Records by suite, mode, metric and class name."""
        return {
            (item.suite, item.mode, item.metric, item.class_name): item
            for item in self.report.metrics
        }

    def headline(self, headline: Headline) -> Record | None:
        """Return the record of a headline figure, None if the run has none."""
        return self.records.get((headline.suite, headline.mode, headline.metric, ''))

    def value(self, headline: Headline) -> float | None:
        """Return the value of a headline figure, None if the run has none."""
        record = self.headline(headline)
        return None if record is None else record.value


def joined(plans: Sequence[RunPlan], reports: Sequence[RunReport]) -> list[Run]:
    """Return the runs that have a report, in the order of the plans."""
    by_id = {report.run_id: report for report in reports}
    return [
        Run(plan, by_id[plan.identity.run_id]) for plan in plans if plan.identity.run_id in by_id
    ]


def score_table(runs: Iterable[Run]) -> pd.DataFrame:
    """Return a row a record: the title of its run, and the columns of report.csv."""
    rows = [
        {'run': run.title, **vars(record), 'mode': record.mode or ''}
        for run in runs
        for record in run.report.metrics
    ]
    return pd.DataFrame(rows, columns=['run', *Record.model_fields])


def reference_mappers(runs: Iterable[Run]) -> set[str]:
    """Return mappers that are given the truth; none where no other is there to compare with."""
    known = {run.mapper: run.is_reference for run in runs}
    return set() if all(known.values()) else {name for name, item in known.items() if item}


def distinct(texts: Iterable[str]) -> list[str]:
    """Return texts without repetition, in the order of their first occurrence."""
    return list(dict.fromkeys(texts))


def of_group(runs: Iterable[Run], mapper: str, condition: str) -> list[Run]:
    """Return the runs of a mapper under a condition."""
    return [run for run in runs if (run.mapper, run.condition) == (mapper, condition)]


def by_place(
    runs: Iterable[Run], mapper: str, condition: str, headline: Headline
) -> dict[tuple[str, ...], float]:
    """Return the values of a headline figure by scene, path and repetition."""
    return {
        run.plan.identity.place: value
        for run in of_group(runs, mapper, condition)
        if (value := run.value(headline)) is not None
    }


def mean_value(runs: Iterable[Run], key: Key) -> float | None:
    """Return the mean of a figure over the runs that have it, None without any."""
    found = [record for run in runs if (record := run.records.get(key)) is not None]
    values = [record.value for record in found if record.value is not None]
    return math.fsum(values) / len(values) if values else None


def full_titles(runs: Sequence[Run]) -> dict[Run, str]:
    """Return mapper and condition of runs, and the scene where there are several."""
    several = len(distinct(run.scene for run in runs)) > 1
    return {run: f'{run.title} · {run.scene}' if several else run.title for run in runs}


def baseline_condition(runs: Sequence[Run]) -> str:
    """Return the condition that the others are compared with: 'baseline', or the first one."""
    conditions = distinct(run.condition for run in runs)
    return BASELINE if BASELINE in conditions or not conditions else conditions[0]


def computed_headlines(runs: Sequence[Run]) -> list[Headline]:
    """Return the headline figures of maps that at least one run has a record of."""
    return map_headlines([run.report.metrics for run in runs])


@dataclass(frozen=True)
class MeanFigure:
    """A headline figure of one mapper under one condition: the mean, and that of every unit.

    Units are scenes, or paths of the only scene, or repetitions on the only path.
    """

    value: float
    low: float | None
    high: float | None
    units: tuple[float, ...]


def estimate(
    runs: Sequence[Run], mapper: str, condition: str, headline: Headline
) -> MeanFigure | None:
    """Return a headline figure over the scenes of a mapper and condition, None without any."""
    figures = by_place(runs, mapper, condition, headline)
    if not figures:
        return None
    level = nested_level(run.plan.identity.place for run in runs) or 0
    values = list(nested_means(figures, level).values())
    low = high = None
    if len(figures) == 1:
        found = [run.headline(headline) for run in of_group(runs, mapper, condition)]
        low, high = next((x.low, x.high) for x in found if x and x.value is not None)
    return MeanFigure(math.fsum(values) / len(values), low, high, tuple(values))
