"""Semantic maps over topics: an announcement with the graph, and the whole map in chunks."""

from __future__ import annotations

import array
import hashlib

from rclpy.node import Node
from sensor_msgs.msg import PointCloud2
from visualization_msgs.msg import MarkerArray

from osmabench_ros.base import contract as topics
from osmabench_ros.maps.disk.archive import pack_map
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.topics.announced_map import MAX_CHUNKS as MAX_CHUNKS
from osmabench_ros.maps.topics.announced_map import MAX_PAYLOAD_BYTES as MAX_PAYLOAD_BYTES
from osmabench_ros.maps.topics.announced_map import MapAssembler as MapAssembler
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from osmabench_ros.msg import SemanticMapChunk
from osmabench_ros.reports.pictures.graph_errors import node_colors
from osmabench_ros.ros.messages.graph_messages import graph_to_message
from osmabench_ros.ros.messages.markers import markers_of_graph
from osmabench_ros.ros.messages.point_clouds import point_cloud_message
from osmabench_ros.ros.messages.poses import stamp_to_message
from osmabench_ros.ros.messages.vision_messages import DetectionPublisher
from osmabench_ros.ros.wire.qos import latched_profile, lossless_profile
from osmabench_ros.ros.wire.run_token import RunToken

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
