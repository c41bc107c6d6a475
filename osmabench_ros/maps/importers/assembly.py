"""Content of a method's files, and the map that is built of it: axes, units, ids, features."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose, Similarity
from osmabench_ros.maps import semantic_map
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.map_document import MAX_NODES
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import (
    AttributeValue,
    NodeKind,
    RelationType,
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


VIT_H = Encoder('ViT-H-14', 'laion2b_s32b_b79k')
VIT_L_336 = Encoder('ViT-L-14-336-quickgelu', 'openai', templates=('a {} in a scene',))


@dataclass(frozen=True)
class Method:
    """Properties common to all maps of a method."""

    name: str
    world: World
    encoders: Mapping[str, Encoder] = field(default_factory=dict)


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


MAX_LABEL_CHARACTERS = 10_000


class MapBuilder:
    """Takes a method's files to the frame of the map, z up and metres, and builds the map."""

    def __init__(self, method: Method, options: ImportOptions) -> None:
        self.method, self.options = method, options
        scale, pose = options.metres_per_unit, options.pose
        if not (np.isfinite(scale) and scale > 0):
            raise MapError(f'metres_per_unit is {scale}; it must be a positive number')
        rotation = pose.rotation @ (options.world or method.world).rotation
        self.into_map = Similarity(Pose(rotation, pose.translation), scale)
        self._spaces: dict[str, semantic_map.FeatureSpace] = {}
        self._dropped = 0

    def place_cloud(
        self, points: NDArray[np.floating], *columns: NDArray[Any] | None
    ) -> tuple[NDArray[np.float32], list[Any]]:
        """Return the finite points, and their rows of columns; MapError if lengths differ."""
        if points.ndim != 2 or points.shape[1] != 3:
            raise MapError(f'{self.method.name}: points of shape {points.shape}, expected (N, 3)')
        for column in columns:
            if column is not None and len(column) != len(points):
                text = f'{len(points)} points, but values for {len(column)}'
                raise MapError(f'{self.method.name}: {text}; give the files of one map')
        keep = np.isfinite(points).all(axis=1)
        self._dropped += int((~keep).sum())
        kept = [None if column is None else column[keep] for column in columns]
        return self.into_map.transform(points[keep]).astype(np.float32), kept

    def make_boxes(
        self, item: SourceObject, points: NDArray[np.float32]
    ) -> tuple[AxisAlignedBox | None, OrientedBox | None]:
        """Return bounds of the points if there are any, else of the method's box."""
        box, oriented = None, None
        if item.corners is not None and np.isfinite(item.corners).all():
            corners = self.into_map.transform(item.corners)
            box = AxisAlignedBox.around(corners)
            oriented = _make_oriented_box(corners)
        elif item.center_and_size is not None:
            center, size = (np.asarray(value, np.float64) for value in item.center_and_size)
            pose = Pose(self.into_map.pose.rotation, self.into_map.transform(center))
            oriented = OrientedBox(pose, np.abs(size) * self.into_map.scale)
            box = oriented.axis_aligned()
        return AxisAlignedBox.around(points) if len(points) else box, oriented

    def make_labels(self, item: SourceObject) -> tuple[ScoredLabel, ...]:
        """Return labels with their class ids in the options' label set."""
        longest = max((len(name) for name, _ in item.labels), default=0)
        if longest > MAX_LABEL_CHARACTERS:  # a name is repeated at each object that has it
            limit = f'at most {MAX_LABEL_CHARACTERS} are read'
            raise MapError(f'a label has {longest} characters; {limit}')
        known = self.options.label_set
        return tuple(
            ScoredLabel(name, score, UNLABELLED if known is None else known.id_of(name))
            for name, score in item.labels
            if name
        )

    def add_space(self, name: str, vectors: NDArray[np.floating]) -> None:
        """Add features of the options' or the method's encoder; MapError if not finite."""
        method, options = self.method, self.options
        vectors = np.ascontiguousarray(vectors, np.float32)
        if not np.isfinite(vectors).all():
            row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise MapError(f'{method.name}: {name} feature {row} is NaN or infinite')
        encoder = method.encoders[name]
        comparable = options.text_comparable
        # What text cannot be compared with holds for every feature of the map.
        is_given = comparable is False or name == next(iter(method.encoders))
        length = np.linalg.norm(vectors, axis=1)
        self._spaces[name] = semantic_map.FeatureSpace(
            name,
            vectors,
            (options.feature_model if is_given else '') or encoder.model,
            (options.feature_pretrained if is_given else '') or encoder.pretrained,
            bool(len(vectors)) and bool((np.abs(length - 1) < 1e-3).all()),
            encoder.text_comparable if comparable is None or not is_given else comparable,
            encoder.templates,
        )

    def build(
        self,
        nodes: Sequence[SceneNode] = (),
        edges: Sequence[SceneEdge] = (),
        dense: semantic_map.DenseMap | None = None,
        *,
        source_sha256: str,
        extras: Mapping[str, Any] | None = None,
        label_set: LabelSet | None = None,
    ) -> semantic_map.SemanticMap:
        """Return the map; `label_set` comes with the files; by default the options have it."""
        options = self.options
        models = {k: f'{v.model} {v.pretrained}'.strip() for k, v in self._spaces.items()}
        given = ('method_version', 'scene', 'condition', 'frames_used')
        origin = {name: getattr(options, name) for name in given}
        provenance = semantic_map.Provenance(
            self.method.name, models=models, source_sha256=source_sha256, **origin
        )
        lost = {'points_dropped_because_not_finite': self._dropped} if self._dropped else {}
        return semantic_map.SemanticMap(
            semantic_map.MapHeader(provenance, options.frame_id),
            SceneGraph(tuple(nodes), tuple(edges), options.frame_id),
            dense,
            label_set or options.label_set,
            self._spaces,
            {**(extras or {}), **lost},
        )


def _make_oriented_box(corners: NDArray[np.float64]) -> OrientedBox | None:
    """Return the box with edges from corner 0 to corners 1, 2, 3; None if skew."""
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


def check_node_count(count: int, source: object) -> None:
    """Refuse more nodes than a map may have, before memory is allocated."""
    if count > MAX_NODES:
        raise MapError(f'{source}: {count} objects; a map has at most {MAX_NODES}')


def assemble(
    method: Method,
    options: ImportOptions,
    objects: Sequence[SourceObject],
    edges: Sequence[SourceEdge] = (),
    *,
    source_sha256: str = '',
    extras: Mapping[str, Any] | None = None,
) -> semantic_map.SemanticMap:
    """Build a map of objects with their points, boxes and features; ids begin with 1."""
    builder = MapBuilder(method, options)
    ids = _number_objects(method, objects)
    rows = _add_features(builder, objects)
    nodes = []
    clouds = []
    for item in objects:
        points, colors = np.zeros((0, 3), np.float32), None
        if item.points is not None and len(item.points):
            points, (colors,) = builder.place_cloud(item.points, item.colors)
        box, oriented = builder.make_boxes(item, points)
        space, row = rows.get(item.source_id, ('', None))
        node = SceneNode(
            ids[item.source_id],
            item.kind,
            builder.make_labels(item),
            tuple(caption for caption in item.captions if caption),
            item.attributes,
            box,
            oriented,
            None if item.parent is None else _find_id(ids, item.parent, method),
            item.source_id,
            row,
            space,
            item.observations,
        )
        nodes.append(node)
        if len(points):
            clouds.append((node, points, colors))
    made = []
    for edge in edges:
        start, end = (_find_id(ids, name, method) for name in (edge.source, edge.target))
        made.append(SceneEdge(start, end, edge.type, edge.text))
    dense = _join_clouds(clouds, options) if clouds else None
    return builder.build(nodes, made, dense, source_sha256=source_sha256, extras=extras)


def link_parents(objects: Sequence[SourceObject]) -> Iterator[SourceEdge]:
    """Yield "part of" edges to the next room, floor or building above each node."""
    by_id = {item.source_id: item for item in objects}
    for item in objects:
        above, seen = item.parent, {item.source_id}
        while above is not None and above not in seen and by_id[above].kind is NodeKind.PLACE:
            seen.add(above)
            above = by_id[above].parent
        if above is not None and above not in seen and item.kind is not NodeKind.PLACE:
            yield SourceEdge(item.source_id, above, RelationType.PART_OF.value)


def _number_objects(method: Method, objects: Sequence[SourceObject]) -> dict[str, int]:
    check_node_count(len(objects), method.name)
    ids = {item.source_id: number for number, item in enumerate(objects, start=1)}
    if len(ids) < len(objects):
        [(twice, _)] = Counter(item.source_id for item in objects).most_common(1)
        raise MapError(f'{method.name}: object id "{twice}" occurs more than once')
    return ids


def _find_id(ids: Mapping[str, int], source_id: str, method: Method) -> int:
    if source_id not in ids:
        raise MapError(f'{method.name}: "{source_id}", which a relation names, is unknown')
    return ids[source_id]


def _add_features(
    builder: MapBuilder, objects: Sequence[SourceObject]
) -> dict[str, tuple[str, int]]:
    """Add the features of objects; return (space, row) of each, in its first feature space."""
    rows: dict[str, tuple[str, int]] = {}
    for name in builder.method.encoders:
        owners = [item for item in objects if name in item.features]
        vectors = [np.asarray(item.features[name], np.float32).ravel() for item in owners]
        lengths = {len(vector) for vector in vectors}
        if len(lengths) > 1:
            what = f'{builder.method.name}: {name} features'
            raise MapError(f'{what} have different lengths: {sorted(lengths)}')
        if vectors:
            builder.add_space(name, np.stack(vectors))
        for row, item in enumerate(owners):
            rows.setdefault(item.source_id, (name, row))
    return rows


def _join_clouds(
    clouds: Sequence[tuple[SceneNode, NDArray[np.float32], NDArray[np.uint8] | None]],
    options: ImportOptions,
) -> semantic_map.DenseMap:
    counts = [len(points) for _, points, _ in clouds]
    nodes = [node for node, _, _ in clouds]
    colors = [color for _, _, color in clouds if color is not None]

    def repeated(values: Sequence[int]) -> NDArray[np.int32]:
        return np.repeat(np.array(values, np.int32), counts)

    rows = [-1 if node.feature_row is None else node.feature_row for node in nodes]
    spaces = {node.feature_space for node in nodes if node.feature_space}
    one_space = len(spaces) == 1
    return semantic_map.DenseMap(
        points=np.concatenate([points for _, points, _ in clouds]),
        colors=np.concatenate(colors) if len(colors) == len(clouds) else None,
        labels=None if options.label_set is None else repeated([node.class_id for node in nodes]),
        instances=repeated([node.id for node in nodes]),
        feature_rows=repeated(rows) if one_space else None,
        feature_space=spaces.pop() if one_space else '',
    )
