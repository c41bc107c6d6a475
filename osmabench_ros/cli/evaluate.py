"""`osmabench evaluate` and `osmabench ground-truth`: scores of a map, without ROS."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.base.files import check_file
from osmabench_ros.cli import bag_options
from osmabench_ros.cli.evaluate_bag import evaluate_recorded, reference_choice
from osmabench_ros.cli.progress import shown_progress
from osmabench_ros.cli.rerun_option import RerunFile
from osmabench_ros.errors import ConfigError, RequirementError
from osmabench_ros.language.settings import ModelSettings
from osmabench_ros.maps.label_file import read_label_file
from osmabench_ros.metrics.trajectory import DeltaUnit, TrajectoryAlignment
from osmabench_ros.reports.figures import print_figures
from osmabench_ros.reports.outcomes import gate_of
from osmabench_ros.reports.view_of_run import record_map
from osmabench_ros.runs.bag_settings import AlignmentChoice, BagSource, TrajectoryChoice
from osmabench_ros.runs.config import MatrixConfig, Requirement, SuiteConfig, load_config
from osmabench_ros.runs.map_evaluation import MapOnDisk, evaluate_map
from osmabench_ros.runs.preparation import GROUND_TRUTH_FOLDER, prepare_scenes
from osmabench_ros.runs.report_model import RunReport
from osmabench_ros.runs.requirement import BAG_SUITES
from osmabench_ros.runs.results_folder import undisturbed

DEFAULT_CONFIG = 'single_run'


class Device(str, Enum):
    """Where to compute."""

    AUTO = 'auto'
    CPU = 'cpu'
    CUDA = 'cuda'


def evaluate(
    context: typer.Context,
    map_directory: Annotated[
        Path | None, typer.Argument(metavar='[MAP_DIR]', help='Folder with map.json.')
    ] = None,
    ground_truth: Annotated[
        Path | None,
        typer.Option(help="A run's shared/SCENE/ground_truth, or from osmabench ground-truth."),
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help='questions.jsonl of the scene; default: made anew.')
    ] = None,
    suite: Annotated[
        list[str] | None, typer.Option(help='Only this suite; may be repeated.')
    ] = None,
    config: Annotated[
        str, typer.Option(help='Configuration that suites, requirements, text_features are from.')
    ] = DEFAULT_CONFIG,
    out: Annotated[Path, typer.Option(help='Folder that gets report.json.')] = Path('evaluation'),
    device: Annotated[Device, typer.Option(help='Where to compute.')] = Device.AUTO,
    seed: Annotated[int, typer.Option(min=0, help='Seed of resampling and questions.')] = 0,
    force: Annotated[
        bool, typer.Option('--force', help='Replace the report that is in --out, and the --rerun.')
    ] = False,
    rerun: RerunFile = None,
    bag: bag_options.BagPath = None,
    map_topic: bag_options.MapTopic = '',
    msg_path: bag_options.MsgPath = None,
    at: bag_options.At = None,
    method: bag_options.Method = '',
    labels: bag_options.Labels = None,
    scene: bag_options.Scene = '',
    run: bag_options.RunDirectory = None,
    reference: bag_options.ReferenceCloud = None,
    reference_frame: bag_options.ReferenceFrame = None,
    align: bag_options.Align = None,
    transform: bag_options.Transform = None,
    pose_topic: bag_options.PoseTopic = '',
    reference_topic: bag_options.ReferenceTopic = '',
    reference_trajectory: bag_options.ReferenceTrajectory = None,
    trajectory_align: bag_options.TrajectoryAlign = TrajectoryAlignment.SE3,
    max_diff: bag_options.MaxDifference = bag_options.DEFAULT_DIFFERENCE_S,
    time_offset: bag_options.TimeOffset = 0.0,
    rpe_delta: bag_options.RpeDelta = 1.0,
    rpe_unit: bag_options.RpeUnit = DeltaUnit.FRAMES,
    rpe_all_pairs: bag_options.RpeAllPairs = False,
    model: bag_options.Model = '',
    base_url: bag_options.BaseUrl = '',
    cache: bag_options.ModelCache = None,
    max_tokens: bag_options.MaxTokens = None,
    question_frames: bag_options.QuestionFrames = 10,
) -> None:
    """Score a map against the ground truth of its scene; needs no ROS.

    The map is in MAP_DIR, or in a bag (--bag). A recorded map is compared with a scene, a run,
    ground truth or a cloud; with none of them it is described, and the report says so.

    Exits with 4 if a requirement of the configuration does not hold.
    """
    settings = load_config(config)
    suites = _suites(settings, suite)
    names = [item.name for item in suites]
    requirements = [
        item
        for item in settings.requirements
        if item.base_suite in names or item.suite in BAG_SUITES
    ]
    if bag is None:
        if map_directory is None or ground_truth is None:
            raise ConfigError('name MAP_DIR and --ground-truth, or a bag with --bag')
        _refuse_bag_options(context)
        source = MapOnDisk(
            map_directory, ground_truth, questions, settings.text_features, device.value, seed
        )
        report = _of_map(source, suites, out, requirements, replace=force, rerun=rerun)
        typer.echo(out / 'report.json')
    else:
        if map_directory is not None:
            raise ConfigError(f'name a map, {map_directory}, or a bag, {bag}, not both')
        recorded = BagSource(
            bag,
            settings,
            tuple(msg_path or ()),
            map_topic,
            at,
            method,
            read_label_file(labels) if labels else None,
            reference_choice(scene, run, ground_truth, reference, reference_frame),
            AlignmentChoice(align, bag_options.similarity_of(transform)),
            TrajectoryChoice(
                pose_topic,
                reference_topic,
                reference_trajectory,
                bag_options.trajectory_settings(
                    trajectory_align, max_diff, time_offset, rpe_delta, rpe_unit, rpe_all_pairs
                ),
            ),
            questions,
            settings.text_features,
            device.value,
            seed,
            ModelSettings(model, base_url, cache, max_tokens=max_tokens) if model else None,
            question_frames,
        )
        report = evaluate_recorded(recorded, suites, out, requirements, replace=force, rerun=rerun)
    if report.failed_requirements:
        raise RequirementError(
            'requirements do not hold: ' + '; '.join(report.failed_requirements)
        )


def _of_map(
    source: MapOnDisk,
    suites: list[SuiteConfig],
    out: Path,
    requirements: list[Requirement],
    *,
    replace: bool,
    rerun: Path | None,
) -> RunReport:
    if rerun is not None:
        check_file(rerun, overwrite=replace)
    with undisturbed(out), shown_progress() as progress:
        report = evaluate_map(
            source, suites, out, requirements, replace=replace, progress=progress
        )
        if rerun is not None:
            record_map(
                source.map_directory,
                source.ground_truth_directory,
                rerun,
                progress,
                gate_m=gate_of(suites),
                overwrite=replace,
            )
    print_figures(report)
    return report


def _refuse_bag_options(context: typer.Context) -> None:
    """Refuse options of recorded maps where there is no bag, instead of ignoring them."""
    for parameter in context.command.params:
        of_bag = getattr(parameter, 'rich_help_panel', None) in bag_options.PANELS
        given = context.get_parameter_source(parameter.name or '')
        if of_bag and given is not None and given.name == 'COMMANDLINE':
            raise ConfigError(f'{parameter.opts[0]} is about a recorded map; name its --bag')


def _suites(settings: MatrixConfig, names: list[str] | None) -> list[SuiteConfig]:
    """Return the named suites, with the options that the configuration has for them."""
    if not names:
        return list(settings.suites)
    configured = {item.name: item for item in settings.suites}
    return [configured.get(name, SuiteConfig(name=name)) for name in names]


def ground_truth(
    config: Annotated[str, typer.Argument(help='YAML file, or a name such as "demo".')],
    out: Annotated[Path, typer.Option(help='Folder that gets shared/SCENE/.')],
) -> None:
    """Make path, ground truth and questions of every scene of a configuration; needs no ROS."""
    with shown_progress() as progress:
        made = prepare_scenes(load_config(config), out, progress)
    for directory in made:
        typer.echo(directory / GROUND_TRUTH_FOLDER)
