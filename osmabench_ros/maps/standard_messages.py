"""Maps as PointCloud2, Detection3DArray and MarkerArray hold them, and back; needs no ROS."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.contract import WORLD_FRAME
from osmabench_ros.errors import ConfigError, ContractError, MapError, errors_as
from osmabench_ros.geometry.boxes import OrientedBox
from osmabench_ros.geometry.point_files import make_rows, pack_colors
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.importer import TopicOptions
from osmabench_ros.maps.importers import pointcloud
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED, LabelClass, LabelSet, normalised_name
from osmabench_ros.semantics.scene_graph import SceneEdge, SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.sequences.topics import pose_of

# Constants of sensor_msgs/PointField (INT8 = 1 ... FLOAT64 = 8) to NumPy types.
DATATYPES = {1: 'i1', 2: 'u1', 3: 'i2', 4: 'u2', 5: 'i4', 6: 'u4', 7: 'f4', 8: 'f8'}
_CODES = {kind: code for code, kind in DATATYPES.items()}


@dataclass(frozen=True)
class PointFieldLayout:
    """A field of a point, as in sensor_msgs/PointField."""

    name: str
    offset: int
    datatype: int
    count: int = 1


def make_records(dense: DenseMap) -> NDArray[Any]:
    """Return one record per point: x, y, z, and rgb, label, instance if the map has them.

    Records (N,) are little-endian and packed. `rgb` is a float with the bits 0x00RRGGBB, as PCL
    has it; `label` is a class id, 65535 for none; `instance` a node id, 0 for none.
    """
    columns = dict(zip('xyz', dense.points.astype(np.float32).T, strict=True))
    if dense.colors is not None:
        columns['rgb'] = pack_colors(*dense.colors.T).view(np.float32)
    if dense.labels is not None:
        columns['label'] = dense.labels.astype(np.uint32)
    if dense.instances is not None:
        columns['instance'] = dense.instances.astype(np.int32)
    return make_rows(columns)


def list_fields(records: NDArray[Any]) -> tuple[PointFieldLayout, ...]:
    """Return the fields of records for the message."""
    fields: Mapping[str, Any] = records.dtype.fields or {}
    return tuple(
        PointFieldLayout(name, int(entry[1]), _CODES[entry[0].str[1:]])
        for name, entry in fields.items()
    )


def read_records(message: Any) -> NDArray[Any]:
    """Return the records (height * width,) of a sensor_msgs/PointCloud2; may raise ContractError.

    The message may be any object with its fields.
    """
    order = '>' if message.is_bigendian else '<'
    kinds: dict[str, tuple[str, int]] = {}
    for field in message.fields:
        if field.datatype not in DATATYPES:
            raise ContractError(f'PointCloud2: field "{field.name}" has type {field.datatype}')
        kind = f'{order}{DATATYPES[field.datatype]}'
        end = field.offset + np.dtype(kind).itemsize * max(field.count, 1)
        if field.offset < 0 or end > message.point_step or field.name in kinds:
            place = f'ends at byte {end} of {message.point_step}, or repeats'
            raise ContractError(f'PointCloud2: field "{field.name}" {place}')
        if field.count in (0, 1):
            kinds[field.name] = kind, field.offset
    raw = np.frombuffer(message.data, np.uint8)
    height, width, step = message.height, message.width, message.point_step
    if step < 1 or message.row_step < width * step or raw.size < height * message.row_step:
        claimed = f'{height} rows of {message.row_step} bytes, {width} points of {step} bytes'
        raise ContractError(f'PointCloud2: {claimed}, but data has {raw.size} bytes')
    layout: Any = {
        'names': list(kinds),
        'formats': [kind for kind, _ in kinds.values()],
        'offsets': [offset for _, offset in kinds.values()],
        'itemsize': step,
    }
    rows = raw[: height * message.row_step].reshape(height, message.row_step)[:, : width * step]
    return np.ascontiguousarray(rows).reshape(-1).view(np.dtype(layout))


def convert_records(records: NDArray[Any]) -> tuple[DenseMap, int]:
    """Return the finite points of records, and the number of dropped ones."""
    columns = {name: records[name] for name in records.dtype.names or ()}
    if not {'x', 'y', 'z'} <= columns.keys():
        raise ContractError(f'PointCloud2: fields x, y, z are needed, there are {list(columns)}')
    points = np.stack([columns[name].astype(np.float32) for name in 'xyz'], axis=1)
    keep = np.isfinite(points).all(axis=1)
    color, labels, instances = (
        None if (column := pointcloud.find_column(columns, names)) is None else column[keep]
        for names in (('rgb', 'rgba'), pointcloud.LABEL_COLUMNS, pointcloud.INSTANCE_COLUMNS)
    )
    if labels is not None:
        labels = pointcloud.check_ids(labels, 'PointCloud2: a value of "label"')
        labels[labels < 0] = UNLABELLED
    if instances is not None:
        ids = pointcloud.check_ids(instances, 'PointCloud2: a value of "instance"')
        instances = np.maximum(ids, 0)
    colors = None if color is None else _unpack_colors(color)
    return DenseMap(points[keep], colors, labels, instances), int((~keep).sum())


def _unpack_colors(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return colours of packed values, floats or integers of 32 bits."""
    if values.dtype.itemsize != 4:
        raise ContractError(f'PointCloud2: rgb is {values.dtype}, not 32 bits wide')
    kind = values.dtype.newbyteorder('=')
    packed = np.ascontiguousarray(values.astype(kind)).view(np.uint32)
    channels = [(packed >> shift) & 0xFF for shift in (16, 8, 0)]
    return np.stack(channels, axis=1).astype(np.uint8)


def find_oriented_box(node: SceneNode) -> OrientedBox | None:
    """Return the oriented box of a node, else its axis-aligned one as such, None without any."""
    if node.oriented_box is None and node.box is not None:
        return OrientedBox(Pose(np.eye(3), node.box.center), node.box.size)
    return node.oriented_box


def choose_node_ids(names: Sequence[str]) -> list[int]:
    """Return node ids: the names if all are different whole numbers from 1 up, else new ones."""
    ids = [int(name) if name.isascii() and name.isdigit() else 0 for name in names]
    if len(set(ids)) == len(ids) and all(1 <= node < 2**31 for node in ids):
        return ids
    return list(range(1, len(names) + 1))


def _read_labels(results: Sequence[Any], label_set: LabelSet | None) -> tuple[ScoredLabel, ...]:
    """Return labels, best first; numbers are looked up, else called "class <number>"."""
    made = []
    for result in results:
        # After Foxy, class and score of a hypothesis are in a message of theirs.
        hypothesis = getattr(result, 'hypothesis', result)
        given = str(getattr(hypothesis, 'class_id', None) or getattr(hypothesis, 'id', ''))
        name, class_id = normalised_name(given), UNLABELLED
        if given.isascii() and given.isdigit():
            found = label_set.by_id.get(int(given)) if label_set else None
            name = f'class {int(given)}'
            if found:
                name, class_id = found.name, found.id
        elif label_set is not None:
            class_id = label_set.id_of(name)
        if name:
            made.append(ScoredLabel(name, float(hypothesis.score), class_id))
    made.sort(key=lambda item: math.inf if math.isnan(item.score) else -item.score)
    return tuple(made)


def map_of_detections(message: Any, topic: str, options: TopicOptions) -> SemanticMap:
    """Return the map of boxes: one node per detection, without points.

    Ids are kept as node ids if all are different whole numbers from 1 up, else as source ids.
    ContractError names a malformed detection.
    """
    names = [str(getattr(item, 'id', '')) for item in message.detections]
    nodes = []
    for index, node_id in enumerate(choose_node_ids(names)):
        item, frames = message.detections[index], {message.header.frame_id, ''}
        if item.header.frame_id not in frames:
            own = f'in frame "{item.header.frame_id}", the message in "{message.header.frame_id}"'
            raise ContractError(f'topic "{topic}": detection {index} is {own}')
        pose = pose_of(item.bbox.center, f'{topic}" detection "{index}')
        where = f'topic "{topic}": detection {names[index] or node_id}'
        with errors_as(ContractError, where, ValueError):
            box = OrientedBox(pose, np.array(_read_xyz(item.bbox.size), np.float64))
            nodes.append(
                SceneNode(
                    node_id,
                    labels=_read_labels(item.results, options.label_set),
                    box=box.axis_aligned(),
                    oriented_box=box,
                    source_id=names[index],
                )
            )
    header = options.header(message.header)
    graph = SceneGraph(tuple(nodes), (), header.frame_id)
    return SemanticMap(header, graph, label_set=options.label_set)


def map_of_point_cloud(message: Any, topic: str, options: TopicOptions) -> SemanticMap:
    """Return the map of a sensor_msgs/PointCloud2: its points, and one node per instance.

    A field `label` (or `class`, `semantic`, ...) holds class ids: -1 and 65535 are unlabelled, and
    so is 0 if it is not a class; without a label set classes are called "class <id>". `instance`
    (or `object_id`, ...) holds instance ids, 0 or less for none. Without them, as in RTAB-Map's
    `cloud_map`, the map is geometry only. Raises ContractError if the layout of the message is
    broken, or a label is not in the label set.
    """
    with errors_as(ContractError, f'topic "{topic}"', ContractError, MapError):
        dense, dropped = convert_records(read_records(message))
    label_set = options.label_set
    if dense.labels is not None:
        labels = pointcloud.mark_unlabelled(dense.labels, label_set)
        label_set = label_set or _number_classes(labels, topic)
        try:
            label_set.check(labels, f'topic "{topic}"')
        except ConfigError as error:
            remedy = 'or give the meaning of the labels with --labels'
            raise ContractError(f'{error}; {remedy}') from error
        dense = replace(dense, labels=labels)
    header = options.header(message.header)
    extras = {'points_dropped_because_not_finite': dropped} if dropped else {}
    graph = SceneGraph(pointcloud.make_instance_nodes(dense, label_set), (), header.frame_id)
    return SemanticMap(header, graph, dense, label_set, extras=extras)


def _number_classes(labels: NDArray[np.int32], topic: str) -> LabelSet:
    ids = [int(item) for item in np.unique(labels) if item != UNLABELLED]
    if ids and not 0 <= min(ids) <= max(ids) < UNLABELLED:
        what = f'labels from {min(ids)} to {max(ids)}'
        raise ContractError(f'topic "{topic}": {what} are not in 0 to {UNLABELLED - 1}')
    return LabelSet('numbers', tuple(LabelClass(item, f'class {item}') for item in ids))


# Constants of visualization_msgs/Marker.
_SOLIDS = (1, 2, 3)  # CUBE, SPHERE, CYLINDER
_LINE_LIST, _TEXT = 5, 9
_ADD, _DELETE, _DELETE_ALL = 0, 2, 3
_AT_CENTER_M = 0.01


def convert_markers(
    markers: Iterable[Any], topic: str, label_set: LabelSet | None = None
) -> SceneGraph:
    """Return the scene graph of markers; later ones replace or delete earlier ones.

    Solids are nodes, labelled by their text or by the text marker with the same id; lines of
    a line list between two centres are edges, typed by the text or the namespace of the list.
    Raises ContractError if frames differ, or a pose or size is malformed.
    """
    current: dict[tuple[str, int], Any] = {}
    for marker in markers:
        if marker.action == _DELETE_ALL:
            current.clear()
        elif marker.action == _DELETE:
            current.pop((marker.ns, marker.id), None)
        elif marker.action == _ADD:
            current[marker.ns, marker.id] = marker
    frames = {marker.header.frame_id for marker in current.values()}
    if len(frames) > 1:
        raise ContractError(f'topic "{topic}": markers are in several frames, {sorted(frames)}')
    solids = [marker for marker in current.values() if marker.type in _SOLIDS]
    texts = {marker.id: marker.text for marker in current.values() if marker.type == _TEXT}
    ids = choose_node_ids([str(marker.id) for marker in solids])
    nodes = tuple(
        _read_node(marker, node_id, texts.get(marker.id, ''), topic, label_set)
        for marker, node_id in zip(solids, ids, strict=True)
    )
    lines = [marker for marker in current.values() if marker.type == _LINE_LIST]
    return SceneGraph(nodes, _read_edges(lines, nodes), next(iter(frames), WORLD_FRAME))


def _read_node(
    marker: Any, node_id: int, text: str, topic: str, label_set: LabelSet | None
) -> SceneNode:
    name = marker.text or text
    class_id = UNLABELLED if label_set is None else label_set.id_of(name)
    with errors_as(ContractError, f'topic "{topic}": marker {marker.ns}/{marker.id}', ValueError):
        box = OrientedBox(_read_pose(marker.pose), np.array(_read_xyz(marker.scale)))
        return SceneNode(
            node_id,
            labels=(ScoredLabel(name, class_id=class_id),) if name else (),
            box=box.axis_aligned(),
            oriented_box=box,
            source_id=f'{marker.ns}/{marker.id}',
        )


def _read_pose(message: Any) -> Pose:
    q = message.orientation
    quaternion = (q.x, q.y, q.z, q.w)
    # As RViz does: an all-zero quaternion means no rotation.
    return Pose.from_quaternion(
        quaternion if any(quaternion) else (0.0, 0.0, 0.0, 1.0), _read_xyz(message.position)
    )


def _read_xyz(message: Any) -> tuple[float, float, float]:
    return message.x, message.y, message.z


def _read_edges(lines: Sequence[Any], nodes: Sequence[SceneNode]) -> tuple[SceneEdge, ...]:
    from scipy.spatial import cKDTree

    if not nodes:
        return ()
    tree = cKDTree([node.oriented_box.pose.translation for node in nodes if node.oriented_box])
    edges = []
    for marker in lines:
        distances, rows = tree.query(_read_ends(marker))
        pairs = zip(distances.reshape(-1, 2), rows.reshape(-1, 2), strict=True)
        for (near, far), (source, target) in pairs:
            if max(near, far) <= _AT_CENTER_M and source != target:
                name = marker.text or marker.ns
                edges.append(SceneEdge(nodes[source].id, nodes[target].id, name))
    return tuple(edges)


def _read_ends(marker: Any) -> NDArray[np.float64]:
    """Return the ends of the lines (2K, 3) in the frame of the header."""
    points = np.array([_read_xyz(point) for point in marker.points], np.float64).reshape(-1, 3)
    lines = points[: len(points) // 2 * 2].reshape(-1, 6)
    finite = lines[np.isfinite(lines).all(axis=1)]
    return _read_pose(marker.pose).transform(finite.reshape(-1, 3))
