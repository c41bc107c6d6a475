"""Changes between two results: paired differences of metrics, and thresholds on them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from osmabench_ros.base.files import read_json
from osmabench_ros.base.strict import read_model
from osmabench_ros.errors import ConfigError, RunError, suggestion
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.statistics import LEAST_UNITS, compare_pairs
from osmabench_ros.reports.tidy import METRIC, list_distinct, read_headlines
from osmabench_ros.runs.evaluation import REPORT, UNKNOWN
from osmabench_ros.runs.identity import Seeds, is_run_name
from osmabench_ros.runs.matrix_on_disk import RunState, matrices_at
from osmabench_ros.runs.report_model import MatrixReport, RunReport, Status, check_alike
from osmabench_ros.runs.run_manifest import MANIFEST

# Columns that name a metric of a mapper under a condition; `class_name` is '' over all.
_CHANGED = ['mapper', 'condition', *METRIC]
_RUN = ['dataset', 'scene', 'seeds', 'condition', 'mapper', 'simulator', 'speed']


# From three scenes on the interval of a change decides, unclear if it has 0; else its sign.
VERDICTS = 'better', 'worse', 'unclear', 'equal'


@dataclass(frozen=True, eq=False)
class ResultChanges:
    """All changes, and the runs that only one of the results has.

    `table` has a row per metric of `_CHANGED` that both have: `before` and `after` are means over
    the scenes, of each the mean over its seeds, `difference` is after - before with its interval
    over the scenes, `gain` is positive if it got better. `lost` are metrics of runs of both of
    which only the first result has a value, `remarks` those that only the second result has.
    """

    table: pd.DataFrame
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    lost: pd.DataFrame
    remarks: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many changes have each verdict."""
        found = self.table['verdict'].value_counts()
        return {verdict: int(found.get(verdict, 0)) for verdict in VERDICTS}

    @property
    def shown(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Changes over all classes and of single ones, the clearest first; none that is equal."""
        moved = self.table[self.table['verdict'] != 'equal']
        unclear = moved['verdict'] == 'unclear'
        order = moved.assign(unclear=unclear, less=-moved['gain'].abs())
        clearest = order.sort_values(['unclear', 'less'], kind='stable')
        return moved[moved['class_name'] == ''], clearest[clearest['class_name'] != '']

    @property
    def sentence(self) -> str:
        """What changed in the headline metrics, and whether that is more than chance."""
        overall, _ = self.shown
        if overall.empty:
            return 'No metric over all classes changed.'
        titles = {item.key: item.title for item in read_headlines() if not item.is_baseline}
        is_headline = [key in titles for key in overall[METRIC[:3]].itertuples(index=False)]
        changed = overall[is_headline] if any(is_headline) else overall
        parts = []
        for condition, own in changed.groupby('condition', sort=False):
            found = own['verdict'].value_counts()
            counts = [f'{found[verdict]} {verdict}' for verdict in VERDICTS if verdict in found]
            parts.append(f'{", ".join(counts)} under “{condition}”')
        most = next(changed.loc[[changed['gain'].abs().idxmax()]].itertuples())
        title = titles.get((most.suite, most.mode, most.metric), join_full_name(most))
        test = 'by 95 % t intervals of the paired differences'
        if changed['scenes'].min() < LEAST_UNITS:
            test = 'by sign alone: fewer than three scenes cannot tell a change from chance'
        return (
            f'{"Headline metrics" if any(is_headline) else "Metrics over all classes"}: '
            f'{"; ".join(parts)} ({test}); most changed {title} of '
            f'{most.mapper} under “{most.condition}”, from {most.before:.4g} to {most.after:.4g}.'
        )

    @property
    def missing(self) -> list[tuple[str, Sequence[str]]]:
        """Names that one of the results lacks, after a title; no empty lists."""
        lost = list_distinct(map(join_full_name, self.lost.itertuples()))
        found = (
            ('only in the first result', self.only_before),
            ('only in the second result', self.only_after),
            ('without a value any more', lost),
        )
        return [(title, names) for title, names in found if names]

    def to_json(self) -> dict[str, object]:
        """Return the content for programs; bounds are null below three scenes."""
        table = self.table.drop(columns='gain').astype(object)
        return {
            'changes': table.where(table.notna(), None).to_dict('records'),
            'only_before': self.only_before,
            'only_after': self.only_after,
            'lost': self.lost.to_dict('records'),
            'remarks': self.remarks,
        }


def join_full_name(row: Any) -> str:
    """Return suite, mode and metric of a row."""
    return '/'.join(filter(None, (row.suite, row.mode, row.metric)))


def format_interval(row: Any) -> str:
    """Return the interval of a row of changes, '' without one."""
    return '' if math.isnan(row.low) else f'{row.low:+.3g} to {row.high:+.3g}'


@dataclass(frozen=True)
class Threshold:
    """How much worse metrics may get; `pattern` is a name, in which * matches any text."""

    pattern: str
    amount: float

    @classmethod
    def parse(cls, text: str) -> 'Threshold':
        """Read METRIC=AMOUNT; raises ConfigError."""
        pattern, found, amount = text.rpartition('=')
        try:
            number = float(amount)
        except ValueError:
            number = math.nan
        if not (found and pattern and math.isfinite(number) and number >= 0):
            raise ConfigError(f'--worse "{text}" is not of the form METRIC=AMOUNT, AMOUNT >= 0')
        return cls(pattern, number)

    def concerns(self, row: Any) -> bool:
        """Return whether it applies to a row of changes; it never does to single classes."""
        short = f'{row.suite}/{row.metric}', f'{row.mode}/{row.metric}', row.metric
        names = (join_full_name(row), *short)
        return not row.class_name and any(fnmatchcase(name, self.pattern) for name in names)


def read_reports(path: Path) -> tuple[RunReport, ...]:
    """Return the reports of the complete runs of a result.

    Parameters
    ----------
    path : Path
        A report.json, of a matrix or of one run or map, the folder that it is in, or a folder of
        runs; then the reports are read from the folders of the runs.

    Raises
    ------
    RunError
        If there is none, or a file is malformed.
    """
    whole = path.is_dir() and not is_run_name(path.absolute().name)
    file = path / REPORT if path.is_dir() else path
    found: Iterable[RunReport | None]
    if whole and ((path / MANIFEST).exists() or not file.exists()):
        matrices = ((matrix, run) for matrix in matrices_at(path) for run in matrix.runs())
        found = (matrix.report(run) for matrix, run in matrices if run.state is RunState.DONE)
    elif 'runs' in read_json(file):
        found = read_model(MatrixReport, file).runs
    else:
        found = [read_model(RunReport, file)]
    return tuple(report for report in found if report and report.status is Status.COMPLETE)


def compare_reports(
    before: Sequence[RunReport],
    after: Sequence[RunReport],
    *,
    renamed: Mapping[str, str] | None = None,
) -> ResultChanges:
    """As `compare_results`; raises RunError also for runs that `check_alike` refuses."""
    check_alike([*before, *after])
    first, second = ([x for report in side for x in report.metrics] for side in (before, after))
    found = compare_results(first, second, renamed=renamed)
    known = {remark for report in before for remark in report.remarks}
    remarks = [f'{x.run_id}: {text}' for x in after for text in x.remarks if text not in known]
    return replace(found, remarks=tuple(dict.fromkeys(remarks)))


def compare_results(
    before: Sequence[MetricRecord],
    after: Sequence[MetricRecord],
    *,
    renamed: Mapping[str, str] | None = None,
) -> ResultChanges:
    """Compare two results over the scenes, seeds, conditions and mappers that both have.

    Parameters
    ----------
    before, after : sequence of MetricRecord
        The records of the results.
    renamed : mapping of str to str, optional
        Names of mappers in the second result by name in the first; without, mappers of equal
        names are compared.

    Raises
    ------
    RunError
        If the results have no run in common.
    """
    first = _select_scores(before)
    second = _select_scores(after)
    names = first['mapper']
    if renamed:
        first = first[names.isin(renamed)]
        second = second[second['mapper'].isin(renamed.values())]
        titles = {x: y if x == y else f'{x} → {y}' for x, y in renamed.items()}
        names = first['mapper'].map(titles)
        first = first.assign(mapper=first['mapper'].map(renamed))
    simulators = {*first['simulator'], *second['simulator']} - {UNKNOWN}
    if len(simulators) == 1:  # A map that no run recorded has none.
        first, second = (side.assign(simulator=min(simulators)) for side in (first, second))
    both = first.assign(shown=names).merge(
        second, on=[*_RUN, *METRIC], how='left', suffixes=('', '_after')
    )
    common = both.merge(second[_RUN].drop_duplicates())
    if common.empty:
        raise RunError(
            f'the results have no run in common: {_list_some(first)} before, '
            f'{_list_some(second)} after; compare results with equal scenes, seeds, '
            'conditions and mappers, or name the mappers with --mapper OLD=NEW'
        )
    common = common.assign(mapper=common['shown']).dropna(subset=['value'])
    lost = common.loc[common['value_after'].isna(), _CHANGED].drop_duplicates()
    common = common.dropna(subset=['value_after'])
    # Seeds of one scene are not independent, so scenes are the units.
    by_scene = common.groupby([*_CHANGED, 'dataset', 'scene'], sort=False)
    scenes = by_scene[['value', 'value_after', 'higher_is_better']].mean().reset_index()
    values = scenes.groupby(_CHANGED, sort=False).agg(list).reset_index()
    changes = [_compute_change(row) for row in values.itertuples()]
    return ResultChanges(
        values[_CHANGED].join(pd.DataFrame(changes, columns=_COMPUTED)),
        _find_missing_runs(first, second),
        _find_missing_runs(second, first),
        lost,
    )


_COMPUTED = [
    *('before', 'after', 'difference', 'low', 'high', 'p_value'),
    *('scenes', 'higher_is_better', 'verdict', 'gain'),
]


def _select_scores(records: Iterable[MetricRecord]) -> pd.DataFrame:
    rows = []
    for item in records:
        seeds = str(Seeds(item.seed, item.path_seed, item.method_seed))
        speed = '' if item.speed_factor is None else str(item.speed_factor)
        run = '.'.join((item.dataset, item.scene, seeds, item.condition, item.mapper))
        rows.append({**vars(item), 'seeds': seeds, 'speed': speed, 'run': run})
    table = pd.DataFrame(rows, columns=[*_RUN, *METRIC, 'run', 'value', 'higher_is_better'])
    return table.drop_duplicates([*_RUN, *METRIC], keep='last').astype({'value': float})


def _find_missing_runs(runs: pd.DataFrame, others: pd.DataFrame) -> tuple[str, ...]:
    """Return names of the runs that others lack."""
    known = others[_RUN].drop_duplicates()
    own = runs.drop_duplicates(_RUN).merge(known, how='left', indicator=True)
    return tuple(own.loc[own['_merge'] == 'left_only', 'run'])


def _list_some(scores: pd.DataFrame) -> str:
    names = list(scores.drop_duplicates(_RUN)['run'])
    return ', '.join(names[:3]) + (f' and {len(names) - 3} more' if len(names) > 3 else '')


def _compute_change(row: Any) -> tuple[Any, ...]:
    """Return the changes of a metric, from its values before and after by scene."""
    paired = compare_pairs(row.value, row.value_after)
    interval, higher = paired.difference, bool(row.higher_is_better[0])
    gain = interval.value if higher else -interval.value
    if interval.value == 0 and not interval.low < 0:
        verdict = 'equal'
    elif math.isfinite(interval.low) and not interval.excludes_zero:
        verdict = 'unclear'
    else:
        verdict = 'better' if gain > 0 else 'worse'
    means = (fmean(row.value), fmean(row.value_after))
    bounds = (interval.low, interval.high)
    more = paired.p_value, interval.n, higher, verdict, gain
    return (*means, interval.value, *bounds, *more)


def list_broken(found: ResultChanges, thresholds: Sequence[Threshold]) -> list[str]:
    """Return a sentence for each metric that got worse than a threshold allows, or got lost.

    Raises ConfigError for a threshold that is about no metric.
    """
    faults = []
    for item in thresholds:
        changes = [row for row in found.table.itertuples() if item.concerns(row)]
        gone = [row for row in found.lost.itertuples() if item.concerns(row)]
        if not changes and not gone:
            known = {join_full_name(row) for row in found.table.itertuples() if not row.class_name}
            raise ConfigError(
                f'--worse {item.pattern}: no such metric. {suggestion(item.pattern, known)}'
            )
        faults += [
            f'{_describe_side(row)} got worse by {-row.gain:.4g}, from {row.before:.4g} to '
            f'{row.after:.4g}; at most {item.amount:g} may be lost'
            for row in changes
            if -row.gain > item.amount
        ]
        faults += [f'{_describe_side(row)} has no value any more' for row in gone]
    if thresholds and found.only_before:
        faults.append(f'runs are missing or did not complete: {", ".join(found.only_before[:3])}')
    return faults


def _describe_side(row: Any) -> str:
    return f'{join_full_name(row)} of {row.mapper} under {row.condition}'
