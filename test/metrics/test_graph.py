import math
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import average_precision_score

from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.metrics import graph, matching
from osmabench_ros.semantics.scene_graph import SceneEdge, SceneGraph, SceneNode, ScoredLabel


def node(node_id, label, **parts):
    return SceneNode(node_id, labels=(ScoredLabel(label),) if label else (), **parts)


TRUE = SceneGraph(
    (
        node(1, 'table', attributes={'color': 'brown', 'height_m': 0.8}),
        node(2, 'cup', attributes={'color': 'red'}),
        node(3, 'chair', attributes={}),
    ),
    (SceneEdge(2, 1, 'on'), SceneEdge(1, 3, 'next to'), SceneEdge(3, 1, 'next to')),
)
PREDICTED = SceneGraph(
    (
        node(11, 'Table', attributes={'color': 'brown'}),
        node(12, 'mug', attributes={'color': 'blue'}),
        node(13, ''),
        node(14, 'ghost'),
    ),
    (
        SceneEdge(11, 12, 'supports', score=0.2),
        SceneEdge(13, 11, 'beside', score=0.9),
        SceneEdge(11, 13, 'next to'),
        SceneEdge(12, 13, 'on', score=0.5),
        SceneEdge(14, 11, 'near'),
        SceneEdge(11, 12, 'admires'),
    ),
)
MATCHES = matching.NodeMatches(((11, 1), (12, 2), (13, 3)), np.ones(3), 4, 3)


@settings(max_examples=50)
@given(
    hnp.arrays(
        np.float64, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.floats(0, 1)
    )
)
def test_matching_is_the_best_of_all_assignments(iou):
    p, g = iou.shape
    found = matching.match_nodes(range(p), range(g), iou, min_iou=0.25)
    gain = np.where(iou >= 0.25, iou, 0)
    small, large = (gain, g) if p <= g else (gain.T, p)
    best = max(
        sum(small[i, j] for i, j in enumerate(order))
        for order in permutations(range(large), len(small))
    )
    assert found.iou.sum() == pytest.approx(best)
    assert all(value >= 0.25 for value in found.iou)
    assert len({a for a, _ in found.pairs}) == len({b for _, b in found.pairs}) == len(found.pairs)


def test_precision_and_recall_of_nodes():
    assert MATCHES.precision == 0.75
    assert MATCHES.recall == 1.0
    assert math.isnan(matching.match_nodes([], [1], np.zeros((0, 1))).precision)
    assert matching.match_nodes([], [1], np.zeros((0, 1))).recall == 0.0


def test_box_iou_agrees_with_the_boxes_and_is_zero_without_one():
    rng = np.random.default_rng(0)
    corners = np.sort(rng.random((6, 2, 3)), axis=1)
    boxes = [AxisAlignedBox(low, high) for low, high in corners]
    nodes = [replace(node(i + 1, 'x'), box=box) for i, box in enumerate(boxes)]
    turned = OrientedBox(Pose.from_yaw(0.3), np.ones(3))
    nodes += [node(7, 'x'), replace(node(8, 'x'), oriented_box=turned)]
    found = matching.compute_box_iou_of_nodes(nodes, nodes)
    for i, one in enumerate(boxes):
        for j, other in enumerate(boxes):
            assert found[i, j] == pytest.approx(one.iou(other))
    assert found[6].tolist() == [0.0] * 8
    assert found[7, 7] == 1.0


def test_mask_iou_follows_node_ids():
    masks = {5: np.arange(3), 9: np.array([3])}
    overlaps = matching.count_overlaps(np.array([1, 1, 2, 2]), np.arange(4), masks)
    found = matching.mask_iou_of_nodes([9, 4, 5], [2, 1, 77], overlaps)
    np.testing.assert_allclose(found, [[1 / 2, 0, 0], [0, 0, 0], [1 / 4, 2 / 3, 0]])


def test_labels_count_exactly_or_by_a_given_meaning():
    assert graph.exactly('Coffee_table', 'coffee table')
    assert not graph.exactly('mug', 'cup')
    assert graph.label_accuracy(MATCHES, PREDICTED, TRUE) == graph.Share(1, 3)
    synonyms = {('mug', 'cup')}
    found = graph.label_accuracy(
        MATCHES, PREDICTED, TRUE, lambda a, b: (a, b) in synonyms or a.lower() == b
    )
    assert found == graph.Share(2, 3)


def test_attributes_that_no_node_has_are_not_scored():
    found = graph.attribute_accuracy(MATCHES, PREDICTED, TRUE, ('color', 'height_m', 'material'))
    assert found == {'color': graph.Share(1, 2)}


def test_relations_are_compared_in_one_vocabulary_and_counted_once():
    found = graph.score_relations(MATCHES, PREDICTED, TRUE, ks=(1, 2, 3))
    # table supports cup = cup on table; chair next to table; cup on chair is wrong, and so is the
    # relation of a node that is not matched.
    assert found.precision == graph.Share(2, 4)
    assert found.f1 == pytest.approx(2 * 2 / (4 + 2))
    assert found.recall == graph.Share(2, 2)
    assert {k: share.hits for k, share in found.recall_at.items()} == {1: 1, 2: 1, 3: 2}
    assert found.triplet_recall == graph.Share(0, 2)
    assert (found.unmatched, found.unknown) == (1, 1)
    named = graph.score_relations(MATCHES, PREDICTED, TRUE, same=lambda a, b: bool(a and b))
    assert named.triplet_recall == graph.Share(1, 2)


def many(edges):
    return SceneGraph(tuple(node(i, 'thing') for i in range(1, 9)), tuple(edges))


ALL = matching.NodeMatches(tuple((i, i) for i in range(1, 9)), np.ones(8), 8, 8)
PLACES = [
    *(SceneEdge(a, b, 'on') for a, b in ((1, 2), (3, 4), (5, 6))),
    *(SceneEdge(a, b, 'in') for a, b in ((7, 8), (1, 8))),
]


def test_recall_of_few_can_reach_one_when_normalised():
    scored = [replace(edge, score=1 - i / 10) for i, edge in enumerate(PLACES)]
    found = graph.score_relations(ALL, many(scored), many(PLACES), ks=(2, 5, 50))
    assert found.recall_at == {2: graph.Share(2, 5), 5: graph.Share(5, 5), 50: graph.Share(5, 5)}
    assert {k: share.value for k, share in found.normalised_recall_at.items()} == {
        2: 1,
        5: 1,
        50: 1,
    }
    # Both of the first two are "on": two of three of that kind, none of the other.
    assert found.mean_recall_at[2].value == pytest.approx((2 / 3 + 0) / 2)
    assert found.mean_recall == graph.Share(2, 2)


def test_a_rare_kind_weighs_as_much_as_a_frequent_one():
    found = graph.score_relations(ALL, many(PLACES[:4]), many(PLACES), ks=())
    assert found.recall.value == 4 / 5
    assert found.mean_recall.value == pytest.approx((3 / 3 + 1 / 2) / 2)


@settings(max_examples=40)
@given(
    st.permutations(range(6)),
    st.lists(st.sampled_from([math.nan, 0.5, 0.9]), min_size=6, max_size=6),
    st.integers(1, 6),
)
def test_recall_does_not_depend_on_the_order_of_the_file(order, scores, k):
    wrong = [SceneEdge(2, 1, 'on'), SceneEdge(8, 7, 'in')]
    edges = [replace(e, score=s) for e, s in zip(PLACES[:4] + wrong, scores, strict=True)]
    found = graph.score_relations(ALL, many([edges[i] for i in order]), many(PLACES), ks=(k,))
    # The worst of all orders of equal scores, tried one by one.
    values = [-1.0 if math.isnan(edge.score) else edge.score for edge in edges]
    orders = [
        o for o in permutations(range(6)) if all(values[a] >= values[b] for a, b in pairwise(o))
    ]
    hits = min(sum(i < 4 for i in o[:k]) for o in orders)
    assert found.recall_at[k].hits == hits
    assert found.normalised_recall_at[k].value == pytest.approx(hits / min(k, 5))
    assert found == graph.score_relations(ALL, many(edges), many(PLACES), ks=(k,))


def test_average_precision_is_that_of_scikit_learn_and_falls_with_invented_relations():
    wrong = [SceneEdge(2, 1, 'on'), SceneEdge(8, 7, 'in'), SceneEdge(4, 3, 'on')]
    scores = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
    edges = [PLACES[0], wrong[0], PLACES[1], PLACES[2], wrong[1], PLACES[3], wrong[2], PLACES[4]]
    scored = [replace(edge, score=score) for edge, score in zip(edges, scores, strict=True)]
    found = graph.score_relations(ALL, many(scored), many(PLACES), ks=())
    expected = average_precision_score([edge in PLACES for edge in edges], scores)
    assert found.average_precision == pytest.approx(expected)
    everything = [SceneEdge(a, b, 'on', score=0.0) for a, b in permutations(range(1, 9), 2)]
    flooded = graph.score_relations(ALL, many(scored[:4] + everything), many(PLACES), ks=())
    fair = graph.score_relations(ALL, many(scored[:4]), many(PLACES), ks=())
    assert flooded.recall.value >= fair.recall.value
    assert flooded.f1 < fair.f1
    constant = graph.score_relations(ALL, many([*PLACES, *wrong]), many(PLACES), ks=())
    assert constant.average_precision < found.average_precision


def test_relations_can_be_narrowed_to_seen_nodes_and_kinds():
    seen = graph.score_relations(MATCHES, PREDICTED, TRUE, considered=(1, 2))
    assert (seen.precision, seen.recall) == (graph.Share(1, 2), graph.Share(1, 1))
    kinds = graph.score_relations(MATCHES, PREDICTED, TRUE, kinds=('next to',))
    assert (kinds.precision, kinds.recall) == (graph.Share(1, 1), graph.Share(1, 1))


@pytest.mark.parametrize(
    ('given', 'expected'),
    [
        ((1, 'On_Top of', 2), (1, 'on', 2)),
        ((1, 'above', 2), (2, 'under', 1)),
        ((5, 'near', 2), (2, 'near', 5)),
        ((5, 'in', 2), (5, 'in', 2)),
        ((5, 'admires', 2), None),
    ],
)
def test_words_for_relations(given, expected):
    assert graph.find_canonical_relation(*given) == expected


def test_shares_of_nothing_are_no_figure():
    assert math.isnan(graph.Share.of([]).value)
    assert graph.Share.of([True, False]).value == 0.5
