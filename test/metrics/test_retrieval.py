import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.instances import kernel_average_precision
from osmabench_ros.metrics.retrieval import (
    COMPAT_ALIGNMENT_M,
    Retrieval,
    compat_average_precision,
    compat_confidence,
    compat_inverse_rank,
    mean_over_thresholds,
    mean_reciprocal_rank,
    recall_at_k,
    strict_average_precision,
)


def perfect(instances, others=0):
    """One query that wants all instances; perfect masks, ranked before everything else."""
    total = instances + others
    iou = np.zeros((total, instances))
    iou[np.arange(instances), np.arange(instances)] = 1.0
    similarity = np.linspace(0.9, 0.1, total)[:, None]
    return Retrieval(similarity, iou, np.full(total, 10), [range(instances)])


def test_ten_retrieved_of_fifteen_perfect_instances_give_two_thirds_in_compat_only():
    found = perfect(15)
    assert compat_average_precision(found, 0.5) == pytest.approx(0.667, abs=1e-3)
    assert mean_over_thresholds(found, compat=True) == pytest.approx(0.667, abs=1e-3)
    assert mean_over_thresholds(found) == pytest.approx(1.0)


def test_perfect_masks_and_order_do_not_give_one_in_compat_but_in_strict():
    # Confidences of two queries are pooled: a wrong mask of one outranks a right one of
    # the other, although each ranks its own objects perfectly.
    similarity = np.array([[1.0, 0.99], [0.2, 0.98], [0.1, 1.0], [0.0, 0.0]])
    found = Retrieval(similarity, np.eye(4)[:, :3], np.full(4, 3), [[0, 1], [2]])
    assert compat_average_precision(found, 0.5) < 0.9
    assert strict_average_precision(found, 0.5) == pytest.approx(1.0)
    assert compat_inverse_rank(found) == 1.0


def test_an_iou_of_exactly_the_threshold_is_a_miss_in_compat_only():
    found = Retrieval(np.array([[0.5]]), np.array([[0.5]]), np.array([5]), [[0]])
    assert compat_average_precision(found, 0.5) == 0.0
    assert strict_average_precision(found, 0.5) == 1.0
    assert (compat_inverse_rank(found, 0.5), compat_inverse_rank(found)) == (0.0, 1.0)


def test_kernel_integration_by_hand():
    # Right, wrong, right from the surest on: precision 1, 1/2, 2/3 at recall 1/2, 1/2, 1.
    true, scores = np.array([True, False, True]), np.array([0.9, 0.8, 0.7])
    recall = [1, 1, 0.5, 0.5, 0, 0]
    steps = [(recall[i] - recall[i + 2]) / 2 for i in range(4)]
    expected = np.dot([2 / 3, 1 / 2, 1, 1], steps)
    assert kernel_average_precision(true, scores, 0) == pytest.approx(expected)
    assert kernel_average_precision(np.zeros(0, bool), np.zeros(0), 3) == 0.0
    assert kernel_average_precision(np.zeros(2, bool), np.array([0.1, 0.2]), 3) == 0.0


def test_a_second_mask_on_one_object_is_wrong_in_compat():
    iou = np.array([[0.4], [0.4]])
    doubled = Retrieval(np.array([[0.9], [0.5]]), iou, np.array([5, 5]), [[0]])
    verdicts_true, scores = np.array([True, False]), np.array([1.0, 0.0])
    expected = kernel_average_precision(verdicts_true, scores, 0)
    assert compat_average_precision(doubled, 0.25) == pytest.approx(expected)


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_strict_precision_agrees_with_scikit_learn(seed):
    from sklearn.metrics import average_precision_score

    rng = np.random.default_rng(seed)
    total, wanted = 12, 4
    iou = np.zeros((total, wanted))
    iou[rng.permutation(total)[:wanted], np.arange(wanted)] = rng.choice([0.4, 0.6], wanted)
    similarity = rng.permutation(total)[:, None] / total
    found = Retrieval(similarity, iou, np.full(total, 3), [range(wanted)])
    right = (iou >= 0.5).any(axis=1)
    expected = 0.0
    if right.any():
        expected = average_precision_score(right, similarity[:, 0]) * right.sum() / wanted
    assert strict_average_precision(found, 0.5) == pytest.approx(expected)


def test_ranks_and_recall():
    iou = np.eye(4)[:, :2]
    similarity = np.array([[0.1, 0.9], [0.2, 0.5], [0.9, 0.1], [0.8, 0.2]])
    found = Retrieval(similarity, iou, np.full(4, 3), [[0], [1]])
    # Query 0 finds its object last of four, query 1 second.
    assert mean_reciprocal_rank(found) == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert compat_inverse_rank(found) == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert [recall_at_k(found, k) for k in (1, 2, 4)] == [0.0, 0.5, 1.0]
    assert compat_inverse_rank(found, k=2) == pytest.approx(1 / 4)


def test_equally_similar_objects_rank_by_no_order_of_the_file():
    iou = np.eye(4)[:, :1]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        found = Retrieval(np.array([[0.5], [0.5], [0.5], [0.1]]), iou, np.full(4, 3), [[0]])
        found = replace(found, similarity=found.similarity[order], iou=found.iou[order])
        assert mean_reciprocal_rank(found) == pytest.approx(1 / 3)
        assert [recall_at_k(found, k) for k in (1, 2, 3)] == [0.0, 0.0, 1.0]


def test_published_ranks_of_one_query_are_lowered_by_their_place():
    found = perfect(3, others=2)
    assert compat_inverse_rank(found) == 1.0
    swapped = Retrieval(found.similarity[[0, 1, 3, 2, 4]], found.iou, found.sizes, found.wanted)
    assert compat_inverse_rank(swapped) == pytest.approx((1 + 1 + 1 / 2) / 3)


def test_confidence_is_stretched_per_query():
    found = compat_confidence(np.array([[0.2, 0.5], [0.4, 0.5], [0.3, 0.5]]))
    np.testing.assert_allclose(found[:, 0], [0, 1, 0.5])
    np.testing.assert_allclose(found[:, 1], 0)


def test_objects_that_cover_nothing_are_not_retrieved_in_compat():
    empty = Retrieval(np.array([[0.9], [0.5]]), np.array([[0.0], [1.0]]), np.array([0, 5]), [[0]])
    assert compat_average_precision(empty, 0.5) == 1.0
    assert compat_inverse_rank(empty) == 0.5


def test_nothing_wanted_is_no_figure_and_shapes_are_checked():
    nothing = Retrieval(np.zeros((1, 1)), np.zeros((1, 0)), np.ones(1, int), [[]])
    assert math.isnan(compat_average_precision(nothing, 0.5))
    assert math.isnan(strict_average_precision(nothing, 0.5))
    assert math.isnan(mean_reciprocal_rank(nothing))
    assert math.isnan(recall_at_k(nothing, 1))
    with pytest.raises(MetricError, match='2 objects and 1 queries'):
        Retrieval(np.zeros((3, 1)), np.zeros((2, 1)), np.ones(2, int), [[0]])
    assert pytest.approx(0.0316, abs=1e-4) == COMPAT_ALIGNMENT_M
