"""The map of an announcement and its payload; knows messages by their fields, needs no ROS."""

from __future__ import annotations

from typing import Any

import numpy as np

from osmabench_ros.errors import ContractError, OsmabenchError
from osmabench_ros.maps.archive import unpack_map
from osmabench_ros.maps.semantic_map import MapHeader, Provenance, SemanticMap
from osmabench_ros.maps.topics.assembler import MAP_TOPIC
from osmabench_ros.maps.topics.scene_graph import graph_from_message
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph

SECOND_NS = 1_000_000_000


def announced_map(
    message: Any,
    payload: bytes,
    *,
    max_bytes: int,
    label_set: LabelSet | None = None,
    world_frame: str = '',
) -> SemanticMap:
    """Return the map that a participant published, checked against what the run agreed on.

    Parameters
    ----------
    message : osmabench_ros/SemanticMap
        The announcement, of rclpy or of a bag reader.
    payload : bytes
        What the chunks held; empty for a map that is a scene graph and nothing else.
    max_bytes : int
        Largest sum of unpacked sizes.
    label_set : LabelSet, optional
        Labels of the run; None if the run has none.
    world_frame : str
        Frame that maps of the run must be in; empty for any.

    Raises
    ------
    ContractError
        If the map has faults, is in another frame, or has labels that the run does not know;
        names the topic and the participant.
    """
    where = f'topic "{MAP_TOPIC}" from {message.participant}'
    try:
        if payload:
            semantic_map = unpack_map(payload, max_bytes=max_bytes)
        else:
            semantic_map = _graph_alone(message, label_set)
        _check_frame(semantic_map.header.frame_id, world_frame)
        if label_set is not None:
            _check_labels(semantic_map, label_set)
    except OsmabenchError as error:
        raise ContractError(f'{where}: {error}') from error
    return semantic_map


def _graph_alone(message: Any, label_set: LabelSet | None) -> SemanticMap:
    frame_id = message.header.frame_id
    graph = graph_from_message(message.graph, MAP_TOPIC)
    if graph.frame_id not in ('', frame_id):
        raise ContractError(
            f'the graph is in frame "{graph.frame_id}", the map in "{frame_id}"; '
            'fill both headers alike'
        )
    labels = (label for node in graph.nodes for label in node.labels)
    if label_set is None and any(label.class_id != UNLABELLED for label in labels):
        raise ContractError(
            'objects have class ids, but nobody published label_info; publish it, or leave '
            f'class_id at {UNLABELLED}'
        )
    stamp = message.header.stamp
    header = MapHeader(
        Provenance(
            message.method or message.participant or 'unknown', frames_used=message.frames_used
        ),
        frame_id,
        int(stamp.sec) * SECOND_NS + int(stamp.nanosec),
    )
    return SemanticMap(header, SceneGraph(graph.nodes, graph.edges, frame_id), label_set=label_set)


def _check_frame(frame_id: str, world_frame: str) -> None:
    if not frame_id:
        raise ContractError('the header names no frame_id')
    if world_frame and frame_id != world_frame:
        raise ContractError(
            f'the map is in frame "{frame_id}", the run in "{world_frame}"; transform it, or '
            'remap the frame'
        )


def _check_labels(semantic_map: SemanticMap, label_set: LabelSet) -> None:
    dense = semantic_map.dense
    if dense is not None and dense.labels is not None:
        label_set.check(dense.labels, 'points')
    if semantic_map.label_set is label_set:
        ids = [label.class_id for node in semantic_map.graph.nodes for label in node.labels]
        label_set.check(np.array(ids or [UNLABELLED]), 'objects')
