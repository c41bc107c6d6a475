"""The semantic map, the common form of every method's output, and the form of its files.

Header, nodes, edges and classes are validated and written as the dataclasses are; `ArrayForm` says
how each array of points is kept. `maps.map_document` makes map.json and all checks from that.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.base.contract import WORLD_FRAME
from osmabench_ros.base.strict import JsonForm
from osmabench_ros.errors import MapError
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose, Similarity
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.semantics.labels import LabelSet, Name, group_rows_by_id
from osmabench_ros.semantics.scene_graph import Count, Few, SceneGraph, SceneNode

FORMAT: Final = 'osmabench.semantic_map/1'

# Attribute of nodes that is False where a method mapped an object, but left it out of the scene
# graph that it wrote. Such a node counts as a mask, and not as a node of the graph.
IN_SCENE_GRAPH = 'in_scene_graph'

COORDINATES = ('x', 'y', 'z')
CHANNELS = ('red', 'green', 'blue')


@dataclass(frozen=True)
class ArrayForm:
    """Element type of an array of points, and its properties of cloud.ply; none: a file dense/."""

    dtype: Any
    properties: tuple[str, ...] = ()


@dataclass(frozen=True)
class Provenance:
    """Origin of a map.

    Parameters
    ----------
    method : str
        Name of the mapping method, e.g. ``'conceptgraphs'``.
    method_version : str
        Version or commit; empty if unknown.
    models : mapping of str to str
        Models the method used, e.g. ``{'clip': 'ViT-H-14'}``.
    scene, condition : str
        Names of scene and condition; empty if unknown.
    frames_used : int
        Frames integrated; 0 if unknown.
    source_sha256 : str
        Hex digest of the imported files; empty for live maps.
    """

    method: Name
    method_version: str = ''
    models: Annotated[
        Mapping[str, str], JsonForm(Annotated[dict[str, str], Few], read=dict, write=dict)
    ] = field(default_factory=dict)
    scene: str = ''
    condition: str = ''
    frames_used: Count = 0
    source_sha256: Annotated[str, Field(pattern='^([0-9a-f]{64})?$')] = ''


@dataclass(frozen=True)
class MapHeader:
    """Frame, time and origin of a map.

    Parameters
    ----------
    provenance : Provenance
        Where the map comes from.
    frame_id : str
        Frame of all coordinates, z up, metres.
    stamp_ns : int
        Time of the newest frame in the map.
    complete : bool
        False if the method was cut off.
    remark : str
        Note for readers of scores, for example why the map was cut off.
    """

    provenance: Provenance
    frame_id: Name = WORLD_FRAME
    stamp_ns: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    complete: bool = True
    remark: str = ''

    @property
    def state(self) -> str:
        """State for people: 'complete' or 'partial'."""
        return 'complete' if self.complete else 'partial'


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """A table of feature vectors and the encoder they come from.

    Parameters
    ----------
    name : str
        Key by which nodes and points refer to it.
    vectors : ndarray of float32, shape (M, D)
        One row for each node, object or point.
    model, pretrained : str
        Encoder and weights, e.g. ``'ViT-H-14'``, ``'laion2b_s32b_b79k'``.
    normalised : bool
        Whether rows have unit length.
    text_comparable : bool
        Whether the cosine with the encoder's text features means similarity.
    templates : tuple of str
        Prompt templates of the method, e.g. ``'an image of {}'``.
    """

    name: str
    vectors: NDArray[np.float32]
    model: str
    pretrained: str = ''
    normalised: bool = False
    text_comparable: bool = True
    templates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2:
            raise MapError(f'feature space "{self.name}": vectors are {self.vectors.shape}')
        if not self.model:
            raise MapError(f'feature space "{self.name}" does not name its model')


@dataclass(frozen=True, eq=False)
class Membership:
    """Which points belong to which node, as sparse rows, so that masks may overlap.

    Parameters
    ----------
    node_ids : ndarray of int32, shape (R,)
        Node of each row.
    offsets : ndarray of int64, shape (R + 1,)
        Row r owns ``point_indices[offsets[r]:offsets[r + 1]]``.
    point_indices : ndarray of int64, shape (K,)
        Indices into the dense points.
    """

    node_ids: Annotated[NDArray[np.int32], ArrayForm(np.int32)]
    offsets: Annotated[NDArray[np.int64], ArrayForm(np.int64)]
    point_indices: Annotated[NDArray[np.int64], ArrayForm(np.int64)]

    def points_of(self, row: int) -> NDArray[np.int64]:
        """Return the point indices of a row."""
        return self.point_indices[self.offsets[row] : self.offsets[row + 1]]


@dataclass(frozen=True, eq=False)
class DenseMap:
    """The points of a map; a part the method does not give is None, never zero.

    Parameters
    ----------
    points : ndarray of float32, shape (N, 3)
        Metres, frame of the map.
    colors : ndarray of uint8, shape (N, 3), optional
        RGB.
    labels : ndarray of int32, shape (N,), optional
        Class id in the map's label set, UNLABELLED where the method gives none.
    instances : ndarray of int32, shape (N,), optional
        Node id, 0 where the point belongs to none.
    scores : ndarray of float32, shape (N,), optional
        Confidence of the label.
    feature_rows : ndarray of int32, shape (N,), optional
        Row in `feature_space`, -1 where there is none.
    feature_space : str
        Name of the feature space that `feature_rows` refers to.
    valid : ndarray of bool, shape (N,), optional
        False where the method never looked.
    membership : Membership, optional
        Overlapping masks of the nodes.
    """

    points: Annotated[NDArray[np.float32], ArrayForm(np.float32, COORDINATES)]
    colors: Annotated[NDArray[np.uint8] | None, ArrayForm(np.uint8, CHANNELS)] = None
    labels: Annotated[NDArray[np.int32] | None, ArrayForm(np.int32, ('label',))] = None
    instances: Annotated[NDArray[np.int32] | None, ArrayForm(np.int32, ('instance',))] = None
    scores: Annotated[NDArray[np.float32] | None, ArrayForm(np.float32, ('score',))] = None
    feature_rows: Annotated[NDArray[np.int32] | None, ArrayForm(np.int32)] = None
    feature_space: str = ''
    valid: Annotated[NDArray[np.bool_] | None, ArrayForm(np.bool_)] = None
    membership: Membership | None = None

    @property
    def valid_points(self) -> NDArray[np.float32]:
        """Those of the points that the method looked at, shape (M, 3)."""
        return self.points if self.valid is None else self.points[self.valid]


@dataclass(frozen=True, eq=False)
class SemanticMap:
    """A semantic map with its scene graph.

    Parameters
    ----------
    header : MapHeader
        Frame, time, origin.
    graph : SceneGraph
        Nodes and edges; empty if the method makes none.
    dense : DenseMap, optional
        Points with labels, instances, features.
    label_set : LabelSet, optional
        Meaning of the class ids; None for open-vocabulary maps that were not labelled yet.
    feature_spaces : mapping of str to FeatureSpace
        Feature tables by name.
    extras : mapping
        JSON-serialisable data of the source that has no place here.
    trajectory : StampedTrajectory, optional
        Optical poses in the frame of the map that a method found by itself, one per frame.
    """

    header: MapHeader
    graph: SceneGraph = field(default_factory=SceneGraph)
    dense: DenseMap | None = None
    label_set: LabelSet | None = None
    feature_spaces: Mapping[str, FeatureSpace] = field(default_factory=dict)
    extras: Mapping[str, Any] = field(default_factory=dict)
    trajectory: StampedTrajectory | None = None


# Smaller turns leave boxes along the axes.
_TURN_DEG = 1e-6


def transform_map(semantic_map: SemanticMap, by: Similarity, frame_id: str) -> SemanticMap:
    """Return a map in the new frame; axis-aligned boxes may become larger."""
    dense = semantic_map.dense
    if dense is not None:
        dense = dataclasses.replace(dense, points=by.transform(dense.points).astype(np.float32))
    turned = by.angle_deg > _TURN_DEG
    bounds = _find_bounds(dense) if turned and dense is not None else {}
    graph, poses = semantic_map.graph, semantic_map.trajectory
    if poses is not None:
        poses = dataclasses.replace(poses.transform(by), frame_id=frame_id)
    nodes = tuple(_transform_node(node, by, bounds.get(node.id)) for node in graph.nodes)
    return dataclasses.replace(
        semantic_map,
        header=dataclasses.replace(semantic_map.header, frame_id=frame_id),
        graph=dataclasses.replace(graph, nodes=nodes, frame_id=frame_id),
        dense=dense,
        trajectory=poses,
    )


def _transform_node(node: SceneNode, by: Similarity, bounds: AxisAlignedBox | None) -> SceneNode:
    oriented = node.oriented_box
    if oriented is not None:
        center = by.transform(oriented.pose.translation)
        pose = Pose(by.pose.rotation @ oriented.pose.rotation, center)
        oriented = OrientedBox(pose, oriented.size * by.scale)
    box = node.box
    if box is not None:
        if bounds is not None:
            box = bounds
        elif by.angle_deg <= _TURN_DEG:
            box = AxisAlignedBox(by.transform(box.minimum), by.transform(box.maximum))
        elif oriented is not None:
            box = oriented.axis_aligned()
        else:
            corners = OrientedBox(Pose(np.eye(3), box.center), box.size).corners()
            box = AxisAlignedBox.around(by.transform(corners))
    return dataclasses.replace(node, box=box, oriented_box=oriented)


def _find_bounds(dense: DenseMap) -> Mapping[int, AxisAlignedBox]:
    """Return the boxes around the points of each node."""
    if dense.instances is None:
        return {}
    rows = group_rows_by_id(dense.instances)
    return {node: AxisAlignedBox.around(dense.points[own]) for node, own in rows.items()}
