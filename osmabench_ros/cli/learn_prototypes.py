"""`osmabench learn-prototypes`: what the appearance mapper knows of the apartment's classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.base.files import check_file
from osmabench_ros.cli.progress import shown_progress
from osmabench_ros.cli.rerun_option import Overwrite
from osmabench_ros.mappers.learn_prototypes import FIRST_SEED, learn_from_apartments
from osmabench_ros.mappers.prototypes import write_prototypes


def learn_prototypes(
    output: Annotated[Path, typer.Argument(help='JSON file to write.')],
    apartments: Annotated[
        int, typer.Option(min=1, help='How many apartments to learn from.')
    ] = 24,
    first_seed: Annotated[
        int, typer.Option(min=FIRST_SEED, help='Seed of the first.')
    ] = FIRST_SEED,
    per_class: Annotated[int, typer.Option(min=1, help='Most prototypes of a class.')] = 8,
    overwrite: Overwrite = False,
) -> None:
    """Learn the prototypes of the appearance mapper on apartments that no run uses."""
    check_file(output, overwrite=overwrite)
    seeds = range(first_seed, first_seed + apartments)
    with shown_progress() as progress:
        learnt = learn_from_apartments(seeds, per_class=per_class, progress=progress)
    write_prototypes(learnt, output, overwrite=overwrite)
    typer.echo(f'{output}: {len(learnt.names)} prototypes of {len(set(learnt.names))} classes')
