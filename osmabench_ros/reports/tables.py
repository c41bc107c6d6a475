"""Tables of a page as plain values; templates only lay them out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from osmabench_ros.reports.class_plot import SEGMENTATION, class_shares, class_value
from osmabench_ros.reports.headline import NOT_APPLICABLE, Headline
from osmabench_ros.reports.run_view import (
    Estimate,
    Run,
    computed_headlines,
    distinct,
    estimate,
)
from osmabench_ros.runs.config import Requirement
from osmabench_ros.runs.report_model import MatrixReport, Record, unmet

CLASS_FIGURES = (
    ('iou', 'strict', 'IoU strict'),
    ('iou', 'compat', 'IoU compat'),
    ('class_accuracy', 'strict', 'Acc strict'),
    ('class_accuracy', 'compat', 'Acc compat'),
)


@dataclass(frozen=True)
class Cell:
    """A cell with a figure.

    Parameters
    ----------
    text : str
        As shown.
    sort : str
        Number to sort by; '' if there is none, which sorts last.
    interval : str
        For example '[41.2, 55.0]'; '' without one.
    best : bool
        Whether no other run has a better figure.
    note : str
        Tooltip.
    warning : str
        What makes the figure doubtful, in a few words.
    """

    text: str
    sort: str = ''
    interval: str = ''
    best: bool = False
    note: str = ''
    warning: str = ''


ABSENT = Cell(NOT_APPLICABLE)


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


@dataclass(frozen=True)
class RequirementRow:
    """A threshold of the configuration and what was found."""

    figure: str
    where: str
    bound: str
    found: str
    holds: bool


def requirement_rows(
    report: MatrixReport, requirements: Sequence[Requirement]
) -> list[RequirementRow]:
    """Return every requirement with the values it was held against."""
    return [
        RequirementRow(
            ' '.join(filter(None, (item.suite, item.mode, item.metric, item.class_name))),
            ', '.join(filter(None, (item.mapper, item.condition))) or 'every run',
            _bound(item),
            ', '.join(_found(item, report)) or 'no such figure',
            not unmet((item,), report.metrics),
        )
        for item in requirements
    ]


def _bound(requirement: Requirement) -> str:
    bounds = (('≥', requirement.at_least), ('≤', requirement.at_most))
    return ' and '.join(f'{sign} {value:g}' for sign, value in bounds if value is not None)


def _found(requirement: Requirement, report: MatrixReport) -> list[str]:
    return [
        f'{record.condition}: {_plain(record.value)}'
        if requirement.mapper
        else f'{record.mapper} · {record.condition}: {_plain(record.value)}'
        for record in report.metrics
        if (record.suite, record.metric, record.class_name)
        == (requirement.suite, requirement.metric, requirement.class_name)
        and requirement.mode in (None, record.mode)
        and requirement.mapper in (None, record.mapper)
        and requirement.condition in (None, record.condition)
    ]


def _plain(value: float | None) -> str:
    if value is None:
        return NOT_APPLICABLE
    return f'{value:.4g}' if math.isfinite(value) else str(value)


@dataclass(frozen=True)
class ClassTable:
    """Figures of every class.

    Parameters
    ----------
    groups : tuple of str
        Mapper and condition, each with the columns of CLASS_FIGURES.
    rows : tuple of (str, Cell, tuple of Cell)
        Class, share of the visible surface, figures.
    """

    groups: tuple[str, ...]
    rows: tuple[tuple[str, Cell, tuple[Cell, ...]], ...]


def class_table(runs: Sequence[Run]) -> ClassTable:
    """Return the strict and compat figures of every class, side by side."""
    scored = [run for run in runs if not run.failed]
    groups = list(dict.fromkeys((run.mapper, run.condition) for run in scored))
    surface = class_shares(scored)
    names = list(surface) + sorted(_scored_classes(scored) - set(surface))
    return ClassTable(
        tuple(f'{mapper} · {condition}' for mapper, condition in groups),
        tuple(
            (
                name,
                _percent(surface.get(name), digits=2),
                tuple(
                    _percent(
                        class_value(scored, *group, (SEGMENTATION, mode, metric), name), digits=1
                    )
                    for group in groups
                    for metric, mode, _ in CLASS_FIGURES
                ),
            )
            for name in names
        ),
    )


def _scored_classes(runs: Sequence[Run]) -> set[str]:
    return {
        name
        for run in runs
        for suite, _, metric, name in run.records
        if suite == SEGMENTATION and metric == 'iou' and name
    }


def _percent(share: float | None, digits: int) -> Cell:
    return ABSENT if share is None else Cell(f'{100 * share:.{digits}f}', repr(share))


@dataclass(frozen=True)
class FigureTable:
    """All figures over all classes: rows are metrics, columns runs."""

    runs: tuple[str, ...]
    rows: tuple[tuple[str, str, str, tuple[Cell, ...]], ...]


def figure_table(runs: Sequence[Run]) -> FigureTable:
    """Return every figure that is not about a single class."""
    scored = [run for run in runs if not run.failed]
    keys = list(dict.fromkeys(key for run in scored for key in run.records if not key[3]))
    several = len(distinct(run.scene for run in runs)) > 1
    return FigureTable(
        tuple(f'{run.title} · {run.scene}' if several else run.title for run in scored),
        tuple(
            (
                suite,
                mode or '',
                metric,
                tuple(_figure_cell(run.records.get((suite, mode, metric, ''))) for run in scored),
            )
            for suite, mode, metric, _ in keys
        ),
    )


def _figure_cell(record: Record | None) -> Cell:
    if record is None or record.value is None:
        return ABSENT
    interval = ''
    if record.low is not None and record.high is not None:
        interval = f'[{_plain(record.low)}, {_plain(record.high)}]'
    return Cell(_plain(record.value), repr(record.value), interval, note=f'{record.n} samples')
