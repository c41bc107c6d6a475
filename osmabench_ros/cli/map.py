"""`osmabench map`: check, import, export and describe semantic maps."""

from __future__ import annotations

import inspect
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from osmabench_ros.base.contract import WORLD_FRAME
from osmabench_ros.base.documents import read_text
from osmabench_ros.base.owned_folder import check_folder
from osmabench_ros.cli.options import NewFolder
from osmabench_ros.errors import ConfigError, errors_as
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.disk.storage import faults_of_directory, read_map, write_map
from osmabench_ros.maps.export import export_openlex3d, export_point_cloud
from osmabench_ros.maps.importer import (
    ImportOptions,
    World,
    find_importer,
    import_map,
    importer_names,
)
from osmabench_ros.maps.importers.pointcloud import read_label_set
from osmabench_ros.maps.labelling import label_by_features, read_text_features
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.summary import contents_of, summary_of
from osmabench_ros.runs.evaluate.open_vocabulary import label_map
from osmabench_ros.runs.run_on_disk import is_run_name

app = typer.Typer(help='Check, import, export and describe semantic maps.', no_args_is_help=True)

Directory = Annotated[Path, typer.Argument(help='Folder with map.json.')]


class ExportFormat(str, Enum):
    """Formats a map can be exported to."""

    OPENLEX3D = 'openlex3d'
    PLY = 'ply'
    PCD = 'pcd'


@app.command()
def check(directory: Directory) -> None:
    """List every fault of a map with its place; exit code 1 if there is one."""
    faults = faults_of_directory(directory)
    for fault in faults:
        typer.echo(str(fault))
    if faults:
        raise typer.Exit(1)
    typer.echo(f'{directory} is a sound semantic map.')


@app.command()
def info(directory: Directory) -> None:
    """Describe a map: origin, nodes, edges, points, features."""
    for what, how_much in summary_of(_of_its_run(read_map(directory), directory.resolve().parent)):
        typer.echo(f'{what:24} {how_much}')


def _of_its_run(semantic_map: SemanticMap, folder: Path) -> SemanticMap:
    """Return a map with the scene and condition of the run that it lies in, if it names none."""
    header = semantic_map.header
    origin = header.provenance
    if origin.scene or not is_run_name(folder.name):
        return semantic_map
    dataset, scene, condition, *_ = folder.name.split('.')
    named = replace(
        header, provenance=replace(origin, scene=f'{dataset} {scene}', condition=condition)
    )
    return replace(semantic_map, header=named)


@app.command()
def methods(
    method: Annotated[str, typer.Argument(help='Say which files of this method are read.')] = '',
) -> None:
    """List the methods whose maps can be imported, or describe the files of one."""
    if method:
        typer.echo(inspect.getdoc(find_importer(method)) or f'{method} has no description')
        return
    for name in importer_names():
        described = (inspect.getdoc(find_importer(name)) or '').partition('\n')[0]
        typer.echo(f'{name:16}{described}')
    typer.echo('\n`osmabench map methods METHOD` says which files of a method are read.')


@app.command('import')
def import_(
    method: Annotated[str, typer.Argument(help='Method; see `osmabench map methods`.')],
    path: Annotated[
        Path,
        typer.Argument(
            help='File or folder that the method wrote; `osmabench map methods METHOD` says which.'
        ),
    ],
    out: NewFolder,
    world: Annotated[
        World | None, typer.Option(help="Axes of the files; default: the method's usual ones.")
    ] = None,
    metres_per_unit: Annotated[float, typer.Option(help='Unit of length of the files.')] = 1.0,
    pose: Annotated[
        Path | None, typer.Option(help='Text file, 4x4: files (turned z-up) in the map frame.')
    ] = None,
    label_set: Annotated[
        Path | None, typer.Option(help='JSON with "classes", each "id" and "name".')
    ] = None,
    frame_id: Annotated[str, typer.Option(help='Frame of the map.')] = WORLD_FRAME,
    scene: Annotated[str, typer.Option(help='Scene that was mapped.')] = '',
    condition: Annotated[str, typer.Option(help='Condition it was mapped under.')] = '',
    frames_used: Annotated[int, typer.Option(help='Frames the method integrated.')] = 0,
    method_version: Annotated[str, typer.Option(help='Version or commit of the method.')] = '',
    feature_model: Annotated[
        str, typer.Option(help="Encoder of the features; default: the method's usual one.")
    ] = '',
    feature_pretrained: Annotated[str, typer.Option(help='Weights of that encoder.')] = '',
) -> None:
    """Read what a mapping method left behind and write it as a semantic map."""
    check_folder(out)
    options = ImportOptions(
        world=world,
        metres_per_unit=metres_per_unit,
        pose=Pose.identity() if pose is None else _pose(pose),
        frame_id=frame_id,
        label_set=None if label_set is None else read_label_set(label_set),
        scene=scene,
        condition=condition,
        frames_used=frames_used,
        method_version=method_version,
        feature_model=feature_model,
        feature_pretrained=feature_pretrained,
    )
    made = import_map(method, path, options)
    write_map(made, out)
    typer.echo(f'wrote {out}: {contents_of(made)}')


@app.command()
def label(
    directory: Directory,
    out: NewFolder,
    label_set: Annotated[Path, typer.Option(help='JSON with "classes", each "id" and "name".')],
    text_features: Annotated[
        Path | None,
        typer.Option(
            help=".npy (classes, D) or (templates, classes, D), by class id; default: the map's "
            'own text encoder, if it is installed here.'
        ),
    ] = None,
    captions: Annotated[
        bool, typer.Option('--captions', help='Label by the captions of the nodes instead.')
    ] = False,
    space: Annotated[
        str, typer.Option(help="Feature space to use; default: the points' one.")
    ] = '',
) -> None:
    """Label an open-vocabulary map by features that text can be compared with, or by captions.

    The text features come from a file, from open_clip or the bundled sentence embedder if the
    map's features are of their making, or, with --captions, from the sentence embedder.
    """
    if captions and (text_features or space):
        raise ConfigError('--captions labels without --text-features and --space; leave them out')
    check_folder(out)
    classes = read_label_set(label_set)
    semantic_map = read_map(directory)
    if text_features is not None:
        text = read_text_features(text_features, classes)
        made, encoder = label_by_features(semantic_map, text, classes, space=space), ''
    else:
        made, encoder = label_map(semantic_map, classes, space=space, by_captions=captions)
    write_map(made, out)
    by = f', labelled by {encoder or text_features}'
    typer.echo(f'wrote {out}: {contents_of(made)}{by}')


@app.command()
def export(
    to: Annotated[
        ExportFormat,
        typer.Argument(
            help='openlex3d: points, features and index for its evaluation. ply, pcd: a point '
            'cloud with label, instance and score, classes.json beside it, which '
            '`osmabench map import pointcloud` reads again.'
        ),
    ],
    directory: Directory,
    out: NewFolder,
) -> None:
    """Write a map as a folder that other programs read: OpenLex3D, PLY or PCD."""
    check_folder(out)
    semantic_map = read_map(directory)
    if to is ExportFormat.OPENLEX3D:
        count = export_openlex3d(semantic_map, out)
        left_out = [f'{count} points without a feature'] if count else []
    else:
        left_out = export_point_cloud(semantic_map, out, f'.{to.value}')
    typer.echo(f'wrote {out}' + (f'; left out: {", ".join(left_out)}' if left_out else ''))


def _pose(path: Path) -> Pose:
    with errors_as(ConfigError, f'{path} holds no rigid 4x4 matrix', ValueError):
        return Pose.from_matrix(np.loadtxt(read_text(path, ConfigError).splitlines()))
