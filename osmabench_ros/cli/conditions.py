"""`osmabench conditions`: lists and previews conditions of light and motion."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from typer import Argument, Option

from osmabench_ros.base.progress import shown_progress
from osmabench_ros.cli.options import Overwrite, Seed

app = typer.Typer(
    name='conditions', help='List and preview conditions of light, motion and sensor.'
)


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
    table.add_column('description')
    for name in list_conditions():
        table.add_row(name, load_condition(name).description)
    Console().print(table)


@app.command()
def preview(
    names: Annotated[list[str] | None, Argument(help='Default: all of the package.')] = None,
    scene: Annotated[str, Option(help='"apartment", scene folder or data set.')] = 'apartment',
    scene_name: Annotated[str, Option(help='Scene of a data set.')] = '',
    seed: Seed = 0,
    simulator: Annotated[str, Option(help='opengl, habitat or an installed one.')] = ('opengl'),
    output: Annotated[Path, Option('--output', '-o', help='Image to write.')] = Path(
        'conditions.png'
    ),
    frames: Annotated[int, Option(min=1, max=50, help='Frames of each condition.')] = 3,
    overwrite: Overwrite = False,
) -> None:
    """Render frames of a path under each condition into one image.

    The path leads through three goals, or more where more frames are asked for.
    """
    from osmabench_ros.scenes.loading import load_scene
    from osmabench_ros.simulation.conditions import list_conditions, load_condition
    from osmabench_ros.simulation.views import draw_conditions, write_views

    chosen = [load_condition(name) for name in names or list_conditions()]
    with shown_progress() as progress:
        loaded = load_scene(scene, scene=scene_name, seed=seed)
        views = draw_conditions(
            loaded, chosen, simulator, frames=frames, seed=seed, progress=progress
        )
        write_views(views, output, overwrite=overwrite)
    Console().print(f'wrote {output}')
    Console().print(loaded.lamps_in_words)
