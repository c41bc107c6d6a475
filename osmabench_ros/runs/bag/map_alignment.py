"""Aligns a recorded map with its reference, and reports the residuals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from osmabench_ros.base.progress import Progress
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.geometry.transform_tree import TransformTree
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.registration import Registration, registered
from osmabench_ros.metrics.trajectory import error_statistics
from osmabench_ros.metrics.trajectory_records import TrajectoryScore
from osmabench_ros.sequences.ground_truth import GroundTruth


class MapAlignment(str, Enum):
    """How a map is aligned beyond the frames that the bag names."""

    NONE = 'none'
    KNOWN = 'known'
    ICP = 'icp'
    TRAJECTORY = 'trajectory'


@dataclass(frozen=True, eq=False)
class MapPlacement:
    """Transformation from the map to the reference frame, and its source."""

    similarity: Similarity
    remark: str


def placement_of(
    map_frame: str,
    reference_frame: str,
    stamp_ns: int,
    transforms: TransformTree,
    alignment: MapAlignment | None,
    *,
    transform_given: bool,
) -> MapPlacement:
    """Return where the map lies by its frame and the TF of the bag; ConfigError if unknown."""
    if reference_frame in ('', map_frame):
        return MapPlacement(Similarity.identity(), f'the map is in frame "{map_frame}"')
    pose = transforms.lookup_or_last(reference_frame, map_frame, stamp_ns)
    if pose is not None and alignment is not MapAlignment.NONE:
        return MapPlacement(
            Similarity(pose),
            f'the map was put from frame "{map_frame}" into "{reference_frame}" by the TF of the '
            'bag',
        )
    taken = f'coordinates in frame "{map_frame}" were taken for those of "{reference_frame}"'
    if alignment is MapAlignment.NONE:
        return MapPlacement(Similarity.identity(), f'{taken}, as --align none asks for')
    if alignment is None or (alignment is MapAlignment.KNOWN and not transform_given):
        raise ConfigError(
            f'the map is in frame "{map_frame}", its reference in "{reference_frame}", and the TF '
            f'of the bag does not connect them (it has {", ".join(transforms.frames) or "none"}); '
            'choose --align icp, trajectory, or known with --transform; or --align none, if the '
            'frames are the same'
        )
    return MapPlacement(Similarity.identity(), f'before alignment {taken}')


SUITE = 'alignment'


@dataclass(frozen=True, eq=False)
class AppliedAlignment:
    """What takes map coordinates to the frame of the reference, what it left, and doubts."""

    similarity: Similarity
    records: tuple[MetricRecord, ...]
    remarks: tuple[str, ...]


def alignment_of_map(
    semantic_map: SemanticMap,
    truth: GroundTruth,
    kind: MapAlignment | None,
    transform: Similarity | None,
    placement: MapPlacement,
    trajectory: TrajectoryScore | None,
    progress: Progress,
) -> AppliedAlignment | None:
    """Return the alignment that the user wants, None if there is none beyond the placement.

    The map is in its own frame. `transform` is that of `known`; the first guess of `icp` is
    `transform`, else that of `trajectory`, else `placement`. Raises ConfigError if what the
    alignment needs is not given, and MetricError if the map does not fit.
    """
    if kind is MapAlignment.KNOWN and transform is not None:
        return aligned_by_transform(transform)
    if kind is MapAlignment.TRAJECTORY:
        if trajectory is None:
            raise ConfigError('--align trajectory needs poses to align: add --pose-topic')
        _check_frame(trajectory, semantic_map)
        return aligned_by_trajectory(trajectory)
    if kind is not MapAlignment.ICP:
        return None
    progress('aligning by ICP', 0.0)
    initial, guess = placement.similarity, 'where the bag puts it'
    if transform is not None:
        initial, guess = transform, 'the transformation given'
    elif trajectory is not None:
        _check_frame(trajectory, semantic_map)
        initial, guess = trajectory.similarity, 'the alignment of the trajectories'
    return aligned_by_icp(semantic_map, truth, initial, guess)


def _check_frame(trajectory: TrajectoryScore, semantic_map: SemanticMap) -> None:
    own, frame_id = trajectory.estimate.frame_id.lstrip('/'), semantic_map.header.frame_id
    if own and own != frame_id:
        raise ConfigError(
            f'the poses are in frame "{own}", the map in "{frame_id}"; name poses in the frame of '
            f'the map, such as --pose-topic /tf:{frame_id}.base_link'
        )


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
    """Return the alignment of the map's points with the true surface; `guess` names `initial`."""
    if semantic_map.dense is None:
        raise ConfigError(
            'the map has no points for --align icp; take --align known or trajectory'
        )
    # A map may hold what the trajectory did not see.
    points = np.concatenate([truth.surface.points, truth.unseen.points])
    known = [part.normals for part in (truth.surface, truth.unseen) if part.normals is not None]
    normals = np.concatenate(known) if sum(map(len, known)) == len(points) else None
    found = registered(semantic_map.dense.points, points, normals, initial)
    remark = (
        f'aligned by ICP from {guess}: {found.fitness:.1%} of the map within '
        f'{found.inlier_distance_m:g} m of the reference, {found.rmse_m:.3g} m rmse'
    )
    return AppliedAlignment(
        found.similarity,
        (*_residuals(found, len(semantic_map.dense.points)), *_correction(found.similarity)),
        (remark, *(f'doubtful: {doubt}' for doubt in found.doubts)),
    )


def _residuals(found: Registration, points: int) -> Iterator[MetricRecord]:
    for metric, value, better in (
        ('icp_fitness', found.fitness, True),
        ('icp_rmse_m', found.rmse_m, False),
        ('icp_observability', found.observability, True),
    ):
        yield MetricRecord(SUITE, '', metric, value=value, n=points, higher_is_better=better)


def _correction(similarity: Similarity) -> Iterator[MetricRecord]:
    """Yield the correction; a large one means a fault of the map's frame."""
    for metric, value in (
        ('translation_m', similarity.distance_m),
        ('rotation_deg', similarity.angle_deg),
        ('scale_error', abs(similarity.scale - 1)),
    ):
        yield MetricRecord(SUITE, '', metric, value=value, higher_is_better=False)
