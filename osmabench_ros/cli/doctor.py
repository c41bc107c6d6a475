"""`osmabench doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from osmabench_ros.bringup.finding import Level
from osmabench_ros.bringup.preflight import examine
from osmabench_ros.errors import MissingDependencyError

STYLE = {Level.OK: 'green', Level.ABSENT: 'yellow', Level.FAILED: 'red'}


def doctor(
    out: Annotated[Path, typer.Option(help='Where results would go.')] = Path('runs'),
) -> None:
    """Say what is installed and what is missing, with the remedy."""
    findings = examine(out)
    table = Table('part', 'state', 'detail', 'remedy', box=None)
    for item in findings:
        style = STYLE[item.level]
        # Extras of pip look like markup: osmabench_ros[metrics].
        detail, remedy = escape(item.detail), escape(item.remedy)
        table.add_row(item.part, f'[{style}]{item.level.value}[/]', detail, remedy)
    Console().print(table)
    broken = [item.part for item in findings if item.level is Level.FAILED]
    if broken:
        raise MissingDependencyError(f'no run is possible without: {", ".join(broken)}')
