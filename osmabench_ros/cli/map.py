"""`osmabench map`: check, import, export and describe semantic maps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.maps.validation import faults_of_directory

app = typer.Typer(help='Check, import, export and describe semantic maps.', no_args_is_help=True)


@app.command()
def check(
    directory: Annotated[Path, typer.Argument(help='Folder with map.json.')],
) -> None:
    """List every fault of a map with its place; exit code 1 if there is one."""
    faults = faults_of_directory(directory)
    for fault in faults:
        typer.echo(str(fault))
    if faults:
        raise typer.Exit(1)
    typer.echo(f'{directory} is a sound semantic map.')
