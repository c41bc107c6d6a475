"""Semantic maps over topics: an announcement with the graph, and the whole map in chunks."""

from __future__ import annotations

import array
import hashlib
import re

from rclpy.node import Node
from sensor_msgs.msg import PointCloud2
from visualization_msgs.msg import MarkerArray

from osmabench_ros.errors import ContractError
from osmabench_ros.maps.archive import pack_map
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from osmabench_ros.msg import SemanticMapChunk
from osmabench_ros.reports.graph_colors import node_colors
from osmabench_ros.ros import topics
from osmabench_ros.ros.graph_messages import graph_to_message
from osmabench_ros.ros.markers import markers_of_graph
from osmabench_ros.ros.point_clouds import point_cloud_message
from osmabench_ros.ros.qos import latched_profile, lossless_profile
from osmabench_ros.ros.stamps import stamp_to_message

MAX_PAYLOAD_BYTES = 2 * 2**30
"""Largest map that is reassembled."""

MAX_CHUNKS = 16_384
"""Most pieces of a map; enough for `MAX_PAYLOAD_BYTES` in pieces of 128 kB."""

SHA256 = re.compile('[0-9a-f]{64}')

MAX_VIEWED_POINTS = 200_000
"""Points of the cloud for RViz; the whole map is in the chunks."""


def map_to_messages(
    semantic_map: SemanticMap, participant: str, *, is_final: bool
) -> tuple[SemanticMapMessage, list[SemanticMapChunk]]:
    """Return the announcement and the chunks of a map.

    Parameters
    ----------
    semantic_map : SemanticMap
        Map to send.
    participant : str
        Who sends it.
    is_final : bool
        Whether no further frame will be integrated.
    """
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
    """Publishes maps of one participant.

    Parameters
    ----------
    node : Node
        Owner of the publishers.
    participant : str
        Name as the run declares it.
    """

    def __init__(self, node: Node, participant: str) -> None:
        self._participant = participant
        self._map = node.create_publisher(
            SemanticMapMessage, topics.SEMANTIC_MAP, latched_profile()
        )
        self._points = node.create_publisher(
            PointCloud2, topics.SEMANTIC_MAP_POINTS, latched_profile()
        )
        self._markers = node.create_publisher(
            MarkerArray, topics.SEMANTIC_MAP_MARKERS, latched_profile()
        )
        self._chunk = node.create_publisher(
            SemanticMapChunk, topics.SEMANTIC_MAP_CHUNK, lossless_profile()
        )

    def publish(self, semantic_map: SemanticMap, *, is_final: bool) -> None:
        """Publish a map, the announcement first."""
        announcement, chunks = map_to_messages(semantic_map, self._participant, is_final=is_final)
        self._map.publish(announcement)
        for chunk in chunks:
            self._chunk.publish(chunk)
        graph = semantic_map.graph
        colors = node_colors(graph, semantic_map.label_set)
        self._markers.publish(markers_of_graph(graph, announcement.header, colors))
        if semantic_map.dense is not None:
            self._points.publish(
                point_cloud_message(
                    semantic_map.dense, announcement.header, max_points=MAX_VIEWED_POINTS
                )
            )


class MapAssembler:
    """Puts chunks together again; the newest announcement counts.

    Parameters
    ----------
    max_bytes : int
        Largest payload that is accepted.
    """

    def __init__(self, max_bytes: int = MAX_PAYLOAD_BYTES) -> None:
        self._max_bytes = max_bytes
        self._announcement: SemanticMapMessage | None = None
        self._chunks: dict[str, dict[int, bytes]] = {}
        self._held_bytes = 0
        self._held_chunks = 0

    def announce(self, message: SemanticMapMessage) -> tuple[SemanticMapMessage, bytes] | None:
        """Take an announcement; return it with the payload if that is complete.

        Raises
        ------
        ContractError
            If the announcement is malformed or its payload too large.
        """
        where = f'topic "{topics.SEMANTIC_MAP}" from {message.participant}'
        if message.payload_format != SemanticMapMessage.FORMAT_ARCHIVE_1:
            raise ContractError(f'{where}: payload_format "{message.payload_format}" is unknown')
        if not 0 < message.payload_size <= self._max_bytes:
            raise ContractError(
                f'{where}: a payload of {message.payload_size} bytes is not in '
                f'1 to {self._max_bytes}'
            )
        _check_digest(message.digest, where)
        expected = -(-message.payload_size // SemanticMapChunk.MAX_SIZE)
        if not expected <= message.chunk_count <= MAX_CHUNKS:
            raise ContractError(
                f'{where}: {message.payload_size} bytes need at least {expected} chunks and at '
                f'most {MAX_CHUNKS}, {message.chunk_count} are announced'
            )
        self._announcement = message
        self._keep_only(message.digest)
        return self._complete()

    def _keep_only(self, digest: str) -> None:
        parts = self._chunks.get(digest)
        self._chunks = {} if parts is None else {digest: parts}
        self._held_bytes = sum(len(data) for data in parts.values()) if parts else 0
        self._held_chunks = len(parts) if parts else 0

    def add(self, chunk: SemanticMapChunk) -> tuple[SemanticMapMessage, bytes] | None:
        """Take a chunk; return the announcement with the payload if that is complete now.

        Raises
        ------
        ContractError
            If the chunk is malformed or the payload does not match its digest.
        """
        where = f'topic "{topics.SEMANTIC_MAP_CHUNK}"'
        size = len(chunk.data)
        fits = 0 < size <= SemanticMapChunk.MAX_SIZE
        if not fits or not chunk.index < chunk.count <= MAX_CHUNKS:
            raise ContractError(
                f'{where}: chunk {chunk.index} of {chunk.count} with {size} bytes breaks the '
                f'limits (index below count, at most {MAX_CHUNKS} chunks, 1 to '
                f'{SemanticMapChunk.MAX_SIZE} bytes)'
            )
        _check_digest(chunk.digest, where)
        too_large = self._held_bytes + size > 2 * self._max_bytes
        if too_large or self._held_chunks >= 2 * MAX_CHUNKS:
            raise ContractError(
                f'{where}: {self._held_bytes} bytes in {self._held_chunks} chunks wait for their '
                'announcement; giving up'
            )
        self._keep(chunk)
        return self._complete()

    def _keep(self, chunk: SemanticMapChunk) -> None:
        parts = self._chunks.setdefault(chunk.digest, {})
        if chunk.index not in parts:
            self._held_bytes += len(chunk.data)
            self._held_chunks += 1
            parts[chunk.index] = bytes(chunk.data)

    def _complete(self) -> tuple[SemanticMapMessage, bytes] | None:
        message = self._announcement
        if message is None:
            return None
        parts = self._chunks.get(message.digest, {})
        if len(parts) < message.chunk_count:
            return None
        payload = b''.join(parts[index] for index in sorted(parts))
        if hashlib.sha256(payload).hexdigest() != message.digest:
            raise ContractError(
                f'topic "{topics.SEMANTIC_MAP_CHUNK}": the payload of {message.participant} does '
                'not match its sha256; chunks were damaged or mixed up'
            )
        self._announcement = None
        self._keep_only('')
        return message, payload


def _check_digest(digest: str, where: str) -> None:
    if not SHA256.fullmatch(digest):
        raise ContractError(f'{where}: digest "{digest[:80]}" is no sha256 in hexadecimal digits')
