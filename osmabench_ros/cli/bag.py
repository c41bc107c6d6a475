"""`osmabench bag`: records, plays and scores bags."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from typer import Argument, Option

from osmabench_ros.base.progress import shown_progress, silent
from osmabench_ros.cli import options
from osmabench_ros.cli.run import needs_ros
from osmabench_ros.cli.score import PairingOptions, TrajectoryAlign, pose_option
from osmabench_ros.errors import ConfigError, errors_as

app = typer.Typer(
    name='bag', help='Record, play and score bags, MCAP or SQLite.', no_args_is_help=True
)


@app.command()
def record(
    out: Annotated[Path, Option(help='Folder of the bag; must not exist, or be empty.')],
    topics: Annotated[
        list[str] | None, Option(help='Default: the topic contract. May be repeated.')
    ] = None,
    all_topics: Annotated[bool, Option('--all', help='Record all but hidden topics.')] = False,
    exclude: Annotated[str, Option(help='Regular expression of topics to leave out.')] = '',
    compression: Annotated[Literal['zstd', 'lz4', 'none'], Option(help='Of the bag.')] = 'zstd',
    split_size: Annotated[str, Option(help='Begin a new file at this size, e.g. 2G.')] = '0',
    split_duration: Annotated[float, Option(help='New file after so many seconds.')] = 0.0,
    acks: Annotated[bool, Option('--acks', help='Acknowledge each frame, for lockstep.')] = False,
    duration: Annotated[float, Option(min=0.0, help='End after so many seconds.')] = 0.0,
) -> None:
    """Record topics of a running stack (ROS_DOMAIN_ID) to an MCAP bag until Ctrl-C.

    Says at the end how many messages of each topic are there and how many were lost.
    """
    from pydantic import ByteSize

    from osmabench_ros.base.strict import validated
    from osmabench_ros.reports.terminal import print_recording
    from osmabench_ros.sequences.bags.recording_report import RecordingSettings

    given = {
        'topics': topics or [], 'all_topics': all_topics, 'exclude': exclude,
        'compression': compression, 'max_file_s': split_duration, 'acks': acks,
        'max_file_bytes': validated(ByteSize, split_size, '--split-size'),
    }  # fmt: skip
    settings = validated(RecordingSettings, given, 'options')
    with needs_ros('recording'):
        from osmabench_ros.bringup.runner.foreground import record as record_bag
    console = Console(stderr=True)
    with console.status('recording; Ctrl-C ends it') as status:
        report = record_bag(
            out,
            settings,
            duration_s=duration,
            progress=lambda now: status.update(
                f'recording {now.duration_s:.0f} s: {now.messages} messages, '
                f'{now.bytes_written / 2**20:.0f} MiB, {now.lost} lost; Ctrl-C ends it'
            ),
        )
    print_recording(report, out)


@app.command()
def replay(
    bag: Annotated[Path, Argument(help='Folder of a bag, or an .mcap or .db3 file.')],
    rate: Annotated[float | None, Option(help='Speed, e.g. 0.5 for half; default: 1.')] = None,
    start: Annotated[float, Option(help='Seconds into the bag to start at.')] = 0.0,
    duration: Annotated[float | None, Option(help='Seconds to play; default: to the end.')] = None,
    loop: Annotated[bool, Option('--loop', help='Start over at the end.')] = False,
    step: Annotated[bool, Option('--step', help='Start paused; Enter plays a frame.')] = False,
    clock: Annotated[bool, Option(help='Publish /clock, from header stamps if need be.')] = True,
    topics: Annotated[list[str] | None, Option(help='Default: all. May be repeated.')] = None,
    msg_path: Annotated[list[Path] | None, Option(help='.msg files or folders of them.')] = None,
    remap: Annotated[list[str] | None, Option(help='May be repeated.', metavar='FROM:=TO')] = None,
) -> None:
    """Play a bag of any ROS 2 from Humble on into a running stack (ROS_DOMAIN_ID).

    While it plays, the services start_run, pause_run, step_run and reset_run control it.
    """
    from osmabench_ros.base.strict import validated
    from osmabench_ros.sequences.bags.bag import open_bag
    from osmabench_ros.sequences.bags.playback import PlaybackSettings

    for rule in remap or ():
        options.pair_of(rule, ':=', '--remap', 'FROM:=TO')
    if duration is not None and not duration > 0:
        raise ConfigError(f'--duration is {duration:g} s; give a number above 0')
    given = options.given_of(
        bag=bag.absolute(), rate=rate, start_s=start, duration_s=duration, loop=loop, paused=step,
        clock=clock, topics=topics, msg_paths=msg_path,
    )  # fmt: skip
    settings = validated(PlaybackSettings, given, 'options')
    with needs_ros('playing'):
        from osmabench_ros.bringup.runner.foreground import replay as replay_bag
    # An unreadable bag is reported before a node is started.
    open_bag(bag, settings.msg_paths).close()
    console = Console(stderr=True)
    with shown_progress() as progress:
        played = replay_bag(
            settings, remap=remap or (), progress=progress if console.is_terminal else silent
        )
    typer.echo(f'played {played} messages of {bag}')


_map, _reference, _alignment = (
    partial(Option, rich_help_panel=panel)
    for panel in ('Map of the bag', 'Reference of the map', 'Alignment of the map')
)
Numbers = tuple[float, float, float, float, float, float, float]


@dataclass(frozen=True)
class RecordedMapOptions:
    """Options that select the map of a bag, and how it is read."""

    map_topic: Annotated[str, _map(help='Topic of the map; default: the only one.')] = ''
    msg_path: Annotated[list[Path] | None, _map(help='.msg files or folders of them.')] = None
    at: Annotated[float | None, _map(min=0, help='Seconds into the bag; else the last.')] = None
    method: Annotated[str, _map(help='Name of the mapping method in the report.')] = ''
    labels: Annotated[Path | None, _map(help='YAML or JSON of class names by id.')] = None


@dataclass(frozen=True)
class ReferenceOptions:
    """The reference of the map, and how the map is aligned with it; both are optional."""

    ground_truth: Annotated[Path | None, _reference(help=options.GROUND_TRUTH_HELP)] = None
    scene: Annotated[
        str, _reference(help='"apartment" (with --seed), folder or data set, to make it from.')
    ] = ''
    run: Annotated[Path | None, _reference(help='Run that has ground truth, a folder.')] = None
    reference: Annotated[
        Path | None, _reference(help='PLY or PCD, z up, metres, with or without labels.')
    ] = None
    reference_frame: Annotated[
        str | None, _reference(help='Default: world; with --reference: of the map.')
    ] = None
    align: Annotated[
        Literal['none', 'known', 'icp', 'trajectory'] | None,
        _alignment(help='Score the map also after this alignment, as SUITE@aligned.'),
    ] = None
    transform: Annotated[
        Numbers | None,
        _alignment(help='For known, or the first guess of icp.', metavar='X Y Z QX QY QZ QW'),
    ] = None


@dataclass(frozen=True)
class PoseOptions:
    """Which poses of the stack are compared with which true ones."""

    pose_topic: Annotated[
        str, pose_option(help="Topic of the stack's own pose, or /tf:PARENT.CHILD.")
    ] = ''
    reference_topic: Annotated[str, pose_option(help='True poses; default: ground_truth/.')] = ''
    reference_trajectory: Annotated[Path | None, pose_option(help='TUM file of them.')] = None
    trajectory_align: TrajectoryAlign = 'se3'


@app.command()
@options.with_option_groups
def evaluate(
    bag: Annotated[Path, Argument(help='Bag with a map: folder, .mcap or .db3.')],
    scoring: options.Scoring,
    recorded: RecordedMapOptions,
    reference: ReferenceOptions,
    poses: PoseOptions,
    pairing: PairingOptions,
) -> None:
    """Score the map that a bag holds; needs no ROS.

    It is compared with a scene, a run, ground truth or a cloud; with none of them it is described,
    and the report says so. Exits with 4 if a requirement of the configuration does not hold.
    """
    from osmabench_ros.geometry.pose import Pose, Similarity
    from osmabench_ros.maps.labelling import read_label_file
    from osmabench_ros.reports.page.single_pages import write_bag_page
    from osmabench_ros.runs import bag_evaluation

    numbers, transform = reference.transform, None
    if numbers is not None:
        with errors_as(ConfigError, '--transform', ValueError, remedy='give x y z qx qy qz qw'):
            transform = Similarity(Pose.from_quaternion(numbers[3:], numbers[:3]))
    source = bag_evaluation.BagSource(
        path=bag,
        config=scoring.settings,
        msg_paths=tuple(recorded.msg_path or ()),
        map_topic=recorded.map_topic,
        at_s=recorded.at,
        method=recorded.method,
        label_set=read_label_file(recorded.labels) if recorded.labels else None,
        scene=reference.scene,
        run=reference.run,
        ground_truth=reference.ground_truth,
        cloud=reference.reference,
        reference_frame=reference.reference_frame,
        align=bag_evaluation.MapAlignment(reference.align) if reference.align else None,
        transform=transform,
        pose_topic=poses.pose_topic,
        reference_topic=poses.reference_topic,
        reference_trajectory=poses.reference_trajectory,
        pairing=pairing.settings(poses.trajectory_align),
        questions_file=scoring.questions,
        device=scoring.device,
        seed=scoring.seed,
    )
    if scoring.rerun is not None and not source.references:
        raise ConfigError('--rerun shows a map with its reference; name one')
    with scoring.at_work() as progress:
        done = bag_evaluation.evaluate_bag(
            source,
            scoring.suites,
            scoring.out,
            scoring.requirements,
            replace=scoring.force,
            progress=progress,
        )
        progress('writing the page', 1.0)
        page = write_bag_page(done.report, done.trajectory, scoring.out)
        if done.ground_truth_directory is not None:
            scoring.record(
                scoring.out / bag_evaluation.MAP_FOLDER, done.ground_truth_directory, progress
            )
    options.conclude(done.report, scoring.out / 'report.json', page)
