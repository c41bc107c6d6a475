"""Scene graphs to messages and back."""

from __future__ import annotations

import json

from diagnostic_msgs.msg import KeyValue

from osmabench_ros.maps.topics.announced_map import graph_from_message as graph_from_message
from osmabench_ros.maps.topics.announced_map import node_from_message as node_from_message
from osmabench_ros.msg import SceneGraph as SceneGraphMessage
from osmabench_ros.msg import SceneObject as SceneObjectMessage
from osmabench_ros.msg import SceneRelation
from osmabench_ros.msg import ScoredLabel as ScoredLabelMessage
from osmabench_ros.ros.messages.poses import point_message, pose_message, vector_message
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode


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
