"""Subscriptions that look at a message before they let it be deserialised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from sensor_msgs.msg import CameraInfo

from osmabench_ros.errors import ContractError
from osmabench_ros.msg import (
    FrameAck,
    LabelInfo,
    LightingState,
    RecordedMap,
    RunInfo,
    RunState,
    SemanticMap,
    SemanticMapChunk,
)
from osmabench_ros.ros.cdr_bounds import check_lengths

MAX_MESSAGE_BYTES = 80 * 2**20
"""Default bound; the largest message of the contract is a depth image of 4096 x 4096."""

MAX_SMALL_BYTES = 2**20
MAX_GRAPH_BYTES = 32 * 2**20

MAX_BYTES: dict[type[Any], int] = {
    **dict.fromkeys(
        (CameraInfo, FrameAck, LabelInfo, LightingState, PoseStamped), MAX_SMALL_BYTES
    ),
    **dict.fromkeys((RecordedMap, RunInfo, RunState), MAX_SMALL_BYTES),
    DiagnosticArray: MAX_SMALL_BYTES,
    SemanticMap: MAX_GRAPH_BYTES,
    SemanticMapChunk: SemanticMapChunk.MAX_SIZE + 2**16,
}
"""Bounds of types that have no reason to be large."""


def deserialize_checked(
    data: bytes, message_type: type[Any], topic: str, max_bytes: int | None = None
) -> Any:
    """Deserialise a message from outside.

    Raises ContractError if it is larger than `max_bytes` (by default what suits the type) or its
    lengths contradict its size, before anything is allocated; or if it cannot be deserialised.
    """
    limit = MAX_BYTES.get(message_type, MAX_MESSAGE_BYTES) if max_bytes is None else max_bytes
    if len(data) > limit:
        raise ContractError(
            f'topic "{topic}": a message of {len(data)} bytes exceeds {limit}; '
            'publish smaller images or chunks'
        )
    check_lengths(data, message_type, topic)
    try:
        return deserialize_message(data, message_type)
    except (RuntimeError, ValueError) as error:
        raise ContractError(
            f'topic "{topic}": no {message_type.__name__} can be read from a message of '
            f'{len(data)} bytes: {error}'
        ) from error


def create_checked_subscription(
    node: Node,
    message_type: type[Any],
    topic: str,
    callback: Callable[[Any], None],
    profile: QoSProfile,
    *,
    max_bytes: int | None = None,
) -> Subscription:
    """Subscribe to messages from outside, which `deserialize_checked` reads.

    What that refuses is raised in the executor's thread.
    """

    def on_raw(data: bytes) -> None:
        callback(deserialize_checked(data, message_type, topic, max_bytes))

    guard = getattr(node, 'guarded', lambda function: function)
    return node.create_subscription(message_type, topic, guard(on_raw), profile, raw=True)
