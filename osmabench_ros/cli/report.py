"""`osmabench status`, `report`, `export`: what became of runs, once more and for a paper."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from osmabench_ros.base.progress import shown_progress
from osmabench_ros.cli.options import AsJson
from osmabench_ros.errors import RunError

if TYPE_CHECKING:
    from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk, RunOnDisk

Folders = Annotated[
    list[Path], typer.Argument(metavar='OUT...', help='Folders of runs, or folders of those.')
]
Folder = Annotated[Path, typer.Argument(metavar='OUT', help='Folder of the runs of a matrix.')]

STYLES = {
    'done': 'green',
    'failed': 'red',
    'incomplete': 'yellow',
    'running': 'cyan',
    'not begun': 'dim',
}


def status(folders: Folders, as_json: AsJson = False) -> None:
    """Say of each run whether it is done, failed, incomplete, running or not begun.

    Only looks, also while the runs go on. Exits with 0 if every run is done, else with 1.
    """
    from osmabench_ros.runs.matrix_on_disk import RunState

    found = [(matrix, list(matrix.runs())) for matrix in _matrices(folders)]
    if as_json:
        typer.echo(json.dumps([_as_data(matrix, runs) for matrix, runs in found], indent=2))
    else:
        for matrix, runs in found:
            _print(matrix, runs)
    if any(run.state is not RunState.DONE for _, runs in found for run in runs):
        raise typer.Exit(1)


def _matrices(folders: list[Path]) -> list[MatrixOnDisk]:
    from osmabench_ros.runs.matrix_on_disk import matrices_at

    found = {item.root.resolve(): item for folder in folders for item in matrices_at(folder)}
    return list(found.values())


def _matrix(folder: Path) -> MatrixOnDisk:
    matrices = _matrices([folder])
    if len(matrices) > 1:
        names = ', '.join(item.root.name for item in matrices)
        raise RunError(f'{folder} holds several matrices; name the folder of one of {names}')
    return matrices[0]


def _counts(runs: list[RunOnDisk]) -> dict[str, int]:
    counted = Counter(run.state.value for run in runs)
    return {state: counted[state] for state in STYLES}


def _as_data(matrix: MatrixOnDisk, runs: list[RunOnDisk]) -> dict[str, object]:
    return {
        'folder': str(matrix.root),
        'counts': _counts(runs),
        'runs': [
            {'run_id': run.run_id, 'state': run.state.value, 'reason': run.reason} for run in runs
        ],
    }


def _print(matrix: MatrixOnDisk, runs: list[RunOnDisk]) -> None:
    console = Console(soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style='bold')
    for name in ('run', 'state'):
        table.add_column(name, no_wrap=True)
    table.add_column('why', overflow='fold')
    for run in runs:
        first = run.reason.partition('\n')[0]
        state = f'[{STYLES[run.state.value]}]{run.state.value}[/]'
        table.add_row(escape(run.run_id), state, escape(first))
    console.print(table)
    counts = ', '.join(f'{count} {state}' for state, count in _counts(runs).items() if count)
    console.print(f'{escape(str(matrix.root))}: {counts or "no runs"}', highlight=False)


def report(
    folder: Folder,
    out: Annotated[
        Path | None,
        typer.Option(help='Folder of the report; by default that of the runs.'),
    ] = None,
    reference: Annotated[
        str,
        typer.Option(
            metavar='MAPPER', help='Mapper to compare the others with; else the first one.'
        ),
    ] = '',
) -> None:
    """Build the report again, also of a part of the runs.

    Nothing is run or scored. Exits as osmabench run does; runs without figures count as failed.
    """
    from osmabench_ros.reports.rebuilding import rebuild_report
    from osmabench_ros.reports.terminal import print_report

    matrix = _matrix(folder)
    with shown_progress() as progress:
        made = rebuild_report(matrix, out, reference=reference, progress=progress)
    print_report(made, out or matrix.root, requirements=matrix.config.requirements)
    made.check_verdict()
    if not made.passed:
        raise RunError('not every run has figures yet; osmabench status says which')


def export(
    folder: Folder,
    to: Annotated[Path, typer.Option(help='Folder of the files.')] = Path('export'),
    suites: Annotated[
        list[str] | None,
        typer.Option('--suite', help='Suites with a table; all by default. May be repeated.'),
    ] = None,
) -> None:
    """Write what a paper takes of runs: tables, figures and references.

    Tables are in Markdown and LaTeX, of the headline figures and of each suite; figures are SVG
    and PDF; references.bib has the suites, methods and data sets that were used.
    """
    from osmabench_ros.base.owned_folder import Existing, check_folder
    from osmabench_ros.reports.export import export_matrix

    check_folder(to, Existing.MERGE)
    for file in export_matrix(_matrix(folder), to, suites or ()):
        typer.echo(file)
