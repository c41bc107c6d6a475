"""Which message types hold maps, and how a bag's map topic is found."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import MARKERS, POINT_CLOUD, TYPES
from osmabench_ros.base.settings import OneOf
from osmabench_ros.errors import ConfigError, ContractError, MapError, errors_as, suggestion
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.hydra import METHOD, import_payload
from osmabench_ros.maps.marker_graph import graph_of_markers
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.topics.options import TopicOptions
from osmabench_ros.maps.topics.point_cloud import map_of_detections, map_of_point_cloud


def map_of_dsg_update(message: Any, topic: str, options: TopicOptions) -> SemanticMap:
    """Return the map of a full hydra_msgs/DsgUpdate; ContractError if it is none or partial."""
    if not message.full_update:
        raise ContractError(
            f'topic "{topic}": update {message.sequence_number} is partial; '
            'let the method publish full updates'
        )
    header = options.header(message.header)
    imported = ImportOptions(
        frame_id=header.frame_id,
        label_set=options.label_set,
        scene=options.scene,
        condition=options.condition,
    )
    payload = np.asarray(message.layer_contents, np.uint8).tobytes()
    with errors_as(ContractError, f'topic "{topic}"', MapError):
        made = import_payload(payload, imported, METHOD)
    provenance = dataclasses.replace(made.header.provenance, method=options.method)
    own = dataclasses.replace(made.header, provenance=provenance, stamp_ns=header.stamp_ns)
    return dataclasses.replace(made, header=own)


SEMANTIC_MAP, CHUNK = TYPES[topics.SEMANTIC_MAP], TYPES[topics.SEMANTIC_MAP_CHUNK]
DSG_UPDATE = 'hydra_msgs/msg/DsgUpdate'
DETECTIONS = 'vision_msgs/msg/Detection3DArray'

MapReader = Callable[[Any, str, TopicOptions], SemanticMap]


def _map_of_markers(message: Any, topic: str, options: TopicOptions) -> SemanticMap:
    graph = graph_of_markers(message.markers, topic, options.label_set)
    if not message.markers:
        raise ContractError(f'topic "{topic}": the message has no markers')
    header = options.header(message.markers[-1].header)
    return SemanticMap(header, graph, label_set=options.label_set)


READERS: Mapping[str, MapReader] = {
    DSG_UPDATE: map_of_dsg_update,
    POINT_CLOUD: map_of_point_cloud,
    DETECTIONS: map_of_detections,
    MARKERS: _map_of_markers,
}
"""Types whose messages each hold a whole map; a SemanticMap has its points in chunks."""

MAP_TYPES = (SEMANTIC_MAP, *READERS)
MapType = Annotated[str, OneOf(tuple(READERS))]

_VIEWS = ('_points', '_markers', '_detections')
"""Ends of the names of topics that show a SemanticMap to viewers, beside the map itself."""


def frame_id_of(message: Any) -> str:
    """Return the frame of a message that `READERS` has a reader for, '' if it names none."""
    header = header_of(message)
    return '' if header is None else str(header.frame_id).lstrip('/')


def header_of(message: Any) -> Any | None:
    """Return the header of a message that `READERS` has a reader for; of its last marker."""
    owner = message if hasattr(message, 'header') else next(reversed(message.markers), None)
    return None if owner is None else owner.header


def choose_map_topic(types: Mapping[str, str], wanted: str = '') -> str:
    """Return the topic with the map, the `wanted` one if any; ConfigError if it is unclear."""
    if wanted:
        return _named(types, wanted)
    maps = {topic: kind for topic, kind in types.items() if kind in MAP_TYPES}
    found = {topic for topic in maps if not _is_view(topic, maps)}
    # Markers are mostly there to look at; they count if there is nothing better.
    found = {topic for topic in found if maps[topic] != MARKERS} or found
    # The bag of a run holds what a stack publishes, and the map that was made of it and scored.
    found = {topic for topic in found if maps[topic] == SEMANTIC_MAP} or found
    if len(found) == 1:
        return found.pop()
    if not found:
        raise ConfigError(
            f'the bag has no topic of a type that holds maps ({", ".join(MAP_TYPES)}); '
            f'it has {_listed(types)}'
        )
    candidates = _listed({topic: maps[topic] for topic in found})
    raise ConfigError(f'several topics may be the map: {candidates}; choose one with --map-topic')


def _named(types: Mapping[str, str], wanted: str) -> str:
    topic = f'/{wanted.lstrip("/")}'
    if topic not in types:
        raise ConfigError(f'the bag has no messages on "{topic}". {suggestion(topic, types)}')
    if types[topic] not in MAP_TYPES:
        raise ConfigError(
            f'topic "{topic}" holds {types[topic]}, which is no map; '
            f'maps are read from {", ".join(MAP_TYPES)}'
        )
    return topic


def _is_view(topic: str, maps: Mapping[str, str]) -> bool:
    return any(
        topic.endswith(end) and maps.get(topic.removesuffix(end)) == SEMANTIC_MAP for end in _VIEWS
    )


def _listed(types: Mapping[str, str]) -> str:
    return ', '.join(f'{topic} ({kind})' for topic, kind in sorted(types.items())) or 'no topics'
