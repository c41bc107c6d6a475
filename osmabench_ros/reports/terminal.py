"""The tables that commands print at their end."""

import sys
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from osmabench_ros.mappers.mapper import knows_ground_truth
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.trajectory_records import TrajectoryScore
from osmabench_ros.reports import cells
from osmabench_ros.reports.changes import ResultChanges, format_interval, join_full_name
from osmabench_ros.reports.pacing import UNKNOWN, PacingView, TimedRun
from osmabench_ros.reports.tidy import select_table_headlines
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk, RunOnDisk
from osmabench_ros.runs.report_model import MatrixReport, RunReport, Status
from osmabench_ros.runs.timings import TIMINGS, read_measurements
from osmabench_ros.sequences.bags.recording_report import RecordingReport
from osmabench_ros.vqa.agreement import JudgeCheck


def make_console() -> Console:
    """Return a console as wide as the terminal, or as the table without a terminal."""
    return Console(width=None if sys.stdout.isatty() else 110)


def make_table(
    words: Sequence[str],
    numbers: Sequence[str] = (),
    headlines: Sequence[str] = (),
    *,
    whole: int = 1,
) -> Table:
    """Return a table without lines; the first `whole` columns are never broken, nor are numbers.

    Titles of `headlines` may be broken.
    """
    table = Table(box=None, pad_edge=False, header_style='bold')
    for place, name in enumerate(words):
        table.add_column(name, no_wrap=place < whole, overflow='fold')
    for name in (*numbers, *headlines):
        table.add_column(name, justify='right', no_wrap=name in numbers)
    return table


def print_metrics(report: RunReport) -> None:
    """Print the metrics over all classes; metrics of single classes are in report.json."""
    console = make_console()
    table = make_table(('suite', 'mode', 'metric'), ('value', 'interval', 'n'))
    for item in report.metrics:
        if not item.class_name:
            bounded = item.low is not None and item.high is not None
            interval = f'{item.low:.4g} to {item.high:.4g}' if bounded else ''
            count = str(item.n) if item.applicable else ''
            names = item.suite, item.mode, item.metric
            table.add_row(*names, cells.format_plain(item.value), interval, count)
    console.print(table)
    for remark in report.remarks:
        console.print(f'[yellow]note:[/] {escape(remark)}', highlight=False, soft_wrap=True)
    for role, encoder in report.encoders.items():
        console.print(f'text encoder, {role}: {encoder}', highlight=False, markup=False)


MOST_LISTED = 100
MOST_COLUMNS = 8


def print_pacing(runs: Sequence[RunReport], directory: Path, console: Console) -> None:
    """Print the losses of realtime runs by run and node, and totals of lockstep runs."""
    found = [(run.run_id, read_measurements(directory / run.run_id / TIMINGS)) for run in runs]
    view = PacingView([TimedRun(title, measured) for title, measured in found if measured])
    if any(item.measured.participants for item in view.realtime):
        titles = [item.title for item in cells.read_columns('frames', 'latency')]
        table = make_table(['realtime run, node'], titles)
        for item in view.realtime:
            age = item.measured.staleness
            table.add_row(f'{item.title}; map staleness {age.mean_s:.1f} s' if age else item.title)
            for node in item.measured.participants:
                shown = cells.make_field_cells(node, 'frames', UNKNOWN)
                shown += cells.make_field_cells(node, 'latency')
                table.add_row(f'  {node.name}', *(cell.text for cell in shown))
        console.print(table)
    if view.lockstep_lost:
        lost = f'{view.lockstep_lost} of {view.lockstep_frames} frames'
        console.print(f'[red]{lost} were not acknowledged in lockstep[/]', highlight=False)
    elif view.lockstep:
        frames = f'{view.lockstep_frames} frames in {len(view.lockstep)} runs'
        console.print(f'no frame is lost in lockstep: {frames}', highlight=False)


def print_report(
    report: MatrixReport,
    directory: Path,
    console: Console | None = None,
    *,
    config: MatrixConfig | None = None,
) -> None:
    """Print the headline metrics of every run, and the path of the report; default stdout.

    Of many runs only those that did not complete are listed, and not all of them. `config` says
    which methods are references, and which requirements there are to pass.
    """
    console = console or make_console()
    bundled = [item for item in (config.mappers if config else ()) if item.bundled]
    references = {item.name for item in bundled if knows_ground_truth(item.bundled)}
    if len(report.runs) > MOST_LISTED:
        failed = [run for run in report.runs if run.status is not Status.COMPLETE]
        if failed:
            console.print(_build_table(failed[:MOST_LISTED], references))
        console.print(f'{len(report.runs)} runs, {len(failed)} of them not complete')
    else:
        console.print(_build_table(report.runs, references))
        print_pacing(report.runs, directory, console)
    for warning in report.warnings[:MOST_LISTED]:
        console.print(f'[yellow]warning:[/] {escape(warning)}', highlight=False, soft_wrap=True)
    verdict = report.verdict(config.requirements if config else ())
    console.print(f'{report.name}: [{"green" if report.passed else "red"}]{verdict}[/]')
    page = escape(str(directory / 'report.html'))
    console.print(f'[dim]{page}[/]', highlight=False, soft_wrap=True)


def _build_table(runs: Sequence[RunReport], references: Collection[str]) -> Table:
    columns = select_table_headlines(run.metrics for run in runs)[:MOST_COLUMNS]
    titles = [item.title for item in columns]
    table = make_table(('scene', 'condition', 'mapper'), headlines=titles, whole=3)
    for run in runs:
        failed, first = run.status is Status.FAILED, next(iter(run.metrics), None)
        names = run.run_id, '', ''  # of a run without records
        if first is not None and not failed:
            marks = ('reference', first.mapper in references), ('partial', not run.map_complete)
            mapper = ' '.join([first.mapper, *(f'({name})' for name, holds in marks if holds)])
            names = escape(first.scene), escape(first.condition), escape(mapper)
        values = [item.format_record(item.find_record(run.metrics)) for item in columns]
        table.add_row(*names, *(['[red]failed[/]'] * max(1, len(columns)) if failed else values))
    return table


def print_trajectory(score: TrajectoryScore) -> None:
    """Print one row per metric: as recorded and aligned."""
    [found] = cells.build_suite_tables(score.records).values()
    found = found.rename(columns={'aligned': f'aligned ({score.settings.alignment.value})'})
    table = make_table(['metric'], list(found.columns))
    for row in found.itertuples(name=None):
        table.add_row(row[0][1], *(cell.text for cell in row[1:]))
    make_console().print(table)


VERDICT_STYLES = {'better': 'green', 'worse': 'red', 'unclear': 'yellow', 'equal': 'dim'}
MAX_CLASSES = 20
_WIDEST = 1000


def print_changes(found: ResultChanges) -> None:
    """Print what got better and worse, and what only one of two results has."""
    # Names are whole in a pipe, where lines may be as long as they need.
    console = Console(width=None if sys.stdout.isatty() else _WIDEST)
    console.print(escape(found.sentence), highlight=False, soft_wrap=True)
    overall, classes = found.shown
    if not overall.empty:
        console.print(_build_changes_table(overall, 'metric'))
    if not classes.empty:
        console.print(_build_changes_table(classes[:MAX_CLASSES], 'metric of a class or kind'))
    if len(classes) > MAX_CLASSES:
        console.print(f'{len(classes) - MAX_CLASSES} smaller changes of classes: see --json')
    console.print(', '.join(f'{count} {verdict}' for verdict, count in found.counts.items()))
    for text in found.remarks:
        console.print(f'[yellow]remark:[/] {escape(text)}', highlight=False, soft_wrap=True)
    for title, names in found.missing:
        console.print(f'[yellow]{title}:[/] {escape(", ".join(names))}', soft_wrap=True)


def _build_changes_table(changes: pd.DataFrame, title: str) -> Table:
    numbers = ('before', 'after', 'difference', 'interval', 'scenes')
    table = make_table((title, 'condition', 'mapper'), numbers)
    table.add_column('', no_wrap=True)
    for row in changes.itertuples():
        name = '/'.join(filter(None, (join_full_name(row), row.class_name)))
        words = map(escape, (name, row.condition, row.mapper))
        means = map(cells.format_plain, (row.before, row.after))
        verdict = f'[{VERDICT_STYLES[row.verdict]}]{row.verdict}[/]'
        change = f'{row.difference:+.3g}', format_interval(row), str(row.scenes), verdict
        table.add_row(*words, *means, *change)
    return table


STATE_STYLES = {
    'done': 'green', 'failed': 'red', 'incomplete': 'yellow', 'running': 'cyan', 'not begun': 'dim'
}  # fmt: skip


def _count_states(runs: Sequence[RunOnDisk]) -> dict[str, int]:
    counted = Counter(run.state.value for run in runs)
    return {state: counted[state] for state in STATE_STYLES}


def describe_status(matrix: MatrixOnDisk, runs: Sequence[RunOnDisk]) -> dict[str, object]:
    """Return the states of the runs of a matrix, for programs."""
    return {
        'folder': str(matrix.root),
        'counts': _count_states(runs),
        'runs': [{**vars(run), 'state': run.state.value} for run in runs],
    }


def print_status(matrix: MatrixOnDisk, runs: Sequence[RunOnDisk]) -> None:
    """Print the state of each run of a matrix, and how many there are of each state."""
    console = Console(soft_wrap=True)
    table = make_table(('run', 'state', 'why'), whole=2)
    for run in runs:
        lines = run.reason.splitlines() or ['']
        # Of an error with the end of a log, the last line has the exception.
        why = ' '.join(dict.fromkeys((lines[0], lines[-1].strip())))
        state = f'[{STATE_STYLES[run.state.value]}]{run.state.value}[/]'
        table.add_row(escape(run.run_id), state, escape(why))
    console.print(table)
    counts = ', '.join(f'{count} {state}' for state, count in _count_states(runs).items() if count)
    console.print(f'{escape(str(matrix.root))}: {counts or "no runs"}', highlight=False)


def print_recording(report: RecordingReport, directory: Path) -> None:
    """Print a table of topics, counts and losses."""
    title = escape(f'{directory}: {report.duration_s:.1f} s')
    table = Table('topic', 'type', title=title, title_justify='left')
    for name in ('messages', 'lost'):
        table.add_column(name, justify='right')
    for item in report.topics:
        if item.written or item.lost:
            table.add_row(item.topic, item.message_type, str(item.written), str(item.lost))
    for topic, reason in report.skipped.items():
        table.add_row(topic, escape(reason), 'not recorded', '')
    console = Console()
    console.print(table)
    console.print(report.summary(), highlight=False, soft_wrap=True)


# Of a table of accuracies, so that it fits into a terminal.
MAX_METRICS = 5


def print_accuracies(records: Sequence[MetricRecord]) -> None:
    """Print accuracies in percent, a row for each category."""
    console = make_console()
    parted = {record.metric for record in records if record.class_name}
    metrics = [m for m in dict.fromkeys(r.metric for r in records) if m in parted or not parted]
    found = {(record.class_name, record.metric): record for record in records}
    counts = {record.class_name: record.n for record in reversed(records)}
    categories = list(dict.fromkeys(record.class_name for record in records))
    for start in range(0, len(metrics), MAX_METRICS):
        shown = metrics[start : start + MAX_METRICS]
        titles = [metric.replace('_', ' ') for metric in shown]
        table = make_table(('category', 'n'), headlines=titles)
        for category in categories:
            values = [_format_percent(found.get((category, metric))) for metric in shown]
            table.add_row(category or 'all', str(counts[category]), *values)
        console.print(table)
    for record in records:
        if parted and record.metric not in parted:
            console.print(f'{record.metric}: {_format_percent(record)} %, n = {record.n}')


def _format_percent(record: MetricRecord | None) -> str:
    return 'n/a' if record is None or record.value is None else cells.format_percent(record.value)


def print_judge_check(check: JudgeCheck, listed: int) -> None:
    """Print agreement and kappa by group, then some of the doubtful verdicts."""
    console = make_console()
    table = Table('answers', 'n', 'agreement', 'kappa', f'{check.judge} yes', 'published yes')
    for row in check.rows:
        yes = (f'{100 * share:.1f} %' for share in (row.judge_yes, row.published_yes))
        agreement = f'{100 * row.agreement:.2f} %'
        table.add_row(row.group, str(row.n), agreement, f'{row.kappa:.3f}', *yes)
    console.print(table)
    if check.unjudged:
        console.print(f'left out, without a published verdict: {check.unjudged}')
    console.print(f'equal strings rejected: {len(check.equal_strings_rejected)}')
    console.print(f'doubtful published verdicts: {len(check.doubtful)}')
    for fault, count in Counter(fault for _, fault in check.doubtful).most_common():
        console.print(f'  {count} {fault}')
    for item, fault in check.doubtful[:listed]:
        verdict = 'Yes' if item.similar else 'No'
        console.print(
            f'  {item.question.scene} {item.condition}: "{item.question.text}" right '
            f'"{item.question.answer}", given "{item.answer.value}", verdict {verdict}: {fault}'
        )
