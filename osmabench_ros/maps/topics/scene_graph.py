"""Scene graphs out of osmabench_ros/SceneGraph, from a node or from a bag; needs no ROS."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from osmabench_ros.base.limits.documents import parse_json
from osmabench_ros.errors import ContractError, MapError
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
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
    """Return the node of a message; a message of another make is checked, not trusted."""
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
    try:
        return SceneGraph(tuple(nodes), edges, message.header.frame_id)
    except MapError as error:
        raise ContractError(f'topic "{topic}": {error}') from error
