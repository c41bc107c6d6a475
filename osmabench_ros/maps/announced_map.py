"""The map of an announcement and its chunks; uses message fields only, needs no ROS."""

import hashlib
import math
import re
from collections import deque
from collections.abc import Set
from dataclasses import replace
from typing import Any

import numpy as np

from osmabench_ros.base.contract import SEMANTIC_MAP, SEMANTIC_MAP_CHUNK
from osmabench_ros.base.documents import parse_json
from osmabench_ros.errors import ContractError, MapError, OsmabenchError, errors_as
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.maps.importer import TopicOptions
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.storage import unpack_map
from osmabench_ros.semantics import scene_graph
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.sequences.topics import pose_of

# Most time that counts from one check to the next: beyond it the recorder was busy or paused.
LONGEST_LOOK_S = 1.0


class MapArrival:
    """An announced map, which is given up when no chunk has come for `stall_s`."""

    def __init__(self, message: Any, stall_s: float, now_s: float) -> None:
        self.message = message
        self._stall_s, self._looked_s = stall_s, now_s
        self._missing = int(message.chunk_count)
        self.waited_s = 0.0

    def check(self, missing: int, now_s: float) -> None:
        """Take the number of missing chunks; raises ContractError if the map is given up."""
        self.waited_s += min(max(now_s - self._looked_s, 0.0), LONGEST_LOOK_S)
        self._looked_s = now_s
        if missing < self._missing:
            self._missing, self.waited_s = missing, 0.0
        if self.waited_s > self._stall_s:
            where, message = f'topic "{SEMANTIC_MAP_CHUNK}"', self.message
            lack = f'{missing} of the {message.chunk_count} chunks did not come of the map that '
            lack += f'{message.participant} announced; no new one for {self._stall_s:g} s'
            raise ContractError(f'{where}: {lack}')


# SemanticMap.FORMAT_ARCHIVE_1.
FORMAT_ARCHIVE = 'osmabench.semantic_map/1+zip'

# SemanticMapChunk.MAX_SIZE.
MAX_CHUNK_BYTES = 8_388_608

# Largest map that is reassembled.
MAX_PAYLOAD_BYTES = 2 * 2**30

# Most pieces of a map; enough for `MAX_PAYLOAD_BYTES` in pieces of 128 kB.
MAX_CHUNKS = 16_384

# Chunks that may overtake their announcement.
MAX_UNANNOUNCED_BYTES = 256 * 2**20

# How many digests of ignored maps are remembered.
MAX_IGNORED = 1000

SHA256 = re.compile('[0-9a-f]{64}')


class MapAssembler:
    """Assembles payloads of at most `max_bytes`; the newest announcement counts."""

    def __init__(self, max_bytes: int = MAX_PAYLOAD_BYTES) -> None:
        self._max_bytes = max_bytes
        self._announcement: Any | None = None
        self._chunks: dict[str, dict[int, bytes]] = {}
        self._unannounced_bytes = self._unannounced_chunks = 0
        self._ignored: deque[str] = deque(maxlen=MAX_IGNORED)

    def announce(self, message: Any) -> tuple[Any, bytes] | None:
        """Take an announcement; return it with the payload if that is complete already."""
        size = message.payload_size
        count = message.chunk_count
        digest = message.digest
        if not size and not count and not digest:
            self._announcement = None
            return message, b''
        least, reason = -(-size // MAX_CHUNK_BYTES), ''
        if message.payload_format != FORMAT_ARCHIVE:
            reason = f'payload_format "{message.payload_format}" is unknown'
        elif not 0 < size <= self._max_bytes:
            reason = f'a payload of {size} bytes is not in 1 to {self._max_bytes}'
        elif not least <= count <= MAX_CHUNKS:
            reason = f'{size} bytes need {least} to {MAX_CHUNKS} chunks, {count} are announced'
        if reason:
            raise ContractError(f'topic "{SEMANTIC_MAP}" from {message.participant}: {reason}')
        self._announcement = message
        self._keep_only({digest})
        return self._complete()

    def ignore(self, digest: str) -> None:
        """Drop the chunks of an irrelevant map, such as one from another participant."""
        self._ignored.append(digest)
        self._keep_only(self._chunks.keys() - {digest})

    def give_up(self) -> None:
        """Drop the announced map and its chunks."""
        if self._announcement is not None:
            self.ignore(self._announcement.digest)
            self._announcement = None

    @property
    def missing_chunks(self) -> int:
        """Number of missing chunks of the newest announcement."""
        if self._announcement is None:
            return 0
        held = self._chunks.get(self._announcement.digest, {})
        return max(int(self._announcement.chunk_count) - len(held), 0)

    def _keep_only(self, digests: Set[str]) -> None:
        self._chunks = {key: parts for key, parts in self._chunks.items() if key in digests}
        lengths = [len(data) for parts in self._chunks.values() for data in parts.values()]
        self._unannounced_bytes = sum(lengths)
        self._unannounced_chunks = len(lengths)

    def add(self, chunk: Any) -> tuple[Any, bytes] | None:
        """Add a chunk; return the announcement with the payload if that is complete now."""
        where, size = f'topic "{SEMANTIC_MAP_CHUNK}"', len(chunk.data)
        what = f'chunk {chunk.index} of {chunk.count} with {size} bytes'
        if not 0 < size <= MAX_CHUNK_BYTES or not chunk.index < chunk.count <= MAX_CHUNKS:
            limits = f'{MAX_CHUNKS} chunks of 1 to {MAX_CHUNK_BYTES} bytes'
            raise ContractError(f'{where}: {what} breaks the limits of {limits}')
        if not SHA256.fullmatch(chunk.digest):
            raise ContractError(f'{where}: "{chunk.digest[:80]}" is not a hexadecimal sha256')
        if chunk.digest in self._ignored:
            return None
        parts, message = self._chunks.setdefault(chunk.digest, {}), self._announcement
        is_new = chunk.index not in parts
        parts.setdefault(chunk.index, bytes(chunk.data))
        if message is not None and message.digest == chunk.digest:
            held = sum(map(len, parts.values()))
            if chunk.count != message.chunk_count or held > message.payload_size:
                announced = f'the map that {message.participant} announced'
                raise ContractError(f'{where}: {what} does not fit {announced}')
            return self._complete()
        waiting = f'{self._unannounced_bytes} bytes in {self._unannounced_chunks} chunks'
        self._unannounced_bytes += size if is_new else 0
        self._unannounced_chunks += is_new
        room = min(2 * self._max_bytes, MAX_UNANNOUNCED_BYTES)
        if self._unannounced_bytes > room or self._unannounced_chunks > 2 * MAX_CHUNKS:
            raise ContractError(f'{where}: {waiting} wait for their announcement; giving up')
        return None

    def _complete(self) -> tuple[Any, bytes] | None:
        message = self._announcement
        if message is None or self.missing_chunks:
            return None
        parts = self._chunks[message.digest]
        payload = b''.join(parts[index] for index in sorted(parts))
        right = len(payload) == message.payload_size
        if not right or hashlib.sha256(payload).hexdigest() != message.digest:
            owner = f'topic "{SEMANTIC_MAP_CHUNK}": the payload of {message.participant}'
            raise ContractError(f'{owner} does not match its sha256')
        self._announcement = None
        self._keep_only(set())
        return message, payload


# SceneObject.NO_PARENT.
NO_PARENT = 0


def convert_node(message: Any, topic: str) -> scene_graph.SceneNode:
    """Return the node of an untrusted message, checked."""
    low, high = message.box_min, message.box_max
    size = np.array([getattr(message.oriented_box_size, axis) for axis in 'xyz'])
    return scene_graph.SceneNode(
        id=message.id,
        kind=scene_graph.NodeKind(message.kind),
        labels=tuple(
            scene_graph.ScoredLabel(label.name, float(label.score), int(label.class_id))
            for label in message.labels
        ),
        captions=tuple(message.captions),
        attributes={
            item.key: parse_json(item.value, f'{topic}: attribute "{item.key}"', ContractError)
            for item in message.attributes
        },
        box=AxisAlignedBox(np.array([low.x, low.y, low.z]), np.array([high.x, high.y, high.z]))
        if message.has_box
        else None,
        oriented_box=OrientedBox(pose_of(message.oriented_box_pose, topic), size)
        if message.has_oriented_box
        else None,
        parent=message.parent if message.parent != NO_PARENT else None,
        source_id=message.source_id,
        observations=message.observations,
    )


def convert_graph(message: Any, topic: str) -> scene_graph.SceneGraph:
    """Return the scene graph of a message; ContractError names the node that is malformed."""
    nodes = []
    for item in message.objects:
        where = f'topic "{topic}": object {item.id}'
        with errors_as(ContractError, where, ValueError, ContractError):
            nodes.append(convert_node(item, topic))
    edges = []
    for item in message.relations:
        score = math.nan if math.isnan(item.score) else float(item.score)
        ends = item.source, item.target
        edges.append(scene_graph.SceneEdge(*ends, item.type, item.text, score))
    with errors_as(ContractError, f'topic "{topic}"', MapError):
        return scene_graph.SceneGraph(tuple(nodes), tuple(edges), message.header.frame_id)


def announced_map(
    message: Any,
    payload: bytes,
    topic: str,
    options: TopicOptions,
    *,
    agreed: LabelSet | None = None,
    world_frame: str = '',
) -> SemanticMap:
    """Return the map that a participant published, live or in a bag; checks it once.

    An empty payload is a map that is a scene graph and nothing else. `agreed` and `world_frame`
    are labels and frame of the run, if it has them. Raises ContractError, which names the topic
    and the participant, if the map has faults, is in another frame, or has labels that the run
    does not know.
    """
    with errors_as(ContractError, f'topic "{topic}" from {message.participant}', OsmabenchError):
        if payload:
            semantic_map = unpack_map(payload)
        else:
            semantic_map = map_of_graph(message, convert_graph(message.graph, topic), options)
        _check_frame(semantic_map.header.frame_id, world_frame)
        dense = semantic_map.dense
        if agreed is not None and dense is not None and dense.labels is not None:
            agreed.check(dense.labels, 'points')
    return semantic_map


def map_of_graph(
    message: Any, graph: scene_graph.SceneGraph, options: TopicOptions
) -> SemanticMap:
    """Return a map that is a scene graph and nothing else; ContractError if frames differ."""
    frame_id = message.header.frame_id
    _check_frame(frame_id)
    if graph.frame_id not in ('', frame_id):
        raise ContractError(f'the graph is in frame "{graph.frame_id}", the map in "{frame_id}"')
    ids = [label.class_id for node in graph.nodes for label in node.labels] or [UNLABELLED]
    if options.label_set is not None:
        options.label_set.check(np.array(ids), 'objects')
    elif set(ids) != {UNLABELLED}:
        remedy = 'publish it, or give --labels to bag evaluate'
        raise ContractError(f'objects have class ids, but no node published label_info; {remedy}')
    header = options.header(message.header)
    method = message.method or options.method or message.participant or 'unknown'
    provenance = replace(header.provenance, method=method, frames_used=int(message.frames_used))
    return SemanticMap(
        replace(header, provenance=provenance, complete=bool(message.is_final)),
        replace(graph, frame_id=header.frame_id),
        label_set=options.label_set,
    )


def _check_frame(frame_id: str, world_frame: str = '') -> None:
    if not frame_id:
        raise ContractError('the header names no frame_id')
    if world_frame and frame_id != world_frame:
        raise ContractError(f'the map is in frame "{frame_id}", the run in "{world_frame}"')
