"""Semantic maps over topics: an announcement with the graph, and the whole map in chunks."""

from __future__ import annotations

import array
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from diagnostic_msgs.msg import KeyValue
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from osmabench_ros.base import contract as topics
from osmabench_ros.maps.disk.archive import pack_map
from osmabench_ros.maps.message_content import fields_of, records_of
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.maps.topics.announced_map import MAX_CHUNKS as MAX_CHUNKS
from osmabench_ros.maps.topics.announced_map import MAX_PAYLOAD_BYTES as MAX_PAYLOAD_BYTES
from osmabench_ros.maps.topics.announced_map import MapAssembler as MapAssembler
from osmabench_ros.maps.topics.announced_map import graph_from_message as graph_from_message
from osmabench_ros.maps.topics.announced_map import node_from_message as node_from_message
from osmabench_ros.msg import SceneGraph as SceneGraphMessage
from osmabench_ros.msg import SceneObject as SceneObjectMessage
from osmabench_ros.msg import SceneRelation, SemanticMapChunk
from osmabench_ros.msg import ScoredLabel as ScoredLabelMessage
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from osmabench_ros.reports.pictures.graph_errors import node_colors
from osmabench_ros.ros.messages.markers import markers_of_graph
from osmabench_ros.ros.messages.poses import (
    point_message,
    pose_message,
    stamp_to_message,
    vector_message,
)
from osmabench_ros.ros.messages.vision_messages import DetectionPublisher
from osmabench_ros.ros.wire.qos import latched_profile, lossless_profile
from osmabench_ros.ros.wire.run_token import RunToken
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode

try:
    from sensor_msgs_py.point_cloud2 import create_cloud as _create_cloud
except ImportError:

    def _create_cloud(
        header: Header, fields: Sequence[PointField], points: NDArray[Any]
    ) -> PointCloud2:
        """Do what sensor_msgs_py does with packed records."""
        return PointCloud2(
            header=header,
            height=1,
            width=len(points),
            fields=fields,
            point_step=points.dtype.itemsize,
            row_step=points.dtype.itemsize * len(points),
            is_dense=False,
            data=array.array('B', points.tobytes()),
        )


def point_cloud_message(dense: DenseMap, header: Header, *, max_points: int = 0) -> PointCloud2:
    """Return the points of a map as a cloud, thinned evenly to `max_points`; 0 keeps all."""
    records = records_of(dense)
    if max_points and len(records) > max_points:
        records = records[np.linspace(0, len(records) - 1, max_points).astype(np.int64)]
    fields = [
        PointField(
            name=field.name, offset=field.offset, datatype=field.datatype, count=field.count
        )
        for field in fields_of(records)
    ]
    return _create_cloud(header, fields, records)


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
        message.box_min = point_message(node.box.minimum)
        message.box_max = point_message(node.box.maximum)
    if node.oriented_box is not None:
        message.has_oriented_box = True
        message.oriented_box_pose = pose_message(node.oriented_box.pose)
        message.oriented_box_size = vector_message(node.oriented_box.size)
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


MAX_VIEWED_POINTS = 200_000
"""Points of the cloud for RViz; the whole map is in the chunks."""


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
    announcement.header.stamp = stamp_to_message(header.stamp_ns)
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


class MapPublisher:
    """Publishes maps of one participant, signed with the token of the run if it has one."""

    def __init__(self, node: Node, participant: str) -> None:
        self._participant = participant
        self._token = RunToken()
        self._map = node.create_publisher(
            SemanticMapMessage, topics.SEMANTIC_MAP, latched_profile()
        )
        self._points = node.create_publisher(
            PointCloud2, topics.SEMANTIC_MAP_POINTS, latched_profile()
        )
        self._markers = node.create_publisher(
            MarkerArray, topics.SEMANTIC_MAP_MARKERS, latched_profile()
        )
        self._detections = DetectionPublisher(node)
        self.chunks = node.create_publisher(
            SemanticMapChunk, topics.SEMANTIC_MAP_CHUNK, lossless_profile()
        )

    def publish(self, semantic_map: SemanticMap, *, is_final: bool) -> None:
        """Publish a map, the announcement first."""
        announcement, chunks = map_to_messages(semantic_map, self._participant, is_final=is_final)
        self._token.sign(announcement)
        self._map.publish(announcement)
        for chunk in chunks:
            self._token.sign(chunk)
            self.chunks.publish(chunk)
        graph = semantic_map.graph
        colors = node_colors(graph, semantic_map.label_set)
        self._markers.publish(markers_of_graph(graph, announcement.header, colors))
        self._detections.publish(graph, announcement.header)
        if semantic_map.dense is not None:
            self._points.publish(
                point_cloud_message(
                    semantic_map.dense, announcement.header, max_points=MAX_VIEWED_POINTS
                )
            )
