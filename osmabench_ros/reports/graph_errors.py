"""Right, wrong, invented and missed nodes of a scene graph, in the colours of the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from osmabench_ros.metrics.graph_matching import box_iou_of_nodes, match_nodes
from osmabench_ros.reports.palette import HALLUCINATED, Outcome, Rgb
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth


@dataclass(frozen=True, eq=False)
class GraphErrors:
    """Object nodes of a map, then the true objects that it misses, with colours by node id."""

    graph: SceneGraph
    colors: Mapping[int, Rgb]


def graph_errors(graph: SceneGraph, truth: GroundTruth, *, min_iou: float = 0.25) -> GraphErrors:
    """Compare the objects of a graph with those that the path could see, by their boxes.

    The axis-aligned boxes of a pair overlap by at least `min_iou`.
    """
    nodes = list(graph.of_kind(NodeKind.OBJECT))
    seen = frozenset(truth.seen_instances)
    true = [node for node in truth.graph.nodes if node.id in seen]
    matches = match_nodes(
        [node.id for node in nodes],
        [node.id for node in true],
        box_iou_of_nodes(nodes, true),
        min_iou=min_iou,
    )
    pairs = matches.true_of
    colors = {
        node.id: _verdict(node, truth.graph.by_id[pairs[node.id]])
        if node.id in pairs
        else HALLUCINATED
        for node in nodes
    }
    found = set(pairs.values())
    missed = [node for node in true if node.kind is NodeKind.OBJECT and node.id not in found]
    first = max(colors, default=0) + 1
    renumbered = [replace(node, id=first + i, parent=None) for i, node in enumerate(missed)]
    colors |= {node.id: Outcome.MISSING.color for node in renumbered}
    kept = (*(replace(node, parent=None) for node in nodes), *renumbered)
    return GraphErrors(SceneGraph(kept, frame_id=graph.frame_id), colors)


def _verdict(node: SceneNode, true: SceneNode) -> Rgb:
    if not node.label:
        return Outcome.UNLABELLED.color
    return (Outcome.CORRECT if node.label == true.label else Outcome.WRONG).color
