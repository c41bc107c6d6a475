"""Message types out of definitions: those embedded in bags, and .msg and .idl files."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from osmabench_ros.errors import SequenceError

MAX_DEFINITION_FILES = 20_000
MAX_DEFINITION_BYTES = 2**20


def types_from_text(text: str, name: str) -> dict[str, Any]:
    """Return the types that a definition embedded in a bag describes, ros2msg or ros2idl.

    What the parser stumbles over has many forms: any exception may come out.
    """
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    separator = '=' * 80 + '\n'
    if text.startswith(f'{separator}IDL: '):
        types: dict[str, Any] = {}
        for part in text.split(separator)[1:]:
            types.update(get_types_from_idl(part.split('\n', 1)[1]))
        return types
    return dict(get_types_from_msg(text, name))


def types_from_path(path: Path) -> dict[str, Any]:
    """Return the types of a .msg or .idl file, or of all in a folder.

    Raises
    ------
    SequenceError
        If it is missing or no message definition.
    """
    if not path.exists():
        raise SequenceError(f'message definition {path} does not exist; check --msg-path')
    types: dict[str, Any] = {}
    for file in _definition_files(path):
        if file.stat().st_size > MAX_DEFINITION_BYTES:
            raise SequenceError(f'{file} is too large for a message definition')
        try:
            text = file.read_text()
            if file.suffix == '.idl':
                from rosbags.typesys import get_types_from_idl

                types.update(get_types_from_idl(text))
            else:
                types.update(types_from_text(text, _type_name(file)))
        except Exception as error:  # the parser has errors of many kinds
            raise SequenceError(f'{file} is no message definition: {error}') from error
    if not types:
        raise SequenceError(f'{path} holds no .msg or .idl file; give the folder of a package')
    return types


def _definition_files(path: Path) -> Iterable[Path]:
    if path.is_file():
        return [path]
    files = sorted(islice(path.rglob('*.msg'), MAX_DEFINITION_FILES))
    named = {(file.parent, file.stem) for file in files}
    more = islice(path.rglob('*.idl'), MAX_DEFINITION_FILES)
    return [*files, *(file for file in sorted(more) if (file.parent, file.stem) not in named)]


def _type_name(file: Path) -> str:
    """Return the type of PACKAGE/msg/Name.msg or PACKAGE/Name.msg."""
    folder = file.resolve().parent
    package = folder.parent.name if folder.name == 'msg' else folder.name
    return f'{package}/msg/{file.stem}'
