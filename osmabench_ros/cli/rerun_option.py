"""Options of verbs that write a single file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.reports.rerun_layout import require_rerun


def _checked(file: Path | None) -> Path | None:
    # A missing library is told before minutes are spent.
    if file is not None:
        require_rerun()
    return file


Overwrite = Annotated[
    bool, typer.Option('--overwrite', help='Replace a file that is there and not of a run.')
]

RerunFile = Annotated[
    Path | None,
    typer.Option(
        '--rerun',
        metavar='FILE.rrd',
        callback=_checked,
        help='Also write a recording for the Rerun viewer; of several runs, one each.',
    ),
]
