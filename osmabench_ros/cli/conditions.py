"""`osmabench conditions`: what light and motion there is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from osmabench_ros.cli.rerun_option import Overwrite

app = typer.Typer(help='List and preview conditions of light, motion and sensor.')


@app.callback(invoke_without_command=True)
def conditions(context: typer.Context) -> None:
    """List the conditions unless another command is given."""
    if context.invoked_subcommand is None:
        list_all()


@app.command('list')
def list_all() -> None:
    """List the conditions that come with the package."""
    from osmabench_ros.simulation.conditions import list_conditions, load_condition

    table = Table(box=None, header_style='bold')
    table.add_column('condition', no_wrap=True)
    table.add_column('what it is')
    for name in list_conditions():
        table.add_row(name, load_condition(name).description)
    Console().print(table)


@app.command()
def preview(
    names: Annotated[
        list[str] | None, typer.Argument(help='Conditions; all of the package by default.')
    ] = None,
    output: Annotated[Path, typer.Option('--output', '-o', help='Image to write.')] = Path(
        'conditions.png'
    ),
    scene: Annotated[
        str, typer.Option(help="'apartment', or a *.scene_dataset_config.json.")
    ] = 'apartment',
    scene_name: Annotated[str, typer.Option(help='Scene of a data set.')] = '',
    seed: Annotated[int, typer.Option(min=0, help='Seed of the scene and the path.')] = 0,
    simulator: Annotated[str, typer.Option(help='Simulator backend.')] = 'opengl',
    overwrite: Overwrite = False,
) -> None:
    """Render the same views under each condition into one contact sheet."""
    from osmabench_ros.simulation.conditions import list_conditions
    from osmabench_ros.simulation.preview import PreviewSettings, write_contact_sheet

    settings = PreviewSettings(scene, scene_name, seed, simulator)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task('rendering', total=1.0)
        write_contact_sheet(
            names or list_conditions(),
            output,
            settings,
            lambda text, done: bar.update(task, description=text, completed=done),
            overwrite=overwrite,
        )
    Console().print(f'wrote {output}')
