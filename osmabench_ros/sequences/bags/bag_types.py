"""Message types of a bag: embedded definitions, the user's .msg files, the distribution's."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.allowance import allowance
from osmabench_ros.base.limits.cdr import Cursor, Step
from osmabench_ros.errors import ContractError, OsmabenchWarning, SequenceError, needing
from osmabench_ros.sequences.bags.message_definitions import (
    ARRAY,
    NAME,
    SEQUENCE,
    step_over,
    types_from_path,
    types_from_text,
)

HEADER = 'std_msgs/msg/Header'
TIME = 'builtin_interfaces/msg/Time'
MAX_NESTED = 100_000
"""Parts of a message type, those of nested ones and of arrays counted each time."""


class BagTypes:
    """Reads messages by type name: definitions of the bag, of files, of a distribution."""

    def __init__(
        self,
        definitions: Mapping[str, str],
        msg_paths: Sequence[Path] = (),
        distribution: str = '',
    ) -> None:
        typesys = _typesys()
        self._empty = typesys.Stores.EMPTY
        self._make_store = typesys.get_typestore
        self._definitions = definitions
        self._standard = self._make_store(_store_of(typesys, distribution))
        self._given = self._make_store(self._empty)
        found: dict[str, Any] = {}
        for path in msg_paths:
            found.update(types_from_path(path))
        if found:
            self._given.register(found)
        self._broken: dict[str, str] = {}
        self._stores: dict[str, Any] = {}
        self._complete: dict[str, Step | None] = {}
        self._stamp_places: dict[str, int | None] = {}

    def _store(self, message_type: str) -> Any:
        """Return the type store for a type; its own definition has priority."""
        if message_type not in self._stores:
            store = self._make_store(self._empty)
            # Code generated from a definition may raise any error.
            try:
                if text := self._definitions.get(message_type):
                    store.register(types_from_text(text, message_type))
            except Exception as error:
                self._broken[message_type] = str(error) or type(error).__name__
                store = self._make_store(self._empty)
            for other in (self._given, self._standard):
                for name, fields in other.fielddefs.items():
                    store.fielddefs.setdefault(name, fields)
                    store.types.setdefault(name, other.types[name])
            self._stores[message_type] = store
            self._warn_of_replaced(message_type)
        return self._stores[message_type]

    def _warn_of_replaced(self, message_type: str) -> None:
        if message_type in self._broken and self.knows(message_type):
            warnings.warn(
                f'the definition of {message_type} in the bag cannot be read '
                f'({self._broken[message_type]}); that of the distribution is used',
                OsmabenchWarning,
                stacklevel=4,
            )

    def deserialise(self, data: bytes, message_type: str, topic: str = '') -> Any:
        """Return a message; SequenceError if its definition is missing or the data are wrong."""
        self._require(message_type, topic)
        try:
            if step := self._complete[message_type]:
                step(Cursor(data, topic))
        except ContractError as error:
            raise SequenceError(str(error)) from error
        # rosbags meets malformed data with errors of many kinds.
        try:
            return self._store(message_type).deserialize_cdr(data, message_type)
        except Exception as error:
            raise SequenceError(
                f'topic "{topic}": {len(data)} bytes are no {message_type}: '
                f'{str(error) or type(error).__name__}; the message is damaged, or the '
                'definition is not the one it was written with'
            ) from error

    def knows(self, message_type: str) -> bool:
        """Return whether a type and all its nested types are defined."""
        return not self._missing(message_type)

    def stamp_ns(self, data: bytes, message_type: str) -> int | None:
        """Return the header stamp without deserialising, None if the type has none.

        A TFMessage counts with the stamp of its first transform, a Clock with its time.
        """
        place = self._known_stamp_place(message_type)
        return None if place is None else stamp_at(data, place)

    def has_stamp(self, message_type: str) -> bool:
        """Return whether `stamp_ns` finds a stamp in messages of a type."""
        return self._known_stamp_place(message_type) is not None

    def _known_stamp_place(self, message_type: str) -> int | None:
        if message_type not in self._stamp_places:
            self._stamp_places[message_type] = self._stamp_place(message_type)
        return self._stamp_places[message_type]

    def type_hash(self, message_type: str) -> str:
        """Return the hash of a type as ROS since Iron computes it; empty if it is not defined."""
        try:
            self._require(message_type, '')
        except SequenceError:
            return ''
        return str(self._store(message_type).hash_rihs01(message_type))

    def _require(self, message_type: str, topic: str) -> None:
        if message_type in self._complete:
            return
        missing = self._missing(message_type)
        if missing:
            reasons = [
                f'{name} ({self._broken[name]})' for name in missing if name in self._broken
            ]
            because = f'; the embedded one cannot be read: {"; ".join(reasons)}' if reasons else ''
            raise SequenceError(
                f'topic "{topic}" has type {message_type}, and the bag holds no definition of '
                f'{", ".join(missing)}{because}. Give its .msg file or the folder of its package '
                'with --msg-path'
            )
        try:
            self._check_extent(message_type)
            fields = self._store(message_type).fielddefs
            self._complete[message_type] = step_over(message_type, fields)
        except SequenceError as error:
            raise SequenceError(
                f'topic "{topic}" has type {message_type}, which is not read: {error}'
            ) from error

    def _missing(self, message_type: str) -> list[str]:
        """Return the names of undefined types that a type needs."""
        fields = self._store(message_type).fielddefs
        missing, seen, open_names = [], set[str](), [message_type]
        while open_names:
            name = open_names.pop()
            if name in seen:
                continue
            seen.add(name)
            if name not in fields:
                missing.append(name)
                continue
            for _, description in fields[name][1]:
                open_names.extend(_nested(description))
        return sorted(missing)

    def _check_extent(self, message_type: str) -> None:
        """Refuse types that nest themselves, or too many others."""
        fields = self._store(message_type).fielddefs
        extents: dict[str, int] = {}

        def extent(name: str, above: tuple[str, ...]) -> int:
            if name in above or len(above) > allowance().depth:
                raise SequenceError(f'{" > ".join((*above, name))[:300]} nest each other')
            if name not in extents:
                below = (*above, name)
                parts = [_repeats(item) * extent(inner, below) for _, item in fields[name][1]
                         for inner in _nested(item)]  # fmt: skip
                extents[name] = 1 + len(fields[name][1]) + sum(parts)
            return extents[name]

        if extent(message_type, ()) > MAX_NESTED:
            raise SequenceError(f'a message consists of more than {MAX_NESTED} parts')

    def _stamp_place(self, message_type: str) -> int | None:
        if not self.knows(message_type):
            return None
        known = self._store(message_type).fielddefs
        fields = known[message_type][1]
        if not fields:
            return None
        kind, content = fields[0][1]
        if kind == NAME and content in (HEADER, TIME):
            return 4
        if kind == SEQUENCE and content[0][0] == NAME:
            inner = known[content[0][1]][1]
            if inner and inner[0][1] == (NAME, HEADER):
                return 8
        return None


def stamp_at(data: bytes, place: int) -> int | None:
    """Return the time in ns at offset `place` (CDR's 4 bytes included), None if too short."""
    if len(data) < place + 8 or (place == 8 and data[4:8] == b'\0\0\0\0'):
        return None
    seconds, nanoseconds = struct.unpack_from('<iI' if data[1] & 1 else '>iI', data, place)
    return int(seconds * 10**9 + nanoseconds)


def _nested(description: Any) -> list[str]:
    kind, content = description
    if int(kind) == NAME:
        return [content]
    return _nested(content[0]) if isinstance(content[0], tuple) else []


def _repeats(description: Any) -> int:
    kind, content = description
    return max(int(content[1]), 1) if int(kind) == ARRAY else 1


def _typesys() -> Any:
    with needing('bags need rosbags', 'pip install osmabench_ros[bags]'):
        from rosbags import typesys
    return typesys


def _store_of(typesys: Any, distribution: str) -> Any:
    name = f'ROS2_{distribution.upper()}'
    members = typesys.Stores.__members__
    return members[name if name in members else 'ROS2_JAZZY']
