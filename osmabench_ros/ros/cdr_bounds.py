"""Whether the lengths that a serialised message claims fit into the bytes that came."""

from __future__ import annotations

import importlib
from typing import Any

from rosidl_parser.definition import (
    AbstractNestedType,
    AbstractSequence,
    AbstractString,
    Array,
    BasicType,
    NamespacedType,
)

from osmabench_ros.base.limits.cdr import Cursor, Step, elements, fields, number, text
from osmabench_ros.errors import ContractError

SIZES = {
    'boolean': 1, 'octet': 1, 'char': 1, 'int8': 1, 'uint8': 1,
    'int16': 2, 'uint16': 2, 'wchar': 2,
    'int32': 4, 'uint32': 4, 'float': 4,
    'int64': 8, 'uint64': 8, 'double': 8, 'long double': 16,
}  # fmt: skip


_KNOWN: dict[type[Any], Step] = {}


def check_lengths(data: bytes, message_type: type[Any], topic: str) -> None:
    """Check every length in a serialised message; nothing is allocated for its content.

    `data` comes from a raw subscription: encapsulation, then plain CDR. Raises ContractError,
    which names topic and field, if a length reaches beyond it or there are too many elements.
    """
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
