"""Scene graphs as JSON, the `nodes` and `edges` of map.json and of the ground truth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from osmabench_ros.base.contract import WORLD_FRAME
from osmabench_ros.errors import MapError
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import (
    NodeKind,
    SceneEdge,
    SceneGraph,
    SceneNode,
    ScoredLabel,
)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _score(value: Any) -> float:
    return math.nan if value is None else float(value)


def node_to_json(node: SceneNode) -> dict[str, Any]:
    """Return a JSON-serialisable form of a node; absent parts are null."""
    box, oriented = node.box, node.oriented_box
    return {
        'id': node.id,
        'kind': node.kind.value,
        'source_id': node.source_id,
        'parent': node.parent,
        'labels': [
            {
                'name': label.name,
                'score': _number(label.score),
                'class_id': None if label.class_id == UNLABELLED else label.class_id,
            }
            for label in node.labels
        ],
        'captions': list(node.captions),
        'attributes': dict(node.attributes),
        'box': box and {'min': box.minimum.tolist(), 'max': box.maximum.tolist()},
        'oriented_box': oriented
        and {
            'center': oriented.pose.translation.tolist(),
            'rotation': oriented.pose.rotation.tolist(),
            'size': oriented.size.tolist(),
        },
        'feature_row': node.feature_row,
        'feature_space': node.feature_space,
        'observations': node.observations,
    }


def node_from_json(data: Mapping[str, Any]) -> SceneNode:
    """Rebuild a node from `node_to_json`."""
    box, oriented = data.get('box'), data.get('oriented_box')
    labels = tuple(
        ScoredLabel(
            str(label['name']),
            _score(label.get('score')),
            UNLABELLED if label.get('class_id') is None else int(label['class_id']),
        )
        for label in data.get('labels', ())
    )
    return SceneNode(
        id=int(data['id']),
        kind=NodeKind(data.get('kind', 'object')),
        labels=labels,
        captions=tuple(str(item) for item in data.get('captions', ())),
        attributes=dict(data.get('attributes', {})),
        box=AxisAlignedBox(box['min'], box['max']) if box else None,
        oriented_box=OrientedBox(Pose(oriented['rotation'], oriented['center']), oriented['size'])
        if oriented
        else None,
        parent=None if data.get('parent') is None else int(data['parent']),
        source_id=str(data.get('source_id', '')),
        feature_row=None if data.get('feature_row') is None else int(data['feature_row']),
        feature_space=str(data.get('feature_space', '')),
        observations=int(data.get('observations', 0)),
    )


def graph_to_json(graph: SceneGraph) -> dict[str, Any]:
    """Return a JSON-serialisable form of a scene graph."""
    return {
        'frame_id': graph.frame_id,
        'nodes': [node_to_json(node) for node in graph.nodes],
        'edges': [
            {
                'source': edge.source,
                'target': edge.target,
                'type': edge.type,
                'text': edge.text,
                'score': _number(edge.score),
            }
            for edge in graph.edges
        ],
    }


def graph_from_json(data: Mapping[str, Any], source: str = 'scene graph') -> SceneGraph:
    """Rebuild a scene graph from `graph_to_json`; MapError names `source` and the position."""
    nodes, edges = [], []
    for i, item in enumerate(data.get('nodes', ())):
        try:
            nodes.append(node_from_json(item))
        except (KeyError, TypeError, ValueError) as error:
            raise MapError(f'{source}: nodes[{i}] is malformed: {error!r}') from error
    for i, item in enumerate(data.get('edges', ())):
        try:
            edges.append(
                SceneEdge(
                    int(item['source']),
                    int(item['target']),
                    str(item['type']),
                    str(item.get('text', '')),
                    _score(item.get('score')),
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise MapError(f'{source}: edges[{i}] is malformed: {error!r}') from error
    return SceneGraph(tuple(nodes), tuple(edges), str(data.get('frame_id', WORLD_FRAME)))
