"""Errors of a trajectory against a reference, by the conventions of evo and the TUM benchmark."""

import itertools
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import AlignmentError, MetricError
from osmabench_ros.geometry.pose import Pose, Similarity
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory

DEFAULT_MAX_DIFFERENCE_S = 0.01

# Second singular value over the first, below which positions are as good as on a line.
_LEAST_SPREAD = 1e-6


class TrajectoryAlignment(str, Enum):
    """How an estimate is aligned with the reference before absolute errors are computed."""

    NONE = 'none'
    SE3 = 'se3'
    SIM3 = 'sim3'
    ORIGIN = 'origin'


class DeltaUnit(str, Enum):
    """Unit of the interval of relative errors."""

    FRAMES = 'frames'
    SECONDS = 'seconds'
    METRES = 'metres'


@dataclass(frozen=True)
class DeltaInterval:
    """Over which relative errors are taken.

    Parameters
    ----------
    delta : float
        Length, in the unit; a whole number of frames.
    unit : DeltaUnit
        Of the estimate, as in evo.
    all_pairs : bool
        Every pair of about this interval, not only consecutive ones.
    tolerance : float
        With all pairs of seconds or metres: largest deviation as a share of the interval.
    """

    delta: float = 1.0
    unit: DeltaUnit = DeltaUnit.FRAMES
    all_pairs: bool = False
    tolerance: float = 0.1

    def __post_init__(self) -> None:
        if not (np.isfinite(self.delta) and self.delta > 0):
            raise MetricError(f'an interval must be positive, not {self.delta}')
        if self.unit is DeltaUnit.FRAMES and self.delta != int(self.delta):
            raise MetricError(f'an interval in frames must be a whole number, not {self.delta}')


@dataclass(frozen=True, eq=False)
class PoseErrors:
    """Errors of poses or of pairs of poses.

    Parameters
    ----------
    translation_m, rotation_deg : ndarray of float64, shape (N,)
        Length and angle of the pose error, >= 0.
    rows : ndarray of int64, shape (N,)
        Row of the associated trajectories each belongs to; for pairs the later one.
    """

    translation_m: NDArray[np.float64]
    rotation_deg: NDArray[np.float64]
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class ErrorStatistics:
    """Metrics of a row of errors, in its unit."""

    rmse: float
    mean: float
    median: float
    std: float
    min: float
    max: float
    sse: float
    n: int


def error_statistics(errors: NDArray[np.floating]) -> ErrorStatistics:
    """Return the statistics that evo reports; the standard deviation is the population's.

    Raises MetricError if there is no error to speak of.
    """
    if not len(errors):
        raise MetricError('there are no errors to compute statistics of')
    squares = np.square(errors, dtype=np.float64)
    return ErrorStatistics(
        rmse=float(np.sqrt(squares.mean())),
        mean=float(errors.mean()),
        median=float(np.median(errors)),
        std=float(errors.std()),
        min=float(errors.min()),
        max=float(errors.max()),
        sse=float(squares.sum()),
        n=len(errors),
    )


def associate(
    reference: StampedTrajectory,
    estimate: StampedTrajectory,
    *,
    max_difference_s: float = DEFAULT_MAX_DIFFERENCE_S,
    offset_s: float = 0.0,
) -> tuple[StampedTrajectory, StampedTrajectory]:
    """Return the poses of both trajectories matched by stamp.

    As in evo, every pose of the shorter trajectory (the estimate if they are equally long) gets
    the nearest in time of the other, the earlier of two equally near ones, if that is within the
    largest difference.

    Parameters
    ----------
    reference, estimate : StampedTrajectory
        Of any rate and length.
    max_difference_s : float
        Largest difference of stamps that belong together, inclusive.
    offset_s : float
        Added to the stamps of the estimate for the association.

    Raises
    ------
    MetricError
        If no stamps belong together; says how far apart they are.
    """
    offset_ns = round(offset_s * 1e9)
    own, other = estimate.stamps_ns + offset_ns, reference.stamps_ns
    estimate_is_longer = len(estimate) > len(reference)
    few, many = (other, own) if estimate_is_longer else (own, other)
    above = np.searchsorted(many, few, side='right').clip(max=len(many) - 1)
    below = (above - 1).clip(min=0)
    nearest = np.where(np.abs(many[above] - few) < np.abs(few - many[below]), above, below)
    kept = np.flatnonzero(np.abs(many[nearest] - few) <= round(max_difference_s * 1e9))
    if not len(kept):
        raise MetricError(
            f'no stamps of the trajectories are within {max_difference_s:g} s: the reference '
            f'lasts from {_show_span(other)}, the estimate from {_show_span(own)}; give another '
            'largest difference or an offset, or check that both use the same clock'
        )
    if estimate_is_longer:
        return reference.select(kept), estimate.select(nearest[kept])
    return reference.select(nearest[kept]), estimate.select(kept)


def find_alignment(
    reference: StampedTrajectory, estimate: StampedTrajectory, kind: TrajectoryAlignment
) -> Similarity:
    """Return the transformation from an associated estimate to the reference.

    SE(3) and Sim(3) are Umeyama's least squares over all positions; origin puts the first pose
    of the estimate onto the first of the reference.

    Raises
    ------
    AlignmentError
        If the positions leave the alignment open, e.g. because they lie on a line.
    """
    if kind is TrajectoryAlignment.NONE:
        return Similarity()
    if kind is TrajectoryAlignment.ORIGIN:
        return Similarity(reference.pose(0) @ estimate.pose(0).inverse())
    try:
        return fit_similarity(
            estimate.positions,
            reference.positions,
            with_scale=kind is TrajectoryAlignment.SIM3,
        )
    except ValueError as error:
        raise AlignmentError(
            f'the trajectories cannot be aligned: {error}; align by origin, or not at all'
        ) from error


def turn_is_open(reference: StampedTrajectory, aligned: StampedTrajectory) -> bool:
    r"""Return whether the least squares over positions leave a turn open, as on a straight path.

    With the singular values :math:`d_1 \ge d_2 \ge d_3` of the covariance of both, the last one
    negative where a reflection would fit better, a turn by :math:`\phi` about the main direction
    raises the mean squared error by :math:`2 (d_2 + d_3)(1 - \cos \phi)` (from Umeyama, 1991,
    lemma). It is open if 60 degrees raise that error to less than twice: then the errors left,
    not the shape of the path, choose the turn.

    Parameters
    ----------
    reference, aligned : StampedTrajectory
        Associated; the estimate after its alignment by `find_alignment` with SE(3) or Sim(3).
    """
    true = reference.positions - reference.positions.mean(axis=0)
    own = aligned.positions - aligned.positions.mean(axis=0)
    covariance = true.T @ own / len(true)
    values = np.linalg.svd(covariance, compute_uv=False)
    across = values[1] + np.sign(np.linalg.det(covariance)) * values[2]
    left = np.square(true - own).sum(axis=1).mean()
    return bool(across < left or values[1] < _LEAST_SPREAD * values[0])


def absolute_errors(reference: StampedTrajectory, estimate: StampedTrajectory) -> PoseErrors:
    r"""Return the absolute pose errors :math:`Q_i^{-1} P_i` of associated trajectories.

    The length of their translation is the distance of the positions; its root mean square is the
    absolute trajectory error (ATE) of Sturm et al., A Benchmark for the Evaluation of RGB-D SLAM
    Systems, IROS 2012.
    """
    _check_length(reference, estimate)
    between = np.swapaxes(reference.rotations, 1, 2) @ estimate.rotations
    distances = np.linalg.norm(estimate.positions - reference.positions, axis=1)
    return PoseErrors(distances, measure_angles(between), np.arange(len(reference)))


def relative_errors(
    reference: StampedTrajectory, estimate: StampedTrajectory, interval: DeltaInterval
) -> PoseErrors:
    r"""Return the relative pose errors of associated trajectories.

    :math:`(Q_i^{-1} Q_j)^{-1} (P_i^{-1} P_j)` for the pairs of the interval (Sturm et al., 2012).

    Raises
    ------
    MetricError
        If no pair has the interval.
    """
    _check_length(reference, estimate)
    first, second = list_pairs(estimate, interval).T
    true_turn, true_step = _compute_motions(reference, first, second)
    turn, step = _compute_motions(estimate, first, second)
    between = np.swapaxes(true_turn, 1, 2) @ turn
    return PoseErrors(np.linalg.norm(step - true_step, axis=1), measure_angles(between), second)


def list_pairs(trajectory: StampedTrajectory, interval: DeltaInterval) -> NDArray[np.int64]:
    """Return the pairs of rows of an interval, shape (K, 2).

    Raises MetricError if there is none.
    """
    if interval.unit is DeltaUnit.FRAMES:
        pairs = _pair_by_index(len(trajectory), int(interval.delta), interval.all_pairs)
    else:
        pairs = _pair_by_measure(_measure(trajectory, interval.unit), interval)
    if not len(pairs):
        raise MetricError(
            f'no pair of {len(trajectory)} poses is {interval.delta:g} {interval.unit.value} '
            'apart; take a shorter interval or a larger tolerance'
        )
    return pairs


def measure_angles(rotations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the angles of rotation matrices (N, 3, 3) in degrees, in [0, 180]."""
    from scipy.spatial.transform import Rotation

    return np.asarray(np.degrees(Rotation.from_matrix(rotations).magnitude()))


def _pair_by_index(count: int, delta: int, all_pairs: bool) -> NDArray[np.int64]:
    first = np.arange(0, max(count - delta, 0), 1 if all_pairs else delta)
    return np.stack([first, first + delta], axis=1).astype(np.int64)


def _measure(trajectory: StampedTrajectory, unit: DeltaUnit) -> NDArray[np.float64]:
    """Return time in seconds, or travelled distance in metres, since the first pose."""
    if unit is DeltaUnit.SECONDS:
        return np.asarray((trajectory.stamps_ns - trajectory.stamps_ns[0]) / 1e9)
    steps = np.linalg.norm(np.diff(trajectory.positions, axis=0), axis=1)
    return np.concatenate([[0.0], np.cumsum(steps)])


def _pair_by_measure(measure: NDArray[np.float64], interval: DeltaInterval) -> NDArray[np.int64]:
    if interval.all_pairs:
        return _pair_all(measure, interval)
    ends = [0]
    # Sums of steps from each start, as evo has them, round differently from differences of one
    # long sum; half a nanometre or nanosecond keeps regular steps from slipping by one.
    for row in range(1, len(measure)):
        if measure[row] - measure[ends[-1]] >= interval.delta - 5e-10:
            ends.append(row)
    return np.array(list(itertools.pairwise(ends)), np.int64).reshape(-1, 2)


def _pair_all(measure: NDArray[np.float64], interval: DeltaInterval) -> NDArray[np.int64]:
    first = np.arange(len(measure) - 1)
    wanted = measure[first] + interval.delta
    above = np.searchsorted(measure, wanted, side='left')
    above = np.clip(above, first + 1, len(measure) - 1)
    below = np.clip(above - 1, first + 1, None)
    # The earliest of equally near ones, as evo's argmin takes it.
    nearest = np.where(wanted - measure[below] <= measure[above] - wanted, below, above)
    nearest = np.searchsorted(measure, measure[nearest], side='left').clip(min=first + 1)
    off = np.abs(measure[nearest] - wanted)
    kept = off <= interval.tolerance * interval.delta
    return np.stack([first, nearest], axis=1)[kept].astype(np.int64)


def _compute_motions(
    trajectory: StampedTrajectory, first: NDArray[np.int64], second: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rotation and translation from each first pose to its second, in the first."""
    back = np.swapaxes(trajectory.rotations[first], 1, 2)
    away = trajectory.positions[second] - trajectory.positions[first]
    return back @ trajectory.rotations[second], np.einsum('nij,nj->ni', back, away)


def _check_length(reference: StampedTrajectory, estimate: StampedTrajectory) -> None:
    if len(reference) != len(estimate):
        raise MetricError(
            f'{len(reference)} reference poses and {len(estimate)} estimates; associate them first'
        )


def _show_span(stamps_ns: NDArray[np.int64]) -> str:
    return f'{stamps_ns[0] / 1e9:.3f} to {stamps_ns[-1] / 1e9:.3f} s'


# Second singular value over the first, below which points are on a line.
_STRAIGHT = 1e-9


def fit_similarity(
    source: NDArray[np.floating], target: NDArray[np.floating], *, with_scale: bool = False
) -> Similarity:
    r"""Return the transformation of source points that comes nearest to the target points.

    Least squares in closed form: with the covariance :math:`U D V^T` of target and source,
    :math:`R = U S V^T`, :math:`s = tr(D S) / \sigma^2` and :math:`t = \mu_y - s R \mu_x`
    (Umeyama, Least-squares estimation of transformation parameters between two point patterns,
    IEEE PAMI 13 (4), 1991, equations 40 to 43).

    Parameters
    ----------
    source, target : ndarray, shape (N, 3)
        Corresponding points in metres.
    with_scale : bool
        Whether the scale is fitted too; else it is 1.

    Raises
    ------
    ValueError
        If the shapes differ, there are fewer than three points, or they are on a line, which
        leaves the rotation open.
    """
    if source.shape != target.shape or source.ndim != 2 or source.shape[1] != 3:
        raise ValueError(f'points of shape {source.shape} do not match {target.shape}')
    if len(source) < 3:
        raise ValueError(f'{len(source)} points; an alignment needs at least three')
    mean_x = source.mean(axis=0)
    mean_y = target.mean(axis=0)
    x = source - mean_x
    y = target - mean_y
    u, d, vt = np.linalg.svd(y.T @ x / len(x))
    if d[1] <= _STRAIGHT * max(d[0], np.finfo(np.float64).tiny):
        raise ValueError('the points lie on a line, so their alignment is not unique')
    signs = np.array([1.0, 1.0, np.sign(np.linalg.det(u) * np.linalg.det(vt))])
    rotation = u * signs @ vt
    scale = float((d * signs).sum() / (x**2).sum(axis=1).mean()) if with_scale else 1.0
    return Similarity(Pose(rotation, mean_y - scale * rotation @ mean_x), scale)
