"""Objects of the ground truth and nodes of a map, and how their surfaces overlap."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.export import list_holdings
from osmabench_ros.metrics.confusion import OUTSIDE
from osmabench_ros.metrics.matching import (
    NodeMatches,
    Overlaps,
    compute_box_iou_of_nodes,
    count_overlaps,
    find_box,
    mask_iou_of_nodes,
    match_nodes,
)
from osmabench_ros.metrics.nearest_neighbours import NeighbourIndex
from osmabench_ros.semantics.labels import (
    NO_INSTANCE,
    UNLABELLED,
    LabelSet,
    group_rows_by_id,
    is_structure,
    is_unnamed,
    normalised_name,
)
from osmabench_ros.semantics.scene_graph import THINGS, NodeKind, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.prediction import class_or_outside, predict_labels
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.vqa.knowledge import knowledge

# Points of visible surface of which less may be mere contact with an adjacent object.
_FEW_POINTS = 5


def select_seen_objects(truth: GroundTruth) -> list[SceneNode]:
    """Return the true objects that the trajectory saw, without the parts of the building."""
    seen = frozenset(truth.seen_instances)
    return [node for node in truth.graph.of_kind(NodeKind.OBJECT) if node.id in seen]


def mask_overlaps(context: SuiteContext, max_distance_m: float) -> Overlaps | None:
    """Return how the masks of a map cover the visible surface, None if it has no masks.

    A surface point belongs to the masks of the nearest map point within the gate.
    """
    masks = _list_masks(context)
    if masks is None:
        return None
    near, surface = context.matches.surface_to_map, context.ground_truth.surface
    rows = near.find_rows_within(max_distance_m)
    return count_overlaps(surface.instances, rows, masks)


def overlaps_mask_by_mask(context: SuiteContext, max_distance_m: float) -> Overlaps | None:
    """Return how masks cover the visible surface if each takes all surface near its points.

    A surface point may belong to several masks, also where the map's masks do not overlap. None
    if the map has no masks.
    """
    masks, predicted = _list_masks(context), context.matches.predicted
    if masks is None or predicted is None:
        return None
    surface = context.ground_truth.surface
    near = np.flatnonzero(context.matches.surface_to_map.within(max_distance_m))
    near = near[np.argsort(surface.points[near, 0], kind='stable')]
    points = surface.points[near]
    x, y, z = np.ascontiguousarray(points.T)
    covered = {}
    for node_id, rows in masks.items():
        if not len(rows):
            continue
        own = predicted.points[rows]
        # Most of the surface is far from a mask, which its box shows at once.
        low = own.min(axis=0) - max_distance_m
        high = own.max(axis=0) + max_distance_m
        slab = slice(x.searchsorted(low[0]), x.searchsorted(high[0], 'right'))
        of_y = (y[slab] >= low[1]) & (y[slab] <= high[1])
        inside = slab.start + np.flatnonzero(of_y & (z[slab] >= low[2]) & (z[slab] <= high[2]))
        index = NeighbourIndex(own, context.device, 'map')
        found = index.query(points[inside], max_distance_m=max_distance_m).within(max_distance_m)
        covered[node_id] = near[inside[found]]
    return count_overlaps(surface.instances, np.arange(len(surface)), covered)


def _list_masks(context: SuiteContext) -> dict[int, NDArray[np.int64]] | None:
    """Return the rows of every mask among the valid map points; None if the map has no masks.

    Masks that overlap each other are taken from the map's membership, if it has one.
    """
    dense, predicted = context.semantic_map.dense, context.matches.predicted
    if dense is None or predicted is None or not list_holdings(context.semantic_map).instances:
        return None
    if dense.membership is None:
        assert dense.instances is not None
        masks = group_rows_by_id(dense.instances[predicted.rows])
        return {node_id: rows for node_id, rows in masks.items() if node_id != NO_INSTANCE}
    places = np.full(len(dense.points), -1, np.int64)
    places[predicted.rows] = np.arange(len(predicted.rows))
    owned = map(dense.membership.points_of, range(len(dense.membership.node_ids)))
    rows_of = zip(dense.membership.node_ids.tolist(), map(places.__getitem__, owned), strict=True)
    return {node_id: rows[rows >= 0] for node_id, rows in rows_of}


def find_excused_masks(
    context: SuiteContext, overlaps: Overlaps, max_distance_m: float
) -> NDArray[np.bool_]:
    """Return which masks are not errors although they are on no seen object, shape (P,).

    At least half of such a mask is on the building or on void, which is surface of no instance
    or of one that was hardly seen. A mask that its label calls an object is not excused where it
    is mostly on the building, or on hardly seen objects of other names: such an object is made
    up. Masks that cover next to no visible surface of objects are judged by the surface near
    their own points, unseen surface too.
    """
    truth, graph = context.ground_truth, context.named_map.graph
    nodes = [graph.by_id.get(int(item)) for item in overlaps.predicted_ids]
    called_objects = np.array([calls_an_object(node, truth.label_set) for node in nodes], bool)
    names = np.array(['' if node is None else node.label for node in nodes], object)
    things = [node.id for node in select_seen_objects(truth)]
    building = [node.id for node in truth.graph.of_kind(NodeKind.BACKGROUND)]
    sizes = np.maximum(overlaps.predicted_sizes, 1)
    on_things, on_building = (
        overlaps.shared[:, np.isin(overlaps.true_ids, ids)].sum(axis=1)
        for ids in (things, building)
    )
    off_things = (overlaps.predicted_sizes - on_things) / sizes
    of_building = on_building / sizes
    unseen = on_things < _FEW_POINTS
    near = _find_near_instances(context, max_distance_m) if unseen.any() else None
    hidden = [node for node in truth.graph.of_kind(NodeKind.OBJECT) if node.id not in things]
    for name in {'', *names[called_objects]}:
        own = called_objects & (names == name) if name else ~called_objects
        others = [node.id for node in hidden if name and not is_synonym(name, node.label)]
        on_others = overlaps.shared[own][:, np.isin(overlaps.true_ids, others)].sum(axis=1)
        off_things[own] -= on_others / sizes[own]
        rows = unseen & own
        if near is not None and rows.any():
            off = (near != _NOTHING_NEAR) & ~np.isin(near, [*things, *others])
            share = _measure_shares(context, overlaps.predicted_ids[rows], off)
            off_things[rows] = np.maximum(off_things[rows], share)
    if near is not None:
        share = _measure_shares(context, overlaps.predicted_ids[unseen], np.isin(near, building))
        of_building[unseen] = np.maximum(of_building[unseen], share)
    made_up = called_objects & (2 * of_building >= off_things)
    return np.asarray((off_things >= 0.5) & ~made_up)


def is_synonym(predicted: str, true: str) -> bool:
    """Return whether two labels are the same name or listed as synonyms."""
    canonical = knowledge().canonical
    return canonical(normalised_name(predicted)) == canonical(normalised_name(true))


def calls_an_object(node: SceneNode | None, label_set: LabelSet) -> bool:
    """Return whether a node has a label, and one that is not of a part of the building."""
    if node is None or node.kind not in THINGS or is_unnamed(node.label):
        return False
    return not (is_structure(node.label) or node.label in label_set.structure_names)


def select_object_nodes(context: SuiteContext) -> list[SceneNode]:
    """Return the nodes of a map that are objects by their kind or by their name."""
    label_set = context.ground_truth.label_set
    return [
        node
        for node in context.published_graph.graph.nodes
        if node.kind is NodeKind.OBJECT or calls_an_object(node, label_set)
    ]


_NOTHING_NEAR = -2


def _find_near_instances(context: SuiteContext, max_distance_m: float) -> NDArray[np.int64]:
    """Return the instance of the surface near each valid point, seen or not."""
    truth, near = context.ground_truth, context.matches.map_to_truth
    true = np.concatenate([truth.surface.instances, truth.unseen.instances, [NO_INSTANCE]])
    within = near.within(max_distance_m)
    return np.where(within, true[near.indices].astype(np.int64), _NOTHING_NEAR)


def _measure_shares(
    context: SuiteContext, mask_ids: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the fraction of each mask's valid points that are chosen among all of these."""
    masks = _list_masks(context) or {}
    own = (chosen[masks[int(node_id)]] for node_id in mask_ids)
    return np.array([part.mean() if len(part) else 0.0 for part in own])


@dataclass(frozen=True, eq=False)
class Masks:
    """Masks of objects and the true objects, with their classes.

    Parameters
    ----------
    overlaps : Overlaps
        Masks without the excused ones, and all seen objects. Surface that is void
        (of no instance, or of one that was hardly seen) is not part of the masks.
    classes, true_classes : ndarray of int64, shapes (P,), (G,)
        Class ids in the label set of the ground truth; OUTSIDE for objects without a class in it.
    confidence : ndarray of float64, shape (P,)
        Score of the mask's label; 1 where the method gives none.
    rated : ndarray of bool, shape (P,)
        Whether the method gives a score; without any, average precision has nothing to rank by.
    left_out : frozenset of int
        Ids of the `find_excused_masks`.
    named : bool
        False if the method labels no mask, so that classes mean nothing.

    Notes
    -----
    Void is treated as by Kirillov et al. (Panoptic Segmentation, 2019): it changes no IoU, and
    masks that lie mostly on it are not false positives.
    """

    overlaps: Overlaps
    classes: NDArray[np.int64]
    true_classes: NDArray[np.int64]
    confidence: NDArray[np.float64]
    rated: NDArray[np.bool_]
    left_out: frozenset[int]
    named: bool


def masks_of_things(context: SuiteContext, overlaps: Overlaps, max_distance_m: float) -> Masks:
    """Leave out excused masks and unseen objects, and look up classes."""
    truth, graph = context.ground_truth, context.named_map.graph
    things = {node.id for node in select_seen_objects(truth)}
    structure = {node.id for node in truth.graph.of_kind(NodeKind.BACKGROUND)}
    true = np.array([int(item) in things for item in overlaps.true_ids], bool)
    on_building = np.array([int(item) in structure for item in overlaps.true_ids], bool)
    known = overlaps.shared[:, true | on_building].sum(axis=1)
    left_out = find_excused_masks(context, overlaps, max_distance_m)
    kept = replace(overlaps, predicted_sizes=known).select(~left_out, true)
    nodes = [graph.by_id.get(int(item)) for item in kept.predicted_ids]
    names = ['' if node is None else node.label for node in nodes]
    classes = np.array([class_or_outside(name, truth.label_set) for name in names], np.int64)
    scores = np.array([_score(node) for node in nodes], np.float64)
    rated = ~np.isnan(scores)
    unnamed = np.array([not name for name in names], bool)
    if unnamed.any():
        votes = _vote_classes(context)
        own = [votes.get(int(item), OUTSIDE) for item in kept.predicted_ids[unnamed]]
        classes[unnamed] = own
    return Masks(
        kept,
        classes,
        np.array([truth.graph.by_id[int(item)].class_id for item in kept.true_ids], np.int64),
        np.where(rated, scores, 1.0),
        rated,
        frozenset(overlaps.predicted_ids[left_out].tolist()),
        bool((classes != OUTSIDE).any()) or any(node.label for node in graph.nodes),
    )


def _vote_classes(context: SuiteContext) -> dict[int, int]:
    """Return the class that most points of each mask have; of equally many the lowest."""
    dense, label_set = context.semantic_map.dense, context.ground_truth.label_set
    if dense is None or dense.labels is None or dense.instances is None:
        return {}
    labels = predict_labels(context.semantic_map, label_set)
    assert labels is not None
    kept = (labels >= 0) & (labels != UNLABELLED) & (dense.instances != NO_INSTANCE)
    keys = dense.instances[kept].astype(np.int64) * UNLABELLED + labels[kept]
    pairs, counts = np.unique(keys, return_counts=True)
    # Ascending counts, so that the last entry of a mask is the best one.
    best_last = np.lexsort((-pairs, counts))
    masks, classes = np.divmod(pairs[best_last], UNLABELLED)
    return dict(zip(masks.tolist(), classes.tolist(), strict=True))


def _score(node: SceneNode | None) -> float:
    return node.labels[0].score if node is not None and node.labels else math.nan


@dataclass(frozen=True, eq=False)
class MatchedGraph:
    """Pairs of nodes with seen objects, and with parts of the building too.

    Nodes that represent parts of the building and say so, or objects that were not seen, count on
    neither side of `things`. `excused` have no partner and do not count.
    """

    things: NodeMatches
    everything: NodeMatches
    excused: frozenset[int]


def match_graph(
    context: SuiteContext, match: str, min_iou: float, max_distance_m: float
) -> MatchedGraph | None:
    """Pair the objects of a map with the truth; None if they have neither masks nor boxes.

    A node of the kind `background` with the name of an object is one, or else objects that a
    method doubts could be kept for questions and hidden from the metrics of nodes.

    `match` is 'masks', 'boxes', or 'auto' for masks where the map has them; a mask covers surface
    within `max_distance_m` metres.
    """
    truth = context.ground_truth
    nodes = select_object_nodes(context)
    true = [node for node in truth.evaluated_graph.nodes if node.kind in THINGS]
    overlaps = None if match == 'boxes' else mask_overlaps(context, max_distance_m)
    ids = [node.id for node in nodes]
    true_ids = np.array([node.id for node in true], np.int64)
    if nodes and overlaps is not None:
        iou = mask_iou_of_nodes(ids, true_ids.tolist(), overlaps)
    elif match != 'masks' and any(map(find_box, nodes)):
        iou = compute_box_iou_of_nodes(nodes, true)
    else:
        return None
    seen = np.isin(true_ids, truth.seen_instances)
    found = match_nodes(ids, true_ids[seen].tolist(), iou[:, seen], min_iou=min_iou)
    things = {node.id for node in select_seen_objects(truth)}
    kept = np.array([t in things for _, t in found.pairs], bool)
    may_be = np.array(
        [
            [not called or is_synonym(node.label, item.label) for item in true]
            for node in nodes
            for called in [calls_an_object(node, truth.label_set)]
        ]
    )
    excused = (iou * may_be)[:, ~seen].max(axis=1, initial=0.0) >= min_iou
    if overlaps is not None:
        no_error = overlaps.predicted_ids[find_excused_masks(context, overlaps, max_distance_m)]
        excused |= np.isin(ids, no_error)
    excused &= ~np.isin(ids, [p for p, _ in found.pairs])
    by_id = context.named_map.graph.by_id
    of_building = [
        not keep and not calls_an_object(by_id.get(p), truth.label_set)
        for (p, _), keep in zip(found.pairs, kept, strict=True)
    ]
    counted = found.predicted - sum(of_building) - int(excused.sum())
    pairs = tuple(pair for pair, keep in zip(found.pairs, kept, strict=True) if keep)
    return MatchedGraph(
        NodeMatches(pairs, found.iou[kept], counted, len(things)),
        found,
        frozenset(np.array(ids, np.int64)[excused].tolist()),
    )
