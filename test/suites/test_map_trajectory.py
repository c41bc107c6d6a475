"""The poses of a map against the true ones, and its surface after their alignment."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from osmabench_ros.geometry.pose import Pose, Similarity
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.maps.semantic_map import transform_map
from osmabench_ros.suites.map_geometry import MapGeometrySuite, MapTrajectorySuite

SHIFT = Similarity(Pose(Rotation.from_euler('z', 10, degrees=True).as_matrix(), [0.3, 0.0, 0.1]))


@pytest.fixture
def path():
    places = [(0.0, 0.0, 1.0), (1.0, 0.0, 1.0), (1.0, 2.0, 1.0), (0.0, 2.0, 1.5)]
    return StampedTrajectory.from_poses(
        (second * 10**9, Pose(np.eye(3), place)) for second, place in enumerate(places)
    )


def figures(case, **options):
    records = MapTrajectorySuite(options=options).evaluate(case)
    return {record.metric: record.value for record in records}


def test_a_map_that_lies_elsewhere_is_right_after_the_alignment(context, path):
    moved = transform_map(replace(context.semantic_map, trajectory=path), SHIFT, 'world')
    case = replace(context, semantic_map=moved, true_trajectory=path)
    found = figures(case)
    offsets = np.linalg.norm(SHIFT.transform(path.positions) - path.positions, axis=1)
    assert found['ape_translation_rmse_m'] == pytest.approx(np.sqrt((offsets**2).mean()))
    assert found['ape_rotation_mean_deg'] == pytest.approx(10.0)
    assert found['rpe_translation_max_m'] == pytest.approx(0.0, abs=1e-9)
    assert found['aligned_ape_translation_rmse_m'] == pytest.approx(0.0, abs=1e-9)
    whole = {r.metric: r.value for r in MapGeometrySuite(options={}).evaluate(context)}
    as_is = {r.metric: r.value for r in MapGeometrySuite(options={}).evaluate(case)}
    assert found['aligned_f_score_0.05m'] == pytest.approx(whole['f_score_0.05m'], abs=1e-3)
    assert as_is['f_score_0.05m'] < 0.5 < found['aligned_f_score_0.05m']


@pytest.mark.parametrize('kept', [1, 3, 4])
def test_frames_without_a_pose_are_counted_where_errors_leave_them_out(context, path, kept):
    own = StampedTrajectory.from_poses(
        (int(path.stamps_ns[row]), path.pose(row)) for row in range(kept)
    )
    case = replace(context.semantic_map, trajectory=own)
    found = figures(replace(context, semantic_map=case, true_trajectory=path))
    assert found['frames_with_pose'] == kept / 4
    assert found['ape_translation_rmse_m'] == pytest.approx(0.0, abs=1e-9)


def test_repeated_poses_are_not_more_frames_and_copied_ones_are_doubtful(context, path):
    near = np.arange(4) * 10**6
    repeated = StampedTrajectory(
        path.stamps_ns[0] + near, np.tile(path.positions[:1] + 0.1, (4, 1)), path.rotations
    )
    remarks = []
    for own in (repeated, path):
        mapped = replace(context.semantic_map, trajectory=own)
        case = replace(context, semantic_map=mapped, true_trajectory=path, remarks=[])
        share = figures(case)['frames_with_pose']
        assert share == (1 / 4 if own is repeated else 1.0)
        remarks.append(' '.join(case.remarks))
    assert 'errors are over 25% of the poses' in remarks[0]
    assert 'copied' not in remarks[0]
    assert 'copied' in remarks[1]


def test_a_map_without_poses_has_no_figures(context, path):
    for case in (
        replace(context, true_trajectory=path),
        replace(context, semantic_map=replace(context.semantic_map, trajectory=path)),
    ):
        assert set(figures(case).values()) == {None}


@pytest.mark.parametrize(('sway_m', 'remark'), [(0.0, 'on a line'), (0.001, 'straight to within')])
def test_a_straight_path_has_figures_of_what_needs_no_alignment(context, sway_m, remark):
    rng = np.random.default_rng(0)
    stamps, turns = np.arange(30) * 10**9, np.tile(np.eye(3), (30, 1, 1))
    along = np.arange(30.0)[:, None] * [0.1, 0.0, 0.0]
    drift = np.cumsum(rng.normal(0, 0.005, along.shape), axis=0) if sway_m else 0.002
    true = StampedTrajectory(stamps, along + sway_m * rng.normal(0, 1, along.shape), turns)
    own = StampedTrajectory(stamps, true.positions + drift, turns)
    mapped = replace(context.semantic_map, trajectory=own)
    case = replace(context, semantic_map=mapped, true_trajectory=true, remarks=[])
    found = figures(case)
    assert any(remark in text for text in case.remarks)
    assert found['ape_translation_rmse_m'] > 0
    assert found['ape_rotation_rmse_deg'] == pytest.approx(0.0, abs=1e-6)
    assert found.get('aligned_ape_rotation_rmse_deg') is None
    assert found.get('aligned_f_score_0.05m') is None
    assert (found['aligned_ape_translation_rmse_m'] is None) == (sway_m == 0)
