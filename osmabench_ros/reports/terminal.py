"""The table that a run ends with."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from osmabench_ros.reports.headline import HEADLINES, headline_value
from osmabench_ros.reports.terminal_pacing import print_pacing
from osmabench_ros.runs.report_model import MatrixReport, RunReport, Status


def print_report(report: MatrixReport, directory: Path, console: Console | None = None) -> None:
    """Print the headline figures of every run, and where the rest is; by default to stdout."""
    console = console or Console(width=None if sys.stdout.isatty() else 110)
    console.print(_table(report.runs))
    print_pacing(report.runs, directory, console)
    for warning in report.warnings:
        console.print(f'[yellow]warning:[/] {escape(warning)}', highlight=False, soft_wrap=True)
    verdict = '[green]passed[/]' if report.passed else '[red]failed[/]'
    console.print(f'{report.name}: {verdict}')
    page = escape(str(directory / 'report.html'))
    console.print(f'[dim]{page}[/]', highlight=False, soft_wrap=True)


def _table(runs: Sequence[RunReport]) -> Table:
    table = Table(box=None, pad_edge=False, header_style='bold')
    for name in ('scene', 'condition', 'mapper'):
        table.add_column(name, no_wrap=True)
    for headline in HEADLINES:
        table.add_column(headline.title, justify='right')
    for run in runs:
        if run.status is Status.FAILED:
            table.add_row(run.run_id, '', '', *['[red]failed[/]'] * len(HEADLINES))
            continue
        cells = [headline.text(headline_value(run, headline)) for headline in HEADLINES]
        table.add_row(*_names(run), *cells)
    return table


def _names(run: RunReport) -> tuple[str, str, str]:
    """Return scene, condition and mapper; a run without records has only its name."""
    if not run.metrics:
        return run.run_id, '', ''
    first = run.metrics[0]
    mapper = first.mapper if run.map_complete else f'{first.mapper} (partial)'
    return escape(first.scene), escape(first.condition), escape(mapper)
