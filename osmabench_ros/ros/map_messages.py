"""Semantic maps over topics: an announcement with the graph, and the whole map in chunks."""

from __future__ import annotations

import array
import hashlib

from rclpy.node import Node
from sensor_msgs.msg import PointCloud2

from osmabench_ros.errors import ContractError
from osmabench_ros.maps.archive import pack_map
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from osmabench_ros.msg import SemanticMapChunk
from osmabench_ros.ros import topics
from osmabench_ros.ros.graph_messages import graph_to_message
from osmabench_ros.ros.point_clouds import point_cloud_message
from osmabench_ros.ros.qos import latched_profile, lossless_profile
from osmabench_ros.ros.stamps import stamp_to_message

MAX_PAYLOAD_BYTES = 2 * 2**30
"""Largest map that is reassembled."""

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
        self._chunk = node.create_publisher(
            SemanticMapChunk, topics.SEMANTIC_MAP_CHUNK, lossless_profile()
        )

    def publish(self, semantic_map: SemanticMap, *, is_final: bool) -> None:
        """Publish a map, the announcement first."""
        announcement, chunks = map_to_messages(semantic_map, self._participant, is_final=is_final)
        self._map.publish(announcement)
        for chunk in chunks:
            self._chunk.publish(chunk)
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
        expected = -(-message.payload_size // SemanticMapChunk.MAX_SIZE)
        if message.chunk_count < expected:
            raise ContractError(
                f'{where}: {message.payload_size} bytes need at least {expected} chunks, '
                f'{message.chunk_count} are announced'
            )
        self._announcement = message
        self._chunks = {
            digest: parts for digest, parts in self._chunks.items() if digest == message.digest
        }
        return self._complete()

    def add(self, chunk: SemanticMapChunk) -> tuple[SemanticMapMessage, bytes] | None:
        """Take a chunk; return the announcement with the payload if that is complete now.

        Raises
        ------
        ContractError
            If the chunk is malformed or the payload does not match its digest.
        """
        where = f'topic "{topics.SEMANTIC_MAP_CHUNK}"'
        if len(chunk.data) > SemanticMapChunk.MAX_SIZE or not chunk.index < chunk.count:
            raise ContractError(
                f'{where}: chunk {chunk.index} of {chunk.count} with {len(chunk.data)} bytes '
                f'breaks the limits (index below count, at most {SemanticMapChunk.MAX_SIZE} bytes)'
            )
        held = sum(len(data) for parts in self._chunks.values() for data in parts.values())
        if held + len(chunk.data) > 2 * self._max_bytes:
            raise ContractError(f'{where}: {held} bytes wait for their announcement; giving up')
        self._chunks.setdefault(chunk.digest, {})[chunk.index] = bytes(chunk.data)
        return self._complete()

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
        self._chunks = {}
        return message, payload
