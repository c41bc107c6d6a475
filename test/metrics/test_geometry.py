"""Nearest points and the figures of geometry that rest on them, by other ways."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import cdist
from support.libraries import Lazy
from support.programs import run_python

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics import geometry, nearest_neighbours
from osmabench_ros.metrics.nearest_neighbours import (
    NeighbourIndex,
    find_distinct_rows,
    find_nearest_by_grid,
    has_gpu_driver,
    nearest,
)

torch = Lazy('torch')
coordinates = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 40), st.just(3)),
    elements=st.floats(-20, 20, width=32).map(lambda x: round(x, 1)),
)


@settings(max_examples=60)
@given(coordinates, coordinates)
def test_tree_and_grid_agree_with_brute_force(queries, references):
    expected = cdist(queries.astype(np.float64), references.astype(np.float64)).min(axis=1)
    tree = nearest(queries, references, device='cpu')
    rows, distances = find_nearest_by_grid(torch.from_numpy(queries), torch.from_numpy(references))
    np.testing.assert_allclose(tree.distances_m, expected, rtol=1e-6)
    np.testing.assert_allclose(distances.numpy(), expected, rtol=1e-6)
    chosen = np.linalg.norm(queries.astype(float) - references[rows.numpy()], axis=1)
    np.testing.assert_allclose(chosen, expected, atol=1e-5)


def test_chunks_give_what_one_query_gives(monkeypatch):
    rng = np.random.default_rng(1)
    queries, references = rng.random((1000, 3)), rng.random((300, 3))
    whole = nearest(queries, references, device='cpu')
    monkeypatch.setattr(nearest_neighbours, 'QUERIES_PER_CHUNK', 77)
    parts = nearest(queries, references, device='cpu')
    np.testing.assert_array_equal(whole.indices, parts.indices)


def test_a_gate_includes_its_own_distance():
    references = np.array([[0.0, 0.0, 0.0]], np.float32)
    queries = np.array([[0.5, 0, 0], [0.50001, 0, 0]], np.float32)
    found = nearest(queries, references, max_distance_m=0.5, device='cpu')
    assert found.indices.tolist() == [0, -1]
    assert np.isinf(found.distances_m[1])
    rows, _ = find_nearest_by_grid(torch.from_numpy(queries), torch.from_numpy(references), 0.5)
    assert rows.tolist() == [0, -1]


@pytest.mark.parametrize('max_distance_m', [0.05, 0.1, 0.3])
def test_a_distance_that_is_the_gate_in_single_precision_is_within_it(max_distance_m):
    references = np.zeros((1, 3), np.float32)
    at = np.float32(max_distance_m)
    queries = np.array([[at, 0, 0], [0, np.nextafter(at, np.float32(1)), 0]], np.float32)
    found = nearest(queries, references, device='cpu')
    assert found.within(max_distance_m).tolist() == [True, False]


def test_nothing_to_find_gives_no_neighbours():
    found = nearest(np.zeros((2, 3)), np.zeros((0, 3)), device='cpu')
    assert found.indices.tolist() == [-1, -1]
    assert len(nearest(np.zeros((0, 3)), np.zeros((2, 3)), device='cpu').indices) == 0


def test_distinct_rows_are_the_first_of_each_place():
    points = np.array([[1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0], [2, 0, 0]], np.float32)
    found = find_distinct_rows(points)
    assert found is not None
    assert found.tolist() == [0, 1, 4]
    assert find_distinct_rows(points[:2]) is None


def lattice(n, step, seed):
    cells = np.stack(np.meshgrid(*[np.arange(n)] * 3), axis=-1).reshape(-1, 3)
    return np.random.default_rng(seed).permutation(cells).astype(np.float32) * np.float32(step)


@pytest.mark.parametrize('step', [0.05, 0.0625])
@pytest.mark.parametrize('offset', [(0.5, 0, 0), (0.5, 0.5, 0), (0.5, 0.5, 0.5)])
def test_of_equally_near_voxels_the_lowest_row_answers(step, offset):
    references = np.concatenate([lattice(7, step, 0), lattice(7, step, 1)[:50]])
    queries = lattice(6, step, 2) + np.float32(step) * np.array(offset, np.float32)
    away = cdist(queries.astype(np.float64), references.astype(np.float64))
    expected = (away <= away.min(axis=1, keepdims=True) * (1 + 1e-12)).argmax(axis=1)
    tree = nearest(queries, references, device='cpu')
    rows, _ = find_nearest_by_grid(torch.from_numpy(queries), torch.from_numpy(references))
    np.testing.assert_array_equal(tree.indices, expected)
    np.testing.assert_array_equal(rows.numpy(), expected)


def test_more_ties_than_a_lattice_has_are_resolved_too():
    angles = np.arange(0, 360, 90)
    ring = np.array([[np.cos(a), np.sin(a), 0] for a in np.radians(angles)]).round()
    shell = np.concatenate([ring, ring[:, [2, 0, 1]], ring[:, [1, 2, 0]]]).astype(np.float32)
    shell = np.unique(np.concatenate([shell, [[0.6, 0.8, 0], [0.8, 0, 0.6]]]), axis=0)
    shell = np.concatenate([shell, -shell[:2] * 2])[::-1].astype(np.float32)
    found = nearest(np.zeros((1, 3), np.float32), shell, device='cpu')
    away = np.linalg.norm(shell.astype(np.float64), axis=1)
    assert found.indices[0] == np.flatnonzero(away <= away.min() * (1 + 1e-12))[0]
    many = np.eye(3)[np.zeros(40, int)] + np.arange(40)[:, None] * [0, 0, 1e-14]
    line = np.concatenate([many, -many]).astype(np.float64)
    assert nearest(np.zeros((1, 3)), line, device='cpu').indices.tolist() == [0]


def test_coordinates_that_are_not_finite_are_refused_by_name():
    points = np.array([[0, np.nan, 0], [0, 0, 0]], np.float32)
    with pytest.raises(MetricError, match='predicted map: 1 of 2 points'):
        NeighbourIndex(points, 'cpu', 'predicted map')
    with pytest.raises(MetricError, match=r'shape \(2, 2\)'):
        nearest(np.zeros((2, 2)), np.zeros((2, 3)), device='cpu')


@pytest.mark.skipif('not torch.cuda.is_available()', reason='needs a CUDA device')
def test_cuda_chooses_what_the_cpu_chooses():
    rng = np.random.default_rng(2)
    references, queries = rng.random((2, 20000, 3)).astype(np.float32)
    cpu, cuda = (nearest(queries, references, device=name) for name in ('cpu', 'cuda'))
    np.testing.assert_array_equal(cpu.indices, cuda.indices)


def test_torch_finds_no_gpu_where_there_is_no_driver():
    assert has_gpu_driver() or not torch.cuda.is_available()


@pytest.mark.skipif(has_gpu_driver(), reason='a GPU may be here, which torch has to look for')
def test_without_a_gpu_an_index_needs_no_torch():
    script = """
import sys
import numpy as np
from osmabench_ros.metrics.nearest_neighbours import nearest
print(nearest(np.zeros((1, 3)), np.eye(3)).distances_m[0], 'torch' in sys.modules)
"""
    done = run_python('-c', script, check=True)
    assert done.stdout.split() == ['1.0', 'False']


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


@settings(max_examples=50)
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


@settings(max_examples=50)
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
