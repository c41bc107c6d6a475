"""`osmabench compare`: two results, figure by figure; a gate for a mapper's continuous tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from osmabench_ros.cli.options import AsJson, pair_of
from osmabench_ros.errors import RequirementError

if TYPE_CHECKING:
    from osmabench_ros.reports.changes import Change, ResultChanges

STYLES = {'better': 'green', 'worse': 'red', 'unclear': 'yellow', 'equal': 'dim'}
MOST_CLASSES = 20

Result = typer.Argument(help='Folder of runs, or a report.json.')


def compare(
    before: Annotated[Path, Result],
    after: Annotated[Path, Result],
    mapper: Annotated[
        list[str] | None,
        typer.Option(
            metavar='OLD=NEW',
            help='Compare mapper OLD of the first result with NEW of the second, and no others; '
            'may be repeated.',
        ),
    ] = None,
    worse: Annotated[
        list[str] | None,
        typer.Option(
            metavar='METRIC=AMOUNT',
            help='Fail if this figure gets worse by more, under any condition: macc=0.01, '
            "osma_segmentation/strict/miou=0.02, 'exact_questions/*=0.05'; may be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
    out: Annotated[
        Path | None, typer.Option(help='Folder that gets the comparison as a page.')
    ] = None,
) -> None:
    """Say what got better and worse between two results, over equal scenes and seeds.

    Differences are paired by run; intervals come from resampling scenes. Exits with 4 if a figure
    got worse than --worse allows; then a run that is missing from the second result fails too.
    """
    from osmabench_ros.base.owned_folder import claim_folder
    from osmabench_ros.reports.changes import Threshold, broken, changes_between, read_records

    if out is not None:
        claim_folder(out)
    thresholds = [Threshold.parse(text) for text in worse or ()]
    renamed = dict(pair_of(text, '=', '--mapper', 'OLD=NEW') for text in mapper or ())
    found = changes_between(read_records(before), read_records(after), renamed=renamed)
    faults = broken(found, thresholds)
    page = None if out is None else _write_page(found, faults, before, after, out)
    if as_json:
        typer.echo(json.dumps({**_as_data(found), 'broken': faults}, indent=2))
    else:
        _print(found)
        if page is not None:
            typer.echo(page)
    if faults:
        raise RequirementError('; '.join(faults))


def _write_page(
    found: ResultChanges, faults: list[str], before: Path, after: Path, out: Path
) -> Path:
    from osmabench_ros.reports.page.changes_page import write_changes_page
    from osmabench_ros.runs.results.results_folder import undisturbed

    with undisturbed(out):
        return write_changes_page(found, faults, (before, after), out)


def _as_data(found: ResultChanges) -> dict[str, object]:
    return {
        'changes': [change.to_json() for change in found.changes],
        'only_before': found.only_before,
        'only_after': found.only_after,
        'lost': [vars(figure) for figure in found.lost],
    }


def _print(found: ResultChanges) -> None:
    from osmabench_ros.reports.terminal import report_console

    console = report_console()
    overall, classes = found.shown
    if overall:
        console.print(_table(overall, 'figure'))
    if classes:
        console.print(_table(classes[:MOST_CLASSES], 'figure of a class or kind'))
    if len(classes) > MOST_CLASSES:
        console.print(f'{len(classes) - MOST_CLASSES} smaller changes of classes: see --json')
    console.print(', '.join(f'{count} {item.value}' for item, count in found.counts.items()))
    for title, names in found.missing:
        console.print(f'[yellow]{title}:[/] {escape(", ".join(names))}', soft_wrap=True)


def _table(changes: list[Change], title: str) -> Table:
    from osmabench_ros.reports.cells import plain

    table = Table(box=None, pad_edge=False, header_style='bold')
    table.add_column(title, overflow='fold')
    for name in ('condition', 'mapper'):
        table.add_column(name, overflow='fold')
    for name in ('before', 'after', 'difference', 'interval', 'scenes'):
        table.add_column(name, justify='right', no_wrap=True)
    table.add_column('', no_wrap=True)
    for item in changes:
        data, verdict = item.to_json(), item.verdict.value
        bounds = '' if data['low'] is None else f'{data["low"]:+.3g} to {data["high"]:+.3g}'
        figure = item.figure
        table.add_row(
            escape('/'.join(filter(None, (figure.names[0], figure.class_name)))),
            escape(figure.condition),
            escape(figure.mapper),
            plain(item.before),
            plain(item.after),
            f'{data["difference"]:+.3g}',
            bounds,
            str(data['scenes']),
            f'[{STYLES[verdict]}]{verdict}[/]',
        )
    return table
