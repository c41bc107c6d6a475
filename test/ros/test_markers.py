import time

import numpy as np
import pytest
from rclpy.serialization import serialize_message
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.standard_messages import convert_markers
from osmabench_ros.reports.palette import assign_class_colors, name_color
from osmabench_ros.reports.pictures.graph_errors import assign_node_colors
from osmabench_ros.ros.messages.markers import (
    EDGES,
    LABELS,
    MAX_LABELS,
    NODES,
    STRUCTURE,
    markers_of_graph,
)
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import (
    NodeKind,
    SceneEdge,
    SceneGraph,
    SceneNode,
    ScoredLabel,
)

CLASSES = LabelSet.from_names('tiny', ['mug', 'table'])


def graph():
    box = AxisAlignedBox
    turned = OrientedBox(Pose.from_yaw(0.5, (2.0, 1.0, 0.4)), np.array([1.0, 2.0, 0.0]))
    return SceneGraph(
        (
            SceneNode(4, NodeKind.ROOM, (ScoredLabel('kitchen'),), box=box([0] * 3, [4, 4, 2])),
            SceneNode(7, labels=(ScoredLabel('table', 0.9, 2),), oriented_box=turned),
            SceneNode(9, labels=(ScoredLabel('mug', 0.5, 1),), box=box([1] * 3, [1.1] * 3)),
            SceneNode(11, captions=('a thing seen once',), box=AxisAlignedBox([3] * 3, [3.5] * 3)),
            SceneNode(12, labels=(ScoredLabel('nowhere'),)),
        ),
        (
            SceneEdge(9, 7, 'on', score=0.5), SceneEdge(9, 4, 'part of'),
            SceneEdge(7, 4, 'part of'), SceneEdge(12, 4, 'part of'),
        ),
    )  # fmt: skip


def markers(of):
    return markers_of_graph(of, Header(frame_id='world'), assign_node_colors(of, CLASSES))


def by_name(message, namespace):
    found = [item for item in message.markers if namespace in item.ns.split('/')]
    return {item.id: item for item in found}


def test_everything_earlier_is_deleted_first():
    actions = [item.action for item in markers(graph()).markers]
    assert actions[0] == Marker.DELETEALL
    assert set(actions[1:]) == {Marker.ADD}


def test_boxes_have_pose_size_and_the_colour_of_their_class():
    boxes = by_name(markers(graph()), NODES)
    assert set(boxes) == {4, 7, 9, 11}
    table = boxes[7]
    assert (table.pose.position.x, table.pose.position.y) == (2.0, 1.0)
    assert 2 * np.arctan2(table.pose.orientation.z, table.pose.orientation.w) == pytest.approx(0.5)
    assert (table.scale.x, table.scale.y) == (1.0, 2.0)
    assert table.scale.z > 0, 'RViz draws nothing without extent'
    expected = np.array(assign_class_colors(CLASSES)[2]) / 255
    np.testing.assert_allclose((table.color.r, table.color.g, table.color.b), expected, atol=1e-6)
    assert boxes[4].color.a < table.color.a, 'a room must not hide what is in it'
    kitchen = np.array(name_color('kitchen')) / 255
    np.testing.assert_allclose((boxes[4].color.r, boxes[4].color.b), kitchen[[0, 2]], atol=1e-6)


def test_rooms_can_be_switched_off_apart_from_objects():
    found = markers(graph()).markers
    below = {item.ns for item in found if item.id == 4}
    assert below == {f'{STRUCTURE}/{NODES}', f'{STRUCTURE}/{LABELS}'}
    assert not [item for item in found if item.ns.startswith(STRUCTURE) and item.id != 4]


def test_labels_hang_above_their_boxes():
    texts = by_name(markers(graph()), LABELS)
    assert {i: item.text for i, item in texts.items()} == {
        4: 'kitchen', 7: 'table', 9: 'mug', 11: 'a thing seen once',
    }  # fmt: skip
    assert texts[9].pose.position.z > 1.1


def test_edges_of_a_type_are_one_marker():
    lines = [item for item in markers(graph()).markers if item.ns.startswith(EDGES)]
    assert [item.ns for item in lines] == ['edges/on', 'edges/part of']
    assert [(item.text, len(item.points)) for item in lines] == [('on', 2), ('part of', 4)]
    assert lines[0].points[1].x == 2.0
    assert all(item.pose.orientation.w == 1.0 for item in lines)


def test_what_markers_can_tell_survives_them():
    again = convert_markers(markers(graph()).markers, 't', CLASSES)
    assert {node.id: node.label for node in again.nodes} == {
        4: 'kitchen', 7: 'table', 9: 'mug', 11: 'a thing seen once',
    }  # fmt: skip
    assert again.by_id[7].class_id == 2
    original = graph().by_id[7].oriented_box
    found = again.by_id[7].oriented_box.pose.matrix
    np.testing.assert_allclose(found, original.pose.matrix, atol=1e-12)
    np.testing.assert_allclose(again.by_id[9].box.minimum, [1, 1, 1])
    triples = {(edge.source, edge.type, edge.target) for edge in again.edges}
    assert triples == {(9, 'on', 7), (9, 'part of', 4), (7, 'part of', 4)}
    assert again.frame_id == 'world'


def test_later_markers_replace_and_delete_earlier_ones():
    first = markers(graph()).markers
    gone = Marker(ns=NODES, id=9, action=Marker.DELETE)
    kept = convert_markers([*first, gone], 't')
    assert {node.id for node in kept.nodes} == {4, 7, 11}
    small = SceneGraph(graph().nodes[:1])
    assert len(convert_markers([*first, *markers(small).markers], 't').nodes) == 1


def test_ids_that_repeat_over_namespaces_are_renumbered():
    cubes = [Marker(ns=name, id=0, type=Marker.CUBE) for name in ('chairs', 'tables')]
    found = convert_markers(cubes, 't')
    ids = [(node.id, node.source_id) for node in found.nodes]
    assert ids == [(1, 'chairs/0'), (2, 'tables/0')]


@pytest.mark.parametrize(('field', 'value'), [('position', np.nan), ('scale', -1.0)])
def test_malformed_markers_are_refused_by_name(field, value):
    cube = Marker(ns='a', id=3, type=Marker.CUBE)
    target = cube.scale if field == 'scale' else getattr(cube.pose, field)
    target.x = value
    with pytest.raises(ContractError, match='topic "t": marker a/3'):
        convert_markers([cube], 't')


def test_frames_must_agree():
    cubes = [Marker(ns='a', id=i, type=Marker.CUBE) for i in (1, 2)]
    cubes[0].header.frame_id = 'map'
    with pytest.raises(ContractError, match='several frames'):
        convert_markers(cubes, 't')


@pytest.mark.full
def test_five_thousand_nodes_stay_small_and_quick():
    count = 5000
    rng = np.random.default_rng(0)
    lows = rng.uniform(0, 50, (count, 3))
    boxes = [AxisAlignedBox(low, low + rng.uniform(0.1, 1, 3)) for low in lows]
    label = (ScoredLabel('x' * 500),)
    nodes = tuple(SceneNode(i, labels=label, box=box) for i, box in enumerate(boxes, start=1))
    ends = rng.integers(1, count + 1, (60_000, 2))
    edges = tuple(SceneEdge(int(a), int(b), 'near') for a, b in ends)
    start = time.process_time()
    message = markers(SceneGraph(nodes, edges))
    assert time.process_time() - start < 10
    assert len(serialize_message(message)) < 4e6
    texts = by_name(message, LABELS)
    assert len(texts) == MAX_LABELS + 1
    assert texts[0].text == '1,000 of 5,000 labels are shown; 20,000 of 60,000 edges are shown'
    assert len(by_name(message, NODES)) == count
