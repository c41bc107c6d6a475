"""Names for the nodes of open-vocabulary maps, so that their graphs can be scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from osmabench_ros.maps.semantic_map import IN_SCENE_GRAPH, SemanticMap
from osmabench_ros.semantics.scene_graph import THINGS, NodeKind, SceneGraph, ScoredLabel
from osmabench_ros.sequences.ground_truth import GroundTruth

NodeLabeller = Callable[[SemanticMap, Sequence[str]], Mapping[int, Sequence[tuple[int, float]]]]
"""Ranks names for the nodes of a map: by node id, indices into the names with their scores, best
first. Nodes of which nothing is known are left out."""


def named_map(
    semantic_map: SemanticMap, truth: GroundTruth, labeller: NodeLabeller | None
) -> SemanticMap:
    """Return a map whose objects have names, its own or those that they are most like.

    All classes of the data set are offered: those of the scene alone would show what is in it.
    """
    graph = semantic_map.graph
    objects = [node for node in graph.nodes if node.kind is NodeKind.OBJECT]
    names = [item.name for item in truth.label_set.classes]
    if labeller is None or not objects or not names or any(node.label for node in objects):
        return semantic_map
    ranked = labeller(semantic_map, names)
    ids = truth.label_set.id_of
    made = {
        key: tuple(ScoredLabel(names[index], score, ids(names[index])) for index, score in ranking)
        for key, ranking in ranked.items()
    }
    nodes = tuple(
        replace(node, labels=made[node.id])
        if node.kind in THINGS and not node.label and node.id in made
        else node
        for node in graph.nodes
    )
    return replace(semantic_map, graph=replace(graph, nodes=nodes))


def graph_as_stated(semantic_map: SemanticMap) -> SemanticMap:
    """Return a map with the scene graph its method stands by; objects left out stay masks."""
    graph = semantic_map.graph
    kept = [node for node in graph.nodes if node.attributes.get(IN_SCENE_GRAPH) is not False]
    if len(kept) == len(graph.nodes):
        return semantic_map
    ids = {node.id for node in kept}
    edges = tuple(edge for edge in graph.edges if {edge.source, edge.target} <= ids)
    nodes = tuple(
        node if node.parent is None or node.parent in ids else replace(node, parent=None)
        for node in kept
    )
    return replace(semantic_map, graph=SceneGraph(nodes, edges, graph.frame_id))
