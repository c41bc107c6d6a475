"""Scene graph: objects, rooms and relations, for ground truth and maps alike, and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Annotated

from pydantic import BaseModel, Field

from osmabench_ros.base.contract import WORLD_FRAME
from osmabench_ros.base.strict import STRICT_JSON, JsonForm
from osmabench_ros.errors import MapError
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.labels import UNLABELLED, ClassId, Name

AttributeValue = str | float | bool
"""Value of a node's attribute; lengths are metres."""

MAX_ENTRIES = 1000
"""Most entries of a list or mapping within an item of a JSON file."""

Few = Field(max_length=MAX_ENTRIES)
FewTexts = Annotated[tuple[str, ...], JsonForm(Annotated[list[str], Few], tuple, list)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Vector = Annotated[list[float], Field(min_length=3, max_length=3)]
_NULL = Field(json_schema_extra={'default': None})

Score = Annotated[
    float,
    JsonForm(
        float | None,
        read=lambda value: math.nan if value is None else value,
        write=lambda value: None if math.isnan(value) else value,
    ),
    _NULL,
]
"""Confidence; NaN, in JSON null, if the method gives none."""

LabelId = Annotated[
    int,
    JsonForm(
        ClassId | None,
        read=lambda value: UNLABELLED if value is None else value,
        write=lambda value: None if value == UNLABELLED else value,
    ),
    _NULL,
]
"""Class id; UNLABELLED, in JSON null, if there is none."""


class BoxDocument(BaseModel):
    """Axis-aligned box, opposite corners in metres."""

    model_config = STRICT_JSON

    min: Vector
    max: Vector


class OrientedBoxDocument(BaseModel):
    """Oriented box: centre in metres, rotation matrix by rows, full edge lengths in metres."""

    model_config = STRICT_JSON

    center: Vector
    rotation: Annotated[list[Vector], Field(min_length=3, max_length=3)]
    size: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=3, max_length=3)]


Box = Annotated[
    AxisAlignedBox,
    JsonForm(
        BoxDocument,
        read=lambda box: AxisAlignedBox(box.min, box.max),
        write=lambda box: {'min': box.minimum.tolist(), 'max': box.maximum.tolist()},
    ),
]
TurnedBox = Annotated[
    OrientedBox,
    JsonForm(
        OrientedBoxDocument,
        read=lambda box: OrientedBox(Pose(box.rotation, box.center), box.size),
        write=lambda box: {
            'center': box.pose.translation.tolist(),
            'rotation': box.pose.rotation.tolist(),
            'size': box.size.tolist(),
        },
    ),
]
_VALUES = Annotated[dict[str, str | int | float | bool], Few]
Attributes = Annotated[
    Mapping[str, AttributeValue], JsonForm(_VALUES, read=lambda values: values, write=dict)
]


class NodeKind(str, Enum):
    """Layers of a hierarchical scene graph."""

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

    name: Name
    score: Score = math.nan
    class_id: LabelId = UNLABELLED


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

    id: Annotated[int, Field(ge=1, le=2**31 - 1)]
    kind: NodeKind = NodeKind.OBJECT
    labels: Annotated[
        tuple[ScoredLabel, ...], JsonForm(Annotated[list[ScoredLabel], Few], tuple, list)
    ] = ()
    captions: FewTexts = ()
    attributes: Attributes = field(default_factory=dict)
    box: Box | None = None
    oriented_box: TurnedBox | None = None
    parent: int | None = None
    source_id: str = ''
    feature_row: Annotated[int, Field(ge=0)] | None = None
    feature_space: str = ''
    observations: Count = 0

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
    type: Name
    text: str = ''
    score: Score = math.nan


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
            twice = Counter(node.id for node in self.nodes).most_common(1)[0][0]
            raise MapError(f'scene graph: node id {twice} occurs more than once')
        ends = ((edge, end) for edge in self.edges for end in (edge.source, edge.target))
        for edge, end in ends:
            if end not in self.by_id:
                text = f'{edge.source} "{edge.type}" {edge.target}'
                raise MapError(f'scene graph: edge {text} names node {end}, which is not there')
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

    def drop_attributes(self, names: Collection[str]) -> SceneGraph:
        """Return the graph without some attributes of its nodes."""
        nodes = tuple(
            replace(n, attributes={k: v for k, v in n.attributes.items() if k not in names})
            for n in self.nodes
        )
        return replace(self, nodes=nodes)
