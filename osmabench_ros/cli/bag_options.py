"""Options of `osmabench evaluate --bag` and of `osmabench score trajectory`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.metrics.trajectory import (
    DEFAULT_MAX_DIFFERENCE_S,
    DeltaUnit,
    Interval,
    TrajectoryAlignment,
)
from osmabench_ros.metrics.trajectory_records import TrajectorySettings
from osmabench_ros.runs.map_placement import MapAlignment

BAG, QUESTIONS, REFERENCE, ALIGNMENT, TRAJECTORY = (
    'Recorded maps',
    'Questions of a language model about a recorded map',
    'Reference of a recorded map',
    'Alignment of a recorded map',
    'Trajectory',
)
"""Panels of --help."""

PANELS = (BAG, QUESTIONS, REFERENCE, ALIGNMENT, TRAJECTORY)

Numbers = tuple[float, float, float, float, float, float, float]

BagPath = Annotated[
    Path | None,
    typer.Option('--bag', help='Bag with a map: folder, .mcap or .db3.', rich_help_panel=BAG),
]
MapTopic = Annotated[
    str,
    typer.Option(
        help='Topic of the map: SemanticMap, PointCloud2, Detection3DArray, DsgUpdate or '
        'MarkerArray. Default: the only one.',
        rich_help_panel=BAG,
    ),
]
MsgPath = Annotated[
    list[Path] | None,
    typer.Option(
        help='.msg file, or folder of them, for types the bag does not define; may be repeated.',
        rich_help_panel=BAG,
    ),
]
At = Annotated[
    float | None,
    typer.Option(
        min=0,
        help='Score the map as it was so many seconds after the start of the bag; default: last.',
        rich_help_panel=BAG,
    ),
]
Method = Annotated[
    str, typer.Option(help='Name of the mapping method in the report.', rich_help_panel=BAG)
]
Labels = Annotated[
    Path | None,
    typer.Option(help='YAML or JSON with names of class ids: "7: chair".', rich_help_panel=BAG),
]
Model = Annotated[
    str,
    typer.Option(
        help='Language model that writes questions about images of the bag and answers them from '
        'the map, e.g. gemini:gemini-2.5-flash; its keys and limits as for `osmabench vqa`.',
        rich_help_panel=QUESTIONS,
    ),
]
BaseUrl = Annotated[
    str, typer.Option(help='Address of a model server of your own.', rich_help_panel=QUESTIONS)
]
ModelCache = Annotated[
    Path | None,
    typer.Option('--cache', help='Folder of kept replies.', rich_help_panel=QUESTIONS),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(help='Stop before more tokens than these are used.', rich_help_panel=QUESTIONS),
]
QuestionFrames = Annotated[
    int, typer.Option(min=1, help='Images to write about.', rich_help_panel=QUESTIONS)
]
Scene = Annotated[
    str,
    typer.Option(
        help='"apartment" (with --seed), a scene folder or a Habitat data set; ground truth is '
        'made on the fly, along the recorded true poses if the bag has them.',
        rich_help_panel=REFERENCE,
    ),
]
RunDirectory = Annotated[
    Path | None,
    typer.Option(
        '--run', help='Folder of a run, whose ground truth is taken.', rich_help_panel=REFERENCE
    ),
]
ReferenceCloud = Annotated[
    Path | None,
    typer.Option(
        '--reference',
        help='PLY or PCD, z up, metres; with `label` and `instance`, or bare.',
        rich_help_panel=REFERENCE,
    ),
]
ReferenceFrame = Annotated[
    str | None,
    typer.Option(
        help='Frame of the reference. Default: world; for --reference that of the map.',
        rich_help_panel=REFERENCE,
    ),
]
Align = Annotated[
    MapAlignment | None,
    typer.Option(
        help='Score the map also after this alignment (suites NAME@aligned). Default: frames and '
        'TF of the bag alone.',
        rich_help_panel=ALIGNMENT,
    ),
]
Transform = Annotated[
    Numbers | None,
    typer.Option(
        help='Frame of the map in that of the reference, for --align known, or as first guess '
        'of icp.',
        metavar='X Y Z QX QY QZ QW',
        rich_help_panel=ALIGNMENT,
    ),
]
PoseTopic = Annotated[
    str,
    typer.Option(
        help="Topic of the stack's own pose (PoseStamped, PoseWithCovarianceStamped, Odometry, "
        'TransformStamped, Path), or /tf:PARENT.CHILD.',
        rich_help_panel=TRAJECTORY,
    ),
]
ReferenceTopic = Annotated[
    str,
    typer.Option(
        help='Topic of true poses. Default: ground_truth/camera_pose or odometry of the bag.',
        rich_help_panel=TRAJECTORY,
    ),
]
ReferenceTrajectory = Annotated[
    Path | None, typer.Option(help='TUM file of true poses.', rich_help_panel=TRAJECTORY)
]
TrajectoryAlign = Annotated[
    TrajectoryAlignment,
    typer.Option(
        help='Alignment of the poses before absolute errors (as in evo).',
        rich_help_panel=TRAJECTORY,
    ),
]
MaxDifference = Annotated[
    float,
    typer.Option(
        '--max-diff',
        min=0,
        help='Largest difference of stamps that belong together, seconds.',
        rich_help_panel=TRAJECTORY,
    ),
]
TimeOffset = Annotated[
    float,
    typer.Option(
        help="Seconds added to the stamps of the stack's poses.", rich_help_panel=TRAJECTORY
    ),
]
RpeDelta = Annotated[
    float, typer.Option(help='Interval of relative errors.', rich_help_panel=TRAJECTORY)
]
RpeUnit = Annotated[
    DeltaUnit, typer.Option(help='Unit of that interval.', rich_help_panel=TRAJECTORY)
]
RpeAllPairs = Annotated[
    bool,
    typer.Option(
        '--rpe-all-pairs',
        help='Relative errors over all pairs, not only consecutive ones.',
        rich_help_panel=TRAJECTORY,
    ),
]

DEFAULT_DIFFERENCE_S = DEFAULT_MAX_DIFFERENCE_S


def trajectory_settings(
    alignment: TrajectoryAlignment,
    max_difference_s: float,
    offset_s: float,
    delta: float,
    unit: DeltaUnit,
    all_pairs: bool,
) -> TrajectorySettings:
    """Return how trajectories are compared."""
    interval = Interval(delta, unit, all_pairs)
    return TrajectorySettings(alignment, max_difference_s, offset_s, interval)


def similarity_of(numbers: Numbers | None) -> Similarity | None:
    """Return the transformation of seven numbers.

    Raises
    ------
    ConfigError
        If the quaternion has no unit length.
    """
    if numbers is None:
        return None
    try:
        return Similarity(Pose.from_quaternion(numbers[3:], numbers[:3]))
    except ValueError as error:
        raise ConfigError(f'--transform: {error}; give x y z qx qy qz qw') from error
