"""`osmabench generate`: sequences on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.base.progress import shown_progress
from osmabench_ros.runs.config import load_config
from osmabench_ros.runs.prepare.generation import (
    OutputFormat,
    generate_ground_truth,
    generate_sequences,
)


def generate(
    config: Annotated[str, typer.Argument(help='YAML file, or a name in config/, e.g. demo.')],
    formats: Annotated[
        list[OutputFormat],
        typer.Option('--format', help='May be given more than once; one rendering serves all.'),
    ] = [OutputFormat.OSMA],  # noqa: B006
    out: Annotated[
        Path, typer.Option(help='Folder that gets FORMAT/CONDITION/SCENE folders.')
    ] = Path('sequences'),
    ground_truth: Annotated[
        bool,
        typer.Option('--ground-truth', help='Also make OUT/shared/SCENE/ground_truth.'),
    ] = False,
) -> None:
    """Render the scenes of a configuration under its conditions into sequences on disk.

    A sequence appears when it is complete. Call again after an interruption: complete ones are
    kept. Nothing is overwritten.
    """
    with shown_progress() as progress:
        loaded = load_config(config)
        written = generate_sequences(loaded, formats, out, progress)
        if ground_truth:
            written += generate_ground_truth(loaded, out, progress)
    for item in written:
        typer.echo(f'{item.directory}{" (kept)" if item.kept else ""}')
