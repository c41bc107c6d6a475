from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from support.figures import assert_values, figures
from support.sizes import few
from support.world.maps import membership_of

from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.suites.instances import InstancesSuite
from osmabench_ros.suites.things import overlaps_mask_by_mask


def evaluate(context):
    return figures(InstancesSuite(options={}), context, 'metric', 'class_name')


def without_node(semantic_map, node_id, *others):
    """Return the graph of a map with other nodes in place of one."""
    kept = (node for node in semantic_map.graph.nodes if node.id != node_id)
    return SceneGraph((*kept, *others))


def named(node_id, name, score=float('nan')):
    return SceneNode(node_id, labels=(ScoredLabel(name, score),))


def test_a_faultless_map_scores_one_and_the_floor_is_no_instance(context):
    found = evaluate(context)
    metrics = 'ap25_coco', 'ap50_coco', 'class_agnostic_ap50_coco', 'rq', 'class_agnostic_pq'
    assert_values(found, **dict.fromkeys(metrics, pytest.approx(1.0, abs=0.05)))
    assert_values(found, background_masks=1.0, over_segmentation=0.0, count_error=0.0)
    assert found['ap50_coco', ''].n == 2
    assert ('ap50_coco', 'floor') not in found


def test_columns_say_the_protocol_and_whether_masks_are_ranked(context, with_map):
    nodes = (named(node.id, node.label) for node in context.semantic_map.graph.nodes)
    rated, bare = evaluate(context), evaluate(with_map(graph=SceneGraph(tuple(nodes))))
    assert_values(rated, masks_with_confidence=1.0)
    assert_values(bare, masks_with_confidence=0.0)
    for metric in ('ap50', 'map', 'class_agnostic_ap50'):
        for protocol in ('coco', 'scannet'):
            assert rated[f'{metric}_{protocol}', ''].applicable
        assert (metric, '') not in rated


def test_a_false_class_lowers_the_mean_of_coco(perfect_map, with_map):
    dense = perfect_map.dense
    # A piece of the table is a lamp, which the scene does not have.
    corner = (dense.instances == 2) & (dense.points[:, 0] < 1.3)
    graph = without_node(perfect_map, None, named(40, 'lamp', 0.9))
    found = evaluate(with_map(instances=np.where(corner, 40, dense.instances), graph=graph))
    assert_values(found, 'lamp', ap50_coco=0.0)
    assert found['ap50_coco', 'lamp'].n == 0
    assert_values(found, ap50_coco=pytest.approx(2 / 3), ap50_scannet=1.0)


def test_a_table_in_pieces_is_over_segmented(perfect_map, with_map):
    dense = perfect_map.dense
    strips = 20 + np.floor(dense.points[:, 0] * 2).astype(np.int32)
    tables = [named(int(i), 'table') for i in np.unique(strips)]
    instances = np.where(dense.instances == 2, strips, dense.instances)
    found = evaluate(with_map(instances=instances, graph=without_node(perfect_map, 2, *tables)))
    assert_values(found, 'table', most_pieces=4.0, over_segmentation=3.0, ap50_coco=0.0)
    assert_values(found, 'chair', over_segmentation=0.0)
    # Strips over the whole room are named tables: their number is wrong as well.
    assert_values(found, 'table', count_error=len(tables) - 1)


def test_one_mask_for_table_and_chair_is_under_segmented(perfect_map, with_map):
    instances = perfect_map.dense.instances
    found = evaluate(with_map(instances=np.where(instances == 3, 2, instances)))
    assert_values(found, under_segmentation=1.0)
    assert_values(found, 'chair', ap50_coco=0.0)


def test_overlapping_masks_come_from_the_membership(perfect_map, with_map):
    parts = [np.flatnonzero(perfect_map.dense.instances == i) for i in (2, 3)]
    membership = membership_of({2: parts[0], 3: np.concatenate(parts)})
    found = evaluate(with_map(instances=None, membership=membership))
    assert_values(found, 'table', ap50_coco=1.0)
    assert_values(found, 'chair', ap50_coco=0.0)


def test_masks_of_a_method_that_names_nothing_are_scored_without_classes(with_map):
    found = evaluate(with_map(labels=None, graph=SceneGraph(), label_set=None))
    assert_values(found, class_agnostic_ap50_coco=1.0, over_segmentation=0.0)
    for metric in ('ap25_coco', 'ap50_coco', 'map_coco', 'pq', 'rq', 'sq', 'count_error'):
        assert not found[metric, ''].applicable, metric


@pytest.mark.parametrize(('share', 'right'), [(1 / 3, 1.0), (2 / 3, 0.0)])
def test_masks_without_nodes_take_the_class_of_most_of_their_points(
    perfect_map, with_map, share, right
):
    labels = perfect_map.dense.labels.copy()
    chair = np.flatnonzero(perfect_map.dense.instances == 3)
    labels[chair[: int(share * len(chair))]] = 4
    found = evaluate(with_map(labels=labels, graph=SceneGraph()))
    assert_values(found, 'chair', ap50_coco=right)


def test_nodes_known_by_features_alone_take_the_names_that_text_gives_them(with_map):
    nodes = tuple(SceneNode(i) for i in (1, 2, 3))
    unnamed = with_map(labels=None, graph=SceneGraph(nodes), label_set=None)
    asked = []

    def labeller(semantic_map, names):
        asked.append((semantic_map, list(names)))
        return {2: [(names.index('table'), 0.9)], 3: [(names.index('chair'), 0.8)]}

    found = evaluate(replace(unnamed, node_labeller=labeller))
    assert_values(found, ap50_coco=1.0, count_error=0.0)
    assert asked == [(unnamed.semantic_map, ['chair', 'floor', 'lamp', 'table'])]
    assert not evaluate(unnamed)['ap50_coco', ''].applicable


@pytest.mark.parametrize('hidden', ['no instance', 'hardly seen'])
def test_void_surface_is_neither_right_nor_wrong(context, hidden):
    truth, whole = context.ground_truth, evaluate(context)['class_agnostic_pq', ''].value
    if hidden == 'no instance':
        instances = np.where(truth.surface.instances == 3, 0, truth.surface.instances)
        truth = replace(truth, surface=replace(truth.surface, instances=instances))
    truth = replace(truth, seen_instances=(1, 2))
    found = evaluate(replace(context, ground_truth=truth))
    assert_values(found, ap50_coco=1.0, background_masks=2.0)
    assert_values(found, class_agnostic_pq=pytest.approx(whole, abs=0.05))
    assert found['ap50_coco', ''].n == 1


def test_the_part_of_a_mask_that_lies_on_void_changes_no_iou(perfect_map, with_map):
    instances = perfect_map.dense.instances
    known = with_map(instances=np.where(instances == 3, 2, instances))
    void = replace(known, ground_truth=replace(known.ground_truth, seen_instances=(1, 2)))
    assert evaluate(known)['class_agnostic_pq', ''].value < 0.7
    assert evaluate(void)['class_agnostic_pq', ''].value > 0.9


def with_mask_at(context, where, *, membership=False):
    """Add a mask of nine points around a place to the faultless map."""
    full = context.semantic_map
    more = (where + np.random.default_rng(5).random((9, 3)) * 0.02).astype(np.float32)
    dense = replace(
        full.dense,
        points=np.concatenate([full.dense.points, more]),
        labels=np.append(full.dense.labels, np.full(9, 1, np.int32)),
        instances=np.append(full.dense.instances, np.full(9, 50, np.int32)),
    )
    if membership:
        rows = {key: np.flatnonzero(dense.instances == key) for key in (2, 3, 50)}
        dense = replace(dense, instances=None, membership=membership_of(rows))
    graph = without_node(full, None, named(50, 'chair'))
    return replace(context, semantic_map=replace(full, dense=dense, graph=graph))


@pytest.mark.parametrize('membership', [False, True])
def test_a_mask_in_the_air_is_wrong_and_one_on_unseen_surface_is_not(context, membership):
    place = np.array([2.0, 0.5, 1.9])
    made_up = with_mask_at(context, place, membership=membership)
    found = evaluate(made_up)
    assert found['rq', ''].value == pytest.approx((1 + 2 / 3) / 2)
    truth = context.ground_truth
    there = replace(
        truth.surface.select(np.arange(len(truth.surface)) < 9),
        points=made_up.semantic_map.dense.points[-9:],
        instances=np.full(9, 60, np.int32),
    )
    hidden = replace(made_up, ground_truth=replace(truth, unseen=there))
    assert evaluate(hidden)['rq', ''].value == 1.0
    for name, right in (('chair', 1.0), ('lamp', (1 + 2 / 3) / 2)):
        graph = replace(truth.graph, nodes=(*truth.graph.nodes, named(60, name)))
        known = replace(hidden, ground_truth=replace(truth, unseen=there, graph=graph))
        assert evaluate(known)['rq', ''].value == pytest.approx(right)


@pytest.mark.parametrize('membership', [False, True])
def test_an_object_on_the_floor_is_made_up_and_a_floor_is_not(context, membership):
    floor = context.ground_truth.surface
    place = floor.points[floor.instances == 1].mean(axis=0)
    junk = with_mask_at(context, place, membership=membership)
    faultless, found = evaluate(context), evaluate(junk)
    for metric in ('pq', 'class_agnostic_pq', 'ap50_coco'):
        assert found[metric, ''].value <= faultless[metric, ''].value
    assert found['rq', ''].value == pytest.approx((1 + 2 / 3) / 2)
    assert found['class_agnostic_pq', ''].value < faultless['class_agnostic_pq', ''].value - 0.1
    assert (
        found['background_masks', ''].value == faultless['background_masks', ''].value - membership
    )
    graph = without_node(junk.semantic_map, 50, named(50, 'wooden floor'))
    honest = replace(junk.semantic_map, graph=graph)
    assert evaluate(replace(junk, semantic_map=honest))['rq', ''].value == 1.0


@pytest.mark.parametrize('overlapping', few([True, False], True))
def test_a_mask_takes_all_surface_near_its_own_points(context, with_map, overlapping):
    dense, rng = context.semantic_map.dense, np.random.default_rng(0)
    instances = rng.integers(0, 5, len(dense.points)).astype(np.int32)
    valid = rng.random(len(instances)) < 0.8
    rows = {i: np.flatnonzero(instances == i) for i in range(1, 5)}
    made = with_map(instances=instances, valid=valid)
    if overlapping:
        rows = {i: np.union1d(own, rows[1 + i % 4][::3]) for i, own in rows.items()}
        made = with_map(instances=None, membership=membership_of(rows), valid=valid)
    found = overlaps_mask_by_mask(made, 0.04)
    surface = context.ground_truth.surface
    assert found.predicted_ids.tolist() == list(rows)
    for place, own in enumerate(rows.values()):
        points = dense.points[own[valid[own]]]
        near = cdist(surface.points, points).min(axis=1) <= 0.04
        assert found.predicted_sizes[place] == near.sum()
        for column, true in enumerate(found.true_ids):
            assert found.shared[place, column] == (near & (surface.instances == true)).sum()


def test_masks_that_lie_nowhere_near_cover_nothing(perfect_map, with_map):
    away = with_map(points=perfect_map.dense.points + np.float32(50))
    found = overlaps_mask_by_mask(away, 0.04)
    assert found.predicted_sizes.tolist() == [0, 0, 0]
