from dataclasses import replace

import numpy as np
import pytest
from support.figures import figures
from support.world.maps import membership_of

from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.suites.instances import InstancesSuite


def evaluate(context):
    return figures(InstancesSuite(options={}), context, 'metric', 'class_name')


def test_a_faultless_map_scores_one_and_the_floor_is_no_instance(context):
    found = evaluate(context)
    for metric in (
        'ap25_coco',
        'ap50_coco',
        'class_agnostic_ap50_coco',
        'rq',
        'class_agnostic_pq',
    ):
        expected = pytest.approx(1.0, abs=0.05)
        assert found[metric, ''].value == expected, metric
    assert found['ap50_coco', ''].n == 2
    assert found['background_masks', ''].value == 1.0
    assert found['over_segmentation', ''].value == 0.0
    assert found['count_error', ''].value == 0.0
    assert ('ap50_coco', 'floor') not in found


def test_columns_say_the_protocol_and_whether_masks_are_ranked(context, perfect_map):
    nodes = tuple(
        replace(node, labels=(replace(node.labels[0], score=float('nan')),))
        for node in perfect_map.graph.nodes
    )
    unrated = replace(perfect_map, graph=SceneGraph(nodes))
    rated, bare = evaluate(context), evaluate(replace(context, semantic_map=unrated))
    assert rated['masks_with_confidence', ''].value == 1.0
    assert bare['masks_with_confidence', ''].value == 0.0
    for metric in ('ap50', 'map', 'class_agnostic_ap50'):
        for protocol in ('coco', 'scannet'):
            assert rated[f'{metric}_{protocol}', ''].applicable
        assert (metric, '') not in rated


def test_a_false_class_lowers_the_mean_of_coco(context, perfect_map):
    dense = perfect_map.dense
    # A piece of the table is a lamp, which the scene does not have.
    corner = (dense.instances == 2) & (dense.points[:, 0] < 1.3)
    nodes = (*perfect_map.graph.nodes, SceneNode(40, labels=(ScoredLabel('lamp', 0.9),)))
    lamp = replace(
        perfect_map,
        dense=replace(dense, instances=np.where(corner, 40, dense.instances)),
        graph=SceneGraph(nodes),
    )
    found = evaluate(replace(context, semantic_map=lamp))
    assert found['ap50_coco', 'lamp'].value == 0.0
    assert found['ap50_coco', 'lamp'].n == 0
    assert found['ap50_coco', ''].value == pytest.approx(2 / 3)
    assert found['ap50_scannet', ''].value == 1.0


def test_a_table_in_pieces_is_over_segmented(context, perfect_map):
    dense = perfect_map.dense
    strips = 20 + np.floor(dense.points[:, 0] * 2).astype(np.int32)
    instances = np.where(dense.instances == 2, strips, dense.instances)
    nodes = [node for node in perfect_map.graph.nodes if node.id != 2]
    nodes += [SceneNode(int(i), labels=(ScoredLabel('table'),)) for i in np.unique(strips)]
    broken = replace(
        perfect_map, dense=replace(dense, instances=instances), graph=SceneGraph(tuple(nodes))
    )
    found = evaluate(replace(context, semantic_map=broken))
    assert found['most_pieces', 'table'].value == 4.0
    assert found['over_segmentation', 'table'].value == 3.0
    assert found['over_segmentation', 'chair'].value == 0.0
    assert found['ap50_coco', 'table'].value == 0.0
    # Strips over the whole room are named tables: their number is wrong as well.
    assert found['count_error', 'table'].value == len(np.unique(strips)) - 1


def test_one_mask_for_table_and_chair_is_under_segmented(context, with_dense):
    instances = context.semantic_map.dense.instances
    merged = with_dense(instances=np.where(instances == 3, 2, instances))
    found = evaluate(replace(context, semantic_map=merged))
    assert found['under_segmentation', ''].value == 1.0
    assert found['ap50_coco', 'chair'].value == 0.0


def test_overlapping_masks_come_from_the_membership(context, with_dense):
    instances = context.semantic_map.dense.instances
    parts = [np.flatnonzero(instances == i) for i in (2, 3)]
    overlapping = with_dense(
        instances=None, membership=membership_of({2: parts[0], 3: np.concatenate(parts)})
    )
    found = evaluate(replace(context, semantic_map=overlapping))
    assert found['ap50_coco', 'table'].value == 1.0
    assert found['ap50_coco', 'chair'].value == 0.0


def test_masks_of_a_method_that_names_nothing_are_scored_without_classes(context, with_dense):
    silent = replace(with_dense(labels=None), graph=SceneGraph(), label_set=None)
    found = evaluate(replace(context, semantic_map=silent))
    assert found['class_agnostic_ap50_coco', ''].value == 1.0
    assert found['over_segmentation', ''].value == 0.0
    for metric in ('ap25_coco', 'ap50_coco', 'map_coco', 'pq', 'rq', 'sq', 'count_error'):
        assert not found[metric, ''].applicable, metric


def test_masks_without_nodes_take_the_class_of_most_of_their_points(
    context, perfect_map, with_dense
):
    labels, instances = perfect_map.dense.labels.copy(), perfect_map.dense.instances
    chair = np.flatnonzero(instances == 3)
    labels[chair[: len(chair) // 3]] = 4
    few = replace(with_dense(labels=labels), graph=SceneGraph())
    assert evaluate(replace(context, semantic_map=few))['ap50_coco', 'chair'].value == 1.0
    labels[chair[: 2 * len(chair) // 3]] = 4
    most = replace(with_dense(labels=labels), graph=SceneGraph())
    assert evaluate(replace(context, semantic_map=most))['ap50_coco', 'chair'].value == 0.0


def test_nodes_known_by_features_alone_take_the_names_that_text_gives_them(
    context, perfect_map, with_dense
):
    nodes = tuple(SceneNode(i) for i in (1, 2, 3))
    unnamed = replace(with_dense(labels=None), graph=SceneGraph(nodes), label_set=None)
    asked = []

    def labeller(semantic_map, names):
        asked.append((semantic_map, list(names)))
        return {2: [(names.index('table'), 0.9)], 3: [(names.index('chair'), 0.8)]}

    opened = replace(context, semantic_map=unnamed, node_labeller=labeller)
    found = evaluate(opened)
    assert found['ap50_coco', ''].value == 1.0
    assert found['count_error', ''].value == 0.0
    assert asked == [(unnamed, ['chair', 'floor', 'lamp', 'table'])]
    assert not evaluate(replace(opened, node_labeller=None))['ap50_coco', ''].applicable


@pytest.mark.parametrize('hidden', ['no instance', 'hardly seen'])
def test_void_surface_is_neither_right_nor_wrong(context, hidden):
    truth, whole = context.ground_truth, evaluate(context)
    if hidden == 'no instance':
        instances = np.where(truth.surface.instances == 3, 0, truth.surface.instances)
        truth = replace(truth, surface=replace(truth.surface, instances=instances))
    truth = replace(truth, seen_instances=(1, 2))
    found = evaluate(replace(context, ground_truth=truth))
    assert found['ap50_coco', ''].n == 1
    assert found['ap50_coco', ''].value == 1.0
    assert found['class_agnostic_pq', ''].value == pytest.approx(
        whole['class_agnostic_pq', ''].value, abs=0.05
    )
    assert found['background_masks', ''].value == 2.0


def test_the_part_of_a_mask_that_lies_on_void_changes_no_iou(context, with_dense):
    instances = context.semantic_map.dense.instances
    merged = with_dense(instances=np.where(instances == 3, 2, instances))
    truth = replace(context.ground_truth, seen_instances=(1, 2))
    known = replace(context, ground_truth=context.ground_truth, semantic_map=merged)
    void = replace(context, ground_truth=truth, semantic_map=merged)
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
    graph = SceneGraph((*full.graph.nodes, SceneNode(50, labels=(ScoredLabel('chair'),))))
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
        item = SceneNode(60, labels=(ScoredLabel(name),))
        graph = replace(truth.graph, nodes=(*truth.graph.nodes, item))
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
    named = SceneNode(50, labels=(ScoredLabel('wooden floor'),))
    others = tuple(node for node in junk.semantic_map.graph.nodes if node.id != 50)
    honest = replace(junk.semantic_map, graph=SceneGraph((*others, named)))
    assert evaluate(replace(junk, semantic_map=honest))['rq', ''].value == 1.0
