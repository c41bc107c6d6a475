"""Summary of a map in words, and the content that decides which metrics apply to it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import THINGS


def summary_of(semantic_map: SemanticMap) -> list[tuple[str, str]]:
    """Return (part, amount) pairs as text; missing parts are named as absent."""
    header, graph, known = semantic_map.header, semantic_map.graph, semantic_map.label_set
    origin = header.provenance
    kinds = Counter(node.kind.value for node in graph.nodes)
    relations = Counter(edge.type for edge in graph.edges)
    rows = [
        ('method', f'{origin.method} {origin.method_version}'.strip()),
        ('scene', f'{origin.scene or "unknown"}, condition {origin.condition or "unknown"}'),
        ('frame', f'{header.frame_id}, z up, metres'),
        ('state', ': '.join(filter(None, (header.state, header.remark)))),
        ('frames used', str(origin.frames_used or 'unknown')),
        ('nodes', _format_counts(kinds)),
        ('edges', _format_counts(relations)),
        ('label set', f'{known.name}, {len(known.classes)} classes' if known else 'none'),
    ]
    rows += _list_dense_rows(semantic_map.dense)
    for space in semantic_map.feature_spaces.values():
        count, dimension = space.vectors.shape
        use = 'comparable with text' if space.text_comparable else 'not comparable with text'
        encoder = f'{space.model} {space.pretrained}'.strip()
        rows.append((f'features "{space.name}"', f'{count} x {dimension}, {encoder}, {use}'))
    return rows


def contents_of(semantic_map: SemanticMap) -> str:
    """Return one line with the content and the extent of a map, which shows wrong axes."""
    graph, dense = semantic_map.graph, semantic_map.dense
    parts = [f'{len(graph.nodes)} nodes', f'{len(graph.edges)} edges']
    if dense is None or not len(dense.points):
        return ', '.join([*parts, 'no points'])
    width, depth, height = dense.points.max(axis=0) - dense.points.min(axis=0)
    parts.append(f'{len(dense.points)} points in {width:.1f} x {depth:.1f} x {height:.1f} m')
    if dense.labels is not None:
        parts.append(f'{int((dense.labels != UNLABELLED).sum())} labelled')
    return ', '.join(parts)


def _format_counts(counts: Counter[str]) -> str:
    listed = ', '.join(f'{count} {name}' for name, count in counts.most_common())
    return f'{counts.total()} ({listed})' if counts else '0'


def _list_dense_rows(dense: DenseMap | None) -> list[tuple[str, str]]:
    if dense is None:
        return [('points', 'none')]
    count = len(dense.points)
    rows = [('points', str(count))]
    if count:
        low, high = dense.points.min(axis=0), dense.points.max(axis=0)
        corners = ' to '.join(f'({x:.2f}, {y:.2f}, {z:.2f})' for x, y, z in (low, high))
        rows.append(('bounds in m', corners))
    for part, values, none in (
        ('labelled', dense.labels, UNLABELLED),
        ('in a node', dense.instances, 0),
        ('with a feature', dense.feature_rows, -1),
    ):
        share = 'not given' if values is None else str(int((values != none).sum()))
        rows.append((f'points {part}', share))
    if dense.membership is not None:
        rows.append(('memberships', str(len(dense.membership.point_indices))))
    return rows


@dataclass(frozen=True)
class Holdings:
    """Content of a map; `things` are nodes of objects or of the building.

    Relations are between these, not from one to its room; attributes are the keys that any of them
    has a value for, captions their texts, instances points that belong to nodes.
    """

    things: bool
    relations: bool
    attributes: frozenset[str]
    captions: bool
    instances: bool


def holdings(semantic_map: SemanticMap) -> Holdings:
    """Return the content of a map."""
    graph, dense = semantic_map.graph, semantic_map.dense
    things = {node.id: node for node in graph.nodes if node.kind in THINGS}
    return Holdings(
        things=bool(things),
        relations=any(edge.source in things and edge.target in things for edge in graph.edges),
        attributes=frozenset(key for node in things.values() for key in node.attributes),
        captions=any(node.captions for node in things.values()),
        instances=dense is not None
        and (dense.instances is not None or dense.membership is not None),
    )
