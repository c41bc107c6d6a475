"""The headline figures of runs, and their means over scenes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from osmabench_ros.metrics.comparison import Comparison, compare_with_reference
from osmabench_ros.metrics.statistics import LEAST_UNITS
from osmabench_ros.reports.cells import ABSENT, Cell, record_cell
from osmabench_ros.reports.charts.class_chart import SEGMENTATION
from osmabench_ros.reports.headline import NOT_APPLICABLE, Headline, table_headlines
from osmabench_ros.reports.report_run import (
    MeanFigure,
    Run,
    baseline_condition,
    by_place,
    distinct,
    estimate,
)
from osmabench_ros.runs.run_manifest import read_manifest
from osmabench_ros.runs.timings import TIMINGS, read_measurements

ALPHA = 0.05


@dataclass(frozen=True)
class CostRow:
    """Cost of mapping in a run as text, with the sign for "not applicable" where unknown."""

    title: str
    frames: str
    mapping_s: str
    frames_per_second: str
    final_map_s: str
    mapper_memory_mib: str
    mapper_gpu_memory_mib: str


def cost_rows(runs: Sequence[Run]) -> list[CostRow]:
    """Return a row for every run that was timed; raises RunError on a malformed timings.json."""
    found = [(run, read_measurements(run.plan.directory / TIMINGS)) for run in runs]
    return [
        CostRow(
            f'{run.title} · {run.scene}',
            _text(measured.frames, 0),
            _text(measured.mapping_s, 1),
            _text(measured.frames_per_second, 2),
            _text(measured.final_map_s, 1),
            _mebibytes(measured.mapper_memory_bytes),
            _mebibytes(measured.mapper_gpu_memory_bytes),
        )
        for run, measured in found
        if measured is not None
    ]


def machine_rows(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return date and machine of the runs as their folders say, by name; each value once."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        folder = run.plan.directory
        noted = read_manifest(folder)
        host = noted.get('host') or {}
        facts = {
            'Date': _date(folder / 'report.json'),
            'CPU': host.get('cpu', ''),
            'GPU': ', '.join(host.get('gpus', ())) or ('none' if host else ''),
            'Operating system': host.get('os', ''),
            'Python': noted.get('versions', {}).get('python', ''),
            'Commit': noted.get('commit', ''),
        }
        for name, text in facts.items():
            if text:
                found.setdefault(name, {})[str(text)] = None
    return [(name, ' or '.join(texts)) for name, texts in found.items()]


def _date(file: Path) -> str:
    if not file.exists():
        return ''
    return datetime.fromtimestamp(file.stat().st_mtime, timezone.utc).date().isoformat()


def _mebibytes(count: int | None) -> str:
    return _text(None if count is None else count / 2**20, 0)


def _text(value: float | None, digits: int) -> str:
    return NOT_APPLICABLE if value is None else f'{value:.{digits}f}'


@dataclass(frozen=True)
class HeadlineRow:
    """A run in the headline table; a failed one has an error and no cells."""

    run: Run
    cells: tuple[Cell, ...]


def headline_table(
    runs: Sequence[Run], *, whole: bool = True
) -> tuple[list[Headline], list[HeadlineRow]]:
    """Return the columns and the rows of the headline table.

    No cell is the best if these are not the `whole` of the runs: of a part that would mislead.
    """
    headlines = table_headlines(run.report.metrics for run in runs)
    best = {item: _best(runs, item) if whole else None for item in headlines}
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
    found = [
        (run.mapper, value)
        for run in runs
        if not run.is_reference and (value := run.value(headline)) is not None
    ]
    mappers, values = {mapper for mapper, _ in found}, {value for _, value in found}
    if headline.is_baseline or len(mappers) < 2 or len(values) < 2:
        return None
    return max(values) if higher_is_better(runs, headline) else min(values)


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
        best=best is not None and record.value == best and not run.is_reference,
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
    headlines = table_headlines(run.report.metrics for run in runs)
    references = {run.mapper for run in runs if run.is_reference}
    groups = list(dict.fromkeys((run.condition, run.mapper) for run in scored))
    means = {
        (group, item): estimate(scored, group[1], group[0], item)
        for group in groups
        for item in headlines
    }
    ranked = [group for group in groups if group[1] not in references]
    competing = [run for run in scored if not run.is_reference]
    best = {
        item: _best_mean(competing, item, [means[group, item] for group in ranked])
        for item in headlines
    }
    return [
        SummaryRow(
            *group,
            sum((run.condition, run.mapper) == group for run in scored),
            tuple(
                _mean_cell(item, means[group, item], best[item] if group in ranked else None)
                for item in headlines
            ),
        )
        for group in groups
    ]


def _best_mean(
    runs: Sequence[Run], headline: Headline, means: Sequence[MeanFigure | None]
) -> float | None:
    values = {mean.value for mean in means if mean is not None}
    if headline.is_baseline or len(values) < 2 or len({run.mapper for run in runs}) < 2:
        return None
    return max(values) if higher_is_better(runs, headline) else min(values)


def higher_is_better(runs: Sequence[Run], headline: Headline) -> bool:
    """Return the direction of a figure, upwards if no run has it."""
    found = (record for run in runs if (record := run.headline(headline)) is not None)
    return next((record.higher_is_better for record in found), True)


def _mean_cell(headline: Headline, mean: MeanFigure | None, best: float | None) -> Cell:
    if mean is None:
        return ABSENT
    spread = ''
    if len(mean.units) >= LEAST_UNITS:
        spread = ' to '.join(headline.number(pick(mean.units)) for pick in (min, max))
    return Cell(headline.number(mean.value), repr(mean.value), spread, mean.value == best)


def headline_sentence(runs: Sequence[Run]) -> str:
    """Return what the figures say: the best method, where it loses, and what a test says of it.

    Methods that are given the truth do not take part; where no other ran, their figures are given
    without a rank. '' without figures.
    """
    scored = [run for run in runs if not run.failed]
    competing = [run for run in scored if not run.is_reference]
    if not competing:
        return _of_references(scored)
    columns = table_headlines(run.report.metrics for run in competing)
    headline = next((item for item in columns if not item.is_baseline), None)
    if headline is None:
        return ''
    condition, sign = baseline_condition(runs), -1 + 2 * higher_is_better(competing, headline)
    means = {
        mapper: sign * found.value
        for mapper in distinct(run.mapper for run in competing)
        if (found := estimate(competing, mapper, condition, headline)) is not None
    }
    if not means:
        return ''
    ordered = sorted(means, key=lambda mapper: -means[mapper])
    best, others = ordered[0], ordered[1:]
    value = _with_unit(headline, sign * means[best])
    rank = 'is best' if others else _only(competing, headline)
    parts = [f'{best} {rank} under “{condition}”, with {headline.title} {value}']
    if others:
        figures = {name: by_place(competing, name, condition, headline) for name in ordered[:2]}
        parts.append(f'{_ahead(figures, others[0], headline, sign)} {others[0]}')
        parts[-1] += f' ({_verdict(figures, others[0])})'
    lost = {
        other: by_place(competing, best, other, headline)
        for other in distinct(run.condition for run in competing)
    }
    changes = _compared(lost, condition)
    if changes:
        worst = min(changes, key=lambda name: sign * changes[name].paired.difference.value)
        change = changes[worst].paired.difference.value
        if sign * change < 0:
            by = _with_unit(headline, abs(change), points=True)
            parts.append(
                f'it loses most under “{worst}”, {by} ({_verdict(lost, condition, worst)})'
            )
        else:
            parts.append('it loses under no other condition')
    return '; '.join(parts) + '.'


def _only(competing: Sequence[Run], headline: Headline) -> str:
    """Return in what a method is alone among those that were not told the truth."""
    if len({run.mapper for run in competing}) == 1:
        return 'is the only method that is not told the truth'
    figure = 'labels' if headline.suite == SEGMENTATION else headline.title
    return f'is the only method with {figure}'


def _of_references(runs: Sequence[Run]) -> str:
    columns = table_headlines(run.report.metrics for run in runs)
    headline = next((item for item in columns if not item.is_baseline), None)
    if headline is None:
        return ''
    condition = baseline_condition(runs)
    figures = [
        f'{_with_unit(headline, found.value)} for {mapper}'
        for mapper in distinct(run.mapper for run in runs)
        if (found := estimate(runs, mapper, condition, headline)) is not None
    ]
    if not figures:
        return ''
    return (
        'No method ran, only references that are told the truth: under '
        f'“{condition}”, {headline.title} is {", ".join(figures)}.'
    )


Values = Mapping[str, Mapping[tuple[str, ...], float]]


def _ahead(figures: Values, other: str, headline: Headline, sign: int) -> str:
    found = next(iter(_compared(figures, other).values()), None)
    if found is None:
        return 'shares no scene with'
    change = found.paired.difference.value
    by = _with_unit(headline, abs(change), points=True)
    return f'{by} {"ahead of" if sign * change >= 0 else "behind, on common scenes,"}'


def _compared(figures: Values, reference: str) -> dict[str, Comparison]:
    figures = {name: found for name, found in figures.items() if found}
    if reference not in figures:
        return {}
    compared = compare_with_reference(figures, reference)
    return {name: item for name, item in compared.items() if item.paired.difference.n}


def _verdict(figures: Values, reference: str, other: str = '') -> str:
    """Return whether a difference is more than chance, and by which test."""
    compared = _compared(figures, reference)
    found = compared.get(other) or next(iter(compared.values()), None)
    if found is None:
        return 'not compared'
    interval, p = found.paired.difference, found.adjusted_p
    over = f'{interval.n} {interval.unit if interval.n > 1 else interval.unit.rstrip("s")}'
    if math.isfinite(p):
        verdict = 'significant' if p <= ALPHA else 'not significant'
        return f'{verdict}: sign-flip test over {over}, adjusted by Holm, p = {p:.2g}'
    if math.isfinite(interval.low):
        which = 'excludes' if interval.excludes_zero else 'contains'
        return f'no test can tell: the 95 % t interval over {over} {which} 0'
    return f'{over} cannot tell whether that is chance'


def _with_unit(headline: Headline, value: float, *, points: bool = False) -> str:
    unit = (' points' if points else ' %') if headline.percent else ''
    return f'{headline.number(value)}{unit}'
