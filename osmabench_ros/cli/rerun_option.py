"""The option `--rerun` of the verbs that end with a map."""

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


RerunFile = Annotated[
    Path | None,
    typer.Option(
        '--rerun',
        metavar='FILE.rrd',
        callback=_checked,
        help='Also write a recording for the Rerun viewer; of several runs, one each.',
    ),
]
