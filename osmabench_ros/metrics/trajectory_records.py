"""Trajectory errors as metrics of a report: as recorded, and after alignment."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from osmabench_ros.geometry.pose import Similarity
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.trajectory import (
    DEFAULT_MAX_DIFFERENCE_S,
    DeltaInterval,
    PoseErrors,
    TrajectoryAlignment,
    absolute_errors,
    associate,
    error_statistics,
    find_alignment,
    relative_errors,
    turn_is_open,
)

SUITE = 'trajectory'
# Suffix of the name of a suite: its metrics after alignment.
ALIGNED = '@aligned'

# Fraction of the reference, in poses or length, below which a score has a remark.
LEAST_MATCHED = 0.9

# Poses that are all nearer to the true ones than this are taken for copies.
COPIED_M = 1e-4


@dataclass(frozen=True)
class TrajectorySettings:
    """How a trajectory is compared.

    Parameters
    ----------
    alignment : TrajectoryAlignment
        Alignment for the metrics under ``trajectory@aligned``.
    max_difference_s : float
        Largest difference of stamps that belong together.
    offset_s : float
        Added to the stamps of the estimate.
    interval : DeltaInterval
        Of relative errors; by default one frame of the estimate.
    """

    alignment: TrajectoryAlignment = TrajectoryAlignment.SE3
    max_difference_s: float = DEFAULT_MAX_DIFFERENCE_S
    offset_s: float = 0.0
    interval: DeltaInterval = field(default_factory=DeltaInterval)


@dataclass(frozen=True, eq=False)
class TrajectoryScore:
    """An estimate next to its reference.

    Parameters
    ----------
    reference, estimate, aligned : StampedTrajectory
        Associated, of equal length; the estimate as recorded and after alignment.
    similarity : Similarity
        Takes the estimate to the reference.
    errors : PoseErrors
        Absolute errors after the alignment, if any.
    records : tuple of MetricRecord
        Suites ``trajectory`` and, with an alignment, ``trajectory@aligned``.
    settings : TrajectorySettings
        How they were compared.
    turn_is_open : bool
        Whether the path is too straight for its alignment to fix the rotation about it; absolute
        errors of rotation after the alignment are then not applicable.
    matched, covered : float
        Fraction of the poses of the whole reference that have an estimate, and the length of the
        line through these over the whole length; a gap on a straight counts as covered.
    """

    reference: StampedTrajectory
    estimate: StampedTrajectory
    aligned: StampedTrajectory
    similarity: Similarity
    errors: PoseErrors
    records: tuple[MetricRecord, ...]
    settings: TrajectorySettings
    turn_is_open: bool
    matched: float
    covered: float

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on copied or missing poses, their frames and an open alignment."""
        own, true = self.estimate, self.reference
        found = []
        if len(own) > 1 and np.abs(own.positions - true.positions).max() < COPIED_M:
            found.append(
                'doubtful: all poses are the true ones to 0.1 mm, so that they seem to be copied'
            )
        if min(self.matched, self.covered) < LEAST_MATCHED:
            found.append(
                f'errors are over {self.matched:.0%} of the poses and {self.covered:.0%} of the '
                'reference length; missing poses can lower them, a lower rate does not'
            )
        if own.child_frame_id and true.child_frame_id not in ('', own.child_frame_id):
            found.append(
                f'the poses are of "{own.child_frame_id}", the true ones of '
                f'"{true.child_frame_id}": the transform between them counts as error'
            )
        if own.frame_id and true.frame_id not in ('', own.frame_id):
            found.append(
                f'the poses are in "{own.frame_id}", the true ones in "{true.frame_id}": the '
                'transform between them counts as error in the metrics as recorded, not in those '
                'after an alignment'
            )
        if self.turn_is_open:
            found.append(
                'doubtful: the path is straight to within the errors of the poses, so its '
                'alignment does not fix the rotation about it; what depends on that is left out. '
                'Align by origin to have it'
            )
        return tuple(found)


def score_trajectory(
    reference: StampedTrajectory, estimate: StampedTrajectory, settings: TrajectorySettings
) -> TrajectoryScore:
    """Compare a trajectory with its reference.

    Raises MetricError if no stamps belong together, or alignment or interval are impossible.
    """
    truth, own = associate(
        reference,
        estimate,
        max_difference_s=settings.max_difference_s,
        offset_s=settings.offset_s,
    )
    similarity = find_alignment(truth, own, settings.alignment)
    aligned = own.transform(similarity)
    by_positions = settings.alignment in (TrajectoryAlignment.SE3, TrajectoryAlignment.SIM3)
    is_open = by_positions and turn_is_open(truth, aligned)
    errors = absolute_errors(truth, aligned)
    # Several estimates may have the same nearest pose of the reference.
    matched = len(np.unique(truth.stamps_ns)) / len(reference)
    whole_m = reference.path_length_m
    covered = truth.path_length_m / whole_m if whole_m else matched
    records = [
        MetricRecord(SUITE, '', 'matched_poses', value=matched, n=len(reference)),
        MetricRecord(SUITE, '', 'covered_length', value=covered, n=len(reference)),
        MetricRecord(SUITE, '', 'path_length_m', value=own.path_length_m, n=len(own)),
        MetricRecord(SUITE, '', 'reference_path_length_m', value=whole_m, n=len(reference)),
        *_list_metrics(SUITE, truth, own, settings.interval),
    ]
    if settings.alignment is not TrajectoryAlignment.NONE:
        found = _list_metrics(SUITE + ALIGNED, truth, aligned, settings.interval)
        records += [
            drop_value(item) if is_open and item.metric.startswith('ape_rotation') else item
            for item in found
        ]
        records.append(
            MetricRecord(SUITE + ALIGNED, '', 'scale', value=similarity.scale, n=len(own))
        )
    return TrajectoryScore(
        truth,
        own,
        aligned,
        similarity,
        errors,
        tuple(records),
        settings,
        is_open,
        matched,
        covered,
    )


def drop_value(record: MetricRecord) -> MetricRecord:
    """Return the record of the same metric, not applicable."""
    return replace(record, value=None, low=None, high=None, n=0, applicable=False)


def _list_metrics(
    suite: str, truth: StampedTrajectory, own: StampedTrajectory, interval: DeltaInterval
) -> list[MetricRecord]:
    absolute = absolute_errors(truth, own)
    found = [*_of_errors(suite, 'ape', absolute)]
    if len(own) > 1:
        found += _of_errors(suite, 'rpe', relative_errors(truth, own, interval))
    return found


def _of_errors(suite: str, name: str, errors: PoseErrors) -> Iterator[MetricRecord]:
    for part, unit, values in (
        ('translation', 'm', errors.translation_m),
        ('rotation', 'deg', errors.rotation_deg),
    ):
        figures = error_statistics(values)
        for figure in ('rmse', 'mean', 'median', 'std', 'min', 'max'):
            yield MetricRecord(
                suite,
                '',
                f'{name}_{part}_{figure}_{unit}',
                value=getattr(figures, figure),
                n=figures.n,
                higher_is_better=False,
            )
