"""Which node of a map stands for which thing of the ground truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.metrics.graph_matching import (
    NodeMatches,
    box_iou_of_nodes,
    box_of,
    mask_iou_of_nodes,
    match_nodes,
)
from osmabench_ros.metrics.overlaps import Overlaps
from osmabench_ros.semantics.scene_graph import NodeKind, SceneNode
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.suites.things import mask_overlaps, masks_on_no_thing, seen_things

_SOLID = frozenset({NodeKind.OBJECT, NodeKind.BACKGROUND})


@dataclass(frozen=True, eq=False)
class MatchedGraph:
    """Pairs of nodes with seen things, and with parts of the building too.

    Nodes that stand for parts of the building, or for things that were not seen, or whose masks
    lie mostly on such surface, count on neither side of `things`. `excused` have no partner and do
    not count.
    """

    things: NodeMatches
    everything: NodeMatches
    excused: frozenset[int]


def matched_graph(
    context: SuiteContext, match: str, min_iou: float, gate_m: float
) -> MatchedGraph | None:
    """Pair the objects of a map with the truth; None if they have neither masks nor boxes.

    `match` is 'masks', 'boxes', or 'auto' for masks where the map has them; a mask covers surface
    within `gate_m` metres.
    """
    truth = context.ground_truth
    nodes = list(context.stated_map.graph.of_kind(NodeKind.OBJECT))
    true = [node for node in truth.graph.nodes if node.kind in _SOLID]
    overlaps = None if match == 'boxes' else mask_overlaps(context, gate_m)
    iou = _iou(nodes, true, overlaps, boxes=match != 'masks')
    if iou is None:
        return None
    ids, true_ids = [node.id for node in nodes], np.array([node.id for node in true], np.int64)
    seen = np.isin(true_ids, truth.seen_instances)
    found = match_nodes(ids, true_ids[seen].tolist(), iou[:, seen], min_iou=min_iou)
    things = {node.id for node in seen_things(truth)}
    kept = np.array([t in things for _, t in found.pairs], bool)
    excused = iou[:, ~seen].max(axis=1, initial=0.0) >= min_iou
    if overlaps is not None:
        no_thing = overlaps.predicted_ids[masks_on_no_thing(context, overlaps, gate_m)]
        excused |= np.isin(ids, no_thing)
    excused &= ~np.isin(ids, [p for p, _ in found.pairs])
    counted = found.predicted - int((~kept).sum()) - int(excused.sum())
    pairs = tuple(pair for pair, keep in zip(found.pairs, kept, strict=True) if keep)
    return MatchedGraph(
        NodeMatches(pairs, found.iou[kept], counted, len(things)),
        found,
        frozenset(np.array(ids, np.int64)[excused].tolist()),
    )


def _iou(
    nodes: list[SceneNode], true: list[SceneNode], overlaps: Overlaps | None, *, boxes: bool
) -> NDArray[np.float64] | None:
    if not nodes:
        return None
    if overlaps is not None:
        return mask_iou_of_nodes([node.id for node in nodes], [node.id for node in true], overlaps)
    if not boxes or not any(box_of(node) for node in nodes):
        return None
    return box_iou_of_nodes(nodes, true)
