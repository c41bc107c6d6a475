"""Nodes and classes as vision_msgs; the only file that imports it, where it is installed."""

from __future__ import annotations

from rclpy.node import Node
from std_msgs.msg import Header

from osmabench_ros.base import contract as topics
from osmabench_ros.errors import MissingDependencyError
from osmabench_ros.maps.message_content import Detection, detection_of_node
from osmabench_ros.ros.messages.poses import pose_message, stamp_to_message, vector_message
from osmabench_ros.ros.wire.qos import latched_profile
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph

try:
    from vision_msgs.msg import (
        BoundingBox3D,
        Detection3D,
        Detection3DArray,
        LabelInfo,
        ObjectHypothesisWithPose,
        VisionClass,
    )

    AVAILABLE = True
except ImportError:
    AVAILABLE = False


def detections_message(graph: SceneGraph, header: Header) -> Detection3DArray:
    """Return the objects with a box as Detection3DArray; classes go by name, no score is NaN."""
    _require()
    found = [detection_of_node(node) for node in graph.of_kind(NodeKind.OBJECT)]
    detections = [_detection_message(item, header) for item in found if item is not None]
    return Detection3DArray(header=header, detections=detections)


def _detection_message(detection: Detection, header: Header) -> Detection3D:
    center = pose_message(detection.pose)
    results = []
    for class_id, score in detection.hypotheses:
        result = ObjectHypothesisWithPose()
        result.hypothesis.class_id = class_id
        result.hypothesis.score = float(score)
        result.pose.pose = center
        results.append(result)
    return Detection3D(
        header=header,
        id=detection.id,
        results=results,
        bbox=BoundingBox3D(center=center, size=vector_message(detection.size)),
    )


def vision_label_info(label_set: LabelSet, stamp_ns: int, frame_id: str = '') -> LabelInfo:
    """Return vision_msgs/LabelInfo of the class images: what each id means."""
    _require()
    classes = [VisionClass(class_id=item.id, class_name=item.name) for item in label_set.classes]
    message = LabelInfo(class_map=classes, threshold=0.0)
    message.header.stamp = stamp_to_message(stamp_ns)
    message.header.frame_id = frame_id
    return message


def _require() -> None:
    if not AVAILABLE:
        raise MissingDependencyError(
            'vision_msgs is not installed; apt install ros-$ROS_DISTRO-vision-msgs'
        )


def publish_vision_labels(node: Node, label_set: LabelSet, stamp_ns: int) -> None:
    """Publish what the ids of the class images mean, latched, where vision_msgs is installed."""
    if AVAILABLE:
        publisher = node.create_publisher(LabelInfo, topics.VISION_LABEL_INFO, latched_profile())
        publisher.publish(vision_label_info(label_set, stamp_ns, topics.CAMERA_FRAME))


class DetectionPublisher:
    """Publishes the objects of maps as Detection3DArray where vision_msgs is installed."""

    def __init__(self, node: Node) -> None:
        self._publisher = (
            node.create_publisher(
                Detection3DArray, topics.SEMANTIC_MAP_DETECTIONS, latched_profile()
            )
            if AVAILABLE
            else None
        )

    def publish(self, graph: SceneGraph, header: Header) -> None:
        """Publish the objects of a graph; nothing without vision_msgs."""
        if self._publisher is not None:
            self._publisher.publish(detections_message(graph, header))
