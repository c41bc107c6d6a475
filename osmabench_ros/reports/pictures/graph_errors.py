"""Maps and scene graphs coloured by class, and by error: right, wrong, invented, missed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.metrics.matching import box_iou_of_nodes, match_nodes
from osmabench_ros.reports.outcomes import OUTCOMES, compute_surface_outcomes
from osmabench_ros.reports.palette import (
    HALLUCINATED,
    PointOutcome,
    Rgb,
    assign_class_colors,
    color_labels,
    name_color,
)
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.prediction import predict_labels
from osmabench_ros.suites.suite import SuiteContext

HALLUCINATED_CODE = len(OUTCOMES)
"""Label of hallucinated points in a cloud of errors; smaller ones index OUTCOMES."""

_MIN_IOU = 0.25

ERROR_COLORS = np.array([*(item.color for item in OUTCOMES), HALLUCINATED], np.uint8)
ERROR_TITLES = (*(item.title for item in OUTCOMES), 'in the map, but not in the scene')


def color_by_class(
    semantic_map: SemanticMap, label_set: LabelSet | None = None
) -> DenseMap | None:
    """Return a map's points in the colours of their classes, None without points or labels."""
    known = label_set or semantic_map.label_set
    if semantic_map.dense is None or known is None:
        return None
    labels = predict_labels(semantic_map, known)
    if labels is None:
        return None
    shown = np.where(labels < 0, UNLABELLED, labels).astype(np.int32)
    colors = color_labels(labels, assign_class_colors(known))
    return replace(semantic_map.dense, labels=shown, colors=colors)


def color_by_error(context: SuiteContext, max_distance_m: float) -> DenseMap | None:
    """Return visible surface and hallucinated points, matched by distance, in ERROR_COLORS."""
    predicted = context.matches.predicted
    if predicted is None:
        return None
    surface = context.ground_truth.surface
    codes = compute_surface_outcomes(context, max_distance_m)
    if codes is None:
        mapped = context.matches.surface_to_map.within(max_distance_m)
        found, missing = (
            OUTCOMES.index(item) for item in (PointOutcome.UNLABELLED, PointOutcome.MISSING)
        )
        codes = np.where(mapped, found, missing).astype(np.uint8)
    invented = predicted.points[~context.matches.map_to_truth.within(max_distance_m)]
    labels = np.concatenate([codes, np.full(len(invented), HALLUCINATED_CODE)]).astype(np.int32)
    points = np.concatenate([surface.points, invented]).astype(np.float32)
    return DenseMap(points, colors=ERROR_COLORS[labels], labels=labels)


def assign_node_colors(graph: SceneGraph, label_set: LabelSet | None) -> dict[int, Rgb]:
    """Return the colour of every node: by class, else by class name, else grey."""
    colors = assign_class_colors(label_set or LabelSet('none', ()))
    return {node.id: _choose_node_color(node, label_set, colors) for node in graph.nodes}


def _choose_node_color(
    node: SceneNode, label_set: LabelSet | None, colors: Mapping[int, Rgb]
) -> Rgb:
    class_id = label_set.id_of(node.label) if label_set and node.label else UNLABELLED
    if class_id == UNLABELLED and node.label:
        return name_color(node.label)
    return colors[class_id]


def centers(graph: SceneGraph) -> dict[int, NDArray[np.float64]]:
    """Return the centre (3,) of every node that has a box, metres."""
    found = {}
    for node in graph.nodes:
        if node.oriented_box is not None:
            found[node.id] = node.oriented_box.pose.translation
        elif node.box is not None:
            found[node.id] = node.box.center
    return found


@dataclass(frozen=True, eq=False)
class ColouredGraph:
    """A scene graph, with colours by node id."""

    graph: SceneGraph
    colors: Mapping[int, Rgb]


@dataclass(frozen=True, eq=False)
class Layers:
    """Clouds and graphs that viewers show, by name; those that a map does not give are missing."""

    clouds: Mapping[str, DenseMap]
    graphs: Mapping[str, ColouredGraph]


def draw_truth_layers(truth: GroundTruth) -> Layers:
    """Return the visible surface in the colours of its classes, and the scene graph."""
    surface, graph = truth.surface, truth.graph
    colors = color_labels(surface.labels, assign_class_colors(truth.label_set))
    return Layers(
        {'surface': DenseMap(surface.points, colors, surface.labels, surface.instances)},
        {'graph': ColouredGraph(graph, assign_node_colors(graph, truth.label_set))},
    )


def map_layers(
    semantic_map: SemanticMap,
    truth: GroundTruth | None = None,
    max_distance_m: float = 0.1,
    context: SuiteContext | None = None,
) -> Layers:
    """Return a map in its colours and by class, its graph and, given the ground truth, errors.

    A `context` with matches of the map and the ground truth saves to search for them again.
    """
    label_set, graph = truth.label_set if truth else semantic_map.label_set, semantic_map.graph
    clouds = {'color': semantic_map.dense, 'class': color_by_class(semantic_map, label_set)}
    graphs = {'graph': ColouredGraph(graph, assign_node_colors(graph, label_set))}
    if truth is not None:
        context = context or SuiteContext(truth.scene, semantic_map, truth, device='cpu')
        clouds['errors'] = color_by_error(context, max_distance_m)
        graphs['errors'] = find_graph_errors(graph, truth)
    return Layers({name: item for name, item in clouds.items() if item is not None}, graphs)


def find_graph_errors(graph: SceneGraph, truth: GroundTruth) -> ColouredGraph:
    """Compare the objects of a graph with those the path could see, by their boxes.

    Returns the objects of the graph, then the true objects that it misses.
    """
    nodes = list(graph.of_kind(NodeKind.OBJECT))
    seen = frozenset(truth.seen_instances)
    true = [node for node in truth.graph.nodes if node.id in seen]
    matches = match_nodes(
        [node.id for node in nodes],
        [node.id for node in true],
        box_iou_of_nodes(nodes, true),
        min_iou=_MIN_IOU,
    )
    pairs = matches.true_of
    colors = {
        node.id: _judge_node(node, truth.graph.by_id[pairs[node.id]])
        if node.id in pairs
        else HALLUCINATED
        for node in nodes
    }
    found = set(pairs.values())
    missed = [node for node in true if node.kind is NodeKind.OBJECT and node.id not in found]
    first = max(colors, default=0) + 1
    renumbered = [replace(node, id=first + i, parent=None) for i, node in enumerate(missed)]
    colors |= {node.id: PointOutcome.MISSING.color for node in renumbered}
    kept = (*(replace(node, parent=None) for node in nodes), *renumbered)
    return ColouredGraph(SceneGraph(kept, frame_id=graph.frame_id), colors)


def _judge_node(node: SceneNode, true: SceneNode) -> Rgb:
    if not node.label:
        return PointOutcome.UNLABELLED.color
    return (PointOutcome.CORRECT if node.label == true.label else PointOutcome.WRONG).color
