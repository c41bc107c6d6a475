"""Scene graphs from markers; accepts any object with the fields of a MarkerArray."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.contract import WORLD_FRAME
from osmabench_ros.errors import ContractError, errors_as
from osmabench_ros.geometry.boxes import OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneEdge, SceneGraph, SceneNode, ScoredLabel

# Constants of visualization_msgs/Marker.
_SOLIDS = (1, 2, 3)  # CUBE, SPHERE, CYLINDER
_LINE_LIST, _TEXT = 5, 9
_ADD, _DELETE, _DELETE_ALL = 0, 2, 3
_AT_CENTER_M = 0.01


def graph_of_markers(
    markers: Iterable[Any], topic: str, label_set: LabelSet | None = None
) -> SceneGraph:
    """Return the scene graph of markers; later ones replace or delete earlier ones.

    Solids are nodes, labelled by their text or that of the text marker with the same id; lines of
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
    ids = _node_ids(solids)
    nodes = tuple(
        _node(marker, node_id, texts.get(marker.id, ''), topic, label_set)
        for marker, node_id in zip(solids, ids, strict=True)
    )
    lines = [marker for marker in current.values() if marker.type == _LINE_LIST]
    return SceneGraph(nodes, _edges(lines, nodes), next(iter(frames), WORLD_FRAME))


def _node_ids(solids: Sequence[Any]) -> list[int]:
    """Return the ids of the markers if they are valid node ids, else new ones."""
    ids = [int(marker.id) for marker in solids]
    if min(ids, default=1) >= 1 and len(set(ids)) == len(ids):
        return ids
    return list(range(1, len(ids) + 1))


def _node(
    marker: Any, node_id: int, text: str, topic: str, label_set: LabelSet | None
) -> SceneNode:
    name = marker.text or text
    class_id = UNLABELLED if label_set is None else label_set.id_of(name)
    with errors_as(ContractError, f'topic "{topic}": marker {marker.ns}/{marker.id}', ValueError):
        box = OrientedBox(_pose(marker.pose), np.array(_xyz(marker.scale)))
        return SceneNode(
            node_id,
            labels=(ScoredLabel(name, class_id=class_id),) if name else (),
            box=box.axis_aligned(),
            oriented_box=box,
            source_id=f'{marker.ns}/{marker.id}',
        )


def _pose(message: Any) -> Pose:
    q = message.orientation
    quaternion = (q.x, q.y, q.z, q.w)
    # As RViz does: an all-zero quaternion means no rotation.
    return Pose.from_quaternion(
        quaternion if any(quaternion) else (0.0, 0.0, 0.0, 1.0), _xyz(message.position)
    )


def _xyz(message: Any) -> tuple[float, float, float]:
    return message.x, message.y, message.z


def _edges(lines: Sequence[Any], nodes: Sequence[SceneNode]) -> tuple[SceneEdge, ...]:
    from scipy.spatial import cKDTree

    if not nodes:
        return ()
    tree = cKDTree([node.oriented_box.pose.translation for node in nodes if node.oriented_box])
    edges = []
    for marker in lines:
        ends = _ends(marker)
        distances, rows = tree.query(ends)
        for (near, far), (source, target) in zip(
            distances.reshape(-1, 2), rows.reshape(-1, 2), strict=True
        ):
            if max(near, far) <= _AT_CENTER_M and source != target:
                name = marker.text or marker.ns
                edges.append(SceneEdge(nodes[source].id, nodes[target].id, name))
    return tuple(edges)


def _ends(marker: Any) -> NDArray[np.float64]:
    """Return the ends of the lines (2K, 3) in the frame of the header."""
    points = np.array([_xyz(point) for point in marker.points], np.float64).reshape(-1, 3)
    lines = points[: len(points) // 2 * 2].reshape(-1, 6)
    finite = lines[np.isfinite(lines).all(axis=1)]
    return _pose(marker.pose).transform(finite.reshape(-1, 3))
