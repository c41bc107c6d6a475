from itertools import pairwise

import numpy as np
import pytest

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.simulation.effects import DroppedFrames, PoseDrift


@pytest.mark.parametrize(('share', 'burst'), [(0.1, 1), (0.3, 3), (0.6, 5)])
def test_the_expected_share_of_frames_is_lost_in_bursts(share, burst):
    kept = DroppedFrames(share=share, burst=burst).keeps(40_000, seed=1)
    assert kept[0]
    assert 1 - kept.mean() == pytest.approx(share, rel=0.08)
    edges = np.flatnonzero(np.diff(np.concatenate([[True], kept, [True]]).astype(int)))
    lengths = edges[1::2] - edges[::2]
    assert lengths[:-1].min() >= burst


def test_losses_depend_on_the_seed_alone():
    drop = DroppedFrames(share=0.3)
    np.testing.assert_array_equal(drop.keeps(100, 1), drop.keeps(100, 1))
    assert (drop.keeps(100, 1) != drop.keeps(100, 2)).any()
    assert DroppedFrames(share=0.0).keeps(100, 1).all()


def straight(count):
    return [
        Pose.from_yaw(0.3, (0.1 * i * np.cos(0.3), 0.1 * i * np.sin(0.3), 1.5))
        for i in range(count)
    ]


def test_without_noise_the_true_poses_come_back():
    still = PoseDrift(translation_per_m=0.0, rotation_per_m_deg=0.0, rotation_per_turn_deg=0.0)
    poses = [*straight(5), *[Pose.from_yaw(0.3 + 0.2 * i, (0.4, 0.1, 1.5)) for i in range(5)]]
    for one, two in zip(poses, still.reported_poses(poses, 0), strict=True):
        np.testing.assert_allclose(one.matrix, two.matrix, atol=1e-12)


@pytest.mark.full
def test_drift_grows_with_the_square_root_of_the_way():
    drift = PoseDrift(translation_per_m=0.05, rotation_per_m_deg=0.0, rotation_per_turn_deg=0.0)
    poses = straight(91)
    errors = np.array(
        [
            [
                believed.translation - true.translation
                for believed, true in zip(drift.reported_poses(poses, seed), poses, strict=True)
            ]
            for seed in range(60)
        ]
    )
    assert errors[:, 10, :2].std() == pytest.approx(0.05, rel=0.3)
    assert errors[:, 90, :2].std() == pytest.approx(0.15, rel=0.3)
    np.testing.assert_allclose(errors[..., 2], 0.0, atol=1e-12)


def test_heading_errors_bend_the_rest_of_the_way():
    drift = PoseDrift(translation_per_m=0.0, rotation_per_m_deg=2.0, rotation_per_turn_deg=0.0)
    poses = straight(101)
    believed = drift.reported_poses(poses, 0)
    np.testing.assert_array_equal(believed[0].matrix, poses[0].matrix)
    ends = [drift.reported_poses(poses, seed)[-1].translation for seed in range(20)]
    # A heading that walks at random by 2 degrees a root metre bends 10 m by metres / sqrt(3).
    expected = np.radians(2.0) * 10**1.5 / 3**0.5
    spread = np.linalg.norm(np.array(ends) - poses[-1].translation, axis=1)
    assert np.sqrt((spread**2).mean()) == pytest.approx(expected, rel=0.5)
    steps = [np.linalg.norm(b.translation - a.translation) for a, b in pairwise(believed)]
    np.testing.assert_allclose(steps, 0.1)
