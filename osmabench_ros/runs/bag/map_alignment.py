"""Aligns a recorded map with its reference, and reports the residuals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from osmabench_ros.base.progress import Progress
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.pose import Similarity
from osmabench_ros.geometry.transform_tree import TransformTree
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.registration import registered
from osmabench_ros.metrics.trajectory import error_statistics
from osmabench_ros.metrics.trajectory_records import TrajectoryScore
from osmabench_ros.runs.bag.bag_settings import BagSource, MapAlignment
from osmabench_ros.sequences.ground_truth import GroundTruth

SUITE = 'alignment'


def place_map(
    source: BagSource, made: SemanticMap, reference_frame: str, transforms: TransformTree
) -> tuple[Similarity, str]:
    """Return where the map is by its frame and the TF of the bag; ConfigError if unknown."""
    map_frame, alignment = made.header.frame_id, source.align
    if reference_frame in ('', map_frame):
        return Similarity.identity(), f'the map is in frame "{map_frame}"'
    pose = transforms.lookup_or_last(reference_frame, map_frame, made.header.stamp_ns)
    if pose is not None and alignment is not MapAlignment.NONE:
        remark = f'the map was put from frame "{map_frame}" into "{reference_frame}" by the TF of'
        return Similarity(pose), f'{remark} the bag'
    taken = f'coordinates in frame "{map_frame}" were taken for those of "{reference_frame}"'
    if alignment is MapAlignment.NONE:
        return Similarity.identity(), f'{taken}, as --align none asks for'
    if alignment is None or (alignment is MapAlignment.KNOWN and source.transform is None):
        raise ConfigError(
            f'the map is in frame "{map_frame}", its reference in "{reference_frame}", and the TF '
            f'of the bag does not connect them (it has {", ".join(transforms.frames) or "none"}); '
            'choose --align icp, trajectory, or known with --transform; or --align none, if the '
            'frames are the same'
        )
    return Similarity.identity(), f'before alignment {taken}'


@dataclass(frozen=True, eq=False)
class Alignment:
    """The transformation from the map to the reference, its residuals, and remarks."""

    similarity: Similarity
    records: tuple[MetricRecord, ...]
    remarks: tuple[str, ...]


def align_map(
    source: BagSource,
    made: SemanticMap,
    truth: GroundTruth,
    placement: Similarity,
    trajectory: TrajectoryScore | None,
    progress: Progress,
) -> Alignment | None:
    """Return the alignment that the user wants, None if there is none beyond the placement.

    The map is in its own frame. The first guess of `icp` is the user's transform, else the
    alignment of the trajectories, else `placement`. Raises ConfigError if an input of the
    alignment is not given, and MetricError if the map does not fit.
    """
    kind, transform = source.align, source.transform
    if kind is MapAlignment.KNOWN and transform is not None:
        return _alignment(transform, {}, 0, 'aligned by the transformation given')
    if kind is MapAlignment.TRAJECTORY:
        if trajectory is None:
            raise ConfigError('--align trajectory needs poses to align: add --pose-topic')
        _check_frame(trajectory, made)
        return _align_by_trajectory(trajectory)
    if kind is not MapAlignment.ICP:
        return None
    progress('aligning by ICP', 0.0)
    initial, guess = placement, 'where the bag puts it'
    if transform is not None:
        initial, guess = transform, 'the transformation given'
    elif trajectory is not None:
        _check_frame(trajectory, made)
        initial, guess = trajectory.similarity, 'the alignment of the trajectories'
    return _align_by_icp(made, truth, initial, guess)


def _check_frame(trajectory: TrajectoryScore, semantic_map: SemanticMap) -> None:
    own, frame_id = trajectory.estimate.frame_id.lstrip('/'), semantic_map.header.frame_id
    if own and own != frame_id:
        raise ConfigError(
            f'the poses are in frame "{own}", the map in "{frame_id}"; name poses in the frame of '
            f'the map, such as --pose-topic /tf:{frame_id}.base_link'
        )


def _align_by_trajectory(score: TrajectoryScore) -> Alignment:
    errors = error_statistics(score.errors.translation_m)
    kind = score.settings.alignment.value
    remark = f'aligned by the trajectory ({kind}), which leaves {errors.rmse:.3g} m rmse'
    return _alignment(score.similarity, {'trajectory_rmse_m': errors.rmse}, errors.n, remark)


def _align_by_icp(
    semantic_map: SemanticMap, truth: GroundTruth, initial: Similarity, guess: str
) -> Alignment:
    """Return the alignment of the map's points with the true surface; `guess` names `initial`."""
    if semantic_map.dense is None:
        raise ConfigError(
            'the map has no points for --align icp; take --align known or trajectory'
        )
    # A map may hold surfaces that the trajectory did not see.
    clouds = (truth.surface, truth.unseen)
    points = np.concatenate([cloud.points for cloud in clouds])
    known = [cloud.normals for cloud in clouds if cloud.normals is not None]
    normals = np.concatenate(known) if sum(map(len, known)) == len(points) else None
    found = registered(semantic_map.dense.points, points, normals, initial)
    residuals = {
        'icp_fitness': found.fitness,
        'icp_rmse_m': found.rmse_m,
        'icp_observability': found.observability,
    }
    remark = (
        f'aligned by ICP from {guess}: {found.fitness:.1%} of the map within '
        f'{found.inlier_distance_m:g} m of the reference, {found.rmse_m:.3g} m rmse'
    )
    doubts = (f'doubtful: {doubt}' for doubt in found.doubts)
    count = len(semantic_map.dense.points)
    return _alignment(found.similarity, residuals, count, remark, *doubts)


def _alignment(
    similarity: Similarity, residuals: Mapping[str, float], count: int, *remarks: str
) -> Alignment:
    """Add the correction to the residuals; a large one means an error of the map's frame."""
    corrections = {
        'translation_m': similarity.distance_m,
        'rotation_deg': similarity.angle_deg,
        'scale_error': abs(similarity.scale - 1),
    }
    records = [_record(name, value, count) for name, value in residuals.items()]
    records += [_record(name, value) for name, value in corrections.items()]
    return Alignment(similarity, tuple(records), remarks)


def _record(metric: str, value: float, count: int = 0) -> MetricRecord:
    better = metric in ('icp_fitness', 'icp_observability')
    return MetricRecord(SUITE, '', metric, value=value, n=count, higher_is_better=better)
