"""The newest map of a bag."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from osmabench_ros.errors import ContractError, OsmabenchError, SequenceError, errors_as
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.topics.announced_map import announced_map, graph_from_message, map_of_graph
from osmabench_ros.maps.topics.assembler import MapAssembler
from osmabench_ros.maps.topics.kinds import CHUNK, DSG_UPDATE, READERS, SEMANTIC_MAP
from osmabench_ros.maps.topics.options import TopicOptions
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph, ScoredLabel
from osmabench_ros.sequences.bags.bag import Bag, BagMessage

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
    stop_ns = None if until_ns is None else until_ns + 1
    message_type = bag.connections_by_topic[topic].message_type
    if message_type == SEMANTIC_MAP:
        return _assembled(bag, topic, options, stop_ns)
    last, remarks = _last(bag.messages((topic,), stop_ns=stop_ns), topic)
    semantic_map = READERS[message_type](last.deserialise(), topic, options)
    return RecordedMap(semantic_map, topic, message_type, last.log_ns, remarks)


def _last(messages: Iterator[BagMessage], topic: str) -> tuple[BagMessage, tuple[str, ...]]:
    last, partial = None, 0
    for message in messages:
        if message.message_type == DSG_UPDATE and not message.deserialise().full_update:
            partial += 1
            continue
        last, partial = message, 0
    if last is None:
        kind = f'; {partial} partial updates cannot be read alone' if partial else ''
        raise SequenceError(f'topic "{topic}": there is no map up to that time{kind}')
    remark = f'{partial} partial updates after the last full one are left out'
    return last, (remark,) if partial else ()


def _assembled(bag: Bag, topic: str, options: TopicOptions, stop_ns: int | None) -> RecordedMap:
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
        raise SequenceError(f'topic "{topic}": there is no map up to that time')
    if whole is None:
        lack = f'the bag lacks chunks on "{chunks}", so the map is its scene graph without points'
        return _without_points(announced, options, lack)
    message, payload = whole
    announcement = message.deserialise()
    semantic_map = announced_map(announcement, payload, topic, options)
    newer = announced.deserialise().digest != announcement.digest
    remark = 'the chunks of a newer map are not complete; this is the one before'
    return RecordedMap(
        semantic_map, topic, SEMANTIC_MAP, message.log_ns, (remark,) if newer else ()
    )


def _without_points(announced: BagMessage, options: TopicOptions, lack: str) -> RecordedMap:
    message = announced.deserialise()
    graph = graph_from_message(message.graph, announced.topic)
    with errors_as(ContractError, f'topic "{announced.topic}"', OsmabenchError):
        made = map_of_graph(message, _with_class_ids(graph, options.label_set), options)
    return RecordedMap(made, announced.topic, SEMANTIC_MAP, announced.log_ns, (lack,))


def _with_class_ids(graph: SceneGraph, label_set: LabelSet | None) -> SceneGraph:
    """Return the graph with the class ids that a label set gives to its names."""

    def label_of(label: ScoredLabel) -> ScoredLabel:
        found = UNLABELLED if label_set is None else label_set.id_of(label.name)
        return dataclasses.replace(label, class_id=found)

    nodes = (
        dataclasses.replace(node, labels=tuple(map(label_of, node.labels))) for node in graph.nodes
    )
    return dataclasses.replace(graph, nodes=tuple(nodes))
