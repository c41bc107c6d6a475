import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import cdist

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics import matching
from osmabench_ros.metrics.grid_search import nearest_by_grid
from osmabench_ros.metrics.matching import NeighbourIndex, first_of_duplicates, nearest

coordinates = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 40), st.just(3)),
    elements=st.floats(-20, 20, width=32).map(lambda x: round(x, 1)),
)


@settings(max_examples=60, deadline=None)
@given(coordinates, coordinates)
def test_tree_and_grid_agree_with_brute_force(queries: np.ndarray, references: np.ndarray) -> None:
    expected = cdist(queries.astype(np.float64), references.astype(np.float64)).min(axis=1)
    tree = nearest(queries, references, device='cpu')
    rows, distances = nearest_by_grid(torch.from_numpy(queries), torch.from_numpy(references))
    np.testing.assert_allclose(tree.distances_m, expected, rtol=1e-6)
    np.testing.assert_allclose(distances.numpy(), expected, rtol=1e-6)
    chosen = np.linalg.norm(queries.astype(float) - references[rows.numpy()], axis=1)
    np.testing.assert_allclose(chosen, expected, atol=1e-5)


def test_tree_and_grid_choose_the_same_reference_on_surfaces() -> None:
    rng = np.random.default_rng(0)
    references = (rng.random((5000, 3)) * [8, 6, 0.01]).astype(np.float32)
    references = np.concatenate([references, references[:500]])
    queries = (rng.random((20000, 3)) * [9, 7, 2] - 0.5).astype(np.float32)
    tree = nearest(queries, references, device='cpu')
    rows, _ = nearest_by_grid(torch.from_numpy(queries), torch.from_numpy(references))
    np.testing.assert_array_equal(tree.indices, rows.numpy())
    assert tree.indices.max() < 5000


def test_chunks_give_what_one_query_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    queries, references = rng.random((1000, 3)), rng.random((300, 3))
    whole = nearest(queries, references, device='cpu')
    monkeypatch.setattr(matching, 'QUERIES_PER_CHUNK', 77)
    parts = nearest(queries, references, device='cpu')
    np.testing.assert_array_equal(whole.indices, parts.indices)


def test_a_gate_includes_its_own_distance() -> None:
    references = np.array([[0.0, 0.0, 0.0]], np.float32)
    queries = np.array([[0.5, 0, 0], [0.50001, 0, 0]], np.float32)
    found = nearest(queries, references, max_distance_m=0.5, device='cpu')
    assert found.indices.tolist() == [0, -1]
    assert np.isinf(found.distances_m[1])
    rows, _ = nearest_by_grid(torch.from_numpy(queries), torch.from_numpy(references), 0.5)
    assert rows.tolist() == [0, -1]


def test_nothing_to_find_gives_no_neighbours() -> None:
    found = nearest(np.zeros((2, 3)), np.zeros((0, 3)), device='cpu')
    assert found.indices.tolist() == [-1, -1]
    assert len(nearest(np.zeros((0, 3)), np.zeros((2, 3)), device='cpu').indices) == 0


def test_first_of_duplicates_keeps_the_lowest_row() -> None:
    points = np.array([[1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]], np.float32)
    found = first_of_duplicates(points)
    assert found is not None
    assert found.tolist() == [0, 1, 0, 1]
    assert first_of_duplicates(points[:2]) is None


def test_coordinates_that_are_not_finite_are_refused_by_name() -> None:
    points = np.array([[0, np.nan, 0], [0, 0, 0]], np.float32)
    with pytest.raises(MetricError, match='predicted map: 1 of 2 points'):
        NeighbourIndex(points, 'cpu', 'predicted map')
    with pytest.raises(MetricError, match=r'shape \(2, 2\)'):
        nearest(np.zeros((2, 2)), np.zeros((2, 3)), device='cpu')


@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA device')
def test_cuda_chooses_what_the_cpu_chooses() -> None:
    rng = np.random.default_rng(2)
    references, queries = rng.random((2, 20000, 3)).astype(np.float32)
    cpu, cuda = (nearest(queries, references, device=name) for name in ('cpu', 'cuda'))
    np.testing.assert_array_equal(cpu.indices, cuda.indices)
