"""What is published on every topic of the contract, and how it is delivered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from visualization_msgs.msg import MarkerArray

from osmabench_ros.msg import (
    EvaluationReport,
    FrameAck,
    LabelInfo,
    LightingState,
    RecordedMap,
    RunInfo,
    RunState,
    SemanticMap,
    SemanticMapChunk,
)
from osmabench_ros.ros import topics


class Delivery(Enum):
    """Which profile of qos.py a topic has."""

    FRAME = 'frame'
    LATCHED = 'latched'
    LOSSLESS = 'lossless'
    CLOCK = 'clock'


@dataclass(frozen=True)
class ContractTopic:
    """One topic.

    Parameters
    ----------
    name : str
        Relative, save for /clock.
    message_type : type
        Message class.
    delivery : Delivery
        Its profile.
    purpose : str
        What it is for.
    required : bool
        Whether a mapping stack cannot be measured without it.
    """

    name: str
    message_type: type[Any]
    delivery: Delivery
    purpose: str
    required: bool = False


CONTRACT = (
    ContractTopic(topics.COLOR, Image, Delivery.FRAME, 'colour images', True),
    ContractTopic(topics.DEPTH, Image, Delivery.FRAME, 'depth images', True),
    ContractTopic(topics.SEMANTIC, Image, Delivery.FRAME, 'class ids'),
    ContractTopic(topics.INSTANCE, Image, Delivery.FRAME, 'instance ids'),
    ContractTopic(topics.COLOR_INFO, CameraInfo, Delivery.FRAME, 'colour camera', True),
    ContractTopic(topics.DEPTH_INFO, CameraInfo, Delivery.FRAME, 'depth camera'),
    ContractTopic(topics.CAMERA_POSE, PoseStamped, Delivery.FRAME, 'ground-truth pose'),
    ContractTopic(topics.ODOMETRY, Odometry, Delivery.FRAME, 'ground-truth base pose'),
    ContractTopic(topics.CLOCK, Clock, Delivery.CLOCK, 'time of the frames'),
    ContractTopic(topics.LIGHTING, LightingState, Delivery.LATCHED, 'what shines'),
    ContractTopic(topics.RUN_INFO, RunInfo, Delivery.LATCHED, 'identity of the run'),
    ContractTopic(topics.RUN_STATE, RunState, Delivery.LATCHED, 'progress of the run'),
    ContractTopic(topics.LABEL_INFO, LabelInfo, Delivery.LATCHED, 'names of the class ids'),
    ContractTopic(topics.FRAME_ACK, FrameAck, Delivery.LOSSLESS, 'acknowledgements'),
    ContractTopic(topics.SEMANTIC_MAP, SemanticMap, Delivery.LATCHED, 'the map'),
    ContractTopic(
        topics.SEMANTIC_MAP_CHUNK, SemanticMapChunk, Delivery.LOSSLESS, 'pieces of the map'
    ),
    ContractTopic(
        topics.SEMANTIC_MAP_POINTS, PointCloud2, Delivery.LATCHED, 'points of the map for RViz'
    ),
    ContractTopic(
        topics.SEMANTIC_MAP_MARKERS, MarkerArray, Delivery.LATCHED, 'scene graph for RViz'
    ),
    ContractTopic(topics.RECORDED_MAP, RecordedMap, Delivery.LATCHED, 'where the map is'),
    ContractTopic(topics.EVALUATION, EvaluationReport, Delivery.LATCHED, 'every figure'),
)
"""All that a run consists of, save transforms, which need tf2_ros."""
