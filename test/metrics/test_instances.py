import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.instances import (
    COCO,
    SCANNET,
    average_precision,
    class_average_precision,
    count_instances_of_pieces,
    count_pieces_of_instances,
    find_greedy_hits,
    mean_average_precision,
    mean_excess,
    panoptic_quality,
    scannet_precision,
)
from osmabench_ros.metrics.matching import Overlaps, count_overlaps


def overlaps_of(true, predicted, more=()):
    """Return the overlaps of masks that do not overlap each other."""
    masks = {key: np.flatnonzero(predicted == key) for key in np.union1d(predicted, more) if key}
    return count_overlaps(true, np.arange(len(true)), masks)


ids = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=60)


@settings(max_examples=60)
@given(ids)
def test_overlaps_are_set_intersections(pairs):
    true, predicted = np.array(pairs).T
    found = overlaps_of(true, predicted)
    assert 0 not in found.predicted_ids
    for p, mask in enumerate(found.predicted_ids):
        for g, instance in enumerate(found.true_ids):
            one = set(np.flatnonzero(predicted == mask))
            other = set(np.flatnonzero(true == instance))
            assert found.shared[p, g] == len(one & other)
            assert found.iou[p, g] == pytest.approx(len(one & other) / len(one | other))


def test_overlapping_masks_both_own_their_shared_points():
    true = np.array([1, 1, 2, 0])
    masks = {7: np.array([0, 1]), 8: np.array([1, 2, 2])}
    found = count_overlaps(true, np.array([0, 1, 2, -1]), masks)
    assert found.shared.tolist() == [[2, 0], [1, 1]]
    assert found.predicted_sizes.tolist() == [2, 2]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=40))
def test_average_precision_agrees_with_scikit_learn(items):
    from sklearn.metrics import average_precision_score

    hits = np.array([hit for hit, _ in items])
    confidence = np.array([score for _, score in items], float)
    total = int(hits.sum())
    if total == 0:
        assert average_precision(hits, confidence, 3) == 0.0
        return
    expected = average_precision_score(hits, confidence)
    assert average_precision(hits, confidence, total) == pytest.approx(expected)
    assert average_precision(hits, confidence, 2 * total) == pytest.approx(expected / 2)


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_panoptic_quality_agrees_with_torchmetrics(seed):
    # It loads transformers: too much for each worker that only looks for tests.
    import torch
    from torchmetrics.functional.detection import panoptic_quality as reference_quality

    rng = np.random.default_rng(seed)
    true, predicted = rng.integers(1, 4, (2, 1, 6, 6))
    predicted = np.where(rng.random(true.shape) < 0.8, true, predicted)
    images = [
        torch.from_numpy(np.stack([np.zeros_like(x), x], axis=-1)) for x in (predicted, true)
    ]
    expected = reference_quality(*images, things={0}, stuffs={1})
    found = panoptic_quality(overlaps_of(true.ravel(), predicted.ravel()).iou)
    assert found.quality == pytest.approx(float(expected), abs=1e-6)
    if found.true_positives:
        assert found.quality == pytest.approx(found.segmentation * found.recognition)


def staircase(pieces):
    true = np.repeat([1, 2], [150, 50])
    predicted = np.concatenate([np.repeat(np.arange(pieces) + 10, 150 // pieces), np.full(50, 2)])
    return overlaps_of(true, predicted)


def test_an_overlap_of_half_is_a_hit_but_no_panoptic_match():
    half = np.array([[0.5]])
    assert find_greedy_hits(half, np.ones(1), 0.5).tolist() == [True]
    assert panoptic_quality(half).recognition == 0.0


def test_masks_that_cover_nothing_are_listed_if_they_are_named():
    found = overlaps_of(np.array([1, 0]), np.array([5, 5]), [9])
    assert found.predicted_ids.tolist() == [5, 9]
    assert found.predicted_sizes.tolist() == [2, 0]
    assert found.iou.tolist() == [[0.5], [0.0]]


def test_a_staircase_of_fifteen_pieces_is_counted_as_that():
    split = staircase(15)
    assert count_pieces_of_instances(split).tolist() == [15, 1]
    assert mean_excess(count_pieces_of_instances(split)) == 7.0
    assert mean_excess(count_instances_of_pieces(split)) == 0.0
    assert mean_excess(count_pieces_of_instances(staircase(1))) == 0.0


def test_an_instance_is_hit_once_and_the_sure_mask_chooses_first():
    iou = np.array([[0.6, 0.0], [0.9, 0.0], [0.5, 0.55]])
    confidence = np.array([0.9, 0.8, 0.7])
    assert find_greedy_hits(iou, confidence, 0.5).tolist() == [True, False, True]
    assert find_greedy_hits(iou, confidence, 0.56).tolist() == [True, False, False]
    assert find_greedy_hits(np.zeros((2, 0)), np.zeros(2), 0.5).tolist() == [False, False]


def test_precision_per_class_needs_the_right_class():
    overlaps = overlaps_of(np.repeat([1, 2], 10), np.repeat([1, 2], 10))
    true = np.array([7, 8])
    scores = np.ones(2)
    right = class_average_precision(overlaps, np.array([7, 8]), scores, true, 0.5)
    assert right == {7: 1.0, 8: 1.0}
    wrong = class_average_precision(overlaps, np.array([7, 7]), scores, true, 0.5)
    assert wrong == {7: 0.5, 8: 0.0}
    assert mean_average_precision(overlaps, true, scores, true) == 1.0


def test_a_class_that_the_scene_does_not_have_lowers_the_mean():
    overlaps = overlaps_of(np.repeat([1, 2], 10), np.repeat([1, 2], 10))
    true, predicted = np.array([7, 7]), np.array([7, 9])
    of_coco, of_scannet = (
        class_average_precision(overlaps, predicted, np.ones(2), true, 0.5, protocol)
        for protocol in (COCO, SCANNET)
    )
    assert of_coco == {7: 0.5, 9: 0.0}
    assert of_scannet.keys() == {7}
    assert mean_average_precision(overlaps, predicted, np.ones(2), true) == 0.25
    # A name that fits no label is wrong in its place, and has no class.
    outside = class_average_precision(overlaps, np.array([7, -1]), np.ones(2), true, 0.5)
    assert outside == {7: 0.5}


# AP25, AP50 and mAP of the code of OpenLex3D (from ScanNet) for `random_masks`.
SCANNET_GOLDENS = [
    (0.6875, 0.5, 0.173611111),
    (0.261904762, 0.145833333, 0.072916667),
    (0.483928571, 0.3375, 0.244444444),
    (0.4375, 0.26875, 0.147222222),
    (0.75, 0.5, 0.173611111),
    (0.5625, 0.3125, 0.158564815),
    (0.4625, 0.3125, 0.13287037),
    (0.607291667, 0.5125, 0.25625),
]


def random_masks(seed):
    rng = np.random.default_rng(seed)
    masks, instances = 6, 4
    sizes, true = rng.integers(20, 40, masks), rng.integers(20, 40, instances)
    shared = rng.integers(0, 30, (masks, instances)) * (rng.random((masks, instances)) < 0.6)
    shared = np.minimum(shared, np.minimum(sizes[:, None], true[None]))
    confidence = rng.integers(1, 6, masks) / 5
    return Overlaps(np.arange(masks), np.arange(instances), shared, sizes, true), confidence


@pytest.mark.parametrize(('seed', 'expected'), list(enumerate(SCANNET_GOLDENS)))
def test_scannet_precision_is_that_of_the_published_code(seed, expected):
    overlaps, confidence = random_masks(seed)
    found = [scannet_precision(overlaps.iou, confidence, t) for t in (0.25, 0.5)]
    classes = np.zeros(6, int), confidence, np.zeros(4, int)
    found.append(mean_average_precision(overlaps, *classes, SCANNET))
    assert found == pytest.approx(expected, abs=1e-9)
    assert np.isnan(scannet_precision(np.zeros((2, 0)), np.ones(2), 0.5))
    assert scannet_precision(np.zeros((0, 2)), np.ones(0), 0.5) == 0.0


def test_nothing_to_find_is_no_figure():
    assert np.isnan(average_precision(np.ones(2, bool), np.ones(2), 0))
    assert np.isnan(panoptic_quality(np.zeros((0, 0))).quality)
    assert panoptic_quality(np.zeros((2, 3))).quality == 0.0
    assert np.isnan(mean_excess(np.zeros(0, int)))


def test_malformed_input_is_refused():
    with pytest.raises(MetricError, match='hits'):
        average_precision(np.zeros(2, bool), np.zeros(3), 1)
    zeros = np.zeros(2, np.int64)
    with pytest.raises(MetricError, match='2 masks and 1 instances'):
        Overlaps(zeros, zeros[:1], np.zeros((1, 1), np.int64), zeros, zeros[:1])
