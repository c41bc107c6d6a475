"""Message types out of definitions, parsed in the limited child and checked before use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.cdr import Step, elements, fields, number, text
from osmabench_ros.base.limits.child import parse_limited, read_limited
from osmabench_ros.errors import LimitError, SequenceError

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


def step_over(message_type: str, types: Mapping[str, Any]) -> Step | None:
    """Return the step over a message of a type that nests nothing, None if not needed."""
    walk, objects = _message(message_type, types, '')
    return walk if objects else None


def _message(name: str, types: Mapping[str, Any], path: str) -> tuple[Step, bool]:
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
