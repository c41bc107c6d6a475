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
from osmabench_ros.ros.node_names import BRIDGE, EVALUATOR, MAPPER, RECORDER


class Delivery(Enum):
    """Which profile of qos.py a topic has."""

    FRAME = 'frame'
    LATCHED = 'latched'
    LOSSLESS = 'lossless'
    CLOCK = 'clock'


@dataclass(frozen=True)
class ContractTopic:
    """One topic; its name is relative, save for /clock.

    In a run no node but `publisher` publishes it, save for `frame_ack`, which each participant
    does; a mapping stack cannot be measured without a `required` one.
    """

    name: str
    message_type: type[Any]
    delivery: Delivery
    purpose: str
    publisher: str
    required: bool = False


CONTRACT = (
    ContractTopic(topics.COLOR, Image, Delivery.FRAME, 'colour images', BRIDGE, True),
    ContractTopic(topics.DEPTH, Image, Delivery.FRAME, 'depth images', BRIDGE, True),
    ContractTopic(topics.SEMANTIC, Image, Delivery.FRAME, 'class ids', BRIDGE),
    ContractTopic(topics.INSTANCE, Image, Delivery.FRAME, 'instance ids', BRIDGE),
    ContractTopic(topics.COLOR_INFO, CameraInfo, Delivery.FRAME, 'colour camera', BRIDGE, True),
    ContractTopic(topics.DEPTH_INFO, CameraInfo, Delivery.FRAME, 'depth camera', BRIDGE),
    ContractTopic(topics.CAMERA_POSE, PoseStamped, Delivery.FRAME, 'ground-truth pose', BRIDGE),
    ContractTopic(topics.ODOMETRY, Odometry, Delivery.FRAME, 'ground-truth base pose', BRIDGE),
    ContractTopic(topics.CLOCK, Clock, Delivery.CLOCK, 'time of the frames', BRIDGE),
    ContractTopic(topics.LIGHTING, LightingState, Delivery.LATCHED, 'what shines', BRIDGE),
    ContractTopic(topics.RUN_INFO, RunInfo, Delivery.LATCHED, 'identity of the run', BRIDGE),
    ContractTopic(topics.RUN_STATE, RunState, Delivery.LATCHED, 'progress of the run', BRIDGE),
    ContractTopic(
        topics.LABEL_INFO, LabelInfo, Delivery.LATCHED, 'names of the class ids', BRIDGE
    ),
    ContractTopic(topics.FRAME_ACK, FrameAck, Delivery.LOSSLESS, 'acknowledgements', RECORDER),
    ContractTopic(topics.SEMANTIC_MAP, SemanticMap, Delivery.LATCHED, 'the map', MAPPER),
    ContractTopic(
        topics.SEMANTIC_MAP_CHUNK, SemanticMapChunk, Delivery.LOSSLESS, 'pieces of the map', MAPPER
    ),
    ContractTopic(
        topics.SEMANTIC_MAP_POINTS,
        PointCloud2,
        Delivery.LATCHED,
        'points of the map for RViz',
        MAPPER,
    ),
    ContractTopic(
        topics.SEMANTIC_MAP_MARKERS, MarkerArray, Delivery.LATCHED, 'scene graph for RViz', MAPPER
    ),
    ContractTopic(
        topics.RECORDED_MAP, RecordedMap, Delivery.LATCHED, 'where the map is', RECORDER
    ),
    ContractTopic(
        topics.EVALUATION, EvaluationReport, Delivery.LATCHED, 'every figure', EVALUATOR
    ),
)
"""All that a run consists of, save transforms, which need tf2_ros."""
