"""A scene graph as text for a prompt, cut to a budget of tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from osmabench_ros.language.model import estimated_tokens
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode
from osmabench_ros.vqa.graph_index import THINGS

_LONGEST_CAPTION = 200
_MOST_CAPTIONS = 3


@dataclass(frozen=True)
class GraphText:
    """A graph for a prompt: a JSON object or relation a line, and what was dropped."""

    nodes: str
    relations: str
    node_ids: frozenset[int]
    nodes_dropped: int
    relations_dropped: int
    tokens: int


def graph_text(graph: SceneGraph, max_tokens: int, *, relations: bool = True) -> GraphText:
    """Serialise the things of a graph within an estimated budget, nodes before relations."""
    left = max_tokens
    lines: list[str] = []
    kept: set[int] = set()
    things = sorted((node for node in graph.nodes if node.kind in THINGS), key=_importance)
    for node in things:
        line = json.dumps(_described(node, graph), ensure_ascii=False)
        cost = estimated_tokens(line) + 1
        if cost > left:
            break
        left -= cost
        lines.append(line)
        kept.add(node.id)
    related, relations_dropped = [], 0
    for edge_line in _relation_lines(graph, kept) if relations else ():
        cost = estimated_tokens(edge_line) + 1
        if cost > left:
            relations_dropped += 1
            continue
        left -= cost
        related.append(edge_line)
    ends_lost = sum(not {e.source, e.target} <= kept for e in _thing_edges(graph, things))
    return GraphText(
        '\n'.join(lines),
        '\n'.join(related),
        frozenset(kept),
        len(things) - len(kept),
        relations_dropped + (ends_lost if relations else 0),
        max_tokens - left,
    )


def _importance(node: SceneNode) -> tuple[bool, int, int]:
    return not node.label, -node.observations, node.id


def _described(node: SceneNode, graph: SceneGraph) -> dict[str, Any]:
    room = graph.by_id.get(node.parent) if node.parent is not None else None
    attributes = {
        k: round(v, 2) if isinstance(v, float) else v for k, v in node.attributes.items()
    }
    parts: dict[str, Any] = {
        'id': node.id,
        'label': normalised_name(node.label) or None,
        'captions': [_short(text) for text in node.captions[:_MOST_CAPTIONS]],
        'attributes': attributes,
        'room': room.label if room is not None else None,
    }
    if node.box is not None:
        parts['center'] = [round(float(v), 2) for v in node.box.center]
        parts['size'] = [round(float(v), 2) for v in node.box.size]
    return {key: value for key, value in parts.items() if value not in (None, [], {})}


def _short(text: str) -> str:
    plain = ' '.join(text.split())
    return plain if len(plain) <= _LONGEST_CAPTION else plain[: _LONGEST_CAPTION - 1] + '…'


def _thing_edges(graph: SceneGraph, things: list[SceneNode]) -> Iterator[Any]:
    ids = {node.id for node in things}
    return (edge for edge in graph.edges if edge.source in ids and edge.target in ids)


def _relation_lines(graph: SceneGraph, kept: set[int]) -> Iterator[str]:
    seen: set[str] = set()
    for edge in graph.edges:
        if edge.source in kept and edge.target in kept:
            word = ' '.join((edge.type or edge.text).split())[:60]
            line = f'{edge.source} {word} {edge.target}'
            if line not in seen:
                seen.add(line)
                yield line
