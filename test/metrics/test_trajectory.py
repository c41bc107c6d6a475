"""Trajectory errors against evo, where it is installed, and against plain loops over matrices."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from osmabench_ros.errors import AlignmentError, MetricError
from osmabench_ros.geometry.pose import Pose, Similarity
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.metrics.trajectory import (
    DeltaInterval,
    DeltaUnit,
    TrajectoryAlignment,
    absolute_errors,
    associate,
    error_statistics,
    find_alignment,
    fit_similarity,
    list_pairs,
    relative_errors,
    turn_is_open,
)
from osmabench_ros.metrics.trajectory_records import TrajectorySettings, score_trajectory


def walk(count, seed, start_s=100.0, step_s=0.1):
    rng = np.random.default_rng(seed)
    stamps = (start_s + step_s * np.arange(count) + rng.uniform(-0.004, 0.004, count)) * 1e9
    positions = np.cumsum(rng.normal(0, 0.2, (count, 3)), axis=0)
    turns = Rotation.from_rotvec(np.cumsum(rng.normal(0, 0.1, (count, 3)), axis=0))
    return StampedTrajectory.from_quaternions(
        np.sort(stamps).astype(np.int64), positions, turns.as_quat()
    )


def disturbed(truth, seed, scale=1.0):
    """Return the trajectory with noise, in another frame and scale."""
    rng = np.random.default_rng(seed)
    turn = Pose(Rotation.from_rotvec([0.3, -0.2, 1.1]).as_matrix(), np.array([4.0, -2.0, 0.5]))
    noise = Rotation.from_rotvec(rng.normal(0, 0.02, (len(truth), 3))).as_matrix()
    noisy = StampedTrajectory(
        truth.stamps_ns + rng.integers(-3_000_000, 3_000_000, len(truth)),
        truth.positions + rng.normal(0, 0.05, truth.positions.shape),
        truth.rotations @ noise,
    )
    return noisy.transform(Similarity(turn, scale))


def matrices(trajectory):
    return [trajectory.pose(row).matrix for row in range(len(trajectory))]


def evo_trajectory(trajectory):
    from evo.core.trajectory import PoseTrajectory3D

    return PoseTrajectory3D(poses_se3=matrices(trajectory), timestamps=trajectory.stamps_ns / 1e9)


def errors_with_relations(ours):
    """Return both kinds of errors with the name that evo has for them."""
    from evo.core.metrics import PoseRelation

    return [
        (ours.translation_m, PoseRelation.translation_part),
        (ours.rotation_deg, PoseRelation.rotation_angle_deg),
    ]


TRUTH = walk(120, 1)
ESTIMATE = disturbed(TRUTH, 2, 1.3).select(np.arange(5, 120, 2))


@pytest.mark.parametrize('swap', [False, True])
@pytest.mark.parametrize('offset_s', [0.0, 0.2])
def test_association_is_that_of_evo(swap, offset_s):
    sync = pytest.importorskip('evo.core.sync', reason='evo is not installed')
    one, two = (ESTIMATE, TRUTH) if swap else (TRUTH, ESTIMATE)
    ours = associate(one, two, max_difference_s=0.002, offset_s=offset_s)
    theirs = sync.associate_trajectories(
        evo_trajectory(one), evo_trajectory(two), max_diff=0.002, offset_2=offset_s
    )
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(own.stamps_ns / 1e9, other.timestamps)
    assert 5 < len(ours[0]) < len(ESTIMATE)


@pytest.mark.parametrize('kind', TrajectoryAlignment)
def test_absolute_errors_are_those_of_evo(kind):
    metrics = pytest.importorskip('evo.core.metrics', reason='evo is not installed')
    truth, estimate = associate(TRUTH, ESTIMATE)
    theirs = evo_trajectory(estimate)
    if kind is TrajectoryAlignment.ORIGIN:
        theirs.align_origin(evo_trajectory(truth))
    elif kind is not TrajectoryAlignment.NONE:
        theirs.align(evo_trajectory(truth), correct_scale=kind is TrajectoryAlignment.SIM3)
    ours = absolute_errors(truth, estimate.transform(find_alignment(truth, estimate, kind)))
    for errors, relation in errors_with_relations(ours):
        metric = metrics.APE(relation)
        metric.process_data((evo_trajectory(truth), theirs))
        np.testing.assert_allclose(errors, metric.error, atol=1e-9)
        own = error_statistics(errors)
        for name, value in metric.get_all_statistics().items():
            assert getattr(own, name) == pytest.approx(value), name


@pytest.mark.parametrize('all_pairs', [False, True])
@pytest.mark.parametrize(
    ('unit', 'delta'), [('frames', 1), ('frames', 7), ('metres', 1.0), ('metres', 3.5)]
)
def test_relative_errors_are_those_of_evo(unit, delta, all_pairs):
    metrics = pytest.importorskip('evo.core.metrics', reason='evo is not installed')
    from evo.core.units import Unit

    truth, estimate = associate(TRUTH, ESTIMATE)
    ours = relative_errors(truth, estimate, DeltaInterval(delta, DeltaUnit(unit), all_pairs))
    evo_unit = {'frames': Unit.frames, 'metres': Unit.meters}[unit]
    for errors, relation in errors_with_relations(ours):
        metric = metrics.RPE(relation, delta, evo_unit, all_pairs=all_pairs)
        metric.process_data((evo_trajectory(truth), evo_trajectory(estimate)))
        np.testing.assert_allclose(errors, metric.error, atol=1e-9)
        assert ours.rows.tolist() == metric.delta_ids


def test_a_known_similarity_comes_out():
    turn = Rotation.from_rotvec([0, 0, 0.7]).as_matrix()
    by = Similarity(Pose(turn, np.array([1, 2, 3.0])), 2.5)
    found = fit_similarity(TRUTH.positions, by.transform(TRUTH.positions), with_scale=True)
    assert found.scale == pytest.approx(2.5)
    np.testing.assert_allclose(found.pose.matrix, by.pose.matrix, atol=1e-9)
    assert found.angle_deg == pytest.approx(math.degrees(0.7))
    chained = (by @ found).transform(TRUTH.positions)
    np.testing.assert_allclose(chained, by.transform(found.transform(TRUTH.positions)))


def test_a_mirrored_cloud_is_not_mirrored_back():
    mirrored = TRUTH.positions * [1, 1, -1]
    found = fit_similarity(TRUTH.positions, mirrored)
    assert np.linalg.det(found.pose.rotation) == pytest.approx(1)


@pytest.mark.parametrize('all_pairs', [False, True])
def test_pairs_in_seconds_are_those_of_a_loop(all_pairs):
    trajectory = walk(60, 4)
    seconds = trajectory.stamps_ns / 1e9
    expected, start = [], 0
    if all_pairs:
        for i in range(59):
            j = i + 1 + int(np.argmin(np.abs(seconds[i + 1 :] - seconds[i] - 0.5)))
            if abs(seconds[j] - seconds[i] - 0.5) <= 0.05:
                expected.append([i, j])
    else:
        for j in range(1, 60):
            if seconds[j] - seconds[start] >= 0.5:
                expected.append([start, j])
                start = j
    found = list_pairs(trajectory, DeltaInterval(0.5, DeltaUnit.SECONDS, all_pairs))
    assert found.tolist() == expected
    assert len(expected) > 9


def test_pairs_of_a_robot_that_waits_are_those_of_evo():
    """Positions repeat, so that many pairs have equal ways."""
    metrics = pytest.importorskip('evo.core.metrics', reason='evo is not installed')
    from evo.core.units import Unit

    positions = np.repeat(np.arange(8.0), 3)[:, None] * [1.0, 0, 0]
    turns = np.tile(np.eye(3), (24, 1, 1))
    trajectory = StampedTrajectory(np.arange(24) * 10**8, positions, turns)
    poses = matrices(trajectory)
    for all_pairs in (False, True):
        expected = metrics.id_pairs_from_delta(poses, 2.0, Unit.meters, 0.1, all_pairs)
        found = list_pairs(trajectory, DeltaInterval(2.0, DeltaUnit.METRES, all_pairs))
        assert [tuple(pair) for pair in found.tolist()] == expected


def test_what_cannot_be_compared_is_said():
    later = walk(20, 1, start_s=5000)
    with pytest.raises(MetricError, match=r'within 0\.01 s.*from 100\.000 to .*same clock'):
        associate(walk(20, 1), later)
    along, turns = np.arange(5.0)[:, None] * [1, 0, 0], np.tile(np.eye(3), (5, 1, 1))
    line = StampedTrajectory(np.arange(5), along, turns)
    with pytest.raises(AlignmentError, match='on a line.*align by origin'):
        find_alignment(line, line, TrajectoryAlignment.SE3)
    with pytest.raises(MetricError, match='no pair of 5 poses is 9 metres apart'):
        list_pairs(line, DeltaInterval(9, DeltaUnit.METRES))
    with pytest.raises(MetricError, match='whole number'):
        DeltaInterval(0.5)
    with pytest.raises(MetricError, match='associate them first'):
        absolute_errors(line, walk(4, 1))


def corridor(sway_m, error_m, seed=0):
    """Return a drive of 10 m that sways, and an estimate of it with an error that drifts."""
    rng = np.random.default_rng(seed)
    along = np.linspace(0, 10, 200)
    sway = sway_m * np.stack([np.sin(along), np.cos(2 * along)], axis=1)
    true = np.concatenate([along[:, None], sway], axis=1)
    drift = np.cumsum(rng.normal(0, 1, true.shape), axis=0)
    drift *= error_m / np.sqrt(np.square(drift).sum(axis=1).mean())
    stamps, turns = np.arange(200) * 10**8, np.tile(np.eye(3), (200, 1, 1))
    return StampedTrajectory(stamps, true, turns), StampedTrajectory(stamps, true + drift, turns)


@pytest.mark.parametrize(('sway_m', 'open_turn'), [(0.001, True), (0.01, True), (1.0, False)])
def test_a_turn_about_a_straight_path_is_open(sway_m, open_turn):
    truth, estimate = corridor(sway_m, 0.05)
    score = score_trajectory(truth, estimate, TrajectorySettings())
    assert score.turn_is_open is open_turn
    # A turn of 60 degrees about the main direction, point by point.
    own = score.aligned.positions - score.aligned.positions.mean(axis=0)
    true = truth.positions - truth.positions.mean(axis=0)
    axis = np.linalg.svd(true.T @ own)[0][:, 0]
    turned = Rotation.from_rotvec(np.radians(60) * axis).apply(own)
    errors = [np.square(true - item).sum(axis=1).mean() for item in (own, turned)]
    assert bool(errors[1] < 2 * errors[0]) is open_turn
    figures = {(item.suite, item.metric): item for item in score.records}
    rotation = figures['trajectory@aligned', 'ape_rotation_rmse_deg']
    assert rotation.applicable is not open_turn
    assert any('straight to within the errors' in text for text in score.remarks) is open_turn
    for key in (
        ('trajectory', 'ape_rotation_rmse_deg'),
        ('trajectory@aligned', 'ape_translation_rmse_m'),
        ('trajectory@aligned', 'rpe_rotation_rmse_deg'),
    ):
        assert figures[key].applicable, key


def test_what_an_open_turn_hides_is_no_error_of_the_method():
    """The same small errors, many times: the rotation after the alignment is anything."""
    turns = []
    for seed in range(20):
        truth, estimate = corridor(0.001, 0.05, seed)
        aligned = estimate.transform(find_alignment(truth, estimate, TrajectoryAlignment.SE3))
        assert turn_is_open(truth, aligned)
        turns.append(absolute_errors(truth, aligned).rotation_deg.mean())
    assert max(turns) > 90
    truth, estimate = corridor(0.001, 0.05)
    origin = score_trajectory(truth, estimate, TrajectorySettings(TrajectoryAlignment.ORIGIN))
    assert not origin.turn_is_open


def test_a_pattern_in_a_plane_leaves_no_turn_open():
    truth, estimate = corridor(1.0, 0.0)
    flat = np.array([1.0, 1.0, 0.0])
    truth, estimate = (
        StampedTrajectory(item.stamps_ns, item.positions * flat, item.rotations)
        for item in (truth, estimate)
    )
    assert not turn_is_open(truth, estimate)


def test_dropped_poses_show_in_what_is_matched_and_covered():
    truth = walk(100, 7)
    estimate, settings = disturbed(truth, 8), TrajectorySettings()
    few = score_trajectory(truth, estimate.select(np.array([0, 50, 99])), settings)
    values = {item.metric: item.value for item in few.records if item.suite == 'trajectory'}
    corners = truth.positions[[0, 50, 99]]
    chords_m = np.linalg.norm(np.diff(corners, axis=0), axis=1).sum()
    assert values['matched_poses'] == 0.03
    errors = [item for item in few.records if '_m' in item.metric and 'pe_' in item.metric]
    assert len(errors) > 10
    assert not any(item.higher_is_better for item in errors)
    assert values['covered_length'] == pytest.approx(chords_m / truth.path_length_m)
    assert values['reference_path_length_m'] == truth.path_length_m
    assert any('3% of the poses' in remark for remark in few.remarks)
    most = score_trajectory(truth, estimate.select(np.arange(5, 100)), settings)
    assert not any('of the poses' in remark for remark in most.remarks)


def test_estimates_that_repeat_one_pose_match_it_once():
    truth = walk(100, 7)
    kept = truth.select(np.arange(0, 100, 34))
    late_ns = np.arange(33) * 100_000
    rows = np.repeat(np.arange(len(kept)), len(late_ns))
    stamps = (kept.stamps_ns[:, None] + late_ns).ravel()
    repeated = replace(kept.select(rows), stamps_ns=stamps)
    found = score_trajectory(truth, repeated, TrajectorySettings())
    assert found.matched == len(kept) / 100
    assert any('3% of the poses' in remark for remark in found.remarks)
