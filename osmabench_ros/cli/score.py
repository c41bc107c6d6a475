"""`osmabench score`: figures from saved intermediate results, such as published ones."""

from __future__ import annotations

import csv
import json
import math
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from osmabench_ros.metrics.confusion_files import read_confusion_sets
from osmabench_ros.metrics.segmentation import COMPAT_IGNORED, score_scenes

app = typer.Typer(no_args_is_help=True)


class TableFormat(str, Enum):
    """How a table is printed."""

    CSV = 'csv'
    JSON = 'json'


@app.callback()
def score() -> None:
    """Score saved results: confusion matrices, answers."""


@app.command()
def confusion(
    files: Annotated[
        list[Path],
        typer.Argument(help='.npz archives, folders of published pickles, or such pickles.'),
    ],
    table_format: Annotated[
        TableFormat, typer.Option('--format', help='How to print the rows.')
    ] = TableFormat.CSV,
    ignore: Annotated[
        list[int] | None,
        typer.Option(help='Class id that is not scored; OSMa-Bench leaves out 0, "other".'),
    ] = None,
    together: Annotated[
        bool, typer.Option('--together', help='Take all files as the scenes of one set.')
    ] = False,
) -> None:
    """Score confusion matrices by the rules of OSMa-Bench.

    Prints miou, fmiou, macc and scene: a row for each scene, then "overall" (the summed matrix)
    and "overall_mean". With several sets of scenes a column tells where a row is from.
    """
    sets = read_confusion_sets(files, together=together)
    ignored = COMPAT_IGNORED if ignore is None else tuple(ignore)
    rows: list[dict[str, Any]] = [
        {**row._asdict(), **({'source': source} if len(sets) > 1 else {})}
        for source, matrices in sets.items()
        for row in score_scenes(matrices, ignored=ignored)
    ]
    if table_format is TableFormat.JSON:
        typer.echo(json.dumps([_with_nulls(row) for row in rows], indent=1))
        return
    writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator='\n')
    writer.writeheader()
    writer.writerows(_with_nulls(row) for row in rows)


def _with_nulls(row: dict[str, Any]) -> dict[str, Any]:
    """Replace figures that do not exist by None, which both formats can say."""
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in row.items()
    }
