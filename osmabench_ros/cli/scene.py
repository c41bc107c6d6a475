"""`osmabench scene`: looks at scenes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.base.settings import Named
from osmabench_ros.cli.options import Overwrite, with_option_groups
from osmabench_ros.runs.config import SceneConfig

app = typer.Typer(help='Check a scene, and show its objects with their ids.', no_args_is_help=True)


@app.callback()
def scenes() -> None:
    """Check a scene, and show its objects with their ids."""


@app.command()
@with_option_groups
def check(
    reference: Annotated[
        str, typer.Argument(metavar='SCENE', help='Scene folder, data set, or "apartment".')
    ],
    scene: Annotated[SceneConfig, Named('seed', scene='scene')],
    output: Annotated[Path, typer.Option('--output', '-o', help='Image to write.')] = Path(
        'scene.png'
    ),
    overwrite: Overwrite = False,
) -> None:
    """Say what is doubtful about a scene, and draw it from above with the ids of its objects.

    What a building would not have, such as another unit or axis, is a warning.
    """
    from osmabench_ros.scenes.contact import doubtful_things
    from osmabench_ros.scenes.loading import load_scene
    from osmabench_ros.simulation.views import storey_views, write_views

    loaded = load_scene(reference, scene=scene.scene, seed=scene.seed)
    write_views(storey_views(loaded), output, overwrite=overwrite)
    typer.echo(
        f'{loaded.dataset} {loaded.name}: {len(loaded.objects)} objects of '
        f'{len({item.class_id for item in loaded.objects})} classes, {len(loaded.rooms)} rooms, '
        f'{len(loaded.lights)} lights'
    )
    typer.echo(loaded.lamps_in_words)
    for what, things in doubtful_things(loaded).items():
        named = ', '.join(f'{item.instance_id} {item.name}' for item in things)
        typer.echo(f'{what}: {named}')
    typer.echo(f'wrote {output}')
