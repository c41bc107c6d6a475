"""`osmabench compare`: two results, figure by figure; a gate for a mapper's continuous tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from osmabench_ros.cli.options import AsJson, pair_of
from osmabench_ros.errors import RequirementError

Result = Argument(help='Folder of runs, or a report.json.')


def compare(
    before: Annotated[Path, Result],
    after: Annotated[Path, Result],
    mapper: Annotated[
        list[str] | None,
        Option(
            metavar='OLD=NEW', help='Compare only OLD of the first result with NEW of the second.'
        ),
    ] = None,
    worse: Annotated[
        list[str] | None,
        Option(
            metavar='METRIC=AMOUNT',
            help='Fail if this metric gets worse by more, e.g. macc=0.01. May be repeated.',
        ),
    ] = None,
    as_json: AsJson = False,
    out: Annotated[Path | None, Option(help='Folder that gets the comparison as a page.')] = None,
) -> None:
    """Say what got better and worse between two results, over equal scenes and seeds.

    Differences are paired by run; intervals come from resampling scenes. Exits with 4 if a figure
    got worse than --worse allows; then a run that is missing from the second result fails too.
    """
    from osmabench_ros.base.files import claim_folder
    from osmabench_ros.reports.changes import Threshold, broken, changes_between, read_records
    from osmabench_ros.reports.page.changes_page import write_changes_page
    from osmabench_ros.reports.terminal import print_changes
    from osmabench_ros.runs.results.results_folder import undisturbed

    if out is not None:
        claim_folder(out)
    thresholds = [Threshold.parse(text) for text in worse or ()]
    renamed = dict(pair_of(text, '=', '--mapper', 'OLD=NEW') for text in mapper or ())
    found = changes_between(read_records(before), read_records(after), renamed=renamed)
    faults = broken(found, thresholds)
    page = None
    if out is not None:
        with undisturbed(out):
            page = write_changes_page(found, faults, (before, after), out)
    if as_json:
        typer.echo(json.dumps({**found.to_json(), 'broken': faults}, indent=2))
    else:
        print_changes(found)
        if page is not None:
            typer.echo(page)
    if faults:
        raise RequirementError('; '.join(faults))
