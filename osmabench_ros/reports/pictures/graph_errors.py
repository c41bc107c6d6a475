"""Maps and scene graphs coloured by class, and by outcome: right, wrong, invented, missed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.metrics.matching import compute_box_iou_of_nodes, match_nodes
from osmabench_ros.reports import palette
from osmabench_ros.reports.palette import HALLUCINATED, PointOutcome, Rgb
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.osma_segmentation import SegmentationOptions
from osmabench_ros.suites.prediction import predict_labels
from osmabench_ros.suites.suite import SuiteContext

OUTCOMES = tuple(PointOutcome)


def read_max_distance(suites: Sequence[SuiteConfig]) -> float:
    """Return the distance gate in metres that the segmentation suite of a run was scored with."""
    options = (suite.options for suite in suites if suite.name == 'osma_segmentation')
    return SegmentationOptions.model_validate(next(options, {})).max_distance_m


def compute_surface_outcomes(
    context: SuiteContext, max_distance_m: float
) -> NDArray[np.uint8] | None:
    """Return the index into OUTCOMES of every visible surface point, uint8 (N,), or None."""
    truth, predicted = context.ground_truth, context.matches.predicted
    if predicted is None:
        return None
    labels = predict_labels(context.semantic_map, truth.label_set)
    if labels is None:
        return None
    near = context.matches.surface_to_map
    found = np.append(labels[predicted.rows], UNLABELLED)[near.indices]
    codes = np.full(len(truth.surface), OUTCOMES.index(PointOutcome.WRONG), np.uint8)
    codes[found == truth.surface.labels] = OUTCOMES.index(PointOutcome.CORRECT)
    codes[found == UNLABELLED] = OUTCOMES.index(PointOutcome.UNLABELLED)
    codes[~near.within(max_distance_m)] = OUTCOMES.index(PointOutcome.MISSING)
    return codes


def compute_shares(codes: NDArray[np.uint8]) -> dict[PointOutcome, float]:
    """Return the share of surface points of every outcome; zeros without points."""
    counts = np.bincount(codes, minlength=len(OUTCOMES))
    total = max(len(codes), 1)
    return {item: float(counts[i] / total) for i, item in enumerate(OUTCOMES)}


def compute_object_shares(codes: NDArray[np.uint8], truth: GroundTruth) -> dict[int, float]:
    """Return by instance id the share of visible surface that got its class."""
    instances, labels = truth.surface.instances, truth.surface.labels
    counted = (instances > 0) & (labels != UNLABELLED)
    ids, place = np.unique(instances[counted], return_inverse=True)
    right = codes[counted] == OUTCOMES.index(PointOutcome.CORRECT)
    found = np.bincount(place, right, len(ids)) / np.bincount(place, minlength=len(ids))
    return {int(number): float(share) for number, share in zip(ids, found, strict=True)}


# Label of hallucinated points in a cloud of errors; smaller ones index OUTCOMES.
HALLUCINATED_CODE = len(OUTCOMES)

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
    colors = palette.color_labels(labels, palette.assign_class_colors(known))
    return replace(semantic_map.dense, labels=shown, colors=colors)


def color_by_error(context: SuiteContext, max_distance_m: float) -> DenseMap | None:
    """Return visible surface and hallucinated points, matched by distance, in ERROR_COLORS."""
    predicted = context.matches.predicted
    if predicted is None:
        return None
    surface = context.ground_truth.surface
    codes = compute_surface_outcomes(context, max_distance_m)
    if codes is None:
        codes = np.full(len(surface), OUTCOMES.index(PointOutcome.MISSING), np.uint8)
        mapped = context.matches.surface_to_map.within(max_distance_m)
        codes[mapped] = OUTCOMES.index(PointOutcome.UNLABELLED)
    invented = predicted.points[~context.matches.map_to_truth.within(max_distance_m)]
    labels = np.concatenate([codes, np.full(len(invented), HALLUCINATED_CODE)]).astype(np.int32)
    points = np.concatenate([surface.points, invented]).astype(np.float32)
    return DenseMap(points, colors=ERROR_COLORS[labels], labels=labels)


def assign_node_colors(graph: SceneGraph, label_set: LabelSet | None) -> dict[int, Rgb]:
    """Return the colour of every node: by class, else by class name, else grey."""
    known = label_set or LabelSet('none', ())
    colors, found = palette.assign_class_colors(known), {}
    for node in graph.nodes:
        class_id = known.id_of(node.label) if node.label else UNLABELLED
        is_word = bool(node.label) and class_id == UNLABELLED
        found[node.id] = palette.name_color(str(node.label)) if is_word else colors[class_id]
    return found


def find_centers(graph: SceneGraph) -> dict[int, NDArray[np.float64]]:
    """Return the centre (3,) of every node that has a box, metres."""
    found = {node.id: node.box.center for node in graph.nodes if node.box is not None}
    boxes = {node.id: node.oriented_box for node in graph.nodes}
    return found | {i: box.pose.translation for i, box in boxes.items() if box is not None}


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
    colors = palette.color_labels(surface.labels, palette.assign_class_colors(truth.label_set))
    cloud = DenseMap(surface.points, colors, surface.labels, surface.instances)
    coloured = ColouredGraph(graph, assign_node_colors(graph, truth.label_set))
    return Layers({'surface': cloud}, {'graph': coloured})


def draw_map_layers(
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
    true = {node.id: node for node in truth.graph.nodes if node.id in seen}
    ids = [node.id for node in nodes]
    ious = compute_box_iou_of_nodes(nodes, list(true.values()))
    matches = match_nodes(ids, list(true), ious, min_iou=_MIN_IOU).true_of
    colors = dict.fromkeys(ids, HALLUCINATED)
    for node in nodes:
        if node.id in matches:
            right = node.label == true[matches[node.id]].label
            outcome = PointOutcome.CORRECT if right else PointOutcome.WRONG
            colors[node.id] = (outcome if node.label else PointOutcome.UNLABELLED).color
    found = set(matches.values())
    missed = [x for x in true.values() if x.kind is NodeKind.OBJECT and x.id not in found]
    missed = [replace(x, id=i) for i, x in enumerate(missed, start=max(colors, default=0) + 1)]
    colors |= {node.id: PointOutcome.MISSING.color for node in missed}
    kept = tuple(replace(node, parent=None) for node in (*nodes, *missed))
    return ColouredGraph(SceneGraph(kept, frame_id=graph.frame_id), colors)
