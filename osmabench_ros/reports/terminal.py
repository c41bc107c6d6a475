"""The tables that commands print at their end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from osmabench_ros.metrics.trajectory import TrajectoryAlignment
from osmabench_ros.metrics.trajectory_records import ALIGNED, SUITE, TrajectoryScore
from osmabench_ros.reports.cells import plain
from osmabench_ros.reports.headline import HEADLINES, NOT_APPLICABLE, table_headlines
from osmabench_ros.runs.config import PacingMode, Requirement
from osmabench_ros.runs.results.report_model import MatrixReport, Record, RunReport, Status
from osmabench_ros.runs.results.timings import (
    TIMINGS,
    Measurements,
    Participation,
    read_measurements,
)


def report_console() -> Console:
    """Return a console as wide as the terminal, or as the table without a terminal."""
    return Console(width=None if sys.stdout.isatty() else 110)


def print_figures(report: RunReport) -> None:
    """Print the figures over all classes; those of single classes are in report.json."""
    console = report_console()
    table = Table(box=None, pad_edge=False, header_style='bold')
    for name in ('suite', 'mode', 'metric'):
        table.add_column(name, no_wrap=True)
    for name in ('value', 'interval', 'n'):
        table.add_column(name, justify='right', no_wrap=True)
    for record in report.metrics:
        if not record.class_name:
            table.add_row(
                record.suite,
                record.mode or '',
                record.metric,
                plain(record.value),
                _interval(record),
                str(record.n) if record.applicable else '',
            )
    console.print(table)
    for remark in report.remarks:
        console.print(f'[yellow]note:[/] {escape(remark)}', highlight=False, soft_wrap=True)
    for role, encoder in report.encoders.items():
        console.print(f'text encoder, {role}: {encoder}', highlight=False, markup=False)


def _interval(record: Record) -> str:
    if record.low is None or record.high is None:
        return ''
    return f'{record.low:.4g} to {record.high:.4g}'


UNKNOWN = 'unknown'
MOST_LISTED = 100


def print_pacing(runs: Sequence[RunReport], directory: Path, console: Console) -> None:
    """Print the losses of realtime runs by run and node, and totals of lockstep runs."""
    found = [(run.run_id, read_measurements(directory / run.run_id / TIMINGS)) for run in runs]
    timed = [(run_id, measured) for run_id, measured in found if measured is not None]
    realtime = [item for item in timed if item[1].pacing == PacingMode.REALTIME.value]
    lockstep = [measured for _, measured in timed if measured.pacing != PacingMode.REALTIME.value]
    if realtime:
        console.print(_pacing_table(realtime))
    if lockstep:
        console.print(_lockstep(lockstep), highlight=False)


def _lockstep(runs: Sequence[Measurements]) -> str:
    frames = sum(measured.frames for measured in runs)
    lost = sum(node.dropped or 0 for measured in runs for node in measured.participants)
    if lost:
        return f'[red]{lost} of {frames} frames were not acknowledged in lockstep[/]'
    return f'no frame is lost in lockstep: {frames} frames in {len(runs)} runs'


def _pacing_table(runs: Sequence[tuple[str, Measurements]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style='bold')
    table.add_column('realtime run, node', overflow='fold')
    for name in ('frames', 'received', 'mapped', 'dropped', 'loss', 'p50', 'p95', 'p99', 'max'):
        table.add_column(name, justify='right', no_wrap=True)
    for run_id, measured in runs:
        stale = measured.staleness
        staleness = '' if stale is None else f'; map staleness {stale.mean_s:.1f} s'
        table.add_row(f'{run_id}{staleness}')
        for node in measured.participants:
            table.add_row(f'  {node.name}', *_cells(node))
    return table


def _cells(node: Participation) -> list[str]:
    frames = (node.published, node.received, node.mapped, node.dropped)
    latencies = (node.latency_p50_s, node.latency_p95_s, node.latency_p99_s, node.latency_max_s)
    return [
        *(UNKNOWN if value is None else str(value) for value in frames),
        UNKNOWN if node.loss is None else f'{100 * node.loss:.1f} %',
        *(NOT_APPLICABLE if value is None else f'{1000 * value:.0f} ms' for value in latencies),
    ]


def print_report(
    report: MatrixReport,
    directory: Path,
    console: Console | None = None,
    *,
    requirements: Sequence[Requirement] = (),
) -> None:
    """Print the headline figures of every run, and the path of the report; default stdout.

    Of many runs only those that did not complete are listed, and not all of them. Without
    `requirements` there is nothing to pass.
    """
    console = console or report_console()
    if len(report.runs) > MOST_LISTED:
        failed = [run for run in report.runs if run.status is not Status.COMPLETE]
        if failed:
            console.print(_table(failed[:MOST_LISTED]))
        console.print(f'{len(report.runs)} runs, {len(failed)} of them not complete')
    else:
        console.print(_table(report.runs))
        print_pacing(report.runs, directory, console)
    for warning in report.warnings[:MOST_LISTED]:
        console.print(f'[yellow]warning:[/] {escape(warning)}', highlight=False, soft_wrap=True)
    verdict = f'[{"green" if report.passed else "red"}]{report.verdict(requirements)}[/]'
    console.print(f'{report.name}: {verdict}')
    page = escape(str(directory / 'report.html'))
    console.print(f'[dim]{page}[/]', highlight=False, soft_wrap=True)


def _table(runs: Sequence[RunReport]) -> Table:
    table = Table(box=None, pad_edge=False, header_style='bold')
    for name in ('scene', 'condition', 'mapper'):
        table.add_column(name, no_wrap=True)
    columns = table_headlines(run.metrics for run in runs)[: len(HEADLINES)]
    for headline in columns:
        table.add_column(headline.title, justify='right')
    for run in runs:
        if run.status is Status.FAILED:
            table.add_row(run.run_id, '', '', *['[red]failed[/]'] * max(1, len(columns)))
            continue
        cells = [headline.text(headline.record_in(run.metrics)) for headline in columns]
        table.add_row(*_names(run), *cells)
    return table


def _names(run: RunReport) -> tuple[str, str, str]:
    """Return scene, condition and mapper; a run without records has only its name."""
    if not run.metrics:
        return run.run_id, '', ''
    first = run.metrics[0]
    mapper = first.mapper if run.map_complete else f'{first.mapper} (partial)'
    return escape(first.scene), escape(first.condition), escape(mapper)


def print_trajectory(score: TrajectoryScore) -> None:
    """Print one row a figure: as recorded and aligned."""
    kind = score.settings.alignment.value
    table = Table(box=None, pad_edge=False, header_style='bold')
    table.add_column('figure', no_wrap=True)
    columns = {SUITE: 'as recorded'}
    if score.settings.alignment is not TrajectoryAlignment.NONE:
        columns[SUITE + ALIGNED] = f'aligned ({kind})'
    for name in columns.values():
        table.add_column(name, justify='right', no_wrap=True)
    table.add_column('n', justify='right')
    rows: dict[str, dict[str, str]] = {}
    for record in score.records:
        rows.setdefault(record.metric, {})[record.suite] = plain(record.value)
    counts = {record.metric: str(record.n) for record in score.records}
    for metric, cells in rows.items():
        table.add_row(metric, *(cells.get(key, '') for key in columns), counts[metric])
    report_console().print(table)
