"""Subscriptions that check a serialised message before it is deserialised."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from rosidl_parser.definition import (
    AbstractNestedType,
    AbstractSequence,
    AbstractString,
    Array,
    BasicType,
    NamespacedType,
)
from sensor_msgs.msg import CameraInfo

from osmabench_ros.base.limits.cdr import Cursor, Step, elements, fields, number, text
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

SIZES = {
    'boolean': 1, 'octet': 1, 'char': 1, 'int8': 1, 'uint8': 1,
    'int16': 2, 'uint16': 2, 'wchar': 2,
    'int32': 4, 'uint32': 4, 'float': 4,
    'int64': 8, 'uint64': 8, 'double': 8, 'long double': 16,
}  # fmt: skip


_KNOWN: dict[type[Any], Step] = {}


def check_lengths(data: bytes, message_type: type[Any], topic: str) -> None:
    """Check every length in a CDR message before anything is allocated; or ContractError."""
    _steps(message_type)(Cursor(data, topic))


def _steps(message_type: type[Any]) -> Step:
    if message_type not in _KNOWN:
        _KNOWN[message_type] = _message(message_type, '')
    return _KNOWN[message_type]


def _message(message_type: type[Any], path: str) -> Step:
    names = message_type.get_fields_and_field_types()
    steps = [
        _step(kind, f'{path}{name}')
        for name, kind in zip(names, message_type.SLOT_TYPES, strict=True)
    ]

    # rosidl gives an empty message one byte.
    return fields(steps or [number(1, path)])


def _step(kind: Any, path: str) -> Step:
    if isinstance(kind, BasicType):
        return number(SIZES[kind.typename], path)
    if isinstance(kind, AbstractString):
        return text(path)
    if isinstance(kind, NamespacedType):
        module = importlib.import_module('.'.join(kind.namespaces))
        return _message(getattr(module, kind.name), f'{path}.')
    if isinstance(kind, AbstractNestedType):
        return _elements(kind, path)
    raise ContractError(f'field {path} is a {type(kind).__name__}, which is not supported')


def _elements(kind: AbstractNestedType, path: str) -> Step:
    fixed = kind.size if isinstance(kind, Array) else None
    assert fixed is not None or isinstance(kind, AbstractSequence)
    if isinstance(kind.value_type, BasicType):
        return elements(SIZES[kind.value_type.typename], fixed, path)
    return elements(_step(kind.value_type, f'{path}[]'), fixed, path)


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
    """Deserialise a message from outside; raises ContractError if too large or malformed."""
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
    """Subscribe to messages from outside; what `deserialize_checked` refuses is raised."""

    def on_raw(data: bytes) -> None:
        callback(deserialize_checked(data, message_type, topic, max_bytes))

    guard = getattr(node, 'guarded', lambda function: function)
    return node.create_subscription(message_type, topic, guard(on_raw), profile, raw=True)
