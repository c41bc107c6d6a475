"""The table of one evaluated map, on a terminal."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from osmabench_ros.reports.cells import plain
from osmabench_ros.runs.report_model import Record, RunReport


def print_figures(report: RunReport, console: Console | None = None) -> None:
    """Print the figures over all classes; those of single classes are in report.json."""
    console = console or Console(width=None if sys.stdout.isatty() else 110)
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
