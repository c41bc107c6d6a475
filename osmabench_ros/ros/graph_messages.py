"""Scene graphs to messages and back."""

from __future__ import annotations

import json
import math

from diagnostic_msgs.msg import KeyValue

from osmabench_ros.errors import ContractError, MapError
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.msg import SceneGraph as SceneGraphMessage
from osmabench_ros.msg import SceneObject as SceneObjectMessage
from osmabench_ros.msg import SceneRelation
from osmabench_ros.msg import ScoredLabel as ScoredLabelMessage
from osmabench_ros.ros.poses import (
    point_message,
    pose_from_message,
    pose_message,
    vector_message,
)
from osmabench_ros.semantics.scene_graph import (
    NodeKind,
    SceneEdge,
    SceneGraph,
    SceneNode,
    ScoredLabel,
)


def node_to_message(node: SceneNode) -> SceneObjectMessage:
    """Return the message of one node."""
    message = SceneObjectMessage(
        kind=node.kind.value,
        id=node.id,
        source_id=node.source_id,
        parent=node.parent or SceneObjectMessage.NO_PARENT,
        labels=[
            ScoredLabelMessage(name=label.name, class_id=label.class_id, score=label.score)
            for label in node.labels
        ],
        captions=list(node.captions),
        attributes=[
            KeyValue(key=key, value=json.dumps(value)) for key, value in node.attributes.items()
        ],
        observations=node.observations,
    )
    if node.box is not None:
        message.has_box = True
        message.box_min = point_message(node.box.minimum)
        message.box_max = point_message(node.box.maximum)
    if node.oriented_box is not None:
        message.has_oriented_box = True
        message.oriented_box_pose = pose_message(node.oriented_box.pose)
        message.oriented_box_size = vector_message(node.oriented_box.size)
    return message


def graph_to_message(graph: SceneGraph) -> SceneGraphMessage:
    """Return the message of a scene graph; the stamp is the caller's."""
    message = SceneGraphMessage(
        objects=[node_to_message(node) for node in graph.nodes],
        relations=[
            SceneRelation(
                type=edge.type,
                source=edge.source,
                target=edge.target,
                text=edge.text,
                score=edge.score,
            )
            for edge in graph.edges
        ],
    )
    message.header.frame_id = graph.frame_id
    return message


def node_from_message(message: SceneObjectMessage, topic: str) -> SceneNode:
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
        attributes={item.key: json.loads(item.value) for item in message.attributes},
        box=AxisAlignedBox((low.x, low.y, low.z), (high.x, high.y, high.z))  # type: ignore[arg-type]
        if message.has_box
        else None,
        oriented_box=OrientedBox(
            pose_from_message(message.oriented_box_pose, topic),
            (size.x, size.y, size.z),  # type: ignore[arg-type]
        )
        if message.has_oriented_box
        else None,
        parent=message.parent if message.parent != SceneObjectMessage.NO_PARENT else None,
        source_id=message.source_id,
        observations=message.observations,
    )


def graph_from_message(message: SceneGraphMessage, topic: str) -> SceneGraph:
    """Return the scene graph of a message.

    Raises
    ------
    ContractError
        If a node or relation is malformed; names the topic and the node.
    """
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
