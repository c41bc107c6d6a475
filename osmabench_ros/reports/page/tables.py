"""The tables of the page: headline metrics and a sentence on them, classes, protocols, all."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import pandas as pd
import yaml

from osmabench_ros.metrics.comparison import Comparison, compare_with_reference
from osmabench_ros.metrics.confusion import NOTHING, OUTSIDE, read_confusions
from osmabench_ros.metrics.statistics import LEAST_UNITS
from osmabench_ros.reports import cells, matrix_charts, tidy
from osmabench_ros.reports.cells import ABSENT, Cell, build_cell_table
from osmabench_ros.reports.comparison import QUESTIONS
from osmabench_ros.reports.tidy import PLACE, Headline, Run, select_table_headlines
from osmabench_ros.runs.evaluation import ANSWERS_FOLDER
from osmabench_ros.runs.run_manifest import read_manifest
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.suites.promptgt import MEASUREMENTS, PROMPT, RELATIONS, STANDARD
from osmabench_ros.vqa.exact.prompt_ground_truth import SUITE as PROMPTGT

ALPHA = 0.05


def build_machine_rows(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return date and machine of the runs as their folders say, by name; each value once."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        noted = read_manifest(run.plan.directory)
        report = run.plan.directory / 'report.json'
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
_NO_VALUE = replace(ABSENT, note='not applicable: the map gives nothing to compute it from')


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
    shown = {
        (row.run_id, row.headline): _NO_VALUE
        if math.isnan(row.value)
        else replace(cells.make_score_cell(row, numbers[row.headline]), best=row.best)
        for row in scores.itertuples()
    }
    rows = []
    for run in runs:
        absent = _MISSING if run.report.error else _NO_VALUE
        found = [shown.get((run.plan.identity.run_id, item.title), absent) for item in columns]
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
    shown: dict[tuple[str, str], dict[str, Cell]] = defaultdict(dict)
    for row in found.itertuples():
        number = numbers[row.headline]
        ends = (min(row.units), max(row.units))
        spread = ' to '.join(map(number, ends)) if len(row.units) >= LEAST_UNITS else ''
        cell = Cell(number(row.value), repr(row.value), spread, row.best)
        shown[row.condition, row.mapper][row.headline] = cell
    counts = Counter((run.condition, run.mapper) for run in runs if not run.failed)
    return [
        (*group, counts[group], [own.get(item.title, ABSENT) for item in columns])
        for group, own in shown.items()
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
        lead = _compare({name: places[name] for name in (best, other)}, other).get(best)
        parts.append(_describe_lead(lead, other, headline, sign))
    own = scores[scores['mapper'] == best]
    changes = _compare(tidy.group_by_place(own, 'condition'), condition)
    if changes:
        worst = min(changes, key=lambda name: sign * changes[name].paired.difference.value)
        by = _describe_difference(changes[worst], headline)
        loses = sign * changes[worst].paired.difference.value < 0
        lost = f'most under “{worst}”, {by}' if loses else 'under no other condition'
        parts.append(f'it loses {lost}')
    return '; '.join(parts) + '.'


def _describe_only_method(competing: Sequence[Run], headline: Headline) -> str:
    """Return a predicate: the only method without ground truth, or the only one with labels."""
    if len({run.mapper for run in competing}) == 1:
        return 'is the only method that does not use ground truth'
    asset = 'labels' if headline.suite == matrix_charts.SEGMENTATION else headline.title
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


CLASS_METRICS = (
    ('iou', 'strict', 'IoU strict'),
    ('iou', 'compat', 'IoU compat'),
    ('class_accuracy', 'strict', 'Acc strict'),
    ('class_accuracy', 'compat', 'Acc compat'),
)


def build_class_table(runs: Sequence[Run]) -> tuple[list[str], list[tuple[str, Cell, list[Cell]]]]:
    """Return methods, and of each class its fraction of the visible surface and its metrics.

    The metrics of `CLASS_METRICS` come side by side, for one mapper and condition after the other.
    """
    scores = tidy.build_score_table(runs)
    scores = scores[(scores['suite'] == matrix_charts.SEGMENTATION) & (scores['class_name'] != '')]
    keys = ['class_name', 'metric', 'mode', 'condition', 'mapper']
    values = tidy.compute_means(scores, keys).set_index(keys)['value']
    groups = list(dict.fromkeys((run.condition, run.mapper) for run in runs if not run.failed))
    surface = matrix_charts.compute_class_shares(scores)
    others = set(scores.loc[scores['metric'] == 'iou', 'class_name']) - set(surface)
    rows = []
    for name in [*surface, *sorted(others)]:
        shown = [
            cells.scale_cell(values.get((name, metric, mode, *group)), 100, 1)
            for group in groups
            for metric, mode, _ in CLASS_METRICS
        ]
        rows.append((name, cells.scale_cell(surface.get(name), 100, 2), shown))
    return [f'{mapper} · {condition}' for condition, mapper in groups], rows


def build_metric_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Return every metric that is not about a single class, a column per run."""
    scores = tidy.build_score_table(runs)
    table = build_cell_table(scores[scores['class_name'] == ''], tidy.METRIC[:3], 'run_id')
    titles = tidy.make_full_titles(runs)
    return table.rename(columns={run.report.run_id: title for run, title in titles.items()})


MOST_CONFUSED = 14
_CONFUSIONS = 'confusion_strict.npz'
_NOT_CLASSES = {OUTSIDE: 'no class', NOTHING: 'nothing'}
_OTHERS = 'another class'


def build_confusion_tables(
    runs: Sequence[Run], label_sets: Mapping[str, LabelSet]
) -> dict[str, pd.DataFrame]:
    """Return of each mapper under the baseline condition what classes were taken for, in percent.

    By strict rules, over its scenes: rows are classes, the largest first, columns predictions.
    References come last.
    """
    condition = tidy.find_baseline_condition(runs)
    references = tidy.find_reference_mappers(runs)
    mappers = tidy.list_distinct(run.mapper for run in runs if run.condition == condition)
    tables = {}
    for mapper in sorted(mappers, key=lambda name: name in references):
        own = [run for run in runs if (run.mapper, run.condition) == (mapper, condition)]
        counts = list(_read_counts(own, label_sets))
        if counts:
            tables[f'{mapper} · {condition}'] = _compute_fractions(pd.concat(counts))
    return tables


def _read_counts(runs: Sequence[Run], label_sets: Mapping[str, LabelSet]) -> Iterator[pd.Series]:
    """Yield numbers of points by the names of the true and of the predicted class."""
    for run in runs:
        file = run.plan.directory / ANSWERS_FOLDER / _CONFUSIONS
        known = label_sets.get(run.scene)
        if known is None or not file.exists():
            continue
        for matrix in read_confusions(file).values():
            labels = matrix.labels.tolist()
            names = [_NOT_CLASSES.get(item) or known.name_of(item) for item in labels]
            yield pd.DataFrame(matrix.counts, names, names).stack()


def _compute_fractions(counts: pd.Series) -> pd.DataFrame:
    others = list(_NOT_CLASSES.values())
    table = counts.groupby(level=[0, 1], sort=False).sum().unstack(fill_value=0)
    sizes = table.drop(index=others, errors='ignore').sum(axis=1)
    shown = sizes[sizes > 0].sort_values(ascending=False, kind='stable').index[:MOST_CONFUSED]
    rows = table.loc[shown].reindex(columns=[*shown, *others], fill_value=0)
    rows.insert(len(shown), _OTHERS, sizes[shown] - rows.sum(axis=1))
    return 100 * rows.div(sizes[shown], axis=0)


# Categories of the exact questions in each block that OSMa-Bench++ compares.
_KNOWN = Path(__file__).with_name('protocol_tables.yaml')
_STANDARD = {
    MEASUREMENTS: ('Measurement',),
    RELATIONS: ('Relations-Spatial', 'Relations-Functional'),
}


@dataclass(frozen=True)
class ProtocolTable:
    """A table of one suite, a row per run or per metric of a run; `charts` are shown below it."""

    suite: str
    caption: str
    cells: pd.DataFrame
    charts: tuple[str, ...] = ()


def build_protocol_tables(runs: Sequence[Run]) -> list[ProtocolTable]:
    """Return what each protocol reports of the runs that it scored."""
    scores = tidy.build_score_table(runs)
    known = yaml.safe_load(_KNOWN.read_text(encoding='utf-8'))
    tables = [_build_table(scores, **row) for row in known]
    found = (*_build_by_kind(scores), *tables, *_build_prompt_tables(scores))
    return [table for table in found if not table.cells.empty]


def _build_by_kind(scores: pd.DataFrame) -> Iterator[ProtocolTable]:
    asked = scores[
        (scores['metric'] == 'accuracy') & (scores['class_name'] != '')
        & (scores['mode'] != 'compat') & ~scores['suite'].isin([QUESTIONS, PROMPTGT])
    ]  # fmt: skip
    caption = 'Fraction of questions that the map answers rightly, by kind, in percent'
    for suite, mode in asked[['suite', 'mode']].drop_duplicates().itertuples(index=False):
        yield _build_table(scores, suite, caption, {'accuracy': ''}, mode, classes_of='accuracy')


def _build_table(
    scores: pd.DataFrame,
    suite: str,
    caption: str,
    metrics: Mapping[str, str],
    mode: str = '',
    classes_of: str = '',
) -> ProtocolTable:
    """Return the table of some metrics of a suite, as `protocol_tables.yaml` has it."""
    own = scores[(scores['suite'] == suite) & (scores['mode'] == mode)]
    asked = own[(own['metric'] == classes_of) & (own['class_name'] != '')]
    chosen = own['run_id'].isin(asked['run_id']) if classes_of else own['class_name'] == ''
    own = own[chosen & own['metric'].isin(metrics)].copy()
    own['label'] = pd.Categorical(own['metric'].map(metrics), list(metrics.values()))
    own['title'] = pd.Categorical(own['title'], own['title'].unique())
    own = own.sort_values(['title', 'label'], kind='stable').astype({'label': str, 'title': str})
    if not classes_of:
        frames = own['metric'].str.startswith('frames')
        parts = (own[~frames], cells.format_percent), (own[frames], cells.format_plain)
        tables = [build_cell_table(part, ['title'], 'label', number) for part, number in parts]
        return ProtocolTable(suite, caption, pd.concat(tables, axis=1).fillna(ABSENT))
    pairs = zip(own['title'], own['label'], strict=True)
    own['row'] = [' · '.join(filter(None, pair)) for pair in pairs]
    order = ['', *asked['class_name'].unique()]
    table = build_cell_table(own, ['row'], 'class_name', cells.format_percent, order)
    charts = matrix_charts.list_question_charts()
    shown = tuple(item.name for item in charts if item.suite == suite)
    return ProtocolTable(suite, caption, table.rename(columns={'': 'all'}), shown)


def _build_prompt_tables(scores: pd.DataFrame) -> Iterator[ProtocolTable]:
    own = scores[scores['suite'] == PROMPTGT]
    quality = own[(own['metric'] == 'accuracy_faithful') & (own['class_name'] == '')]
    asked = scores[scores['run_id'].isin(quality['run_id'])]
    blocks = pd.concat([*_read_blocks(asked), quality.assign(label='map quality')])
    names = [f'{source} | {block}' for block in _STANDARD for source in (STANDARD, PROMPT)]
    order = [*names, 'map quality']
    yield ProtocolTable(
        PROMPTGT,
        'Right answers in percent, in the blocks that OSMa-Bench++ compares: exact questions '
        'about the scene, and questions whose answers the prompt gives; then only those '
        'that the scene answers as its prompt does: the quality of the map',
        build_cell_table(blocks, ['title'], 'label', cells.format_percent, order),
    )
    fidelity = asked[(asked['suite'] == PROMPTGT) & (asked['metric'] == 'fidelity')]
    fidelity = fidelity.drop_duplicates([*PLACE[:2], 'class_name'])
    table = build_cell_table(fidelity, ['where'], 'class_name', cells.format_percent)
    yield ProtocolTable(
        PROMPTGT,
        'Prompt fidelity: share of what the prompt asks for that the scene holds, in percent, '
        'whatever is mapped',
        table.rename(columns={'': 'all'}),
    )


def _read_blocks(asked: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the accuracy in each block, of exact questions and of questions from prompts."""
    exact = asked[(asked['suite'] == QUESTIONS) & (asked['metric'] == 'accuracy')]
    given = asked[(asked['suite'] == PROMPTGT) & (asked['metric'] == 'accuracy_block')]
    for block, categories in _STANDARD.items():
        own = exact[exact['class_name'].isin(categories)].dropna(subset=['value'])
        own = own.assign(value=own['value'] * own['n'])
        sums = own.groupby('title', sort=False, as_index=False)[['value', 'n']].sum()
        yield sums.assign(value=sums['value'] / sums['n'], label=f'{STANDARD} | {block}')
        yield given[given['class_name'] == block].assign(label=f'{PROMPT} | {block}')
