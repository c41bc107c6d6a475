"""Semantic maps over topics: an announcement with the graph, and the whole map in chunks.

Where vision_msgs is installed, nodes and classes are published as its messages too.
"""

from __future__ import annotations

import array
import hashlib
import json
from typing import Any

import numpy as np
from diagnostic_msgs.msg import KeyValue
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from osmabench_ros.base import contract as topics
from osmabench_ros.geometry.boxes import OrientedBox
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.maps.standard_messages import find_oriented_box, list_fields, make_records
from osmabench_ros.maps.storage import pack_map
from osmabench_ros.msg import SceneGraph as SceneGraphMessage
from osmabench_ros.msg import SceneObject as SceneObjectMessage
from osmabench_ros.msg import SceneRelation, SemanticMapChunk
from osmabench_ros.msg import ScoredLabel as ScoredLabelMessage
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from osmabench_ros.reports.pictures.graph_errors import assign_node_colors
from osmabench_ros.ros.messages import poses
from osmabench_ros.ros.messages.markers import markers_of_graph
from osmabench_ros.ros.qos import latched_profile, lossless_profile
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode

try:
    from vision_msgs.msg import (
        BoundingBox3D,
        Detection3D,
        Detection3DArray,
        LabelInfo,
        ObjectHypothesisWithPose,
        VisionClass,
    )

    VISION_AVAILABLE = True
except ImportError:
    VISION_AVAILABLE = False


def detections_message(graph: SceneGraph, header: Header) -> Detection3DArray:
    """Return the objects with a box as Detection3DArray; classes go by name, no score is NaN."""
    found = ((node, find_oriented_box(node)) for node in graph.of_kind(NodeKind.OBJECT))
    detections = [_detection_message(node, box, header) for node, box in found if box is not None]
    return Detection3DArray(header=header, detections=detections)


def _detection_message(node: SceneNode, box: OrientedBox, header: Header) -> Detection3D:
    center = poses.pose_message(box.pose)
    results = []
    for label in node.labels:
        result = ObjectHypothesisWithPose()
        result.hypothesis.class_id = label.name
        result.hypothesis.score = float(label.score)
        result.pose.pose = center
        results.append(result)
    return Detection3D(
        header=header,
        id=str(node.id),
        results=results,
        bbox=BoundingBox3D(center=center, size=poses.vector_message(box.size)),
    )


def vision_label_info(label_set: LabelSet, stamp_ns: int, frame_id: str = '') -> LabelInfo:
    """Return vision_msgs/LabelInfo of the class images: what each id means."""
    classes = [VisionClass(class_id=item.id, class_name=item.name) for item in label_set.classes]
    message = LabelInfo(class_map=classes, threshold=0.0)
    message.header.stamp = poses.stamp_to_message(stamp_ns)
    message.header.frame_id = frame_id
    return message


def publish_vision_labels(node: Node, label_set: LabelSet, stamp_ns: int) -> None:
    """Publish the names of the ids in class images, latched, where vision_msgs is installed."""
    if VISION_AVAILABLE:
        publisher = node.create_publisher(LabelInfo, topics.VISION_LABEL_INFO, latched_profile())
        publisher.publish(vision_label_info(label_set, stamp_ns, topics.CAMERA_FRAME))


def point_cloud_message(dense: DenseMap, header: Header, *, max_points: int = 0) -> PointCloud2:
    """Return the points of a map as a cloud, thinned evenly to `max_points`; 0 keeps all."""
    records = make_records(dense)
    if max_points and len(records) > max_points:
        records = records[np.linspace(0, len(records) - 1, max_points).astype(np.int64)]
    fields = [
        PointField(
            name=field.name, offset=field.offset, datatype=field.datatype, count=field.count
        )
        for field in list_fields(records)
    ]
    return PointCloud2(
        header=header,
        height=1,
        width=len(records),
        fields=fields,
        point_step=records.dtype.itemsize,
        row_step=records.dtype.itemsize * len(records),
        is_dense=False,
        data=array.array('B', records.tobytes()),
    )


def node_to_message(node: SceneNode) -> SceneObjectMessage:
    """Return the message of one node."""
    message = SceneObjectMessage(
        kind=node.kind.value,
        id=node.id,
        source_id=node.source_id,
        parent=node.parent or SceneObjectMessage.NO_PARENT,
        labels=[
            ScoredLabelMessage(name=label.name, class_id=label.class_id, score=label.score)
            for label in node.labels
        ],
        captions=list(node.captions),
        attributes=[
            KeyValue(key=key, value=json.dumps(value)) for key, value in node.attributes.items()
        ],
        observations=node.observations,
    )
    if node.box is not None:
        message.has_box = True
        message.box_min = poses.point_message(node.box.minimum)
        message.box_max = poses.point_message(node.box.maximum)
    if node.oriented_box is not None:
        message.has_oriented_box = True
        message.oriented_box_pose = poses.pose_message(node.oriented_box.pose)
        message.oriented_box_size = poses.vector_message(node.oriented_box.size)
    return message


def graph_to_message(graph: SceneGraph) -> SceneGraphMessage:
    """Return the message of a scene graph; the stamp is the caller's."""
    message = SceneGraphMessage(
        objects=[node_to_message(node) for node in graph.nodes],
        relations=[
            SceneRelation(
                type=edge.type,
                source=edge.source,
                target=edge.target,
                text=edge.text,
                score=edge.score,
            )
            for edge in graph.edges
        ],
    )
    message.header.frame_id = graph.frame_id
    return message


# Points of the cloud for RViz; the whole map is in the chunks.
MAX_VIEWED_POINTS = 200_000


def map_to_messages(
    semantic_map: SemanticMap, participant: str, *, is_final: bool
) -> tuple[SemanticMapMessage, list[SemanticMapChunk]]:
    """Return the announcement and the chunks of a map; `is_final` ends the frames."""
    payload = pack_map(semantic_map)
    digest = hashlib.sha256(payload).hexdigest()
    size = SemanticMapChunk.MAX_SIZE
    pieces = [payload[start : start + size] for start in range(0, len(payload), size)]
    header = semantic_map.header
    announcement = SemanticMapMessage(
        method=header.provenance.method,
        participant=participant,
        frames_used=header.provenance.frames_used,
        is_final=is_final,
        graph=graph_to_message(semantic_map.graph),
        digest=digest,
        payload_size=len(payload),
        chunk_count=len(pieces),
        payload_format=SemanticMapMessage.FORMAT_ARCHIVE_1,
    )
    announcement.header.frame_id = header.frame_id
    announcement.header.stamp = poses.stamp_to_message(header.stamp_ns)
    announcement.graph.header = announcement.header
    chunks = [
        SemanticMapChunk(
            header=announcement.header,
            digest=digest,
            index=index,
            count=len(pieces),
            data=array.array('B', piece),
        )
        for index, piece in enumerate(pieces)
    ]
    return announcement, chunks


# Types of the topics of a map, without its chunks.
LATCHED: dict[str, type[Any]] = {
    topics.SEMANTIC_MAP: SemanticMapMessage,
    topics.SEMANTIC_MAP_POINTS: PointCloud2,
    topics.SEMANTIC_MAP_MARKERS: MarkerArray,
}


class MapPublisher:
    """Publishes maps of one participant."""

    def __init__(self, node: Node, participant: str) -> None:
        self._participant = participant
        kinds = dict(LATCHED)
        if VISION_AVAILABLE:
            kinds[topics.SEMANTIC_MAP_DETECTIONS] = Detection3DArray
        self._publishers = {
            topic: node.create_publisher(kind, topic, latched_profile())
            for topic, kind in kinds.items()
        }
        self.chunks = node.create_publisher(
            SemanticMapChunk, topics.SEMANTIC_MAP_CHUNK, lossless_profile()
        )

    def publish(self, semantic_map: SemanticMap, *, is_final: bool) -> None:
        """Publish a map, the announcement first."""
        announcement, chunks = map_to_messages(semantic_map, self._participant, is_final=is_final)
        self._publishers[topics.SEMANTIC_MAP].publish(announcement)
        for chunk in chunks:
            self.chunks.publish(chunk)
        graph, header = semantic_map.graph, announcement.header
        colors = assign_node_colors(graph, semantic_map.label_set)
        markers = markers_of_graph(graph, header, colors)
        self._publishers[topics.SEMANTIC_MAP_MARKERS].publish(markers)
        if VISION_AVAILABLE:
            detections = detections_message(graph, header)
            self._publishers[topics.SEMANTIC_MAP_DETECTIONS].publish(detections)
        if (dense := semantic_map.dense) is not None:
            points = point_cloud_message(dense, header, max_points=MAX_VIEWED_POINTS)
            self._publishers[topics.SEMANTIC_MAP_POINTS].publish(points)
