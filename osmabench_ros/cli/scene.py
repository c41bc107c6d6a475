"""`osmabench scene`: makes, imports, exports and checks scenes."""

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from osmabench_ros.base.progress import shown_progress
from osmabench_ros.cli.options import (
    Config,
    ModelOptions,
    NewFolder,
    Overwrite,
    SceneName,
    Seed,
    with_option_groups,
)
from osmabench_ros.cli.vqa import print_spending

app = typer.Typer(
    name='scene', help='Make, import, export and check scenes.', no_args_is_help=True
)

Reference = Annotated[str, Argument(metavar='SCENE', help='Folder, data set or "apartment".')]
Model = Annotated[str, Option(help='Language model, e.g. openai:gpt-4.1-mini.')]
# Formats of sequences; their writers take long to import.
Format = Enum('Format', {'OSMA': 'osma', 'SCANNET': 'scannet', 'MCAP': 'mcap'}, type=str)
MoveAside = Annotated[bool, Option('--overwrite', help='Move earlier results to OUT/previous.')]


@app.command('import')
def import_(
    source: Annotated[
        str, Argument(help='Mesh, Gazebo world, USD stage, data set, scene folder or "apartment".')
    ],
    out: NewFolder,
    models: Annotated[list[Path] | None, Option(help='Folder of Gazebo models.')] = None,
    classes: Annotated[Path | None, Option(help='JSON: classes by pattern of names.')] = None,
    label_set: Annotated[
        str, Option(metavar='apartment|FILE.json', help='Known classes, to match guesses to.')
    ] = '',
    collada_up: Annotated[
        Literal['version', 'ignored', 'applied'],
        Option(help='What up_axis of Collada does; default: by the version of the SDF.'),
    ] = 'version',
    textures: Annotated[list[Path] | None, Option(help='Folder with missing textures.')] = None,
    skip_missing: Annotated[bool, Option('--skip-missing', help='Skip missing files.')] = False,
    group_by: Annotated[
        Literal['node', 'parent'],
        Option(help='What is an object of a mesh file: each node, or all nodes of one parent.'),
    ] = 'node',
    scene: SceneName = '',
    seed: Seed = 0,
    overwrite: MoveAside = False,
) -> None:
    """Import a scene into a folder of a glTF file and a manifest."""
    from osmabench_ros.scenes.changes import find_parts_of_assemblies
    from osmabench_ros.scenes.folder import MANIFEST
    from osmabench_ros.scenes.importing import (
        MESH_SUFFIXES,
        import_scene,
        read_class_patterns,
        read_known_classes,
    )
    from osmabench_ros.scenes.worlds.parts import ColladaUp, WorldOptions

    imported = import_scene(
        source,
        out,
        world=WorldOptions(
            models=tuple(models or ()),
            classes=read_class_patterns(classes) if classes else {},
            known_classes=read_known_classes(label_set) if label_set else (),
            collada_up=ColladaUp(collada_up),
            textures=tuple(textures or ()),
            skip_missing=skip_missing,
            group_by_parent=group_by == 'parent',
        ),
        scene=scene,
        seed=seed,
        overwrite=overwrite,
    )
    triangles = sum(len(mesh.faces) for item in imported.objects for mesh in item.meshes)
    typer.echo(
        f'{out}: {len(imported.objects)} objects of {len(imported.label_set.classes)} classes, '
        f'{triangles} triangles, {len(imported.lights)} lights'
    )
    typer.echo(imported.lamps_in_words)
    if Path(source).suffix.lower() in MESH_SUFFIXES:
        for item in imported.objects:
            name = imported.class_name(item) or 'no class'
            part = ', a part of the building' * (name in imported.label_set.structure_names)
            typer.echo(f'  {item.name}: {name}{part}')
        typer.echo(
            f'The classes are guesses from names. Correct them in {out / MANIFEST}, add rooms and '
            f'lights, look (osmabench scene check {out}), and run scenes: [{{reference: {out}}}]'
        )
    for parent, parts in find_parts_of_assemblies(imported).items():
        typer.echo(
            f'{len(parts)} objects touch under the node "{parent}": if they are one object, '
            'import with --group-by parent, or give them one "instance" in the manifest'
        )
    for text in imported.left_out:
        typer.echo(f'left out: {text}')


@app.command()
def export(
    reference: Reference,
    out: NewFolder,
    scene: SceneName = '',
    seed: Seed = 0,
    overwrite: MoveAside = False,
    changes: Annotated[Path | None, Option(help='YAML of changes to make first.')] = None,
) -> None:
    """Export a scene as a Habitat scene data set."""
    from osmabench_ros.base.files import Existing, check_folder
    from osmabench_ros.base.strict import validated
    from osmabench_ros.scenes.changes import Changes
    from osmabench_ros.scenes.loading import load_scene
    from osmabench_ros.scenes.writing import write_habitat_dataset

    check_folder(out, Existing.MOVE_ASIDE if overwrite else Existing.REFUSE)
    made = validated(Changes, str(changes), str(changes)) if changes else ()
    exported = load_scene(reference, scene=scene, seed=seed, changes=made)
    config = write_habitat_dataset(exported, out, overwrite)
    counts = f'{len(exported.objects)} objects, {len(exported.rooms)} rooms'
    typer.echo(f'{config}: {counts}, {len(exported.lights)} lights')


@app.command()
def check(
    reference: Reference,
    scene: SceneName = '',
    seed: Seed = 0,
    output: Annotated[Path, Option('--output', '-o', help='Image to write.')] = Path('scene.png'),
    overwrite: Overwrite = False,
) -> None:
    """List doubtful properties of a scene, and draw it from above with the ids of its objects.

    Values that no building has, as with another unit or axis, give a warning.
    """
    from osmabench_ros.scenes.changes import find_doubtful_objects
    from osmabench_ros.scenes.loading import load_scene
    from osmabench_ros.simulation.views import draw_storeys, write_views

    loaded = load_scene(reference, scene=scene, seed=seed)
    write_views(draw_storeys(loaded), output, overwrite=overwrite)
    typer.echo(
        f'{loaded.dataset} {loaded.name}: {len(loaded.objects)} objects of '
        f'{len({item.class_id for item in loaded.objects})} classes, {len(loaded.rooms)} rooms, '
        f'{len(loaded.lights)} lights'
    )
    typer.echo(loaded.lamps_in_words)
    for doubt, objects in find_doubtful_objects(loaded).items():
        named = ', '.join(f'{item.instance_id} {item.name}' for item in objects)
        typer.echo(f'{doubt}: {named}')
    typer.echo(f'wrote {output}')


@app.command()
def generate(
    config: Config,
    formats: Annotated[
        list[Format], Option('--format', help='May be repeated; one rendering serves all.')
    ] = [Format.OSMA],  # noqa: B006
    out: Annotated[Path, Option(help='Folder that gets FORMAT/CONDITION/SCENE folders.')] = Path(
        'sequences'
    ),
    with_ground_truth: Annotated[
        bool, Option('--ground-truth', help='Also make OUT/shared/SCENE/ground_truth.')
    ] = False,
) -> None:
    """Render the scenes of a configuration under its conditions into sequences on disk.

    A sequence appears when it is complete. Call again after an interruption: complete ones are
    kept. Nothing is overwritten.
    """
    from osmabench_ros.runs.config import load_config
    from osmabench_ros.runs.generation import generate_sequences
    from osmabench_ros.runs.plan import GROUND_TRUTH_FOLDER
    from osmabench_ros.runs.preparation import Preparation

    with shown_progress() as progress:
        loaded = load_config(config)
        made = generate_sequences(loaded, [item.value for item in formats], out, progress)
        if with_ground_truth:
            folders = Preparation().prepare_all(loaded, out, progress)
            made |= {folder / GROUND_TRUTH_FOLDER: kept for folder, kept in folders.items()}
    _list_made(made)


@app.command()
def ground_truth(
    config: Config, out: Annotated[Path, Option(help='Folder that gets shared/SCENE/.')]
) -> None:
    """Make path, ground truth and questions of every scene of a configuration; needs no ROS."""
    from osmabench_ros.runs.config import load_config
    from osmabench_ros.runs.plan import GROUND_TRUTH_FOLDER
    from osmabench_ros.runs.preparation import Preparation

    with shown_progress() as progress:
        made = Preparation().prepare_all(load_config(config), out, progress)
    _list_made({folder / GROUND_TRUTH_FOLDER: kept for folder, kept in made.items()})


def _list_made(made: Mapping[Path, bool]) -> None:
    for directory, kept in made.items():
        typer.echo(f'{directory}{" (kept)" if kept else ""}')


@app.command()
@with_option_groups
def prompts(
    regime: Annotated[
        Literal['furniture', 'manipuland'],
        Argument(help='Only furniture, or with one small object too.'),
    ],
    options: ModelOptions,
    model: Model,
    out: NewFolder,
    wanted: Annotated[int | None, Option(min=1, help='Prompts to keep.')] = None,
    raw: Annotated[int | None, Option(min=1, help='Prompts to choose from.')] = None,
    strict: Annotated[bool, Option('--strict', help='Filter by whole words.')] = False,
    seed: Annotated[int, Option(help='Seed of rooms and arrangements.')] = 42,
) -> None:
    """Let a model write prompts of a regime, filtered, without duplicates, to prompts.json."""
    from osmabench_ros.language.embedding import SentenceEmbedder
    from osmabench_ros.vqa.scene_prompts import PROMPTS, write_prompt_files

    client = options.access.client_of(model)
    with shown_progress() as progress:
        pool = write_prompt_files(
            client, regime, SentenceEmbedder(), out, wanted=wanted, raw=raw, seed=seed,
            strict=strict, progress=progress,
        )  # fmt: skip
    typer.echo(f'{len(pool.kept)} prompts in {out / PROMPTS}, {len(pool.rejected)} rejected')
    print_spending(client)


@app.command()
@with_option_groups
def specify(
    prompts_file: Annotated[Path, Argument(metavar='PROMPTS', help='JSON of texts by scene.')],
    options: ModelOptions,
    model: Model,
    out: NewFolder,
) -> None:
    """Let a model turn prompts into specifications, NAME.yaml, which are scenes of a run."""
    from osmabench_ros.vqa.scene_prompts import write_specifications

    client = options.access.client_of(model)
    count = write_specifications(client, prompts_file, out)
    typer.echo(f'{count} specifications in {out}')
    print_spending(client)


@app.command()
@with_option_groups
def questions(
    specifications: Annotated[Path, Argument(help='Folder of specifications, *.yaml.')],
    options: ModelOptions,
    out: NewFolder,
    model: Annotated[str, Option(help='Model that writes them; default: by rule.')] = '',
    seed: Annotated[int, Option(help='Seed of the exact questions.')] = 0,
) -> None:
    """Write PromptGT questions of specifications as NAME_questions.json of OSMa-Bench++."""
    from osmabench_ros.suites.promptgt import write_question_files

    client = options.access.client_of(model) if model else None
    counts = write_question_files(specifications, out, client, seed)
    typer.echo(f'{sum(counts)} questions about {len(counts)} scenes in {out}')
    print_spending(client)
