import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics import geometry
from osmabench_ros.metrics.nearest_neighbours import nearest

distances = hnp.arrays(np.float32, st.integers(1, 30), elements=st.floats(0, 5, width=32))


def test_two_parallel_planes_are_their_gap_apart():
    plane = np.stack(np.meshgrid(*[np.linspace(0, 1, 20)] * 2), axis=-1).reshape(-1, 2)
    low = np.column_stack([plane, np.zeros(400)])
    high = np.column_stack([plane, np.full(400, 0.05)])
    there, back = nearest(high, low, device='cpu'), nearest(low, high, device='cpu')
    scores = geometry.score_geometry(there.distances_m, back.distances_m, (0.049, 0.051))
    assert scores.chamfer_m == pytest.approx(0.05)
    assert scores.accuracy_m == scores.completeness_m == pytest.approx(0.05)
    assert scores.precision == scores.recall == scores.f_score == (0.0, 1.0)


@settings(max_examples=50, deadline=None)
@given(distances, distances)
def test_f_score_is_the_harmonic_mean_and_grows_with_the_threshold(there, back):
    thresholds = (0.1, 1.0, 6.0)
    scores = geometry.score_geometry(there, back, thresholds)
    for p, r, f in zip(scores.precision, scores.recall, scores.f_score, strict=True):
        expected = 0.0 if p * r == 0 else 2 / (1 / p + 1 / r)
        assert f == pytest.approx(expected)
        assert min(p, r) - 1e-12 <= f <= max(p, r) + 1e-12
    assert list(scores.f_score) == sorted(scores.f_score)
    assert scores.f_score[-1] == 1.0


def test_nothing_predicted_recalls_nothing():
    scores = geometry.score_geometry(np.zeros(0), np.full(3, np.inf), (0.1,))
    assert scores.recall == (0.0,)
    assert scores.f_score == (0.0,)
    assert np.isnan(scores.accuracy_m)
    assert np.isnan(scores.completeness_m)


def test_volume_counts_cells_not_points():
    rng = np.random.default_rng(0)
    points = rng.random((50_000, 3)) * 0.999
    assert geometry.measure_volume(points, 0.1) == pytest.approx(1.0)
    assert geometry.measure_volume(np.tile(points, (2, 1)), 0.1) == geometry.measure_volume(
        points, 0.1
    )
    assert geometry.measure_volume(np.zeros((0, 3)), 0.1) == 0.0


@settings(max_examples=50, deadline=None)
@given(hnp.arrays(np.float64, (20, 3), elements=st.floats(-50, 50)), st.floats(0.05, 2))
def test_voxels_agree_with_unique_rows(points, edge):
    assert len(geometry.find_occupied_voxels(points, edge)) == len(
        np.unique(np.floor(points / edge), axis=0)
    )


def test_voxels_beyond_the_grid_are_refused():
    with pytest.raises(MetricError, match='check the units'):
        geometry.find_occupied_voxels(np.full((1, 3), 1e9), 0.1)
    with pytest.raises(MetricError, match='edge > 0'):
        geometry.find_occupied_voxels(np.zeros((1, 3)), 0.0)


def test_normals_of_a_tilted_plane():
    rng = np.random.default_rng(0)
    u, v = np.array([1.0, 0, 1]) / np.sqrt(2), np.array([0.0, 1, 0])
    points = rng.random((500, 2)) @ np.stack([u, v])
    found = geometry.estimate_normals(points, np.arange(50))
    true = np.tile(np.cross(u, v), (50, 1))
    value, n = geometry.normal_consistency(found, -true)
    assert (value, n) == (pytest.approx(1.0), 50)


def test_copies_of_points_change_no_normal():
    points = np.random.default_rng(1).random((300, 3)) * [1, 1, 0.1]
    once = geometry.estimate_normals(points, np.arange(40))
    np.testing.assert_allclose(
        geometry.estimate_normals(np.repeat(points, 13, 0), np.arange(40) * 13), once
    )


def test_normal_consistency_is_the_cosine_and_leaves_out_what_has_no_normal():
    one = np.array([[1.0, 0, 0], [1, 0, 0], [0, 0, 0], [np.nan, 0, 0]])
    other = np.array([[0.5, np.sqrt(0.75), 0], [-1, 0, 0], [1, 0, 0], [1, 0, 0]])
    assert geometry.normal_consistency(one, other) == (pytest.approx(0.75), 2)
    assert np.isnan(geometry.normal_consistency(one[2:], other[2:])[0])
    assert np.isnan(geometry.estimate_normals(one[:2], np.array([0]))).all()


def test_malformed_distances_and_normals_are_refused():
    with pytest.raises(MetricError, match='from map to truth'):
        geometry.score_geometry(np.array([np.nan]), np.zeros(1), (0.1,))
    with pytest.raises(MetricError, match='from truth to map'):
        geometry.score_geometry(np.zeros(1), np.array([-1.0]), (0.1,))
    with pytest.raises(MetricError, match='do not match'):
        geometry.normal_consistency(np.zeros((2, 3)), np.zeros((3, 3)))


def test_surfels_measure_the_distance_to_a_plane_and_to_its_edge():
    rng = np.random.default_rng(0)
    samples = (rng.random((4000, 3)) * [2, 2, 0]).astype(np.float32)
    normals = np.tile(np.array([[0, 0, 1]], np.float32), (4000, 1))
    points = (rng.random((500, 3)) * [1.8, 1.8, 0] + [0.1, 0.1, 0.03]).astype(np.float32)
    found = nearest(points, samples, device='cpu')
    assert found.distances_m.mean() > 0.034
    near = samples[found.indices]
    distances = geometry.find_surfel_distances(points, near, normals[:500], 1 / np.sqrt(1000))
    np.testing.assert_allclose(distances, 0.03, atol=0.005)
    assert (distances <= found.distances_m + 1e-6).all()
    one = geometry.find_surfel_distances(
        np.array([[0.3, 0, 0.4]]), np.zeros((1, 3)), normals[:1], 0.0
    )
    np.testing.assert_allclose(one, 0.5, rtol=1e-6)
