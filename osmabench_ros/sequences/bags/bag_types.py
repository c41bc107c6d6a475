"""Message types of a bag: embedded definitions, the user's .msg files, the distribution's.

They are parsed in the limited child, and checked before use.
"""

from __future__ import annotations

import re
import struct
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.limits.allowance import allowance
from osmabench_ros.base.limits.cdr import Cursor, Step, elements, fields, number, text
from osmabench_ros.base.limits.child import parse_limited, read_limited
from osmabench_ros.errors import (
    ContractError,
    LimitError,
    OsmabenchWarning,
    SequenceError,
    needing,
)

MAX_DEFINITION_FILES = 20_000
MAX_DEFINITION_BYTES = 2**20
MAX_FIELDS = 2000
"""Of a type."""
MAX_UNROLLED = 10_000
"""Elements of an array of texts or messages; a statement is made for each."""
MAX_REASON = 200
"""Characters of what the parser says; it quotes the whole definition."""
DEFINITION_S = 10.0
"""Processor time for a definition; honest ones take milliseconds."""

BASE, NAME, ARRAY, SEQUENCE = 1, 2, 3, 4
"""Kinds of rosbags' field descriptions."""
TYPES = frozenset(
    ('bool', 'byte', 'char', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32',
     'uint64', 'float32', 'float64', 'float128', 'string')
)  # fmt: skip
TYPE_NAME = re.compile(r'[A-Za-z]\w{0,99}(/[A-Za-z]\w{0,99}){1,3}', re.ASCII)
_FIELD_NAME = re.compile(r'(?!__)[A-Za-z_]\w{0,99}', re.ASCII)
_LIBRARIES = ('rosbags.typesys',)
_SEPARATOR = '=' * 80 + '\n'


def types_from_text(text: str, name: str) -> dict[str, Any]:
    """Return the types of ros2msg or ros2idl text; SequenceError if wrong, LimitError if slow."""
    if len(text) > MAX_DEFINITION_BYTES or not TYPE_NAME.fullmatch(name):
        raise SequenceError(f'{len(text)} characters define no type "{name[:100]}"')
    return _checked(
        parse_limited(
            parse_text, text.encode(errors='replace'), f'the definition of {name}',
            libraries=_LIBRARIES, seconds=DEFINITION_S, name=name,
        )
    )  # fmt: skip


def types_from_path(path: Path) -> dict[str, Any]:
    """Return the types of a .msg or .idl file, or of a folder; raises as `types_from_text`."""
    if not path.exists():
        raise SequenceError(f'message definition {path} does not exist; check --msg-path')
    return _checked(read_limited(parse_path, path.resolve(), libraries=_LIBRARIES))


def parse_text(path: Path, name: str) -> dict[str, Any]:
    """Parse a definition as bags embed it, in the limited child."""
    text = path.read_text(encoding='utf-8')
    parts = [text]
    if text.startswith(f'{_SEPARATOR}IDL: '):
        name, parts = '', [part.partition('\n')[2] for part in text.split(_SEPARATOR)[1:]]
    types: dict[str, Any] = {}
    for part in parts:
        try:
            types.update(_parsed(part, name))
        except Exception as error:  # the parser has errors of many kinds
            raise SequenceError(_in_a_line(error)) from error
    return types


def parse_path(path: Path) -> dict[str, Any]:
    """Parse the definitions of a file or folder, in the limited child."""
    types: dict[str, Any] = {}
    for file in _definition_files(path):
        if file.stat().st_size > MAX_DEFINITION_BYTES:
            raise SequenceError(f'{file} is too large for a message definition')
        try:
            types.update(_parsed(file.read_text(), '' if file.suffix == '.idl' else _name(file)))
        except Exception as error:  # the parser has errors of many kinds
            raise SequenceError(f'{file} is no message definition: {_in_a_line(error)}') from error
    if not types:
        raise SequenceError(f'{path} holds no .msg or .idl file; give the folder of a package')
    return types


def _in_a_line(error: Exception) -> str:
    return ' '.join(str(error).split())[:MAX_REASON] or type(error).__name__


def _parsed(text: str, name: str = '') -> dict[str, Any]:
    """Return the fields by type of ros2msg, or of IDL without a name; without constants."""
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    found = get_types_from_msg(text, name) if name else get_types_from_idl(text)
    return {name: fields for name, (_, fields) in found.items()}


def _definition_files(path: Path) -> Iterable[Path]:
    if path.is_file():
        return [path]
    files = sorted(islice(path.rglob('*.msg'), MAX_DEFINITION_FILES))
    named = {(file.parent, file.stem) for file in files}
    more = islice(path.rglob('*.idl'), MAX_DEFINITION_FILES)
    return [*files, *(file for file in sorted(more) if (file.parent, file.stem) not in named)]


def _name(file: Path) -> str:
    """Return the type of PACKAGE/msg/Name.msg or PACKAGE/Name.msg."""
    folder = file.parent
    package = folder.parent.name if folder.name == 'msg' else folder.name
    return f'{package}/msg/{file.stem}'


def _checked(types: Mapping[str, Any]) -> dict[str, Any]:
    """Return types as rosbags registers them, or refuse definitions on which it would fail."""
    for name, members in types.items():
        names = [str(field[0]) for field in members]
        wrong = [item for item in names if not _FIELD_NAME.fullmatch(item)]
        if not TYPE_NAME.fullmatch(name) or wrong or len(set(names)) != len(names):
            raise SequenceError(f'type "{name[:100]}" or one of its fields has no proper name')
        if len(members) > MAX_FIELDS:
            raise LimitError(f'type {name} has {len(members)} fields, {MAX_FIELDS} may be')
    return {
        name: ([], [(field, _description(kind, f'{name}.{field}')) for field, kind in members])
        for name, members in types.items()
    }


def _description(description: Any, field: str, *, nested: bool = False) -> tuple[Any, Any]:
    kind, content = description
    if kind == NAME and TYPE_NAME.fullmatch(str(content)):
        return kind, str(content)
    if kind == BASE and content[0] in TYPES and _is_size(content[1]):
        return kind, (str(content[0]), int(content[1]))
    if kind in (ARRAY, SEQUENCE) and not nested and _is_size(content[1]):
        inner = _description(content[0], field, nested=True)
        plain = inner[0] == BASE and inner[1][0] != 'string'
        if kind == SEQUENCE or plain or content[1] <= MAX_UNROLLED:
            return kind, (inner, int(content[1]))
    raise SequenceError(f'field {field} has a type that cannot be read: {str(content)[:100]}')


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


_SIZES = {'bool': 1, 'byte': 1, 'char': 1, 'octet': 1} | {
    f'{kind}{bits}': bits // 8
    for kind in ('int', 'uint', 'float')
    for bits in (8, 16, 32, 64, 128)
}


def _message(name: str, types: Mapping[str, Any], path: str) -> tuple[Step, bool]:
    """Return the step over a message, and whether it holds arrays of texts or messages."""
    found = [_step(kind, types, f'{path}{field}') for field, kind in types[name][1]]
    return fields([step for step, _ in found]), any(objects for _, objects in found)


def _step(description: Any, types: Mapping[str, Any], path: str) -> tuple[Step, bool]:
    kind, content = description
    if kind == NAME:
        return _message(content, types, f'{path}.')
    if kind == BASE:
        return (
            text(path) if content[0] == 'string' else number(_size(content, path), path)
        ), False
    inner, count = content
    fixed = count if kind == ARRAY else None
    if inner[0] == BASE and inner[1][0] != 'string':
        return elements(_size(inner[1], path), fixed, path), False
    return elements(_step(inner, types, f'{path}[]')[0], fixed, path), True


def _size(content: tuple[str, int], path: str) -> int:
    if content[0] not in _SIZES:
        raise SequenceError(f'field {path} is a {content[0]}, which is not read')
    return _SIZES[content[0]]


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
            step, objects = _message(message_type, self._store(message_type).fielddefs, '')
            self._complete[message_type] = step if objects else None  # not needed without
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
    with needing('bags need rosbags', extra('bags')):
        from rosbags import typesys
    return typesys


def _store_of(typesys: Any, distribution: str) -> Any:
    name = f'ROS2_{distribution.upper()}'
    members = typesys.Stores.__members__
    return members[name if name in members else 'ROS2_JAZZY']
