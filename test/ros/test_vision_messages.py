import math

import numpy as np
import pytest
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import Header
from support.world.graphs import as_map

from osmabench_ros.base import contract as topics
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.importer import TopicOptions
from osmabench_ros.maps.standard_messages import map_of_detections
from osmabench_ros.ros.messages import map_messages
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode, ScoredLabel

needs_vision_msgs = pytest.mark.skipif(
    not map_messages.VISION_AVAILABLE, reason='vision_msgs is not installed (PyPI has none)'
)
LABELS = LabelSet.from_names('tiny', ['mug', 'table'])


def small_map():
    """Return a map of a mug with a turned box in a kitchen."""
    box = AxisAlignedBox(np.zeros(3), np.ones(3))
    turned = OrientedBox(Pose.from_yaw(0.5), np.array([1.0, 2.0, 3.0]))
    names = (ScoredLabel('mug', 0.5, 1), ScoredLabel('cup'))
    kitchen = SceneNode(1, NodeKind.ROOM, (ScoredLabel('kitchen', 1.0),), box=box)
    mug = SceneNode(2, labels=names, box=box, oriented_box=turned)
    return as_map(SceneGraph((kitchen, mug)), LABELS)


@needs_vision_msgs
def test_objects_survive_the_message():
    graph = small_map().graph
    message = map_messages.detections_message(graph, Header(frame_id='world'))
    sent = deserialize_message(serialize_message(message), type(message))
    [found] = map_of_detections(sent, 't', TopicOptions('test', LABELS)).graph.nodes
    mug = graph.by_id[2]
    assert found.id == mug.id
    assert [(item.name, item.class_id) for item in found.labels] == [('mug', 1), ('cup', 65535)]
    assert found.labels[0].score == 0.5
    assert math.isnan(found.labels[1].score)
    np.testing.assert_allclose(
        found.oriented_box.pose.matrix, mug.oriented_box.pose.matrix, atol=1e-12
    )
    np.testing.assert_array_equal(found.oriented_box.size, mug.oriented_box.size)


@needs_vision_msgs
def test_rooms_are_no_detections_and_frames_agree():
    message = map_messages.detections_message(small_map().graph, Header(frame_id='world'))
    assert [item.id for item in message.detections] == ['2'], 'node 1 is the kitchen'
    assert {item.header.frame_id for item in message.detections} == {'world'}


@needs_vision_msgs
def test_classes_are_told_by_number_and_name():
    message = map_messages.vision_label_info(LABELS, 3_000_000_001, 'optical')
    reported = {item.class_id: item.class_name for item in message.class_map}
    assert reported == {item.id: item.name for item in LABELS.classes}
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (3, 1)


def publishers_of(node):
    return {publisher.topic_name.lstrip('/') for publisher in node.publishers}


@needs_vision_msgs
def test_labels_and_maps_come_along_where_it_is_installed(ros_context):
    node = Node('both', context=ros_context)
    map_messages.publish_vision_labels(node, LABELS, 0)
    map_messages.MapPublisher(node, 'mapper').publish(small_map(), is_final=True)
    assert {topics.VISION_LABEL_INFO, topics.SEMANTIC_MAP_DETECTIONS} <= publishers_of(node)


def test_without_it_maps_are_published_all_the_same(ros_context, monkeypatch):
    monkeypatch.setattr(map_messages, 'VISION_AVAILABLE', False)
    node = Node('alone', context=ros_context)
    map_messages.publish_vision_labels(node, LABELS, 0)
    map_messages.MapPublisher(node, 'mapper').publish(small_map(), is_final=True)
    found = publishers_of(node)
    assert topics.SEMANTIC_MAP_MARKERS in found
    assert not {topics.VISION_LABEL_INFO, topics.SEMANTIC_MAP_DETECTIONS} & found
