"""The headline figures of runs, and their means over scenes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from osmabench_ros.base.files import read_json
from osmabench_ros.errors import RunError
from osmabench_ros.reports.cells import ABSENT, Cell, record_cell
from osmabench_ros.reports.headline import NOT_APPLICABLE, Headline
from osmabench_ros.reports.report_run import (
    MeanFigure,
    Run,
    computed_headlines,
    estimate,
)

TIMINGS = 'timings.json'


@dataclass(frozen=True)
class CostRow:
    """Cost of mapping in a run as text, with the sign for "not applicable" where unknown."""

    title: str
    frames: str
    mapping_s: str
    frames_per_second: str
    mapper_memory_mib: str
    mapper_gpu_memory_mib: str


def cost_rows(runs: Sequence[Run]) -> list[CostRow]:
    """Return a row for every run that was timed; raises RunError on a malformed timings.json."""
    rows = []
    for run in runs:
        file = run.plan.directory / TIMINGS
        if not file.exists():
            continue
        data = read_json(file)
        if not isinstance(data, dict):
            raise RunError(f'{file}: must hold an object of timings; delete it')
        rows.append(
            CostRow(
                f'{run.title} · {run.scene}',
                _text(data.get('frames'), 0),
                _text(data.get('mapping_s'), 1),
                _text(data.get('mapping_frames_per_second'), 2),
                _mebibytes(data.get('mapper_peak_memory_bytes')),
                _mebibytes(data.get('mapper_peak_gpu_memory_bytes')),
            )
        )
    return rows


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _mebibytes(value: Any) -> str:
    number = _number(value)
    return _text(None if number is None else number / 2**20, 0)


def _text(value: Any, digits: int) -> str:
    number = _number(value)
    return NOT_APPLICABLE if number is None else f'{number:.{digits}f}'


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
    """Return the best value of a column; None with fewer than two different values."""
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
    return replace(
        record_cell(record, headline.number),
        best=best is not None and record.value == best,
        warning=_warning(run, headline, record.value),
    )


def _warning(run: Run, headline: Headline, value: float) -> str:
    """Warn if a map answers no better than the most frequent answer without a map."""
    if headline.metric != 'accuracy':
        return ''
    constant = run.records.get((headline.suite, headline.mode, 'baseline_most_frequent', ''))
    if constant is None or constant.value is None or value > constant.value:
        return ''
    return 'not above constant'


@dataclass(frozen=True)
class SummaryRow:
    """Means of a mapper under a condition over its scenes, and how many runs they are of."""

    condition: str
    mapper: str
    runs: int
    cells: tuple[Cell, ...]


def summary_table(runs: Sequence[Run]) -> list[SummaryRow]:
    """Return the means over scenes by condition and mapper; empty with one run of each."""
    scored = [run for run in runs if not run.failed]
    if len({run.plan.identity.place for run in runs}) < 2:
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


def _best_mean(headline: Headline, means: Sequence[MeanFigure | None]) -> float | None:
    values = {mean.value for mean in means if mean is not None}
    return None if headline.is_baseline or len(values) < 2 else max(values)


def _mean_cell(headline: Headline, mean: MeanFigure | None, best: float | None) -> Cell:
    if mean is None:
        return ABSENT
    low, high = (headline.number(pick(mean.units)) for pick in (min, max))
    return Cell(
        headline.number(mean.value), repr(mean.value), f'{low} to {high}', mean.value == best
    )
