"""What a map holds: that alone, and no name of a method, decides which figures it can have."""

from __future__ import annotations

from dataclasses import dataclass

from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.scene_graph import NodeKind

_THINGS = (NodeKind.OBJECT, NodeKind.BACKGROUND)


@dataclass(frozen=True)
class Holdings:
    """What there is in a map.

    Parameters
    ----------
    things : bool
        Nodes of objects or of the building.
    relations : bool
        Edges between things; those that say in which room a thing is are none.
    attributes : frozenset of str
        Keys that any thing has a value for, such as 'color' and 'material'.
    captions : bool
        Text about things.
    instances : bool
        Points that belong to nodes.
    """

    things: bool
    relations: bool
    attributes: frozenset[str]
    captions: bool
    instances: bool


def holdings(semantic_map: SemanticMap) -> Holdings:
    """Return what a map holds."""
    graph, dense = semantic_map.graph, semantic_map.dense
    things = {node.id: node for node in graph.nodes if node.kind in _THINGS}
    return Holdings(
        things=bool(things),
        relations=any(edge.source in things and edge.target in things for edge in graph.edges),
        attributes=frozenset(key for node in things.values() for key in node.attributes),
        captions=any(node.captions for node in things.values()),
        instances=dense is not None
        and (dense.instances is not None or dense.membership is not None),
    )
