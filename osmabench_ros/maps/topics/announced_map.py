"""The map of an announcement and its payload; uses message fields only, needs no ROS."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.base.limits.documents import parse_json
from osmabench_ros.errors import ContractError, MapError, OsmabenchError, errors_as
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.maps.disk.archive import unpack_map
from osmabench_ros.maps.disk.storage import write_files
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.topics.assembler import MAX_PAYLOAD_BYTES
from osmabench_ros.maps.topics.options import TopicOptions
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import (
    NodeKind,
    SceneEdge,
    SceneGraph,
    SceneNode,
    ScoredLabel,
)
from osmabench_ros.sequences.pose_topics import pose_of

NO_PARENT = 0
"""SceneObject.NO_PARENT."""


def node_from_message(message: Any, topic: str) -> SceneNode:
    """Return the node of an untrusted message, checked."""
    low, high = message.box_min, message.box_max
    size = message.oriented_box_size
    return SceneNode(
        id=message.id,
        kind=NodeKind(message.kind),
        labels=tuple(
            ScoredLabel(label.name, float(label.score), int(label.class_id))
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
        oriented_box=OrientedBox(
            pose_of(message.oriented_box_pose, topic),
            np.array([size.x, size.y, size.z]),
        )
        if message.has_oriented_box
        else None,
        parent=message.parent if message.parent != NO_PARENT else None,
        source_id=message.source_id,
        observations=message.observations,
    )


def graph_from_message(message: Any, topic: str) -> SceneGraph:
    """Return the scene graph of a message; ContractError names the node that is malformed."""
    nodes = []
    for item in message.objects:
        try:
            nodes.append(node_from_message(item, topic))
        except (ValueError, ContractError) as error:
            raise ContractError(f'topic "{topic}": object {item.id}: {error}') from error
    edges = tuple(
        SceneEdge(
            item.source,
            item.target,
            item.type,
            item.text,
            math.nan if math.isnan(item.score) else float(item.score),
        )
        for item in message.relations
    )
    with errors_as(ContractError, f'topic "{topic}"', MapError):
        return SceneGraph(tuple(nodes), edges, message.header.frame_id)


def announced_map(
    message: Any,
    payload: bytes,
    topic: str,
    options: TopicOptions,
    *,
    max_bytes: int = MAX_PAYLOAD_BYTES,
    agreed: LabelSet | None = None,
    world_frame: str = '',
    folder: Path | None = None,
) -> SemanticMap:
    """Return the map that a participant published, live or in a bag; checks it once.

    An empty payload is a map that is a scene graph and nothing else. `agreed` and `world_frame`
    are labels and frame of the run, if it has them; an empty `folder` gets the files of the map.
    Raises ContractError, which names the topic and the participant, if the map has faults, is in
    another frame, or has labels that the run does not know.
    """
    with errors_as(ContractError, f'topic "{topic}" from {message.participant}', OsmabenchError):
        if payload:
            semantic_map = unpack_map(payload, max_bytes=max_bytes, folder=folder)
        else:
            semantic_map = map_of_graph(message, graph_from_message(message.graph, topic), options)
            if folder is not None:
                write_files(semantic_map, folder)
        _check_frame(semantic_map.header.frame_id, world_frame)
        dense = semantic_map.dense
        if agreed is not None and dense is not None and dense.labels is not None:
            agreed.check(dense.labels, 'points')
    return semantic_map


def map_of_graph(message: Any, graph: SceneGraph, options: TopicOptions) -> SemanticMap:
    """Return a map that is a scene graph and nothing else; ContractError if frames differ."""
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
            'objects have class ids, but no node published label_info; publish it, or leave '
            f'class_id at {UNLABELLED}; of a bag, evaluate-bag takes --labels'
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
