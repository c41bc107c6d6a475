"""Whether the lengths that a serialised message claims fit into the bytes that came.

Deserialising trusts them: a message of 20 MB that claims 20 million elements makes it allocate
1.8 GB before it notices that they are not there.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable
from typing import Any

from rosidl_parser.definition import (
    AbstractNestedType,
    AbstractSequence,
    AbstractString,
    Array,
    BasicType,
    NamespacedType,
)

from osmabench_ros.errors import ContractError

MAX_ELEMENTS = 500_000
"""Elements of sequences of strings and messages in one message; numbers are not counted."""

ENCAPSULATION_BYTES = 4
LITTLE_ENDIAN, BIG_ENDIAN = b'\x00\x01', b'\x00\x00'

SIZES = {
    'boolean': 1, 'octet': 1, 'char': 1, 'int8': 1, 'uint8': 1,
    'int16': 2, 'uint16': 2, 'wchar': 2,
    'int32': 4, 'uint32': 4, 'float': 4,
    'int64': 8, 'uint64': 8, 'double': 8, 'long double': 16,
}  # fmt: skip


class _Cursor:
    """A position in the body of a message."""

    def __init__(self, data: bytes | memoryview, topic: str) -> None:
        self._length = struct.Struct('<I' if data[:2] == LITTLE_ENDIAN else '>I')
        self._body = memoryview(data)[ENCAPSULATION_BYTES:]
        self._topic = topic
        self._place = 0
        self._elements = 0

    def skip(self, size: int, count: int, path: str) -> None:
        """Go on behind `count` values of a size, aligned as plain CDR aligns them."""
        start = -(-self._place // min(size, 8)) * min(size, 8)
        if start + size * count > len(self._body):
            left = max(len(self._body) - start, 0)
            raise ContractError(
                f'topic "{self._topic}": {path} claims {size * count} bytes, {left} are left; '
                'the message is damaged or of another type'
            )
        self._place = start + size * count

    def length(self, path: str) -> int:
        """Return the length that stands here."""
        self.skip(4, 1, path)
        return int(self._length.unpack_from(self._body, self._place - 4)[0])

    def count(self, elements: int, path: str) -> None:
        """Add elements that each become an object."""
        self._elements += elements
        # An element takes a byte at least, so a lie is found without walking.
        left = len(self._body) - self._place
        if elements > left or self._elements > MAX_ELEMENTS:
            raise ContractError(
                f'topic "{self._topic}": {path} claims {elements} elements; {left} bytes are '
                f'left, and a message may have {MAX_ELEMENTS} elements'
            )


_Step = Callable[[_Cursor], None]
_KNOWN: dict[type[Any], _Step] = {}


def check_lengths(data: bytes, message_type: type[Any], topic: str) -> None:
    """Check every length in a serialised message; nothing is allocated for its content.

    Parameters
    ----------
    data : bytes
        As a raw subscription gives it: encapsulation, then plain CDR.
    message_type : type
        What it is to be deserialised as.
    topic : str
        For the error.

    Raises
    ------
    ContractError
        If a length reaches beyond the data, or there are too many elements; names topic and
        field.
    """
    if len(data) < ENCAPSULATION_BYTES or data[:2] not in (LITTLE_ENDIAN, BIG_ENDIAN):
        raise ContractError(f'topic "{topic}": {len(data)} bytes that are no plain CDR message')
    _steps(message_type)(_Cursor(data, topic))


def _steps(message_type: type[Any]) -> _Step:
    if message_type not in _KNOWN:
        _KNOWN[message_type] = _message(message_type, '')
    return _KNOWN[message_type]


def _message(message_type: type[Any], path: str) -> _Step:
    names = message_type.get_fields_and_field_types()
    steps = [
        _step(kind, f'{path}{name}')
        for name, kind in zip(names, message_type.SLOT_TYPES, strict=True)
    ]

    def walk(cursor: _Cursor) -> None:
        for step in steps:
            step(cursor)
        if not steps:
            # rosidl gives an empty message one byte.
            cursor.skip(1, 1, path)

    return walk


def _step(kind: Any, path: str) -> _Step:
    if isinstance(kind, BasicType):
        size = SIZES[kind.typename]
        return lambda cursor: cursor.skip(size, 1, path)
    if isinstance(kind, AbstractString):
        return lambda cursor: cursor.skip(1, cursor.length(path), path)
    if isinstance(kind, NamespacedType):
        module = importlib.import_module('.'.join(kind.namespaces))
        return _message(getattr(module, kind.name), f'{path}.')
    if isinstance(kind, AbstractNestedType):
        return _elements(kind, path)
    raise ContractError(f'field {path} is a {type(kind).__name__}, which is not supported')


def _elements(kind: AbstractNestedType, path: str) -> _Step:
    fixed = kind.size if isinstance(kind, Array) else None
    length = (lambda _cursor: fixed) if fixed is not None else (lambda c: c.length(path))
    assert fixed is not None or isinstance(kind, AbstractSequence)
    if isinstance(kind.value_type, BasicType):
        size = SIZES[kind.value_type.typename]

        def skip_numbers(cursor: _Cursor) -> None:
            count = length(cursor)
            if count:
                cursor.skip(size, count, path)

        return skip_numbers
    step = _step(kind.value_type, f'{path}[]')

    def walk(cursor: _Cursor) -> None:
        count = length(cursor)
        cursor.count(count, path)
        for _ in range(count):
            step(cursor)

    return walk
