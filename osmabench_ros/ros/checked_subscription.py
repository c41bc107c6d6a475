"""Subscriptions that look at the size of a message before they let it be deserialised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription

from osmabench_ros.errors import ContractError

MAX_MESSAGE_BYTES = 80 * 2**20
"""Default bound; the largest message of the contract is a depth image of 4096 x 4096."""


def create_checked_subscription(
    node: Node,
    message_type: type[Any],
    topic: str,
    callback: Callable[[Any], None],
    profile: QoSProfile,
    *,
    max_bytes: int = MAX_MESSAGE_BYTES,
) -> Subscription:
    """Subscribe to messages of strangers.

    Parameters
    ----------
    node : Node
        Subscriber.
    message_type : type
        Expected type.
    topic : str
        Relative name.
    callback : callable
        Gets the deserialised message.
    profile : QoSProfile
        Of the contract.
    max_bytes : int
        Largest serialised size that is accepted; a larger message raises ContractError in the
        executor's thread before anything is allocated for it.
    """

    def on_raw(data: bytes) -> None:
        if len(data) > max_bytes:
            raise ContractError(
                f'topic "{topic}": a message of {len(data)} bytes exceeds {max_bytes}; '
                'publish smaller images or chunks'
            )
        callback(deserialize_message(data, message_type))

    guard = getattr(node, 'guarded', lambda function: function)
    return node.create_subscription(message_type, topic, guard(on_raw), profile, raw=True)
