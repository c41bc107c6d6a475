"""Checks the lengths in serialised messages, which deserialising trusts and allocates."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from osmabench_ros.errors import ContractError

MAX_ELEMENTS = 500_000
"""Elements of sequences of strings and messages in one message; numbers are not counted."""

ENCAPSULATION_BYTES = 4
LITTLE_ENDIAN, BIG_ENDIAN = b'\x00\x01', b'\x00\x00'


class Cursor:
    """A position in a body of plain CDR; ContractError names the topic if that claims too much."""

    def __init__(self, data: bytes | memoryview, topic: str) -> None:
        if len(data) < ENCAPSULATION_BYTES or data[:2] not in (LITTLE_ENDIAN, BIG_ENDIAN):
            raise ContractError(
                f'topic "{topic}": {len(data)} bytes that are no plain CDR message'
            )
        self._length = struct.Struct('<I' if data[:2] == LITTLE_ENDIAN else '>I')
        self._body = memoryview(data)[ENCAPSULATION_BYTES:]
        self._topic = topic
        self._place = 0
        self._elements = 0

    def skip(self, size: int, count: int, path: str) -> None:
        """Skip `count` values of a size, with the alignment of plain CDR."""
        start = -(-self._place // min(size, 8)) * min(size, 8)
        if start + size * count > len(self._body):
            left = max(len(self._body) - start, 0)
            raise ContractError(
                f'topic "{self._topic}": {path} claims {size * count} bytes, {left} are left; '
                'the message is damaged or of another type'
            )
        self._place = start + size * count

    def length(self, path: str) -> int:
        """Read the length at the current position."""
        self.skip(4, 1, path)
        return int(self._length.unpack_from(self._body, self._place - 4)[0])

    def count(self, elements: int, path: str) -> None:
        """Count elements that each become a Python object."""
        self._elements += elements
        # An element takes a byte at least, so a lie is found without walking.
        left = len(self._body) - self._place
        if elements > left or self._elements > MAX_ELEMENTS:
            raise ContractError(
                f'topic "{self._topic}": {path} claims {elements} elements; {left} bytes are '
                f'left, and a message may have {MAX_ELEMENTS} elements'
            )


Step = Callable[[Cursor], None]
"""Goes on behind a field."""


def number(size: int, path: str) -> Step:
    """Return the function that skips a number."""
    return lambda cursor: cursor.skip(size, 1, path)


def text(path: str) -> Step:
    """Return the function that skips a string."""
    return lambda cursor: cursor.skip(1, cursor.length(path), path)


def fields(steps: Sequence[Step]) -> Step:
    """Return the function that skips a message."""

    def walk(cursor: Cursor) -> None:
        for step in steps:
            step(cursor)

    return walk


def elements(step: Step | int, fixed: int | None, path: str) -> Step:
    """Return the function that skips an array of `fixed` elements, or a sequence (None)."""

    def walk(cursor: Cursor) -> None:
        count = cursor.length(path) if fixed is None else fixed
        if not count:
            return
        if isinstance(step, int):
            cursor.skip(step, count, path)
            return
        cursor.count(count, path)
        for _ in range(count):
            step(cursor)

    return walk
