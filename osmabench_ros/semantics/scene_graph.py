"""Scene graph: objects, rooms and relations, for ground truth and maps alike, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import Any

from osmabench_ros.base.contract import WORLD_FRAME
from osmabench_ros.errors import MapError
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.labels import UNLABELLED

AttributeValue = str | float | bool
"""Value of a node's attribute; lengths are metres."""


class NodeKind(str, Enum):
    """What a node stands for; layers of a hierarchical scene graph."""

    OBJECT = 'object'
    BACKGROUND = 'background'
    PLACE = 'place'
    ROOM = 'room'
    FLOOR = 'floor'
    BUILDING = 'building'


THINGS = (NodeKind.OBJECT, NodeKind.BACKGROUND)
"""Kinds that have a surface: objects, and parts of the building."""


class RelationType(str, Enum):
    """Relations this package derives itself; methods may give others as plain text."""

    ON = 'on'
    IN = 'in'
    UNDER = 'under'
    NEXT_TO = 'next to'
    NEAR = 'near'
    ATTACHED_TO = 'attached to'
    PART_OF = 'part of'


@dataclass(frozen=True)
class ScoredLabel:
    """A class name with a confidence.

    Parameters
    ----------
    name : str
        Class name.
    score : float
        Confidence; NaN if the method gives none.
    class_id : int
        Id in the run's label set, UNLABELLED if the name is not in it.
    """

    name: str
    score: float = math.nan
    class_id: int = UNLABELLED


@dataclass(frozen=True, eq=False)
class SceneNode:
    """A node of a scene graph; all lengths in metres, frame of the graph, z up.

    Parameters
    ----------
    id : int
        Unique in the graph, >= 1. For ground truth this is the instance id.
    kind : NodeKind
        Layer of the node.
    labels : tuple of ScoredLabel
        Best first; empty if the method names nothing.
    captions : tuple of str
        Free-text descriptions.
    attributes : mapping
        For example ``{'color': 'red', 'material': 'wood'}``.
    box : AxisAlignedBox, optional
        Axis-aligned bounds.
    oriented_box : OrientedBox, optional
        Oriented bounds.
    parent : int, optional
        Id of the containing node, e.g. the room of an object.
    source_id : str
        Identifier the method itself uses.
    feature_row : int, optional
        Row in the map's feature table `feature_space`.
    feature_space : str
        Name of a feature space of the map; empty without features.
    observations : int
        Number of frames the node was seen in.
    """

    id: int
    kind: NodeKind = NodeKind.OBJECT
    labels: tuple[ScoredLabel, ...] = ()
    captions: tuple[str, ...] = ()
    attributes: Mapping[str, AttributeValue] = field(default_factory=lambda: MappingProxyType({}))
    box: AxisAlignedBox | None = None
    oriented_box: OrientedBox | None = None
    parent: int | None = None
    source_id: str = ''
    feature_row: int | None = None
    feature_space: str = ''
    observations: int = 0

    @property
    def label(self) -> str:
        """Best label, '' if there is none."""
        return self.labels[0].name if self.labels else ''

    @property
    def known_box(self) -> AxisAlignedBox:
        """Axis-aligned bounds of a node that is known to have some."""
        assert self.box is not None
        return self.box

    @property
    def class_id(self) -> int:
        """Class id of the best label, UNLABELLED if there is none."""
        return self.labels[0].class_id if self.labels else UNLABELLED


@dataclass(frozen=True)
class SceneEdge:
    """A directed relation: source TYPE target, e.g. cup on table.

    Parameters
    ----------
    source, target : int
        Node ids.
    type : str
        A `RelationType` value or the method's own name.
    text : str
        Free text as the method gives it.
    score : float
        Confidence; NaN if the method gives none.
    """

    source: int
    target: int
    type: str
    text: str = ''
    score: float = math.nan


@dataclass(frozen=True, eq=False)
class SceneGraph:
    """Nodes and edges.

    Parameters
    ----------
    nodes : tuple of SceneNode
        Ids unique.
    edges : tuple of SceneEdge
        Both ends exist.
    frame_id : str
        Frame of all coordinates, z up.

    Raises
    ------
    MapError
        If an id occurs twice, or an edge or parent leads nowhere.
    """

    nodes: tuple[SceneNode, ...] = ()
    edges: tuple[SceneEdge, ...] = ()
    frame_id: str = WORLD_FRAME

    def __post_init__(self) -> None:
        if len(self.by_id) != len(self.nodes):
            seen: set[int] = set()
            twice = next(n.id for n in self.nodes if n.id in seen or seen.add(n.id))  # type: ignore[func-returns-value]
            raise MapError(f'scene graph: node id {twice} occurs more than once')
        for edge in self.edges:
            for end in (edge.source, edge.target):
                if end not in self.by_id:
                    raise MapError(
                        f'scene graph: edge {edge.source} "{edge.type}" {edge.target} '
                        f'names node {end}, which does not exist'
                    )
        for node in self.nodes:
            if node.id < 1:
                raise MapError(f'scene graph: node id {node.id} is below 1')
            if node.parent is not None and node.parent not in self.by_id:
                raise MapError(f'scene graph: node {node.id} has parent {node.parent}, not a node')

    @cached_property
    def by_id(self) -> Mapping[int, SceneNode]:
        """Nodes by id."""
        return {node.id: node for node in self.nodes}

    def of_kind(self, kind: NodeKind) -> Iterator[SceneNode]:
        """Yield the nodes of one layer in order."""
        return (node for node in self.nodes if node.kind is kind)

    def without_attributes(self, names: Collection[str]) -> SceneGraph:
        """Return the graph without some attributes of its nodes."""
        nodes = tuple(
            replace(n, attributes={k: v for k, v in n.attributes.items() if k not in names})
            for n in self.nodes
        )
        return replace(self, nodes=nodes)


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
