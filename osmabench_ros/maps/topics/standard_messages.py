"""Maps from PointCloud2, Detection3DArray and MarkerArray; needs the fields only, no ROS."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.contract import WORLD_FRAME
from osmabench_ros.errors import ConfigError, ContractError, errors_as
from osmabench_ros.geometry.boxes import OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.importer import TopicOptions
from osmabench_ros.maps.importers.pointcloud import mark_unlabelled, nodes_of_instances
from osmabench_ros.maps.message_content import (
    Detection,
    choose_node_ids,
    dense_of_records,
    nodes_of_detections,
    records_of_message,
)
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED, LabelClass, LabelSet
from osmabench_ros.semantics.scene_graph import SceneEdge, SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.sequences.pose_topics import pose_of


def map_of_detections(message: Any, topic: str, options: TopicOptions) -> SemanticMap:
    """Return the map of boxes: nodes without points; ContractError names a malformed one."""
    frame_id = message.header.frame_id
    detections = []
    for index, item in enumerate(message.detections):
        where = f'{topic}" detection "{index}'
        own_frame = item.header.frame_id
        if own_frame and own_frame != frame_id:
            raise ContractError(
                f'topic "{topic}": detection {index} is in frame "{own_frame}", the message in '
                f'"{frame_id}"; put all of them in one frame'
            )
        detections.append(_read_detection(item, where))
    with errors_as(ContractError, f'topic "{topic}"', ValueError):
        nodes = nodes_of_detections(detections, options.label_set)
    header = options.header(message.header)
    return SemanticMap(header, SceneGraph(nodes, (), header.frame_id), label_set=options.label_set)


def _read_detection(message: Any, where: str) -> Detection:
    size = message.bbox.size
    # Up to Foxy a hypothesis is one level, later its class and score are in a message of theirs.
    hypotheses = [getattr(result, 'hypothesis', result) for result in message.results]
    return Detection(
        pose_of(message.bbox.center, where),
        np.array([size.x, size.y, size.z], np.float64),
        tuple(
            (str(getattr(item, 'class_id', None) or getattr(item, 'id', '')), float(item.score))
            for item in hypotheses
        ),
        str(getattr(message, 'id', '')),
    )


def map_of_point_cloud(message: Any, topic: str, options: TopicOptions) -> SemanticMap:
    """Return the map of a sensor_msgs/PointCloud2: its points, and one node per instance.

    A field `label` (or `class`, `semantic`, ...) holds class ids: -1 and 65535 are unlabelled, and
    so is 0 if it is no class; without a label set classes are called "class <id>". `instance` (or
    `object_id`, ...) holds instance ids, 0 or less for none. Without them, as in RTAB-Map's
    `cloud_map`, the map is geometry only. Raises ContractError if the layout of the message is
    broken, or a label is not in the label set.
    """
    with errors_as(ContractError, f'topic "{topic}"', ContractError):
        dense, dropped = dense_of_records(records_of_message(message))
    label_set = options.label_set
    if dense.labels is not None:
        labels = mark_unlabelled(dense.labels, label_set)
        label_set = label_set or _number_classes(labels, topic)
        try:
            label_set.check(labels, f'topic "{topic}"')
        except ConfigError as error:
            raise ContractError(
                f'{error}; or give the meaning of the labels with --labels'
            ) from error
        dense = dataclasses.replace(dense, labels=labels)
    header = options.header(message.header)
    extras = {'points_dropped_because_not_finite': dropped} if dropped else {}
    graph = SceneGraph(nodes_of_instances(dense, label_set), (), header.frame_id)
    return SemanticMap(header, graph, dense, label_set, extras=extras)


def _number_classes(labels: NDArray[np.int32], topic: str) -> LabelSet:
    ids = [int(item) for item in np.unique(labels) if item != UNLABELLED]
    if ids and not 0 <= min(ids) <= max(ids) < UNLABELLED:
        raise ContractError(
            f'topic "{topic}": labels from {min(ids)} to {max(ids)} are not class ids in '
            f'0 to {UNLABELLED - 1}'
        )
    return LabelSet('numbers', tuple(LabelClass(item, f'class {item}') for item in ids))


# Constants of visualization_msgs/Marker.
_SOLIDS = (1, 2, 3)  # CUBE, SPHERE, CYLINDER
_LINE_LIST, _TEXT = 5, 9
_ADD, _DELETE, _DELETE_ALL = 0, 2, 3
_AT_CENTER_M = 0.01


def graph_of_markers(
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
        for (near, far), (source, target) in zip(
            distances.reshape(-1, 2), rows.reshape(-1, 2), strict=True
        ):
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
