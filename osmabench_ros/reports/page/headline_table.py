"""The headline metrics of runs, their means over scenes, and a sentence on them."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from osmabench_ros.metrics.comparison import Comparison, compare_with_reference
from osmabench_ros.metrics.statistics import LEAST_UNITS
from osmabench_ros.reports import tidy
from osmabench_ros.reports.cells import ABSENT, Cell, make_score_cell
from osmabench_ros.reports.charts.matrix_charts import SEGMENTATION
from osmabench_ros.reports.tidy import NOT_APPLICABLE, Headline, Run, select_table_headlines
from osmabench_ros.runs.run_manifest import read_manifest

ALPHA = 0.05


def build_machine_rows(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return date and machine of the runs as their folders say, by name; each value once."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        noted, report = read_manifest(run.plan.directory), run.plan.directory / 'report.json'
        host = noted.get('host') or {}
        stamp_s = report.stat().st_mtime if report.exists() else None
        facts = {
            'Date': stamp_s and datetime.fromtimestamp(stamp_s, timezone.utc).date().isoformat(),
            'CPU': host.get('cpu'),
            'GPU': ', '.join(host.get('gpus', ())) or (host and 'none'),
            'Operating system': host.get('os'),
            'Python': noted.get('versions', {}).get('python'),
            'Commit': noted.get('commit'),
        }
        for name, text in facts.items():
            if text:
                found.setdefault(name, {})[str(text)] = None
    return [(name, ' or '.join(texts)) for name, texts in found.items()]


_MISSING = Cell('missing', note='missing: a server failed')
_NO_VALUE = Cell(NOT_APPLICABLE, note='not applicable: the map gives nothing to compute it from')


def build_headline_table(
    runs: Sequence[Run], *, whole: bool = True
) -> tuple[list[Headline], list[tuple[Run, list[Cell]]]]:
    """Return the columns and the rows of the headline table; failed runs have no cells.

    No cell is the best if these are not the `whole` of the runs: of a part that would mislead.
    """
    columns = select_table_headlines(run.report.metrics for run in runs)
    scores = tidy.select_headline_scores(runs, columns)
    scores['best'] = tidy.mark_best_values(scores, ['headline']) & whole
    numbers = {item.title: item.format_value for item in columns}
    cells = {
        (row.run_id, row.headline): _NO_VALUE
        if math.isnan(row.value)
        else replace(make_score_cell(row, numbers[row.headline]), best=row.best)
        for row in scores.itertuples()
    }
    rows = []
    for run in runs:
        absent = _MISSING if run.report.error else _NO_VALUE
        found = [cells.get((run.plan.identity.run_id, item.title), absent) for item in columns]
        for place, item in enumerate(columns):
            if item.metric == 'accuracy':
                found[place] = replace(found[place], warning=_find_unbeaten_floor(run, item))
        rows.append((run, [] if run.failed else found))
    return columns, rows


def _find_unbeaten_floor(run: Run, headline: Headline) -> str:
    """Return which answers without a map are as good as the answers from the map."""
    own, constant, above = (
        None if item is None else item.value
        for metric in (headline.metric, 'baseline_most_frequent', 'accuracy_above_floor')
        for item in (run.records.get((headline.suite, headline.mode, metric, '')),)
    )
    if own is not None and constant is not None and own <= constant:
        return 'not above constant'
    return 'not above floor' if above is not None and above <= 0 else ''


def build_summary_table(runs: Sequence[Run]) -> list[tuple[str, str, int, list[Cell]]]:
    """Return condition, mapper, number of runs and means; empty with one run of each."""
    if len({run.plan.identity.place for run in runs}) < 2:
        return []
    columns = select_table_headlines(run.report.metrics for run in runs)
    scores = tidy.select_headline_scores(runs, columns)
    found = tidy.compute_means(scores, ['condition', 'mapper', 'headline'])
    found['best'] = tidy.mark_best_values(found, ['headline'])
    numbers = {item.title: item.format_value for item in columns}
    cells: dict[tuple[str, str], dict[str, Cell]] = defaultdict(dict)
    for row in found.itertuples():
        number, ends = numbers[row.headline], (min(row.units), max(row.units))
        spread = ' to '.join(map(number, ends)) if len(row.units) >= LEAST_UNITS else ''
        cell = Cell(number(row.value), repr(row.value), spread, row.best)
        cells[row.condition, row.mapper][row.headline] = cell
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
    shown = competing or scored
    condition = tidy.find_baseline_condition(runs if competing else scored)
    columns = select_table_headlines(run.report.metrics for run in shown)
    headline = next((item for item in columns if not item.is_baseline), None)
    if headline is None:
        return ''
    scores = tidy.select_headline_scores(shown, [headline])
    sign = 1 if scores['higher_is_better'].all() else -1
    here = scores[scores['condition'] == condition]
    means = tidy.compute_means(here, ['mapper'])
    means = means.sort_values('value', ascending=sign < 0, kind='stable')
    values = {row.mapper: _with_unit(headline, row.value) for row in means.itertuples()}
    if not values:
        return ''
    if not competing:
        found = ', '.join(f'{value} for {mapper}' for mapper, value in values.items())
        only = 'No method ran, only references that use ground truth'
        return f'{only}: under “{condition}”, {headline.title} is {found}.'
    best, *others = values
    rank = 'is best' if others else _describe_only_method(competing, headline)
    parts = [f'{best} {rank} under “{condition}”, with {headline.title} {values[best]}']
    places = tidy.group_by_place(here, 'mapper')
    for other in others[:1]:
        found = _compare({name: places[name] for name in (best, other)}, other).get(best)
        parts.append(_describe_lead(found, other, headline, sign))
    own = scores[scores['mapper'] == best]
    changes = _compare(tidy.group_by_place(own, 'condition'), condition)
    if changes:
        worst = min(changes, key=lambda name: sign * changes[name].paired.difference.value)
        by = _describe_difference(changes[worst], headline)
        loses = sign * changes[worst].paired.difference.value < 0
        parts.append(
            f'it loses most under “{worst}”, {by}'
            if loses
            else 'it loses under no other condition'
        )
    return '; '.join(parts) + '.'


def _describe_only_method(competing: Sequence[Run], headline: Headline) -> str:
    """Return a predicate: the only method without ground truth, or the only one with labels."""
    if len({run.mapper for run in competing}) == 1:
        return 'is the only method that does not use ground truth'
    asset = 'labels' if headline.suite == SEGMENTATION else headline.title
    return f'is the only method with {asset}'


def _describe_lead(found: Comparison | None, other: str, headline: Headline, sign: int) -> str:
    if found is None:
        return f'shares no scene with {other} (not compared)'
    ahead = sign * found.paired.difference.value >= 0
    side = f' {"ahead of" if ahead else "behind, on common scenes,"} {other}'
    return _describe_difference(found, headline, side)


def _compare(
    values: Mapping[str, Mapping[tuple[str, ...], float]], reference: str
) -> dict[str, Comparison]:
    compared = compare_with_reference(values, reference)
    return {name: item for name, item in compared.items() if item.paired.difference.n}


def _describe_difference(found: Comparison, headline: Headline, side: str = '') -> str:
    size = _with_unit(headline, abs(found.paired.difference.value), ' points')
    return f'{size}{side} ({_judge_difference(found)})'


def _judge_difference(found: Comparison) -> str:
    """Return whether a difference is more than chance, and by which test."""
    interval, p = found.paired.difference, found.adjusted_p
    over = f'{interval.n} {interval.unit if interval.n > 1 else interval.unit.rstrip("s")}'
    if math.isfinite(p):
        verdict = 'significant' if p <= ALPHA else 'not significant'
        return f'{verdict}: sign-flip test over {over}, adjusted by Holm, p = {p:.2g}'
    if math.isfinite(interval.low):
        which = 'excludes' if interval.excludes_zero else 'contains'
        return f'no test can tell: the 95 % t interval over {over} {which} 0'
    return f'{over} cannot tell whether that is chance'


def _with_unit(headline: Headline, value: float, unit: str = ' %') -> str:
    return f'{headline.format_value(value)}{unit if headline.percent else ""}'
