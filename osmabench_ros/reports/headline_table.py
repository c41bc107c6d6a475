"""The headline figures of runs, and their means over scenes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osmabench_ros.reports.cells import ABSENT, Cell
from osmabench_ros.reports.headline import NOT_APPLICABLE, Headline
from osmabench_ros.reports.run_view import (
    Estimate,
    Run,
    computed_headlines,
    distinct,
    estimate,
)


@dataclass(frozen=True)
class HeadlineRow:
    """A run in the headline table; a failed one has an error and no cells."""

    run: Run
    cells: tuple[Cell, ...]


def headline_table(runs: Sequence[Run]) -> tuple[list[Headline], list[HeadlineRow]]:
    """Return the columns and the rows of the headline table."""
    headlines = computed_headlines(runs)
    best = {item: _best(runs, item) for item in headlines}
    rows = [
        HeadlineRow(
            run,
            ()
            if run.failed
            else tuple(_headline_cell(run, item, best[item]) for item in headlines),
        )
        for run in runs
    ]
    return headlines, rows


def _best(runs: Sequence[Run], headline: Headline) -> float | None:
    """Return the best value of a column; None where there is nothing to choose."""
    records = [record for run in runs if (record := run.headline(headline)) is not None]
    values = [record.value for record in records if record.value is not None]
    if headline.is_baseline or len(set(values)) < 2:
        return None
    return max(values) if records[0].higher_is_better else min(values)


def _headline_cell(run: Run, headline: Headline, best: float | None) -> Cell:
    record = run.headline(headline)
    if record is None and run.report.error:
        return Cell('missing', note='missing: a server failed')
    if record is None or record.value is None:
        return Cell(
            NOT_APPLICABLE, note='not applicable: the map gives nothing to compute it from'
        )
    interval = ''
    if record.low is not None and record.high is not None:
        interval = f'[{headline.number(record.low)}, {headline.number(record.high)}]'
    return Cell(
        headline.text(record),
        repr(record.value),
        interval,
        best is not None and record.value == best,
        f'{record.n} samples',
        _warning(run, headline, record.value),
    )


def _warning(run: Run, headline: Headline, value: float) -> str:
    """Say so where a map answers no better than the most frequent answer does without one."""
    if headline.metric != 'accuracy':
        return ''
    constant = run.records.get((headline.suite, headline.mode, 'baseline_most_frequent', ''))
    if constant is None or constant.value is None or value > constant.value:
        return ''
    return 'not above constant'


@dataclass(frozen=True)
class SummaryRow:
    """Means of a mapper under a condition over its scenes."""

    condition: str
    mapper: str
    scenes: int
    cells: tuple[Cell, ...]


def summary_table(runs: Sequence[Run]) -> list[SummaryRow]:
    """Return the means over scenes by condition and mapper; empty with a single scene."""
    scored = [run for run in runs if not run.failed]
    if len(distinct(run.scene for run in runs)) < 2:
        return []
    headlines = computed_headlines(runs)
    groups = list(dict.fromkeys((run.condition, run.mapper) for run in scored))
    means = {
        (group, item): estimate(scored, group[1], group[0], item)
        for group in groups
        for item in headlines
    }
    best = {item: _best_mean(item, [means[group, item] for group in groups]) for item in headlines}
    return [
        SummaryRow(
            *group,
            sum((run.condition, run.mapper) == group for run in scored),
            tuple(_mean_cell(item, means[group, item], best[item]) for item in headlines),
        )
        for group in groups
    ]


def _best_mean(headline: Headline, means: Sequence[Estimate | None]) -> float | None:
    values = {mean.value for mean in means if mean is not None}
    return None if headline.is_baseline or len(values) < 2 else max(values)


def _mean_cell(headline: Headline, mean: Estimate | None, best: float | None) -> Cell:
    if mean is None:
        return ABSENT
    low, high = (headline.number(pick(mean.scenes)) for pick in (min, max))
    return Cell(
        headline.number(mean.value), repr(mean.value), f'{low} to {high}', mean.value == best
    )
