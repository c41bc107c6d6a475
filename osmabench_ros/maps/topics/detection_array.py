"""Maps out of vision_msgs/Detection3DArray: boxes with class hypotheses."""

from __future__ import annotations

from typing import Any

import numpy as np

from osmabench_ros.errors import ContractError
from osmabench_ros.maps.detections import Detection, nodes_of_detections
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.topics.options import TopicOptions
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.sequences.pose_topics import pose_of


def map_of_detections(message: Any, topic: str, options: TopicOptions) -> SemanticMap:
    """Return the map of boxes: nodes without points; ContractError names a malformed one."""
    frame_id = message.header.frame_id
    detections = []
    for index, item in enumerate(message.detections):
        where = f'{topic}" detection "{index}'
        own_frame = item.header.frame_id
        if own_frame and own_frame != frame_id:
            raise ContractError(
                f'topic "{topic}": detection {index} is in frame "{own_frame}", the message in '
                f'"{frame_id}"; put all of them in one frame'
            )
        detections.append(_detection(item, where))
    try:
        nodes = nodes_of_detections(detections, options.label_set)
    except ValueError as error:
        raise ContractError(f'topic "{topic}": {error}') from error
    header = options.header(message.header)
    return SemanticMap(header, SceneGraph(nodes, (), header.frame_id), label_set=options.label_set)


def _detection(message: Any, where: str) -> Detection:
    size = message.bbox.size
    # Up to Foxy a hypothesis is one level, later its class and score are in a message of theirs.
    hypotheses = [getattr(result, 'hypothesis', result) for result in message.results]
    return Detection(
        pose_of(message.bbox.center, where),
        np.array([size.x, size.y, size.z], np.float64),
        tuple(
            (str(getattr(item, 'class_id', None) or getattr(item, 'id', '')), float(item.score))
            for item in hypotheses
        ),
        str(getattr(message, 'id', '')),
    )
