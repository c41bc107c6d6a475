"""Brings a recorded map to the frame of its reference, as the user or the bag says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from osmabench_ros.errors import ConfigError, ContractError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.geometry.transform_tree import TransformTree
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.registration import Registration, registered
from osmabench_ros.metrics.trajectory import error_statistics
from osmabench_ros.metrics.trajectory_records import TrajectoryScore
from osmabench_ros.sequences.ground_truth import GroundTruth

SUITE = 'alignment'


class MapAlignment(str, Enum):
    """How a map is aligned beyond the frames that the bag tells."""

    NONE = 'none'
    KNOWN = 'known'
    ICP = 'icp'
    TRAJECTORY = 'trajectory'


@dataclass(frozen=True, eq=False)
class Placement:
    """Where the map lies by the bag's own word.

    Parameters
    ----------
    similarity : Similarity
        Takes map coordinates to the frame of the reference.
    remark : str
        How that is known.
    """

    similarity: Similarity
    remark: str


@dataclass(frozen=True, eq=False)
class AppliedAlignment:
    """An alignment and what it left.

    Parameters
    ----------
    similarity : Similarity
        Takes map coordinates to the frame of the reference.
    records : tuple of MetricRecord
        Residuals and the size of the correction, suite ``alignment``.
    remarks : tuple of str
        How it was found, and what makes it doubtful.
    """

    similarity: Similarity
    records: tuple[MetricRecord, ...]
    remarks: tuple[str, ...]


def placement_of(
    map_frame: str,
    reference_frame: str,
    stamp_ns: int,
    transforms: TransformTree,
    alignment: MapAlignment | None,
    *,
    transform_given: bool,
) -> Placement:
    """Return where the map lies without any fitting.

    Parameters
    ----------
    map_frame, reference_frame : str
        Frames of the map and of its reference; '' for the reference if it is that of the map.
    stamp_ns : int
        Time of the map.
    transforms : TransformTree
        TF of the bag.
    alignment : MapAlignment, optional
        What the user wants; None if the user does not say.
    transform_given : bool
        Whether the user gives a transformation.

    Raises
    ------
    ConfigError
        If the frames differ, TF does not tell how, and the user does not say what to do.
    """
    if reference_frame in ('', map_frame):
        return Placement(Similarity.identity(), f'the map is in frame "{map_frame}"')
    pose = transforms.lookup(reference_frame, map_frame, stamp_ns)
    # A map may be newer than the last transform, which then still holds.
    if pose is None:
        pose = _latest(transforms, reference_frame, map_frame)
    if pose is not None and alignment is not MapAlignment.NONE:
        return Placement(
            Similarity(pose),
            f'the map was put from frame "{map_frame}" into "{reference_frame}" by the TF of the '
            'bag',
        )
    taken = f'coordinates in frame "{map_frame}" were taken for those of "{reference_frame}"'
    if alignment is MapAlignment.NONE:
        return Placement(Similarity.identity(), f'{taken}, as --align none asks for')
    if alignment is None or (alignment is MapAlignment.KNOWN and not transform_given):
        raise ConfigError(
            f'the map is in frame "{map_frame}", its reference in "{reference_frame}", and the TF '
            f'of the bag does not connect them (it has {", ".join(transforms.frames) or "none"}); '
            'choose --align icp, trajectory, or known with --transform; or --align none, if the '
            'frames are the same'
        )
    return Placement(Similarity.identity(), f'before alignment {taken}')


def _latest(transforms: TransformTree, parent: str, child: str) -> Pose | None:
    if not transforms.connects(parent, child):
        return None
    try:
        way = transforms.trajectory(parent, child)
    except ContractError:
        return None
    return way.pose(len(way) - 1)


def aligned_by_transform(transform: Similarity) -> AppliedAlignment:
    """Return the alignment that the user gives."""
    return AppliedAlignment(
        transform, tuple(_correction(transform)), ('aligned by the transformation given',)
    )


def aligned_by_trajectory(score: TrajectoryScore) -> AppliedAlignment:
    """Return the alignment of the stack's trajectory with the true one."""
    figures = error_statistics(score.errors.translation_m)
    residual = MetricRecord(
        SUITE,
        '',
        'trajectory_rmse_m',
        value=figures.rmse,
        n=figures.n,
        higher_is_better=False,
    )
    kind = score.settings.alignment.value
    remark = f'aligned by the trajectory ({kind}), which leaves {figures.rmse:.3g} m rmse'
    return AppliedAlignment(
        score.similarity, (residual, *_correction(score.similarity)), (remark,)
    )


def aligned_by_icp(
    semantic_map: SemanticMap, truth: GroundTruth, initial: Similarity, guess: str
) -> AppliedAlignment:
    """Return the alignment of the map's points with the true surface.

    Raises
    ------
    MetricError
        If the map has no points or does not fit.
    MissingDependencyError
        If Open3D is not installed.
    """
    if semantic_map.dense is None:
        raise ConfigError(
            'the map has no points for --align icp; take --align known or trajectory'
        )
    points, normals = truth.surface.points, truth.surface.normals
    found = registered(semantic_map.dense.points, points, normals, initial)
    remark = (
        f'aligned by ICP from {guess}: {found.fitness:.1%} of the map within '
        f'{found.inlier_distance_m:g} m of the reference, {found.rmse_m:.3g} m rmse'
    )
    return AppliedAlignment(
        found.similarity,
        (*_residuals(found), *_correction(found.similarity)),
        (remark, *(f'doubtful: {doubt}' for doubt in found.doubts)),
    )


def _residuals(found: Registration) -> Iterator[MetricRecord]:
    yield MetricRecord(SUITE, '', 'icp_fitness', value=found.fitness)
    yield MetricRecord(SUITE, '', 'icp_rmse_m', value=found.rmse_m, higher_is_better=False)
    yield MetricRecord(SUITE, '', 'icp_observability', value=found.observability)


def _correction(similarity: Similarity) -> Iterator[MetricRecord]:
    """Yield how far the map was moved; large corrections are a fault of the map's frame."""
    for metric, value in (
        ('translation_m', similarity.distance_m),
        ('rotation_deg', similarity.angle_deg),
        ('scale_error', abs(similarity.scale - 1)),
    ):
        yield MetricRecord(SUITE, '', metric, value=value, higher_is_better=False)
