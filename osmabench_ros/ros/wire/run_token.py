"""Signatures by which nodes recognise the messages of their own run.

The process that starts a run makes a token and gives it to the others in their environment. A
signature is an HMAC of the message, so that the token cannot be learnt from what is published.
"""

from __future__ import annotations

import hmac
import importlib
import os
import secrets
import struct
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from rclpy.node import Node
from rosidl_parser.definition import (
    AbstractNestedType,
    AbstractString,
    Array,
    BasicType,
    NamespacedType,
)

VARIABLE = 'OSMABENCH_RUN_TOKEN'
"""In the environment, because other users can see arguments."""

TOKEN_BYTES = 32


def new_token() -> str:
    """Return a random token that cannot be guessed."""
    return secrets.token_hex(TOKEN_BYTES)


def token_of_shell() -> str:
    """Return the token that the user has set for several launches; empty for none."""
    return os.environ.get(VARIABLE, '')


LOGGED_EVERY_S = 5.0
SIGNATURE = 'signature'
"""The field that is left out of what is signed."""

FORMATS = {
    'boolean': '<?', 'octet': '<B', 'char': '<B', 'int8': '<b', 'uint8': '<B',
    'int16': '<h', 'uint16': '<H', 'int32': '<i', 'uint32': '<I',
    'int64': '<q', 'uint64': '<Q', 'float': '<f', 'double': '<d',
}  # fmt: skip

_Feed = Callable[[Any, Any], None]
"""Gets a hash and a value."""
_FEEDS: dict[type[Any], _Feed] = {}


class RunToken:
    """Signs messages with the token, by default the environment's; without one all counts."""

    def __init__(self, token: str | None = None) -> None:
        self._key = (token_of_shell() if token is None else token).encode()

    def __bool__(self) -> bool:
        return bool(self._key)

    def sign(self, message: Any) -> None:
        """Fill in the signature of an otherwise complete message."""
        if self._key:
            message.signature = self._digest(message)

    def signed(self, message: Any) -> bool:
        """Return whether a message was signed with this token and is unchanged."""
        return not self._key or hmac.compare_digest(
            bytes(message.signature), self._digest(message)
        )

    def _digest(self, message: Any) -> bytes:
        code = hmac.new(self._key, type(message).__name__.encode(), 'sha256')
        _feed_of(type(message))(code, message)
        return code.digest()


class TokenCheck:
    """Counts messages without the run token and logs that; `unsigned` participants need none."""

    def __init__(
        self, node: Node, token: RunToken | None = None, unsigned: Collection[str] = ()
    ) -> None:
        self._logger = node.get_logger()
        self._token = RunToken() if token is None else token
        self._unsigned = frozenset(unsigned)
        self.ignored: dict[str, int] = {}
        """Messages by topic."""

    def accepts(self, topic: str, message: Any, participant: str = '') -> bool:
        """Return whether a message counts by its `signature`; count and log one that does not."""
        if participant in self._unsigned or self._token.signed(message):
            return True
        self.ignored[topic] = self.ignored.get(topic, 0) + 1
        self._logger.warning(
            f'topic "{topic}": {self.ignored[topic]} messages ignored, as they lack the '
            f'signature of the run token. {UNSIGNED}',
            throttle_duration_sec=LOGGED_EVERY_S,
        )
        return False

    @property
    def count(self) -> int:
        """Number of messages ignored so far."""
        return sum(self.ignored.values())


UNSIGNED = (
    f'A node of yours gets the token in {VARIABLE} and signs with Acknowledger and MapPublisher; '
    'one that cannot is declared with token: false'
)
"""What to do about messages that lack a signature."""


def _feed_of(message_type: type[Any]) -> _Feed:
    if message_type not in _FEEDS:
        _FEEDS[message_type] = _message(message_type)
    return _FEEDS[message_type]


def _message(message_type: type[Any]) -> _Feed:
    names = message_type.get_fields_and_field_types()
    fields = [
        (name, _value(kind))
        for name, kind in zip(names, message_type.SLOT_TYPES, strict=True)
        if name != SIGNATURE
    ]

    def feed(code: Any, message: Any) -> None:
        for name, feed_field in fields:
            feed_field(code, getattr(message, name))

    return feed


def _value(kind: Any) -> _Feed:
    """Return what feeds a value: plain little-endian CDR without alignment."""
    if isinstance(kind, BasicType):
        pack = struct.Struct(FORMATS[kind.typename]).pack
        return lambda code, value: code.update(pack(value))
    if isinstance(kind, AbstractString):
        return _text
    if isinstance(kind, NamespacedType):
        return _message(getattr(importlib.import_module('.'.join(kind.namespaces)), kind.name))
    assert isinstance(kind, AbstractNestedType)
    return _several(kind)


def _several(kind: AbstractNestedType) -> _Feed:
    counted = not isinstance(kind, Array)
    if isinstance(kind.value_type, BasicType):
        dtype = np.dtype(FORMATS[kind.value_type.typename])

        def feed_numbers(code: Any, values: Any) -> None:
            if counted:
                code.update(len(values).to_bytes(4, 'little'))
            code.update(_numbers(values, dtype))

        return feed_numbers
    feed_one = _value(kind.value_type)

    def feed(code: Any, values: Any) -> None:
        if counted:
            code.update(len(values).to_bytes(4, 'little'))
        for value in values:
            feed_one(code, value)

    return feed


def _numbers(values: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(values, bytes):
        return values
    return np.ascontiguousarray(values, dtype).reshape(-1).view(np.uint8).data


def _text(code: Any, text: str) -> None:
    data = text.encode(errors='replace')
    code.update(len(data).to_bytes(4, 'little'))
    code.update(data)
