"""`osmabench map`: checks, imports, exports, scores and describes semantic maps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from osmabench_ros.base.contract import WORLD_FRAME
from osmabench_ros.base.files import check_file, check_folder
from osmabench_ros.base.progress import shown_progress
from osmabench_ros.cli import options
from osmabench_ros.errors import ConfigError, errors_as

if TYPE_CHECKING:
    from osmabench_ros.geometry.pose import Pose

app = typer.Typer(
    name='map', help='Check, import, export, score and describe semantic maps.',
    no_args_is_help=True,
)  # fmt: skip

Directory = Annotated[Path, Argument(help='Folder with map.json.')]


@app.command()
def check(directory: Directory) -> None:
    """List the errors of a map with their places; exit code 1 if there is one."""
    from osmabench_ros.maps.storage import check_directory

    faults = check_directory(directory)
    for fault in faults:
        typer.echo(str(fault))
    if faults:
        raise typer.Exit(1)
    typer.echo(f'{directory} is a sound semantic map.')


@app.command()
def info(directory: Directory) -> None:
    """Describe a map: origin, nodes, edges, points, features."""
    from osmabench_ros.maps.export import summary_of
    from osmabench_ros.maps.storage import read_map
    from osmabench_ros.runs.matrix_on_disk import with_origin_of_run

    semantic_map = with_origin_of_run(read_map(directory), directory.resolve().parent)
    for name, text in summary_of(semantic_map):
        typer.echo(f'{name:24} {text}')


@app.command()
def methods(
    method: Annotated[str, Argument(help='Say which files of this method are read.')] = '',
) -> None:
    """List the methods with importable maps, or describe the files of one."""
    import inspect

    from osmabench_ros.maps.importer import find_importer, list_importers

    if method:
        typer.echo(inspect.getdoc(find_importer(method)) or f'{method} has no description')
        return
    for name in list_importers():
        described = (inspect.getdoc(find_importer(name)) or '').partition('\n')[0]
        typer.echo(f'{name:16}{described}')
    typer.echo('\n`osmabench map methods METHOD` says which files of a method are read.')


@app.command('import')
def import_(
    method: Annotated[str, Argument(help='Method; see `osmabench map methods`.')],
    path: Annotated[Path, Argument(help='Its output; see `osmabench map methods METHOD`.')],
    out: options.NewFolder,
    world: Annotated[
        Literal['z_up', 'habitat', 'optical'] | None,
        Option(help='Axes of the files; default: by method.'),
    ] = None,
    metres_per_unit: Annotated[float, Option(help='Unit of length of the files.')] = 1.0,
    pose: Annotated[Path | None, Option(help='Text file, 4x4: pose of the files, z-up.')] = None,
    label_set: Annotated[Path | None, Option(help='JSON of "classes": id and name.')] = None,
    frame_id: Annotated[str, Option(help='Frame of the map.')] = WORLD_FRAME,
    scene: Annotated[str, Option(help='Scene that was mapped.')] = '',
    condition: Annotated[str, Option(help='Condition it was mapped under.')] = '',
    frames_used: Annotated[int, Option(help='Frames the method integrated.')] = 0,
    method_version: Annotated[str, Option(help='Version or commit of the method.')] = '',
    feature_model: Annotated[str, Option(help='Encoder of the features; else by method.')] = '',
    feature_pretrained: Annotated[str, Option(help='Weights of that encoder.')] = '',
) -> None:
    """Convert the output of a mapping method into a semantic map."""
    from osmabench_ros.maps.export import describe_contents
    from osmabench_ros.maps.importer import ImportOptions, World, import_map
    from osmabench_ros.maps.importers.pointcloud import read_label_set
    from osmabench_ros.maps.storage import write_map

    check_folder(out)
    chosen = ImportOptions(
        world=None if world is None else World(world),
        metres_per_unit=metres_per_unit,
        frame_id=frame_id,
        label_set=None if label_set is None else read_label_set(label_set),
        scene=scene,
        condition=condition,
        frames_used=frames_used,
        method_version=method_version,
        feature_model=feature_model,
        feature_pretrained=feature_pretrained,
        **options.given_of(pose=None if pose is None else _read_pose(pose)),
    )
    made = import_map(method, path, chosen)
    write_map(made, out)
    typer.echo(f'wrote {out}: {describe_contents(made)}')


def _read_pose(path: Path) -> Pose:
    import numpy as np

    from osmabench_ros.base.documents import read_text
    from osmabench_ros.geometry.pose import Pose

    with errors_as(ConfigError, f'{path} holds no rigid 4x4 matrix', ValueError):
        return Pose.from_matrix(np.loadtxt(read_text(path, ConfigError).splitlines()))


@app.command()
def label(
    directory: Directory,
    out: options.NewFolder,
    label_set: Annotated[Path, Option(help='JSON of "classes": id and name.')],
    text_features: Annotated[
        Path | None,
        Option(help='.npy (classes, D) by class id; default: the text encoder of the map.'),
    ] = None,
    captions: Annotated[bool, Option('--captions', help='Label by captions of nodes.')] = False,
    space: Annotated[str, Option(help="Feature space to use; default: the points' one.")] = '',
) -> None:
    """Label an open-vocabulary map by features that text can be compared with, or by captions.

    The text features come from a file, from open_clip or the bundled sentence embedder if the
    map's features are of their making, or, with --captions, from the sentence embedder.
    """
    from osmabench_ros.maps.export import describe_contents
    from osmabench_ros.maps.importers.pointcloud import read_label_set
    from osmabench_ros.maps.labelling import label_by_features, read_text_features
    from osmabench_ros.maps.storage import read_map, write_map
    from osmabench_ros.runs.open_vocabulary import label_map

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
    typer.echo(f'wrote {out}: {describe_contents(made)}{by}')


@app.command()
def export(
    to: Annotated[
        Literal['openlex3d', 'ply', 'pcd'],
        Argument(help='ply and pcd: `osmabench map import pointcloud` reads them again.'),
    ],
    directory: Directory,
    out: options.NewFolder,
) -> None:
    """Write a map as a folder that other programs read: OpenLex3D, PLY or PCD."""
    from osmabench_ros.maps.export import export_openlex3d, export_point_cloud
    from osmabench_ros.maps.storage import read_map

    check_folder(out)
    semantic_map = read_map(directory)
    if to == 'openlex3d':
        count = export_openlex3d(semantic_map, out)
        left_out = [f'{count} points without a feature'] if count else []
    else:
        left_out = export_point_cloud(semantic_map, out, f'.{to}')
    typer.echo(f'wrote {out}' + (f'; left out: {", ".join(left_out)}' if left_out else ''))


@app.command()
@options.with_option_groups
def evaluate(
    directory: Directory,
    ground_truth: Annotated[Path, Option(help=options.GROUND_TRUTH_HELP)],
    scoring: options.Scoring,
) -> None:
    """Score a map against the ground truth of its scene; needs no ROS.

    The map of a bag is scored by osmabench bag evaluate.

    Exits with 4 if a requirement of the configuration does not hold.
    """
    from osmabench_ros.reports.page.single_pages import write_map_page
    from osmabench_ros.runs import evaluation

    inputs = evaluation.EvaluationInputs(
        evaluation.identify_unnamed_run(scoring.seed),
        directory,
        ground_truth,
        scoring.out,
        scoring.questions,
        scoring.device,
        scoring.settings.text_features,
        allow_partial=True,
    )
    with scoring.at_work() as progress:
        report = evaluation.evaluate_map(
            inputs, scoring.suites, scoring.requirements, replace=scoring.force, progress=progress
        )
        page = write_map_page(report, scoring.out)
        scoring.record(directory, ground_truth, progress)
    options.conclude(report, scoring.out / 'report.json', page)


@app.command()
def view(
    directory: Annotated[Path, Argument(metavar='DIR', help='Folder of a run or of a map.')],
    rerun: Annotated[Path, Option(metavar='FILE.rrd', help='Recording to write.')],
    ground_truth: Annotated[
        Path | None, Option(help='Of the scene of a map, to show errors.')
    ] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write frames, path, map, scene graph and errors as a recording for Rerun; needs no ROS.

    Look at it with `rerun FILE.rrd`.
    """
    from osmabench_ros.reports import rerun_recording
    from osmabench_ros.runs.matrix_on_disk import open_run

    check_file(rerun, overwrite=overwrite)
    with shown_progress() as progress:
        if (directory / 'map.json').exists():
            view = rerun_recording.read_map_scene(directory, ground_truth)
        else:
            view = rerun_recording.read_run_scene(open_run(directory))
        rerun_recording.write_rerun(view, rerun, progress, overwrite=overwrite)
    typer.echo(rerun)
