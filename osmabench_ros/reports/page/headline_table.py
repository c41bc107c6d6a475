"""The headline metrics of runs, and their means over scenes."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd

from osmabench_ros.metrics.comparison import Comparison, compare_with_reference
from osmabench_ros.metrics.statistics import LEAST_UNITS
from osmabench_ros.reports.cells import ABSENT, Cell, Column, make_field_cells, score_cell
from osmabench_ros.reports.charts.class_chart import SEGMENTATION
from osmabench_ros.reports.headline import NOT_APPLICABLE, Headline, select_table_headlines
from osmabench_ros.reports.report_run import (
    Run,
    by_place,
    compute_best_values,
    find_baseline_condition,
    means,
    select_headline_scores,
)
from osmabench_ros.runs.run_manifest import read_manifest
from osmabench_ros.runs.timings import TIMINGS, read_measurements

ALPHA = 0.05


COST_COLUMNS = (
    Column('Frames', 'frames'),
    Column('Mapping, s', 'mapping_s', 1, 1),
    Column('Frames/s', 'frames_per_second', 1, 2),
    Column('From the last frame to the map, s', 'final_map_s', 1, 1),
    Column('Peak memory of the mapper, MiB', 'mapper_memory_bytes', 2**-20),
    Column('Peak GPU memory of the mapper, MiB', 'mapper_gpu_memory_bytes', 2**-20),
)


def build_cost_rows(runs: Sequence[Run]) -> list[tuple[str, list[Cell]]]:
    """Return title and cells of each run that was timed; RunError on a malformed timings.json."""
    found = [(run, read_measurements(run.plan.directory / TIMINGS)) for run in runs]
    return [
        (f'{run.title} · {run.scene}', make_field_cells(measured, COST_COLUMNS))
        for run, measured in found
        if measured is not None
    ]


def build_machine_rows(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return date and machine of the runs as their folders say, by name; each value once."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        folder = run.plan.directory
        noted = read_manifest(folder)
        host = noted.get('host') or {}
        facts = {
            'Date': _format_date(folder / 'report.json'),
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


def _format_date(file: Path) -> str:
    if not file.exists():
        return ''
    return datetime.fromtimestamp(file.stat().st_mtime, timezone.utc).date().isoformat()


def build_headline_table(
    runs: Sequence[Run], *, whole: bool = True
) -> tuple[list[Headline], list[tuple[Run, list[Cell]]]]:
    """Return the columns and the rows of the headline table; failed runs have no cells.

    No cell is the best if these are not the `whole` of the runs: of a part that would mislead.
    """
    columns = select_table_headlines(run.report.metrics for run in runs)
    scores = select_headline_scores(runs, columns)
    best = compute_best_values(scores, ['headline']) if whole else {}
    cells: dict[str, dict[str, Cell]] = defaultdict(dict)
    shown = ['run_id', 'headline', 'value', 'low', 'high', 'n', 'reference']
    for row in scores[shown].itertuples():
        cells[row.run_id][row.headline] = _make_headline_cell(row, columns, best)
    return columns, [(run, _make_cells_of_run(run, columns, cells)) for run in runs]


def _make_cells_of_run(
    run: Run, columns: Sequence[Headline], cells: Mapping[str, Mapping[str, Cell]]
) -> list[Cell]:
    if run.failed:
        return []
    absent = Cell('missing', note='missing: a server failed') if run.report.error else _NO_VALUE
    own = cells[run.plan.identity.run_id]
    found = [own.get(item.title, absent) for item in columns]
    for place, item in enumerate(columns):
        if item.metric == 'accuracy' and _is_no_better_than_constant(run, item):
            found[place] = replace(found[place], warning='not above constant')
    return found


_NO_VALUE = Cell(NOT_APPLICABLE, note='not applicable: the map gives nothing to compute it from')


def _make_headline_cell(row: Any, columns: Sequence[Headline], best: Mapping[str, float]) -> Cell:
    item = next(item for item in columns if item.title == row.headline)
    if pd.isna(row.value):
        return _NO_VALUE
    is_best = row.value == best.get(row.headline) and not (row.reference or item.is_baseline)
    return replace(score_cell(row, item.number), best=is_best)


def _is_no_better_than_constant(run: Run, headline: Headline) -> bool:
    """Return whether a map answers no better than the most frequent answer without a map."""
    own, constant = (
        run.records.get((headline.suite, headline.mode, metric, ''))
        for metric in (headline.metric, 'baseline_most_frequent')
    )
    values = [item.value for item in (own, constant) if item and item.value is not None]
    return len(values) == 2 and values[0] <= values[1]


def build_summary_table(runs: Sequence[Run]) -> list[tuple[str, str, int, list[Cell]]]:
    """Return condition, mapper, number of runs and means; empty with one run of each."""
    if len({run.plan.identity.place for run in runs}) < 2:
        return []
    columns = select_table_headlines(run.report.metrics for run in runs)
    found = means(select_headline_scores(runs, columns), ['condition', 'mapper', 'headline'])
    best = compute_best_values(found, ['headline'])
    cells: dict[tuple[str, str], dict[str, Cell]] = {}
    for row in found.itertuples():
        item = next(item for item in columns if item.title == row.headline)
        spread = ''
        if len(row.units) >= LEAST_UNITS:
            spread = ' to '.join(item.number(pick(row.units)) for pick in (min, max))
        is_best = row.value == best.get(row.headline) and not (row.reference or item.is_baseline)
        cell = Cell(item.number(row.value), repr(row.value), spread, is_best)
        cells.setdefault((row.condition, row.mapper), {})[row.headline] = cell
    counts = Counter((run.condition, run.mapper) for run in runs if not run.failed)
    return [
        (*group, counts[group], [own.get(item.title, ABSENT) for item in columns])
        for group, own in cells.items()
    ]


def write_headline_sentence(runs: Sequence[Run]) -> str:
    """Return a summary of the metrics: the best method, where it loses, and the test's verdict.

    Methods that read ground truth do not take part; where no other ran, their scores are given
    without a rank. '' without scores.
    """
    scored = [run for run in runs if not run.failed]
    competing = [run for run in scored if not run.is_reference]
    if not competing:
        return _describe_references(scored)
    condition = find_baseline_condition(runs)
    headline, scores, ordered = _order_methods(competing, condition)
    if headline is None or not ordered:
        return ''
    sign = 1 if scores['higher_is_better'].iloc[0] else -1
    (best, highest), *others = ordered.items()
    value = _with_unit(headline, highest)
    rank = 'is best' if others else _describe_only_method(competing, headline)
    parts = [f'{best} {rank} under “{condition}”, with {headline.title} {value}']
    if others:
        second, _ = others[0]
        found = by_place(scores[scores['condition'] == condition], 'mapper')
        pair = {name: found[name] for name in (best, second)}
        lead = _describe_lead(pair, second, headline, sign)
        parts.append(f'{lead} {second} ({_judge_difference(pair, second)})')
    lost = by_place(scores[scores['mapper'] == best], 'condition')
    changes = _compare_methods(lost, condition)
    if changes:
        worst = min(changes, key=lambda name: sign * changes[name].paired.difference.value)
        change = changes[worst].paired.difference.value
        if sign * change < 0:
            by = _with_unit(headline, abs(change), points=True)
            verdict = _judge_difference(lost, condition, worst)
            parts.append(f'it loses most under “{worst}”, {by} ({verdict})')
        else:
            parts.append('it loses under no other condition')
    return '; '.join(parts) + '.'


def _describe_only_method(competing: Sequence[Run], headline: Headline) -> str:
    """Return a predicate: the only method without ground truth, or the only one with labels."""
    if len({run.mapper for run in competing}) == 1:
        return 'is the only method that does not use ground truth'
    figure = 'labels' if headline.suite == SEGMENTATION else headline.title
    return f'is the only method with {figure}'


def _describe_references(runs: Sequence[Run]) -> str:
    condition = find_baseline_condition(runs)
    headline, _, values = _order_methods(runs, condition)
    if headline is None or not values:
        return ''
    found = ', '.join(f'{_with_unit(headline, x)} for {mapper}' for mapper, x in values.items())
    return (
        'No method ran, only references that use ground truth: under '
        f'“{condition}”, {headline.title} is {found}.'
    )


def _order_methods(
    runs: Sequence[Run], condition: str
) -> tuple[Headline | None, pd.DataFrame, dict[str, float]]:
    """Return the first headline metric, its scores, and means by mapper, the best first."""
    columns = select_table_headlines(run.report.metrics for run in runs)
    first = [item for item in columns if not item.is_baseline][:1]
    scores = select_headline_scores(runs, first)
    found = means(scores[scores['condition'] == condition], ['mapper'])
    lowest_first = not scores['higher_is_better'].all()
    found = found.sort_values('value', ascending=lowest_first, kind='stable')
    values = dict(zip(found['mapper'], found['value'], strict=True))
    return next(iter(first), None), scores, values


Values = Mapping[str, Mapping[tuple[str, ...], float]]


def _describe_lead(figures: Values, other: str, headline: Headline, sign: int) -> str:
    found = next(iter(_compare_methods(figures, other).values()), None)
    if found is None:
        return 'shares no scene with'
    change = found.paired.difference.value
    by = _with_unit(headline, abs(change), points=True)
    return f'{by} {"ahead of" if sign * change >= 0 else "behind, on common scenes,"}'


def _compare_methods(figures: Values, reference: str) -> dict[str, Comparison]:
    figures = {name: found for name, found in figures.items() if found}
    if reference not in figures:
        return {}
    compared = compare_with_reference(figures, reference)
    return {name: item for name, item in compared.items() if item.paired.difference.n}


def _judge_difference(figures: Values, reference: str, other: str = '') -> str:
    """Return whether a difference is more than chance, and by which test."""
    compared = _compare_methods(figures, reference)
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
