"""`osmabench view`: a run or map as a recording for the Rerun viewer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.base.owned_folder import check_file
from osmabench_ros.base.progress import shown_progress
from osmabench_ros.cli.options import Overwrite


def view(
    directory: Annotated[
        Path,
        typer.Argument(metavar='DIR', help='Folder of a run, or of a map (with map.json).'),
    ],
    rerun: Annotated[Path, typer.Option(metavar='FILE.rrd', help='Recording to write.')],
    ground_truth: Annotated[
        Path | None,
        typer.Option(help='For a map: ground truth of its scene, so that errors are shown.'),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write frames, path, map, scene graph and errors as a recording for Rerun; needs no ROS.

    Look at it with `rerun FILE.rrd`.
    """
    from osmabench_ros.reports.rerun.rerun_export import record_map, record_run
    from osmabench_ros.runs.run_on_disk import open_run

    check_file(rerun, overwrite=overwrite)
    with shown_progress() as progress:
        if (directory / 'map.json').exists():
            record_map(directory, ground_truth, rerun, progress, overwrite=overwrite)
        else:
            record_run(open_run(directory), rerun, progress, overwrite=overwrite)
    typer.echo(rerun)
