"""ICP on a room with a table at a known displacement."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.libraries import needs

from osmabench_ros.errors import MetricError
from osmabench_ros.geometry.pose import Pose, Similarity
from osmabench_ros.metrics.registration import Registration, registered


def plane(origin, one, two, count, rng):
    return np.array(origin) + rng.random((count, 2)) @ np.array([one, two], float)


def room(seed):
    """Return points and normals of a floor, two walls and a table, 5 x 4 m."""
    rng = np.random.default_rng(seed)
    parts = [
        ((0, 0, 0), (5, 0, 0), (0, 4, 0), 4000, (0, 0, 1)),
        ((0, 0, 0), (5, 0, 0), (0, 0, 2.5), 3000, (0, 1, 0)),
        ((0, 0, 0), (0, 4, 0), (0, 0, 2.5), 3000, (1, 0, 0)),
        ((1, 1, 0.8), (1.5, 0, 0), (0, 0.8, 0), 1000, (0, 0, 1)),
        ((1, 1, 0), (1.5, 0, 0), (0, 0, 0.8), 1000, (0, 1, 0)),
    ]
    points = [plane(*part[:4], rng) for part in parts]
    normals = [np.tile(np.array(part[4], float), (part[3], 1)) for part in parts]
    return np.concatenate(points), np.concatenate(normals)


pytestmark = needs('open3d')

TRUE, NORMALS = room(0)
FAR = np.array([40.0, 0, 0])
DISPLACED = Similarity(
    Pose(Rotation.from_rotvec([0.02, -0.03, 0.08]).as_matrix(), np.array([0.25, -0.2, 0.1]))
)


@pytest.mark.parametrize('normals', [NORMALS, None])
def test_a_known_displacement_is_undone(normals):
    seen, _ = room(1)
    noisy = seen + np.random.default_rng(2).normal(0, 0.005, seen.shape)
    found = registered(DISPLACED.transform(noisy), TRUE, normals, Similarity())
    again = found.similarity.transform(DISPLACED.transform(seen))
    assert np.linalg.norm(again - seen, axis=1).max() < 0.01
    assert found.fitness > 0.95
    # Points are 6 cm apart at random: their distance to the nearest is a share of that.
    assert found.rmse_m < 0.06
    assert found.doubts == ()


def test_the_guess_is_taken_and_its_scale_kept():
    seen, _ = room(1)
    far = Similarity(Pose.from_yaw(2.0, (30, -8, 1)), 0.5)
    inverse = Similarity(
        Pose(far.pose.rotation.T, -2 * far.pose.rotation.T @ far.pose.translation), 2.0
    )
    guess = DISPLACED @ inverse
    found = registered(far.transform(seen), TRUE, NORMALS, guess)
    assert found.similarity.scale == pytest.approx(2.0)
    again = found.similarity.transform(far.transform(seen))
    assert np.linalg.norm(again - seen, axis=1).max() < 0.01


def test_another_place_is_refused():
    seen, _ = room(1)
    with pytest.raises(MetricError, match=r'ICP brings only 0%.*--transform.*same place'):
        registered(seen + FAR, TRUE, NORMALS, Similarity())
    with pytest.raises(MetricError, match='the map has 3'):
        registered(seen[:3], TRUE, NORMALS, Similarity())


def test_a_floor_alone_leaves_the_alignment_open():
    floor, floor_normals = TRUE[:4000], NORMALS[:4000]
    found = registered(floor + np.array([0, 0, 0.05]), floor, floor_normals, Similarity())
    assert found.observability < 1e-3
    assert 'slid along them' in found.doubts[0]


def test_half_a_map_of_another_place_is_doubted():
    seen, _ = room(1)
    mixed = np.concatenate([seen, seen + FAR])
    found = registered(mixed, TRUE, NORMALS, Similarity())
    assert found.fitness == pytest.approx(0.5, abs=0.03)
    assert 'of the map points' in found.doubts[0]


@pytest.mark.parametrize(('fitness', 'doubts'), [(0.59, 1), (0.61, 0)])
def test_less_than_three_fifths_is_doubted(fitness, doubts):
    found = Registration(Similarity(), fitness, 0.01, 0.1, 0.5)
    assert len(found.doubts) == doubts


def test_less_than_three_tenths_is_refused():
    seen, _ = room(1)
    rng = np.random.default_rng(3)

    def fitness(fraction):
        elsewhere = FAR + 10 * rng.random((round(len(seen) * (1 / fraction - 1)), 3))
        points = np.concatenate([seen, elsewhere])
        return registered(points, TRUE, NORMALS, Similarity()).fitness

    # A few points of the room share a voxel.
    assert 0.3 < fitness(0.33) < 0.33
    with pytest.raises(MetricError, match='less than 30%'):
        fitness(0.3)
