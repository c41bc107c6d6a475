"""`osmabench status`, `report`, `export`, `compare`: what became of runs; two results compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from osmabench_ros.base.progress import shown_progress
from osmabench_ros.cli.options import AsJson, pair_of
from osmabench_ros.errors import RequirementError, RunError

if TYPE_CHECKING:
    from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk

Result = Argument(help='Folder of runs, or a report.json.')
Folders = Annotated[list[Path], Argument(metavar='OUT...', help='Folders of runs or of matrices.')]
Folder = Annotated[Path, Argument(metavar='OUT', help='Folder of the runs of a matrix.')]


def status(folders: Folders, as_json: AsJson = False) -> None:
    """Say of each run whether it is done, failed, incomplete, running or not begun.

    Only looks, also while the runs go on. Exits with 0 if every run is done, else with 1.
    """
    from osmabench_ros.reports.terminal import describe_status, print_status
    from osmabench_ros.runs.matrix_on_disk import RunState

    found = [(matrix, list(matrix.runs())) for matrix in _matrices(folders)]
    if as_json:
        typer.echo(json.dumps([describe_status(matrix, runs) for matrix, runs in found], indent=2))
    else:
        for matrix, runs in found:
            print_status(matrix, runs)
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


def report(
    folder: Folder,
    out: Annotated[Path | None, Option(help='Default: the folder of the runs.')] = None,
    reference: Annotated[str, Option(metavar='MAPPER', help='Compare the others with it.')] = '',
) -> None:
    """Build the report again, also of a part of the runs.

    Nothing is run or scored. Exits as osmabench run does; runs without a report count as failed.
    """
    from osmabench_ros.reports.matrix import rebuild_report
    from osmabench_ros.reports.terminal import print_report

    matrix = _matrix(folder)
    with shown_progress() as progress:
        made = rebuild_report(matrix, out, reference=reference, progress=progress)
    print_report(made, out or matrix.root, config=matrix.config)
    made.check_verdict()
    if not made.passed:
        raise RunError('not every run has a report yet; osmabench status says which')


def export(
    folder: Folder,
    to: Annotated[Path, Option(help='Folder of the files.')] = Path('export'),
    suites: Annotated[
        list[str] | None, Option('--suite', help='Default: all. May be repeated.')
    ] = None,
) -> None:
    """Write the tables, charts and references of runs for a paper.

    Tables are in Markdown and LaTeX, of the headline metrics and of each suite; charts are SVG
    and PDF; references.bib has the suites, methods and data sets that were used.
    """
    from osmabench_ros.base.files import Existing, check_folder
    from osmabench_ros.reports.export import export_matrix

    check_folder(to, Existing.MERGE)
    for file in export_matrix(_matrix(folder), to, suites or ()):
        typer.echo(file)


def compare(
    before: Annotated[Path, Result],
    after: Annotated[Path, Result],
    mapper: Annotated[
        list[str] | None, Option(metavar='OLD=NEW', help='Compare only these, first and second.')
    ] = None,
    worse: Annotated[
        list[str] | None,
        Option(metavar='METRIC=AMOUNT', help='Fail if this gets worse by more, e.g. macc=0.01.'),
    ] = None,
    as_json: AsJson = False,
    out: Annotated[Path | None, Option(help='Folder that gets the comparison as a page.')] = None,
) -> None:
    """Say what got better and worse between two results, over equal scenes and seeds.

    Differences are paired by run; intervals come from resampling scenes. Exits with 4 if a metric
    got worse than --worse allows; then a run that is missing from the second result fails too.
    """
    from osmabench_ros.base.files import claim_folder
    from osmabench_ros.reports import changes
    from osmabench_ros.reports.page.single_pages import write_changes_page
    from osmabench_ros.reports.terminal import print_changes
    from osmabench_ros.runs.run_manifest import lock_results

    if out is not None:
        claim_folder(out)
    thresholds = [changes.Threshold.parse(text) for text in worse or ()]
    renamed = dict(pair_of(text, '=', '--mapper', 'OLD=NEW') for text in mapper or ())
    found = changes.compare_reports(*map(changes.read_reports, (before, after)), renamed=renamed)
    faults = changes.list_broken(found, thresholds)
    page = None
    if out is not None:
        with lock_results(out):
            page = write_changes_page(found, faults, (before, after), out)
    if as_json:
        typer.echo(json.dumps({**found.to_json(), 'broken': faults}, indent=2))
    else:
        print_changes(found)
        if page is not None:
            typer.echo(page)
    if faults:
        raise RequirementError('; '.join(faults))
