"""Which message types hold maps, and the newest map of a bag."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from osmabench_ros import errors
from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import MARKERS, POINT_CLOUD, TYPES
from osmabench_ros.maps import standard_messages
from osmabench_ros.maps.announced_map import (
    MapAssembler,
    announced_map,
    convert_graph,
    map_of_graph,
)
from osmabench_ros.maps.importer import ImportOptions, TopicOptions
from osmabench_ros.maps.importers.hydra import METHOD, import_payload
from osmabench_ros.maps.labelling import number_labels
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.sequences.bags.bag import Bag, BagMessage
from osmabench_ros.sequences.bags.bag_storage import MAX_LOG_NS


def map_of_dsg_update(message: Any, topic: str, options: TopicOptions) -> SemanticMap:
    """Return the map of a full hydra_msgs/DsgUpdate; ContractError if it is none or partial."""
    if not message.full_update:
        what = f'topic "{topic}": update {message.sequence_number} is partial'
        raise errors.ContractError(f'{what}; let the method publish full updates')
    header = options.header(message.header)
    imported = ImportOptions(
        frame_id=header.frame_id,
        label_set=options.label_set,
        scene=options.scene,
        condition=options.condition,
    )
    payload = np.asarray(message.layer_contents, np.uint8).tobytes()
    with errors.errors_as(errors.ContractError, f'topic "{topic}"', errors.MapError):
        made = import_payload(payload, imported, METHOD)
    provenance = replace(made.header.provenance, method=options.method)
    own = replace(made.header, provenance=provenance, stamp_ns=header.stamp_ns)
    return replace(made, header=own)


SEMANTIC_MAP = TYPES[topics.SEMANTIC_MAP]
CHUNK = TYPES[topics.SEMANTIC_MAP_CHUNK]
DSG_UPDATE = 'hydra_msgs/msg/DsgUpdate'
DETECTIONS = 'vision_msgs/msg/Detection3DArray'

MapReader = Callable[[Any, str, TopicOptions], SemanticMap]


def _read_markers(message: Any, topic: str, options: TopicOptions) -> SemanticMap:
    graph = standard_messages.convert_markers(message.markers, topic, options.label_set)
    if not message.markers:
        raise errors.ContractError(f'topic "{topic}": the message has no markers')
    header = options.header(message.markers[-1].header)
    return SemanticMap(header, graph, label_set=options.label_set)


# Types of which each message holds a whole map; a SemanticMap has its points in chunks.
READERS: Mapping[str, MapReader] = {
    DSG_UPDATE: map_of_dsg_update,
    POINT_CLOUD: standard_messages.map_of_point_cloud,
    DETECTIONS: standard_messages.map_of_detections,
    MARKERS: _read_markers,
}

MAP_TYPES = (SEMANTIC_MAP, *READERS)
# The types in `READERS`.
MapType = Literal[
    'hydra_msgs/msg/DsgUpdate',
    'sensor_msgs/msg/PointCloud2',
    'vision_msgs/msg/Detection3DArray',
    'visualization_msgs/msg/MarkerArray',
]

# Ends of the names of topics that show a SemanticMap to viewers, in addition to the map.
_VIEWS = ('_points', '_markers', '_detections')


def get_frame_id(message: Any) -> str:
    """Return the frame of a message that `READERS` has a reader for, '' if it names none."""
    header = get_header(message)
    return '' if header is None else str(header.frame_id).lstrip('/')


def get_header(message: Any) -> Any | None:
    """Return the header of a message that `READERS` has a reader for; of its last marker."""
    owner = message if hasattr(message, 'header') else next(reversed(message.markers), None)
    return None if owner is None else owner.header


def choose_map_topic(types: Mapping[str, str], wanted: str = '') -> str:
    """Return the topic with the map, the `wanted` one if any; ConfigError if it is unclear."""
    if wanted:
        topic = f'/{wanted.lstrip("/")}'
        errors.choose(topic, types, errors.ConfigError, f'the bag has no messages on "{topic}"')
        if types[topic] not in MAP_TYPES:
            problem = f'topic "{topic}" holds {types[topic]}, which is not a map'
            raise errors.ConfigError(f'{problem} ({", ".join(MAP_TYPES)})')
        return topic
    maps = {topic: kind for topic, kind in types.items() if kind in MAP_TYPES}
    shown = (topic for topic, kind in maps.items() if kind == SEMANTIC_MAP)
    found = set(maps) - {topic + end for topic in shown for end in _VIEWS}
    # Markers are mostly there to look at; they count if there is nothing better.
    found = {topic for topic in found if maps[topic] != MARKERS} or found
    # The bag of a run holds the topics of a stack, and the map that was made of them and scored.
    found = {topic for topic in found if maps[topic] == SEMANTIC_MAP} or found
    if len(found) == 1:
        return found.pop()
    if not found:
        problem = f'the bag has no topic of a type that holds maps ({", ".join(MAP_TYPES)})'
        raise errors.ConfigError(f'{problem}; it has {_format_topics(types)}')
    candidates = _format_topics({topic: maps[topic] for topic in found})
    problem = f'several topics may be the map: {candidates}'
    raise errors.ConfigError(f'{problem}; choose one with --map-topic')


def _format_topics(types: Mapping[str, str]) -> str:
    return ', '.join(f'{topic} ({kind})' for topic, kind in sorted(types.items())) or 'no topics'


CHUNK_SUFFIX = '_chunk'


@dataclass(frozen=True, eq=False)
class RecordedMap:
    """A map with its message, the log time, and remarks."""

    semantic_map: SemanticMap
    topic: str
    message_type: str
    log_ns: int
    remarks: tuple[str, ...] = ()


def read_recorded_map(
    bag: Bag, topic: str, options: TopicOptions, *, until_ns: int | None = None
) -> RecordedMap:
    """Return the last map of a topic, or the last one recorded up to the log time `until_ns`.

    Of osmabench_ros/SemanticMap it is the last one of which all chunks are there, or the scene
    graph of the announcement if there is no such; of hydra_msgs/DsgUpdate the last full update.
    Raises SequenceError if there is no map up to that time, ContractError if it is malformed.
    """
    stop_ns = MAX_LOG_NS if until_ns is None else until_ns + 1
    message_type = bag.connections_by_topic[topic].message_type
    if message_type == SEMANTIC_MAP:
        return _assemble(bag, topic, options, stop_ns)
    last, remarks = _find_last(bag.messages((topic,), stop_ns=stop_ns), topic)
    semantic_map = READERS[message_type](last.deserialise(), topic, options)
    return RecordedMap(semantic_map, topic, message_type, last.log_ns, remarks)


def _find_last(messages: Iterator[BagMessage], topic: str) -> tuple[BagMessage, tuple[str, ...]]:
    last, partial = None, 0
    for message in messages:
        if message.message_type == DSG_UPDATE and not message.deserialise().full_update:
            partial += 1
            continue
        last, partial = message, 0
    if last is None:
        kind = f'; {partial} partial updates cannot be read without a full one' if partial else ''
        raise errors.SequenceError(f'topic "{topic}": there is no map up to that time{kind}')
    remark = f'{partial} partial updates after the last full one are left out'
    return last, (remark,) if partial else ()


def _assemble(bag: Bag, topic: str, options: TopicOptions, stop_ns: int) -> RecordedMap:
    """Return the last whole map of the announcements and their chunks."""
    assembler = MapAssembler()
    chunks = topic + CHUNK_SUFFIX
    announced, whole = None, None
    for message in bag.messages((topic, chunks), stop_ns=stop_ns):
        if message.message_type == CHUNK:
            complete = assembler.add(message.deserialise())
        elif message.message_type == SEMANTIC_MAP:
            announced = message
            complete = assembler.announce(message.deserialise())
        if complete is not None and announced is not None:
            whole = announced, complete[1]
    if announced is None:
        raise errors.SequenceError(f'topic "{topic}": there is no map up to that time')
    if whole is None:
        lack = f'the bag lacks chunks on "{chunks}", so the map is its scene graph without points'
        return _build_graph_map(announced, options, lack)
    message, payload = whole
    announcement = message.deserialise()
    semantic_map = announced_map(announcement, payload, topic, options)
    newer = announced.deserialise().digest != announcement.digest
    remark = 'the chunks of a newer map are not complete; this is the one before'
    remarks = (remark,) if newer else ()
    return RecordedMap(semantic_map, topic, SEMANTIC_MAP, message.log_ns, remarks)


def _build_graph_map(announced: BagMessage, options: TopicOptions, lack: str) -> RecordedMap:
    message = announced.deserialise()
    graph = convert_graph(message.graph, announced.topic)
    # Class ids go with the label set of the points.
    nodes = [number_labels(node, options.label_set) for node in graph.nodes]
    where = f'topic "{announced.topic}"'
    with errors.errors_as(errors.ContractError, where, errors.OsmabenchError):
        made = map_of_graph(message, replace(graph, nodes=tuple(nodes)), options)
    return RecordedMap(made, announced.topic, SEMANTIC_MAP, announced.log_ns, (lack,))
