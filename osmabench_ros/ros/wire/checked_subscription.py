"""Subscriptions that check the size of a serialised message before it is deserialised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription

from osmabench_ros.errors import ContractError
from osmabench_ros.msg import FrameAck, LabelInfo, RecordedMap, RunInfo, RunState, SemanticMap

MAX_MESSAGE_BYTES = 80 * 2**20
"""Default; the largest message of the contract is a depth image of 4096 x 4096."""

MAX_BYTES: dict[type[Any], int] = {
    **dict.fromkeys((DiagnosticArray, FrameAck, LabelInfo, RecordedMap, RunInfo, RunState), 2**20),
    SemanticMap: 32 * 2**20,
}
"""Types of many small parts become many times as large when they are deserialised."""


def deserialize_checked(
    data: bytes, message_type: type[Any], topic: str, max_bytes: int | None = None
) -> Any:
    """Deserialise a message from outside; raises ContractError if too large or malformed."""
    limit = MAX_BYTES.get(message_type, MAX_MESSAGE_BYTES) if max_bytes is None else max_bytes
    if len(data) > limit:
        raise ContractError(
            f'topic "{topic}": a message of {len(data)} bytes exceeds {limit}; '
            'publish smaller images or chunks'
        )
    try:
        return deserialize_message(data, message_type)
    except (RuntimeError, ValueError, MemoryError) as error:
        raise ContractError(
            f'topic "{topic}": {len(data)} bytes are not a {message_type.__name__}: {error}; '
            'its publisher may use another version of the type'
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
    """Subscribe to messages from outside; what `deserialize_checked` refuses is raised."""

    def on_raw(data: bytes) -> None:
        callback(deserialize_checked(data, message_type, topic, max_bytes))

    guard = getattr(node, 'guarded', lambda function: function)
    return node.create_subscription(message_type, topic, guard(on_raw), profile, raw=True)
