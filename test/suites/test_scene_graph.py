from dataclasses import replace

import pytest
from support.figures import assert_values, figures

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.scene_graph import (
    NodeKind,
    SceneEdge,
    SceneGraph,
    SceneNode,
    ScoredLabel,
)
from osmabench_ros.suites.instances import InstancesSuite
from osmabench_ros.suites.scene_graph import SceneGraphSuite

GHOST = SceneNode(50, labels=(ScoredLabel('lamp'),), box=AxisAlignedBox([9] * 3, [10] * 3))


def evaluate(context, **options):
    return figures(SceneGraphSuite(options=options), context, 'metric', 'class_name')


def with_graph(context, *nodes, edges=()):
    """Return a context with a map of nodes; numbers are from the faultless map."""
    known = context.semantic_map.graph.by_id
    nodes = [known[node] if isinstance(node, int) else node for node in nodes]
    ids = {node.id for node in nodes}
    kept = tuple(n if n.parent in ids else replace(n, parent=None) for n in nodes)
    graph = SceneGraph(kept, edges)
    return replace(context, semantic_map=replace(context.semantic_map, graph=graph))


def renamed(perfect_map, node_id, *names):
    """Return a node of the faultless map with other names."""
    labels = tuple(name if isinstance(name, ScoredLabel) else ScoredLabel(name) for name in names)
    return replace(perfect_map.graph.by_id[node_id], labels=labels)


def assert_precision(found, value, n):
    assert (found['node_precision', ''].value, found['node_precision', ''].n) == (value, n)


both_matches = pytest.mark.parametrize('match', ['masks', 'boxes'])


@both_matches
def test_the_true_graph_scores_one(context, match):
    found = evaluate(context, match=match)
    names = 'node_precision', 'node_recall', 'label_accuracy', 'relation_recall', 'box_iou'
    assert_values(found, **dict.fromkeys(names, 1.0))
    assert found['node_recall', ''].n == 2
    assert found['attribute_accuracy', 'color'].value == 1.0
    assert not found['attribute_accuracy', 'material'].applicable
    assert found['relation_recall', 'next to'].n == 1
    assert not found['relation_recall', 'in'].applicable


def test_labels_by_synonym_and_by_similarity(context, perfect_map):
    table, chair = renamed(perfect_map, 2, 'desk-like thing'), renamed(perfect_map, 3, 'Chair')
    other = with_graph(context, table, chair)
    asked = replace(other, similarity=lambda a, b: 0.9 if 'desk' in a and b == 'table' else 0.1)
    found = evaluate(asked)
    assert_values(found, label_accuracy=0.5, label_accuracy_synonym=0.5)
    assert_values(found, label_accuracy_embedding=1.0, relation_recall=0.0, relation_f1=0.0)
    assert ('label_accuracy_embedding', '') not in evaluate(other)


def test_a_graph_without_relations_has_found_none(context, perfect_map):
    found = evaluate(with_graph(context, *perfect_map.graph.nodes))
    assert found['relation_f1', ''].applicable
    assert_values(found, relation_recall=0.0, relation_f1=0.0)


def test_of_many_names_the_best_is_the_answer(context, perfect_map):
    by_id = perfect_map.graph.by_id
    names = [ScoredLabel('lamp', 0.9), *(ScoredLabel(by_id[i].label, 0.8) for i in (2, 3))]
    found = evaluate(with_graph(context, *(renamed(perfect_map, i, *names) for i in (2, 3))))
    assert_values(found, label_accuracy=0.0, label_accuracy_synonym=0.0)


def test_ghost_nodes_cost_precision_and_lost_ones_recall(context):
    found = evaluate(with_graph(context, 2, GHOST), match='boxes')
    assert_values(found, node_precision=0.5, node_recall=0.5, node_f1=0.5)


def test_a_node_on_the_floor_is_neither_right_nor_wrong(context):
    assert_precision(evaluate(with_graph(context, 1, 2), match='boxes'), 1.0, 1)


@both_matches
def test_an_object_where_there_is_a_floor_is_made_up(context, perfect_map, match):
    lamp = SceneNode(1, labels=(ScoredLabel('lamp'),), box=perfect_map.graph.by_id[1].box)
    assert_precision(evaluate(with_graph(context, lamp, 2), match=match), 0.5, 2)


@pytest.mark.parametrize('kind', [NodeKind.OBJECT, NodeKind.BACKGROUND])
def test_an_object_does_not_hide_behind_the_kind_of_its_node(context, kind):
    made = with_graph(context, 1, 2, replace(GHOST, kind=kind), edges=(SceneEdge(50, 2, 'on'),))
    found = evaluate(made, match='boxes')
    assert_precision(found, 0.5, 2)
    assert_values(found, relation_precision=0.0, unmatched_relations=1.0)


def test_boxes_that_are_missing_count(context):
    found = evaluate(with_graph(context, 2))
    assert_values(found, matched_box_iou=1.0, box_iou=evaluate(context)['box_iou', ''].value / 2)


def test_wrong_relations_cost_precision(context):
    edges = (SceneEdge(2, 3, 'beside'), SceneEdge(2, 3, 'in'), SceneEdge(2, 3, 'loves'))
    found = evaluate(with_graph(context, 2, 3, edges=edges))
    assert_values(found, relation_precision=0.5, relation_recall=1.0, relation_recall_at_20=1.0)
    assert_values(found, triplet_recall=1.0, unknown_relations=1.0)
    assert not found['unknown_relations', ''].higher_is_better


@both_matches
@pytest.mark.parametrize(('name', 'counted'), [('chair', 1), ('', 1), ('lamp', 2)])
def test_a_node_for_an_unseen_object_is_an_error_only_with_another_name(
    context, perfect_map, match, name, counted
):
    unseen = replace(context, ground_truth=replace(context.ground_truth, seen_instances=(1, 2)))
    named = renamed(perfect_map, 3, *([name] if name else []))
    found = evaluate(with_graph(unseen, 2, named), match=match)
    assert_precision(found, 1 / counted, counted)
    assert found['node_recall', ''].n == 1


def test_relations_of_ghosts_take_the_places_of_better_ones(context):
    edges = (SceneEdge(50, 2, 'on', score=0.9), SceneEdge(3, 2, 'next to', score=0.5))
    made = with_graph(context, 2, 3, GHOST, edges=edges)
    found = evaluate(made, match='boxes', recall_at=(1, 2))
    assert_values(found, relation_recall_at_1=0.0, relation_recall_at_2=1.0)
    assert_values(found, relation_precision=0.5, unmatched_relations=1.0)


def test_relations_to_the_building_are_not_counted_as_relations_of_ghosts(context):
    edges = (SceneEdge(2, 1, 'on', score=0.9), SceneEdge(3, 2, 'next to', score=0.5))
    found = evaluate(with_graph(context, 1, 2, 3, edges=edges), match='boxes', recall_at=(1,))
    assert_values(found, unmatched_relations=0.0, relation_recall_at_1=1.0)


def named_by_text(semantic_map, names):
    # The scene has no lamp, but the data set has.
    assert list(names) == ['chair', 'floor', 'lamp', 'table']
    return {2: [(3, 0.9), (0, 0.5)], 3: [(1, 0.4), (0, 0.3)]}


def test_nodes_known_by_features_alone_take_the_names_that_text_gives_them(context, perfect_map):
    nodes = (renamed(perfect_map, i) for i in (2, 3))
    silent = with_graph(context, *nodes, edges=(SceneEdge(3, 2, 'next to'),))
    assert not evaluate(silent)['label_accuracy_synonym', ''].applicable
    found = evaluate(replace(silent, node_labeller=named_by_text))
    assert_values(found, label_accuracy=0.5, triplet_recall=0.0, relation_recall=1.0)


def test_a_map_that_names_its_nodes_speaks_for_itself(context):
    def labeller(*_):
        raise AssertionError('asked')

    assert_values(evaluate(replace(context, node_labeller=labeller)), label_accuracy=1.0)


@both_matches
def test_objects_that_a_method_left_out_of_its_graph_are_no_nodes(context, perfect_map, match):
    table, chair = (perfect_map.graph.by_id[i] for i in (2, 3))
    pruned = replace(chair, attributes={'in_scene_graph': False}, parent=2)
    kept = replace(table, attributes={'in_scene_graph': True}, parent=3)
    made = with_graph(context, kept, pruned, edges=(SceneEdge(3, 2, 'next to'),))
    found = evaluate(made, match=match)
    assert_precision(found, 1.0, 1)
    assert_values(found, node_recall=0.5, relation_recall=0.0, relation_f1=0.0)
    masks = InstancesSuite(options={}).evaluate(made)
    assert {item.value for item in masks if item.metric == 'class_agnostic_ap50_coco'} == {1.0}


def test_relations_of_nodes_for_unseen_things_take_no_place(context):
    unseen = replace(context, ground_truth=replace(context.ground_truth, seen_instances=(1, 2)))
    assert any(edge.source == 3 for edge in context.semantic_map.graph.edges)
    for case in (context, unseen):
        assert_values(evaluate(case), unmatched_relations=0.0)


def with_visible_parts(context, *parts, share):
    """Return a context of whose objects only parts were visible, without relations."""
    truth = replace(
        context.ground_truth,
        visible_graph=SceneGraph(tuple(replace(part, parent=None) for part in parts)),
        visible_shares={part.id: share for part in parts},
    )
    return replace(context, ground_truth=truth)


def test_a_box_of_which_a_part_was_visible_is_not_scored(context, perfect_map):
    table, chair = (context.ground_truth.graph.by_id[i] for i in (2, 3))
    size = chair.box.size
    half = replace(chair, box=AxisAlignedBox(chair.box.minimum, chair.box.maximum - size / 2))
    whole = evaluate(with_visible_parts(context, table, chair, share=0.9), match='boxes')
    assert (whole['box_iou', ''].value, whole['box_iou', ''].n) == (1.0, 2)
    for share in (0.1, 0.9):
        partly = with_visible_parts(context, table, half, share=share)
        assert partly.ground_truth.uncertain_boxes == {3}
        found = evaluate(partly, match='masks')
        assert (found['box_iou', ''].value, found['box_iou', ''].n) == (1.0, 1)
    # Of a small share the map is matched with what was visible.
    small = with_visible_parts(context, table, half, share=0.1)
    assert small.ground_truth.evaluated_graph.by_id[3].box is half.box
    graph = perfect_map.graph
    nodes = (replace(node, box=half.box) if node.id == 3 else node for node in graph.nodes)
    seen = replace(
        small, semantic_map=replace(perfect_map, graph=replace(graph, nodes=tuple(nodes)))
    )
    assert evaluate(seen, match='boxes', min_iou=0.9)['node_recall', ''].value == 1.0


def test_a_relation_that_the_visible_parts_do_not_show_is_neither_right_nor_missed(
    context, perfect_map
):
    table, chair = (context.ground_truth.graph.by_id[i] for i in (2, 3))
    assert evaluate(context)['relation_recall', ''].n == 1
    doubtful = with_visible_parts(context, table, chair, share=0.9)
    found = evaluate(doubtful)
    assert found['relation_recall', ''].n == 0
    assert found['relation_precision', ''].n == 0
