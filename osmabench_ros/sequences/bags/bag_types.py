"""Message types of a bag: embedded definitions, the user's .msg files, the distribution's.

rosbags parses definitions in the fence, and reads messages with code that it makes of them.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from osmabench_ros.base.fence import parse_in_fence, read_in_fence
from osmabench_ros.errors import SequenceError, errors_as, warn

MAX_DEFINITION_FILES = 20_000
MAX_DEFINITION_BYTES = 2**18
# Fields of the types in a definition; rosbags makes a statement for each element of an array of
# texts or messages.
MAX_STATEMENTS = 4_000
# Characters of the parser's message, which quotes the whole definition.
MAX_REASON = 200
# Processor time for a definition; honest ones take milliseconds.
DEFINITION_S = 10.0

# Kinds of rosbags' field descriptions.
BASE, NAME, ARRAY, SEQUENCE = 1, 2, 3, 4
HEADER = 'std_msgs/msg/Header'
TIME = 'builtin_interfaces/msg/Time'
_LIBRARIES = ('rosbags.typesys',)
_SEPARATOR = '=' * 80 + '\n'


def parse_text(path: Path, name: str) -> dict[str, Any]:
    """Parse a definition in ros2msg or ros2idl as bags embed it, in the fence."""
    text = path.read_text(encoding='utf-8')
    if not text.startswith(f'{_SEPARATOR}IDL: '):
        return _parse(path, text, name)
    types: dict[str, Any] = {}
    for part in text.split(_SEPARATOR)[1:]:
        types.update(_parse(path, part.partition('\n')[2]))
    return types


def parse_path(path: Path) -> dict[str, Any]:
    """Parse the definitions of a .msg or .idl file or a folder of them, in the fence."""
    types: dict[str, Any] = {}
    found = (file for file in path.rglob('*') if file.suffix in ('.msg', '.idl'))
    files = [path] if path.is_file() else sorted(islice(found, MAX_DEFINITION_FILES))
    # An .msg file replaces the .idl file of the same name, which comes before it.
    for file in {file.with_suffix(''): file for file in files}.values():
        types.update(_parse(file, file.read_text(), '' if file.suffix == '.idl' else _name(file)))
    if not types:
        raise SequenceError(f'{path} holds no .msg or .idl file; give the folder of a package')
    return types


def _parse(path: Path, text: str, name: str = '') -> dict[str, Any]:
    """Return plain fields by type of ros2msg, or of IDL without a name; without constants."""
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    try:
        if len(text) > MAX_DEFINITION_BYTES:
            raise ValueError(f'it has {len(text)} characters')
        found = get_types_from_msg(text, name) if name else get_types_from_idl(text)
        fields = [field for _, members in found.values() for field in members]
        if sum(_count_statements(description) for _, description in fields) > MAX_STATEMENTS:
            raise ValueError('it has too many fields, or too long arrays of texts or messages')
    except Exception as error:  # the parser has errors of many kinds
        reason = ' '.join(str(error).split())[:MAX_REASON] or type(error).__name__
        raise SequenceError(f'{path} is not a message definition: {reason}') from error
    return {
        kind: ([], [(field, _simplify(description)) for field, description in members])
        for kind, (_, members) in found.items()
    }


def _count_statements(description: Any) -> int:
    """Return the number of statements for a field; an empty array would need no data."""
    kind, content = description
    if kind != ARRAY:
        return 1
    inner, count = content
    if not count:
        raise ValueError('it has an array of no elements')
    return int(count) if inner[0] == NAME or inner[1][0] == 'string' else 1


def _simplify(description: Any) -> tuple[int, Any]:
    """Return the description of a field without enumerations."""
    kind, content = description
    if kind == NAME:
        return NAME, str(content)
    inner = str(content[0]) if kind == BASE else _simplify(content[0])
    return int(kind), (inner, int(content[1]))


def _name(file: Path) -> str:
    """Return the type of PACKAGE/msg/Name.msg or PACKAGE/Name.msg."""
    folder = file.parent
    package = folder.parent.name if folder.name == 'msg' else folder.name
    return f'{package}/msg/{file.stem}'


@dataclass(frozen=True)
class _Kind:
    """How messages of a type are read; their bytes hold a stamp at `stamp_place`, if any."""

    store: Any
    missing: list[str]
    stamp_place: int | None
    fault: str


class BagTypes:
    """Reads messages by type name: definitions of the bag, of files, of a distribution."""

    def __init__(
        self,
        definitions: Mapping[str, str],
        msg_paths: Sequence[Path] = (),
        distribution: str = '',
    ) -> None:
        from rosbags.typesys import Stores, get_typestore

        self._make_empty = partial(get_typestore, Stores.EMPTY)
        self._definitions = definitions
        known = Stores.__members__.get(f'ROS2_{distribution.upper()}', Stores.ROS2_JAZZY)
        self._standard, self._given = get_typestore(known), self._make_empty()
        given: dict[str, Any] = {}
        for path in msg_paths:
            if not path.exists():
                raise SequenceError(f'message definition {path} does not exist; check --msg-path')
            given.update(read_in_fence(parse_path, path.resolve(), libraries=_LIBRARIES))
        if given:
            self._given.register(given)
        self._kind = cache(self._define)

    def deserialise(self, data: bytes, message_type: str, topic: str = '') -> Any:
        """Return a message; SequenceError if its definition is missing or the data are wrong."""
        kind = self._kind(message_type)
        if kind.missing:
            because = f'; the embedded one cannot be read: {kind.fault}' if kind.fault else ''
            lack = f'the bag holds no definition of {", ".join(kind.missing)}{because}'
            remedy = 'Give its .msg file or the folder of its package with --msg-path'
            raise SequenceError(f'topic "{topic}" has type {message_type}, and {lack}. {remedy}')
        what = f'topic "{topic}": {len(data)} bytes are not a {message_type}'
        remedy = 'the message is damaged, or the definition is not the one it was written with'
        with errors_as(SequenceError, what, Exception, remedy=remedy):
            return kind.store.deserialize_cdr(data, message_type)

    def stamp_ns(self, data: bytes, message_type: str) -> int | None:
        """Return the header stamp without deserialising, None if the type has none.

        A TFMessage counts with the stamp of its first transform, a Clock with its time.
        """
        place = self._kind(message_type).stamp_place
        return None if place is None else stamp_at(data, place)

    def has_stamp(self, message_type: str) -> bool:
        """Return whether `stamp_ns` finds a stamp in messages of a type."""
        return self._kind(message_type).stamp_place is not None

    def type_hash(self, message_type: str) -> str:
        """Return the hash of a type as ROS since Iron computes it; empty if it is not defined."""
        kind = self._kind(message_type)
        try:
            return '' if kind.missing else str(kind.store.hash_rihs01(message_type))
        except (RecursionError, KeyError):
            return ''

    def _define(self, message_type: str) -> _Kind:
        """Gather the definitions for a type; its own has priority."""
        store, fault = self._make_empty(), ''
        try:
            if text := self._definitions.get(message_type):
                types = parse_in_fence(
                    parse_text, text.encode(errors='replace'),
                    f'the definition of {message_type[:100]}', libraries=_LIBRARIES,
                    max_seconds=DEFINITION_S, name=message_type,
                )  # fmt: skip
                store.register(types)
        except Exception as error:  # code generated from a definition may raise any error
            store = self._make_empty()
            fault = str(error) or type(error).__name__
        for other in (self._given, self._standard):
            for name, fields in other.fielddefs.items():
                store.fielddefs.setdefault(name, fields)
                store.types.setdefault(name, other.types[name])
        missing = _missing(store.fielddefs, message_type)
        if fault and not missing:
            problem = f'the definition of {message_type} in the bag cannot be read ({fault})'
            warn(f'{problem}; the one of the distribution is used')
        place = None if missing else _stamp_place(store.fielddefs, message_type)
        return _Kind(store, missing, place, fault)


def _missing(fields: Mapping[str, Any], message_type: str) -> list[str]:
    """Return the names of undefined types that a type needs."""
    names = [message_type]
    for name in names:
        for _, (kind, content) in fields.get(name, ((), ()))[1]:
            while kind in (ARRAY, SEQUENCE):
                kind, content = content[0]
            if kind == NAME and content not in names:
                names.append(content)
    return sorted(set(names) - fields.keys())


def _stamp_place(fields: Mapping[str, Any], message_type: str) -> int | None:
    if not fields[message_type][1]:
        return None
    kind, content = fields[message_type][1][0][1]
    if kind == NAME and content in (HEADER, TIME):
        return 4
    if kind == SEQUENCE and content[0][0] == NAME:
        inner = fields[content[0][1]][1]
        if inner and inner[0][1] == (NAME, HEADER):
            return 8
    return None


def stamp_at(data: bytes, place: int) -> int | None:
    """Return the time in ns at offset `place` (CDR's 4 bytes included), None if too short."""
    if len(data) < place + 8 or (place == 8 and data[4:8] == b'\0\0\0\0'):
        return None
    seconds, nanoseconds = struct.unpack_from('<iI' if data[1] & 1 else '>iI', data, place)
    return int(seconds * 10**9 + nanoseconds)
