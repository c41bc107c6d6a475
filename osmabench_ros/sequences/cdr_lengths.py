"""Checks the lengths in messages of bags, by rosbags' descriptions of their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osmabench_ros.base.limits.cdr import Step, elements, fields, number, text
from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.message_definitions import ARRAY, BASE, NAME

_SIZES = {'bool': 1, 'byte': 1, 'char': 1, 'octet': 1} | {
    f'{kind}{bits}': bits // 8
    for kind in ('int', 'uint', 'float')
    for bits in (8, 16, 32, 64, 128)
}


def step_over(message_type: str, types: Mapping[str, Any]) -> Step | None:
    """Return the step over a message of a type that does not nest itself, None if none is needed.

    Only elements that become objects need one. Raises SequenceError for a kind of field that is
    not read.
    """
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
