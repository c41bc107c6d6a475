"""`osmabench evaluate-bag`: scores of the map that a bag holds, without ROS."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.cli.evaluate import GROUND_TRUTH_HELP, Scoring, conclude
from osmabench_ros.cli.options import with_option_groups
from osmabench_ros.cli.score_trajectory import PairingOptions, TrajectoryAlign, pose_option
from osmabench_ros.errors import ConfigError, errors_as
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.maps.labelling import read_label_file
from osmabench_ros.metrics.trajectory import TrajectoryAlignment
from osmabench_ros.reports.page.bag_page import write_bag_page
from osmabench_ros.runs.bag.bag_comparison import MAP_FOLDER
from osmabench_ros.runs.bag.bag_evaluation import evaluate_bag as evaluate_recorded
from osmabench_ros.runs.bag.bag_settings import (
    AlignmentChoice,
    BagSource,
    ReferenceChoice,
    TrajectoryChoice,
)
from osmabench_ros.runs.bag.map_alignment import MapAlignment

_bag, _reference, _alignment = (
    partial(typer.Option, rich_help_panel=panel)
    for panel in (
        'Recorded maps',
        'Reference of a recorded map',
        'Alignment of a recorded map',
    )
)
Numbers = tuple[float, float, float, float, float, float, float]


@dataclass(frozen=True)
class RecordedMapOptions:
    """Options that select the map of a bag, and how it is read."""

    map_topic: Annotated[
        str,
        _bag(
            help='Topic of the map: SemanticMap, PointCloud2, Detection3DArray, DsgUpdate or '
            'MarkerArray. Default: the only one.'
        ),
    ] = ''
    msg_path: Annotated[
        list[Path] | None,
        _bag(
            help='.msg file, or folder of them, for types the bag does not define; '
            'may be repeated.'
        ),
    ] = None
    at: Annotated[
        float | None,
        _bag(
            min=0,
            help='Score the map as it was so many seconds after the start of the bag; '
            'default: last.',
        ),
    ] = None
    method: Annotated[str, _bag(help='Name of the mapping method in the report.')] = ''
    labels: Annotated[
        Path | None, _bag(help='YAML or JSON with names of class ids: "7: chair".')
    ] = None


@dataclass(frozen=True)
class ReferenceOptions:
    """The reference of the map, which is optional."""

    ground_truth: Annotated[Path | None, _reference(help=GROUND_TRUTH_HELP)] = None
    scene: Annotated[
        str,
        _reference(
            help='"apartment" (with --seed), a scene folder or a Habitat data set; '
            'ground truth is made on the fly, along the recorded true poses if the bag has them.'
        ),
    ] = ''
    run: Annotated[
        Path | None, _reference('--run', help='Folder of a run, whose ground truth is taken.')
    ] = None
    reference: Annotated[
        Path | None,
        _reference(
            '--reference', help='PLY or PCD, z up, metres; with `label` and `instance`, or bare.'
        ),
    ] = None
    reference_frame: Annotated[
        str | None,
        _reference(
            help='Frame of the reference. Default: world; for --reference that of the map.'
        ),
    ] = None

    @property
    def choice(self) -> ReferenceChoice:
        """The reference; ConfigError if more than one is given."""
        if self.run is not None and self.ground_truth is not None:
            raise ConfigError(f'a map has one reference, not 2: {self.run}, {self.ground_truth}')
        return ReferenceChoice(
            self.scene, self.run or self.ground_truth, self.reference, self.reference_frame
        )


@dataclass(frozen=True)
class AlignmentOptions:
    """How the map is aligned with its reference."""

    align: Annotated[
        MapAlignment | None,
        _alignment(
            help='Score the map also after this alignment (suites NAME@aligned). Default: '
            'frames and TF of the bag alone.'
        ),
    ] = None
    transform: Annotated[
        Numbers | None,
        _alignment(
            help='Frame of the map in that of the reference, for --align known, or as first guess '
            'of icp.',
            metavar='X Y Z QX QY QZ QW',
        ),
    ] = None

    @property
    def choice(self) -> AlignmentChoice:
        """The alignment; ConfigError if the quaternion has no unit length."""
        numbers = self.transform
        if numbers is None:
            return AlignmentChoice(self.align)
        with errors_as(ConfigError, '--transform', ValueError, remedy='give x y z qx qy qz qw'):
            pose = Pose.from_quaternion(numbers[3:], numbers[:3])
        return AlignmentChoice(self.align, Similarity(pose))


@dataclass(frozen=True)
class PoseOptions:
    """Which poses of the stack are compared with which true ones."""

    pose_topic: Annotated[
        str,
        pose_option(
            help="Topic of the stack's own pose (PoseStamped, PoseWithCovarianceStamped, "
            'Odometry, TransformStamped, Path), or /tf:PARENT.CHILD.'
        ),
    ] = ''
    reference_topic: Annotated[
        str,
        pose_option(
            help='Topic of true poses. Default: ground_truth/camera_pose or odometry of the bag.'
        ),
    ] = ''
    reference_trajectory: Annotated[Path | None, pose_option(help='TUM file of true poses.')] = (
        None
    )
    trajectory_align: TrajectoryAlign = TrajectoryAlignment.SE3


@with_option_groups
def evaluate_bag(
    bag: Annotated[Path, typer.Argument(help='Bag with a map: folder, .mcap or .db3.')],
    scoring: Scoring,
    recorded: RecordedMapOptions,
    reference: ReferenceOptions,
    alignment: AlignmentOptions,
    poses: PoseOptions,
    pairing: PairingOptions,
) -> None:
    """Score the map that a bag holds; needs no ROS.

    It is compared with a scene, a run, ground truth or a cloud; with none of them it is described,
    and the report says so.

    Exits with 4 if a requirement of the configuration does not hold.
    """
    source = BagSource(
        bag,
        scoring.settings,
        tuple(recorded.msg_path or ()),
        recorded.map_topic,
        recorded.at,
        recorded.method,
        read_label_file(recorded.labels) if recorded.labels else None,
        reference.choice,
        alignment.choice,
        TrajectoryChoice(
            poses.pose_topic,
            poses.reference_topic,
            poses.reference_trajectory,
            pairing.settings(poses.trajectory_align),
        ),
        scoring.questions,
        scoring.settings.text_features,
        scoring.device.value,
        scoring.seed,
    )
    if scoring.rerun is not None and not source.reference.exists:
        raise ConfigError('--rerun shows a map beside its reference; name one')
    with scoring.at_work() as progress:
        done = evaluate_recorded(
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
            scoring.record(scoring.out / MAP_FOLDER, done.ground_truth_directory, progress)
    conclude(done.report, scoring.out / 'report.json', page)
