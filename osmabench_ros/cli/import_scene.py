"""`osmabench import-scene` and `export-scene`: scenes of other programs, and for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.base.owned_folder import Existing, check_folder
from osmabench_ros.base.strict import validated
from osmabench_ros.cli.options import NewFolder
from osmabench_ros.scenes.change_kinds import Changes
from osmabench_ros.scenes.folder import MANIFEST
from osmabench_ros.scenes.importing import MESH_SUFFIXES, read_class_patterns, read_known_classes
from osmabench_ros.scenes.importing import import_scene as import_scene_folder
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.worlds.parts import ColladaUp, WorldOptions
from osmabench_ros.scenes.writing import write_habitat_dataset


def import_scene(
    source: Annotated[
        str,
        typer.Argument(
            help='Mesh file (.glb, .gltf, .obj, .dae), world of Gazebo (.world, .sdf) or '
            'USD, Habitat data set, scene folder, or "apartment".'
        ),
    ],
    out: NewFolder,
    models: Annotated[
        list[Path] | None,
        typer.Option('--models', help='Folder of Gazebo models; may be given more than once.'),
    ] = None,
    classes: Annotated[
        Path | None,
        typer.Option('--classes', help='JSON: class names by pattern of names of models.'),
    ] = None,
    label_set: Annotated[
        str,
        typer.Option(
            '--label-set',
            metavar='apartment|FILE.json',
            help='Known classes that guesses from the names of models are matched to by words.',
        ),
    ] = '',
    collada_up: Annotated[
        ColladaUp,
        typer.Option(
            '--collada-up',
            help='Whether up_axis turns Collada files; by the version of the SDF, ignored as in '
            'Gazebo Classic, or applied as in new Gazebo.',
        ),
    ] = ColladaUp.VERSION,
    textures: Annotated[
        list[Path] | None,
        typer.Option('--textures', help='Folder below which missing textures are searched.'),
    ] = None,
    skip_missing: Annotated[
        bool,
        typer.Option('--skip-missing', help='Leave out what is missing, and list it.'),
    ] = False,
    scene: Annotated[str, typer.Option('--scene', help='Scene of a data set.')] = '',
    seed: Annotated[int, typer.Option('--seed', help='Seed of the apartment.')] = 0,
    overwrite: Annotated[
        bool,
        typer.Option(
            '--overwrite',
            help='Move an older scene to OUT/previous.',
        ),
    ] = False,
) -> None:
    """Import a scene into a folder of a glTF file and a manifest."""
    imported = import_scene_folder(
        source,
        out,
        world=WorldOptions(
            models=tuple(models or ()),
            classes=read_class_patterns(classes) if classes else {},
            known_classes=read_known_classes(label_set) if label_set else (),
            collada_up=collada_up,
            textures=tuple(textures or ()),
            skip_missing=skip_missing,
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
            typer.echo(f'  {item.name}: {imported.class_name(item) or "no class"}')
        typer.echo(
            f'The classes are guesses from names. Mend them in {out / MANIFEST}, add rooms and '
            f'lights there, look at it (osmabench scene check {out}), and run it: '
            f'scenes: [{{reference: {out}}}]'
        )
    for text in imported.left_out:
        typer.echo(f'left out: {text}')


def export_scene(
    reference: Annotated[
        str,
        typer.Argument(metavar='SCENE', help='Scene folder, Habitat data set, or "apartment".'),
    ],
    out: NewFolder,
    scene: Annotated[str, typer.Option('--scene', help='Scene of a data set.')] = '',
    seed: Annotated[int, typer.Option('--seed', help='Seed of the apartment.')] = 0,
    overwrite: Annotated[
        bool,
        typer.Option('--overwrite', help='Move an older export to OUT/previous.'),
    ] = False,
    changes: Annotated[
        Path | None, typer.Option('--changes', help='YAML: what to change in the scene before.')
    ] = None,
) -> None:
    """Export a scene as a Habitat scene data set."""
    check_folder(out, Existing.MOVE_ASIDE if overwrite else Existing.REFUSE)
    made = validated(Changes, str(changes), str(changes)) if changes else ()
    exported = load_scene(reference, scene=scene, seed=seed, changes=made)
    config = write_habitat_dataset(exported, out, overwrite)
    typer.echo(
        f'{config}: {len(exported.objects)} objects, {len(exported.rooms)} rooms, '
        f'{len(exported.lights)} lights'
    )
