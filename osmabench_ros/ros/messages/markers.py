"""Scene graphs as visualization_msgs/MarkerArray, for RViz and Foxglove, and back."""

from collections.abc import Mapping

import numpy as np
from geometry_msgs.msg import Point
from numpy.typing import NDArray
from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.reports.palette import Rgb, name_color
from osmabench_ros.reports.pictures.graph_errors import find_centers
from osmabench_ros.ros.messages.images import color_message
from osmabench_ros.ros.messages.poses import point_message, pose_message, vector_message
from osmabench_ros.semantics.scene_graph import NodeKind, SceneEdge, SceneGraph, SceneNode

# Namespaces of the markers, so that a viewer can switch them on and off.
#
# Every relation has a namespace below the namespace of the edges, such as ``edges/on``, because a
# map has thousands of "near". Nodes that are not objects, and their labels, are below STRUCTURE.
NODES, EDGES, LABELS = 'nodes', 'edges', 'labels'

STRUCTURE = 'structure'

# Texts slow a viewer down; the texts of the largest nodes are kept.
MAX_LABELS = 1000

MAX_EDGES = 20_000
MAX_TEXT = 60
_TEXT_HEIGHT_M = 0.15
_EDGE_WIDTH_M = 0.015
_THINNEST_M = 0.01
_ALPHA = 0.45
_FAINT = 0.08
_GREY: Rgb = (125, 125, 125)


def markers_of_graph(graph: SceneGraph, header: Header, colors: Mapping[int, Rgb]) -> MarkerArray:
    """Return markers that replace all earlier ones: boxes, labels, and edges as lines.

    Nodes without a box are left out, and their edges. Boxes and labels have the id of their node;
    a type of edges is one marker. Beyond MAX_LABELS the largest nodes keep labels, beyond
    MAX_EDGES the first edges stay; a label then says how many are shown.
    """
    places = find_centers(graph)
    boxed = [node for node in graph.nodes if node.id in places]
    edges = [item for item in graph.edges if item.source in places and item.target in places]
    markers = [Marker(header=header, action=Marker.DELETEALL)]
    markers += [_box(node, header, colors.get(node.id, _GREY)) for node in boxed]
    named = [node for node in boxed if _text(node)]
    shown = sorted(named, key=lambda node: -float(np.prod(_size(node))))[:MAX_LABELS]
    markers += [_label(node, places[node.id], header) for node in shown]
    markers += _lines(edges[:MAX_EDGES], places, header)
    left_out = [
        f'{most:,} of {count:,} {what} are shown'
        for count, most, what in ((len(named), MAX_LABELS, LABELS), (len(edges), MAX_EDGES, EDGES))
        if count > most
    ]
    if left_out:
        middle = np.mean(list(places.values()), axis=0)
        markers.append(_text_marker(header, 0, '; '.join(left_out), middle, LABELS))
    return MarkerArray(markers=markers)


def _text(node: SceneNode) -> str:
    text = node.label or (node.captions[0] if node.captions else '')
    return text if len(text) <= MAX_TEXT else f'{text[: MAX_TEXT - 1]}…'


def _size(node: SceneNode) -> NDArray[np.float64]:
    box = node.oriented_box or node.box
    assert box is not None
    return np.asarray(box.size)


def _box(node: SceneNode, header: Header, color: Rgb) -> Marker:
    if node.oriented_box is not None:
        pose = node.oriented_box.pose
    else:
        assert node.box is not None
        pose = Pose(np.eye(3), node.box.center)
    return Marker(
        header=header,
        ns=_namespace(NODES, node),
        id=node.id,
        type=Marker.CUBE,
        action=Marker.ADD,
        pose=pose_message(pose),
        # RViz refuses to draw boxes without extent.
        scale=vector_message(np.maximum(_size(node), _THINNEST_M)),
        color=color_message(color, _ALPHA if node.kind is NodeKind.OBJECT else _FAINT),
        text=_text(node),
    )


def _label(node: SceneNode, center: NDArray[np.float64], header: Header) -> Marker:
    box = node.oriented_box.axis_aligned() if node.oriented_box is not None else node.box
    assert box is not None
    place = np.array([center[0], center[1], box.maximum[2] + _TEXT_HEIGHT_M / 2])
    return _text_marker(header, node.id, _text(node), place, _namespace(LABELS, node))


def _namespace(name: str, node: SceneNode) -> str:
    return name if node.kind is NodeKind.OBJECT else f'{STRUCTURE}/{name}'


def _text_marker(
    header: Header, marker_id: int, text: str, place: NDArray[np.float64], namespace: str
) -> Marker:
    marker = Marker(
        header=header,
        ns=namespace,
        id=marker_id,
        type=Marker.TEXT_VIEW_FACING,
        action=Marker.ADD,
        pose=pose_message(Pose(np.eye(3), place)),
        color=color_message((255, 255, 255), 1.0),
        text=text,
    )
    marker.scale.z = _TEXT_HEIGHT_M
    return marker


def _lines(
    edges: list[SceneEdge], places: Mapping[int, NDArray[np.float64]], header: Header
) -> list[Marker]:
    by_type: dict[str, list[Point]] = {}
    for edge in edges:
        ends = (point_message(places[end]) for end in (edge.source, edge.target))
        by_type.setdefault(edge.type, []).extend(ends)
    markers = []
    for name, points in sorted(by_type.items()):
        marker = Marker(
            header=header,
            ns=f'{EDGES}/{name}',
            id=0,
            type=Marker.LINE_LIST,
            action=Marker.ADD,
            points=points,
            color=color_message(name_color(name), 0.9),
            text=name,
        )
        marker.pose.orientation.w = 1.0
        marker.scale.x = _EDGE_WIDTH_M
        markers.append(marker)
    return markers
