"""Content of a method's files, and the map that is built of it: axes, units, ids, features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.maps.disk.document import MAX_NODES
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.semantic_map import (
    DenseMap,
    FeatureSpace,
    MapHeader,
    Provenance,
    SemanticMap,
)
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import (
    AttributeValue,
    NodeKind,
    SceneEdge,
    SceneGraph,
    SceneNode,
    ScoredLabel,
)


@dataclass(frozen=True)
class Encoder:
    """The encoder of a feature space with the method's default settings."""

    model: str
    pretrained: str = ''
    text_comparable: bool = True
    templates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Method:
    """Properties common to all maps of a method."""

    name: str
    world: World
    encoders: Mapping[str, Encoder] = field(default_factory=lambda: MappingProxyType({}))


@dataclass
class SourceObject:
    """An object of a method, in the method's axes and units, with its identifier."""

    source_id: str
    kind: NodeKind = NodeKind.OBJECT
    points: NDArray[np.floating] | None = None
    colors: NDArray[np.uint8] | None = None
    features: dict[str, NDArray[np.floating]] = field(default_factory=dict)
    labels: list[tuple[str, float]] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    corners: NDArray[np.floating] | None = None
    center_and_size: tuple[Sequence[float], Sequence[float]] | None = None
    parent: str | None = None
    observations: int = 0


@dataclass(frozen=True)
class SourceEdge:
    """A relation between two source ids."""

    source: str
    target: str
    type: str
    text: str = ''
    score: float = float('nan')


def feature_spaces(
    method: Method, options: ImportOptions, objects: Sequence[SourceObject]
) -> tuple[dict[str, tuple[str, int | None]], dict[str, FeatureSpace]]:
    """Return (space, row) of each object, in its first feature space, and the feature spaces."""
    rows: dict[str, tuple[str, int | None]] = {}
    spaces: dict[str, FeatureSpace] = {}
    for name in method.encoders:
        owners = [item for item in objects if name in item.features]
        vectors = [np.asarray(item.features[name], np.float32).ravel() for item in owners]
        if not vectors:
            continue
        spaces[name] = feature_space(method, options, name, _stacked(method, name, vectors))
        for row, item in enumerate(owners):
            rows.setdefault(item.source_id, (name, row))
    return rows, spaces


def _stacked(
    method: Method, name: str, vectors: Sequence[NDArray[np.float32]]
) -> NDArray[np.float32]:
    lengths = {len(vector) for vector in vectors}
    if len(lengths) > 1:
        raise MapError(f'{method.name}: {name} features have different lengths: {sorted(lengths)}')
    return np.stack(vectors)


def feature_space(
    method: Method, options: ImportOptions, name: str, vectors: NDArray[np.floating]
) -> FeatureSpace:
    """Return a feature space of the options' or the method's encoder; MapError if not finite."""
    vectors = np.ascontiguousarray(vectors, np.float32)
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise MapError(f'{method.name}: {name} feature {row} is NaN or infinite')
    encoder = method.encoders[name]
    comparable = options.text_comparable
    # What text cannot be compared with holds for every feature of the map.
    is_given = comparable is False or name == next(iter(method.encoders))
    length = np.linalg.norm(vectors, axis=1)
    return FeatureSpace(
        name,
        vectors,
        (options.feature_model if is_given else '') or encoder.model,
        (options.feature_pretrained if is_given else '') or encoder.pretrained,
        bool(len(vectors)) and bool((np.abs(length - 1) < 1e-3).all()),
        encoder.text_comparable if comparable is None or not is_given else comparable,
        encoder.templates,
    )


class Placement:
    """Transforms coordinates of a method's files to the map frame: z up, metres."""

    def __init__(self, method: Method, options: ImportOptions) -> None:
        self._rotation = options.pose.rotation @ (options.world or method.world).rotation
        self._translation = options.pose.translation
        self._scale = options.metres_per_unit
        if not (np.isfinite(self._scale) and self._scale > 0):
            raise MapError(f'metres_per_unit is {self._scale}; it must be a positive number')

    def points(self, points: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return points (..., 3) in metres in the frame of the map."""
        scaled = np.asarray(points, np.float64) * self._scale
        return np.asarray(scaled @ self._rotation.T + self._translation)

    def poses(self, path: StampedTrajectory, frame_id: str, child: str) -> StampedTrajectory:
        """Return the poses of the frame `child` in the frame of the map."""
        moved = path.transformed(Similarity(Pose(self._rotation, self._translation), self._scale))
        return replace(moved, frame_id=frame_id, child_frame_id=child)

    def box(
        self, center: Sequence[float], size: Sequence[float]
    ) -> tuple[AxisAlignedBox, OrientedBox]:
        """Return bounds of a box along the axes of the files."""
        lengths = np.abs(np.asarray(size, np.float64)) * self._scale
        oriented = OrientedBox(Pose(self._rotation, self.points(np.asarray(center))), lengths)
        return oriented.axis_aligned(), oriented

    def corners(self, corners: NDArray[np.floating]) -> tuple[AxisAlignedBox, OrientedBox | None]:
        """Return bounds of eight corners in the order of Open3D's get_box_points."""
        placed = self.points(corners)
        return AxisAlignedBox.around(placed), _oriented_box(placed)


def _oriented_box(corners: NDArray[np.float64]) -> OrientedBox | None:
    """Return the box whose edges run from corner 0 to corners 1, 2, 3; None if skew."""
    if corners.shape != (8, 3):
        return None
    edges = corners[1:4] - corners[0]
    size = np.linalg.norm(edges, axis=1)
    if (size < 1e-6).any():
        return None
    axes = (edges / size[:, None]).T
    if np.abs(axes.T @ axes - np.eye(3)).max() > 1e-3:
        return None
    left, _, right = np.linalg.svd(axes)
    rotation = left @ right
    if np.linalg.det(rotation) < 0:
        rotation[:, 2] *= -1
    return OrientedBox(Pose(rotation, corners.mean(axis=0)), size)


MAX_LABEL_CHARACTERS = 10_000


def assemble(
    method: Method,
    options: ImportOptions,
    objects: Sequence[SourceObject],
    edges: Sequence[SourceEdge] = (),
    *,
    source_sha256: str = '',
    extras: Mapping[str, Any] | None = None,
) -> SemanticMap:
    """Build a map of objects with points, boxes and features of their own, from 1 on."""
    ids = number_objects(objects, method.name)
    placement = Placement(method, options)
    rows, spaces = feature_spaces(method, options, objects)
    nodes, clouds, dropped = [], [], 0
    for item in objects:
        points, colors, lost = _placed_points(item, placement)
        dropped += lost
        node = _node(item, ids, points, placement, options, rows.get(item.source_id, ('', None)))
        nodes.append(node)
        if len(points):
            clouds.append((node, points, colors))
    notes = dict(extras or {})
    if dropped:
        notes['points_dropped_because_not_finite'] = dropped
    graph = SceneGraph(tuple(nodes), graph_edges(edges, ids, method.name), options.frame_id)
    return SemanticMap(
        header(method, options, spaces, source_sha256),
        graph,
        _dense(clouds, options) if clouds else None,
        options.label_set,
        spaces,
        notes,
    )


def number_objects(objects: Sequence[SourceObject], method: str) -> dict[str, int]:
    """Return node ids from 1 by source id; MapError if one occurs twice, or there are too many."""
    ids: dict[str, int] = {}
    check_node_count(len(objects), method)
    for item in objects:
        if item.source_id in ids:
            raise MapError(f'{method}: object id "{item.source_id}" occurs more than once')
        ids[item.source_id] = len(ids) + 1
    return ids


def check_node_count(count: int, source: object) -> None:
    """Refuse more nodes than a map may have, before memory is allocated."""
    if count > MAX_NODES:
        raise MapError(f'{source}: {count} objects; a map has at most {MAX_NODES}')


def graph_edges(
    edges: Sequence[SourceEdge], ids: Mapping[str, int], method: str
) -> tuple[SceneEdge, ...]:
    """Return the edges between node ids; MapError if one names an object that does not exist."""
    made = []
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in ids:
                raise MapError(f'{method}: a relation "{edge.type}" names object "{end}", unknown')
        made.append(
            SceneEdge(ids[edge.source], ids[edge.target], edge.type, edge.text, edge.score)
        )
    return tuple(made)


def header(
    method: Method, options: ImportOptions, spaces: Mapping[str, FeatureSpace], source_sha256: str
) -> MapHeader:
    """Return the header of an imported map."""
    return MapHeader(
        Provenance(
            method.name,
            options.method_version,
            {name: f'{space.model} {space.pretrained}'.strip() for name, space in spaces.items()},
            options.scene,
            options.condition,
            options.frames_used,
            source_sha256,
        ),
        options.frame_id,
    )


def _scored_labels(
    labels: Sequence[tuple[str, float]], options: ImportOptions
) -> tuple[ScoredLabel, ...]:
    """Return labels with their class ids in the options' label set."""
    label_set = options.label_set
    for name, _ in labels:
        if len(name) > MAX_LABEL_CHARACTERS:  # a name is repeated at each object that has it
            raise MapError(
                f'a label has {len(name)} characters; at most {MAX_LABEL_CHARACTERS} are read'
            )
    return tuple(
        ScoredLabel(name, score, UNLABELLED if label_set is None else label_set.id_of(name))
        for name, score in labels
        if name
    )


def _placed_points(
    item: SourceObject, placement: Placement
) -> tuple[NDArray[np.float32], NDArray[np.uint8] | None, int]:
    """Return finite points, their colours, and the number of dropped points."""
    if item.points is None or not len(item.points):
        return np.zeros((0, 3), np.float32), None, 0
    if item.points.ndim != 2 or item.points.shape[1] != 3:
        raise MapError(f'object "{item.source_id}" has points of shape {item.points.shape}')
    if item.colors is not None and item.colors.shape != item.points.shape:
        raise MapError(
            f'object "{item.source_id}" has {len(item.points)} points, '
            f'but colours of shape {item.colors.shape}'
        )
    keep = np.isfinite(item.points).all(axis=1)
    points = placement.points(item.points[keep]).astype(np.float32)
    colors = None if item.colors is None else item.colors[keep]
    return points, colors, int((~keep).sum())


def _node(
    item: SourceObject,
    ids: Mapping[str, int],
    points: NDArray[np.float32],
    placement: Placement,
    options: ImportOptions,
    feature: tuple[str, int | None],
) -> SceneNode:
    box, oriented = _boxes(item, points, placement)
    if item.parent is not None and item.parent not in ids:
        raise MapError(f'object "{item.source_id}" lies in "{item.parent}", which is unknown')
    return SceneNode(
        id=ids[item.source_id],
        kind=item.kind,
        labels=_scored_labels(item.labels, options),
        captions=tuple(caption for caption in item.captions if caption),
        attributes=item.attributes,
        box=box,
        oriented_box=oriented,
        parent=None if item.parent is None else ids[item.parent],
        source_id=item.source_id,
        feature_row=feature[1],
        feature_space=feature[0],
        observations=item.observations,
    )


def _boxes(
    item: SourceObject, points: NDArray[np.float32], placement: Placement
) -> tuple[AxisAlignedBox | None, OrientedBox | None]:
    """Return bounds of the points if there are any, else of the method's box."""
    box, oriented = None, None
    if item.corners is not None and np.isfinite(item.corners).all():
        box, oriented = placement.corners(item.corners)
    elif item.center_and_size is not None:
        box, oriented = placement.box(*item.center_and_size)
    if len(points):
        box = AxisAlignedBox.around(points)
    return box, oriented


def _dense(
    clouds: Sequence[tuple[SceneNode, NDArray[np.float32], NDArray[np.uint8] | None]],
    options: ImportOptions,
) -> DenseMap:
    counts = [len(points) for _, points, _ in clouds]
    nodes = [node for node, _, _ in clouds]
    colors = [color for _, _, color in clouds if color is not None]

    def repeated(values: Sequence[int]) -> NDArray[np.int32]:
        return np.repeat(np.array(values, np.int32), counts)

    rows = [-1 if node.feature_row is None else node.feature_row for node in nodes]
    spaces = {node.feature_space for node in nodes if node.feature_space}
    one_space = len(spaces) == 1
    return DenseMap(
        points=np.concatenate([points for _, points, _ in clouds]),
        colors=np.concatenate(colors) if len(colors) == len(clouds) else None,
        labels=None if options.label_set is None else repeated([node.class_id for node in nodes]),
        instances=repeated([node.id for node in nodes]),
        feature_rows=repeated(rows) if one_space else None,
        feature_space=spaces.pop() if one_space else '',
    )
