"""The map of an announcement and its payload; knows messages by their fields, needs no ROS."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from osmabench_ros.errors import ContractError, OsmabenchError
from osmabench_ros.maps.archive import unpack_map
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.topics.assembler import MAP_TOPIC
from osmabench_ros.maps.topics.options import TopicOptions
from osmabench_ros.maps.topics.scene_graph import graph_from_message
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph


def announced_map(
    message: Any,
    payload: bytes,
    *,
    max_bytes: int,
    label_set: LabelSet | None = None,
    world_frame: str = '',
) -> SemanticMap:
    """Return the map that a participant published, checked against what the run agreed on.

    An empty payload is a map that is a scene graph and nothing else; `world_frame` '' is any.
    Raises ContractError, which names the topic and the participant, if the map has faults, is in
    another frame, or has labels that the run does not know.
    """
    where = f'topic "{MAP_TOPIC}" from {message.participant}'
    try:
        if payload:
            semantic_map = unpack_map(payload, max_bytes=max_bytes)
        else:
            graph = graph_from_message(message.graph, MAP_TOPIC)
            semantic_map = map_of_graph(message, graph, TopicOptions('', label_set))
        _check_frame(semantic_map.header.frame_id, world_frame)
        dense = semantic_map.dense
        if label_set is not None and dense is not None and dense.labels is not None:
            label_set.check(dense.labels, 'points')
    except OsmabenchError as error:
        raise ContractError(f'{where}: {error}') from error
    return semantic_map


def map_of_graph(message: Any, graph: SceneGraph, options: TopicOptions) -> SemanticMap:
    """Return a map that is a scene graph and nothing else, of a node or of a bag.

    Raises ContractError if the frames are missing or differ, or objects have class ids without a
    label set; ConfigError if the label set lacks an id.
    """
    frame_id = message.header.frame_id
    _check_frame(frame_id)
    if graph.frame_id not in ('', frame_id):
        raise ContractError(
            f'the graph is in frame "{graph.frame_id}", the map in "{frame_id}"; '
            'fill both headers alike'
        )
    ids = [label.class_id for node in graph.nodes for label in node.labels] or [UNLABELLED]
    if options.label_set is not None:
        options.label_set.check(np.array(ids), 'objects')
    elif set(ids) != {UNLABELLED}:
        raise ContractError(
            'objects have class ids, but nobody published label_info; publish it, or leave '
            f'class_id at {UNLABELLED}; of a bag, evaluate takes --labels'
        )
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
        raise ContractError(
            f'the map is in frame "{frame_id}", the run in "{world_frame}"; transform it, or '
            'remap the frame'
        )
