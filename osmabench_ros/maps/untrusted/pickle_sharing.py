"""Bounds what a pickle grows to where its parts are used in several places, exponentially."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from osmabench_ros.base.limits.meter import Meter
from osmabench_ros.errors import MapError

ITEM_BYTES = 32
"""What an item of a container takes, about: a reference and a small number."""
_ATOMS = frozenset({int, float, bool, type(None)})
_OPEN = -1


class Compound:
    """A value with parts that is no container of Python's own."""

    __slots__ = ()

    def parts(self) -> Collection[Any]:
        """Return the values that it holds."""
        return ()


def check_sharing(value: Any, meter: Meter) -> None:
    """Refuse a value that is too large, each part counted at each use, or refers to itself."""
    sizes: dict[int, int] = {}
    stack: list[tuple[Any, list[Any]]] = []

    def enter(item: Any) -> None:
        parts = _parts(item)
        nested = [part for part in parts if type(part) not in _ATOMS]
        if not nested:
            sizes[id(item)] = _own_bytes(item) + ITEM_BYTES * len(parts)
            return
        if len(stack) >= meter.max_depth:
            raise meter.too_deep()
        sizes[id(item)] = _OPEN
        stack.append((item, nested))
        left.append(iter(nested))

    left: list[Any] = []
    enter(value)
    while stack:
        part = next(left[-1], stack)
        if part is not stack:
            known = sizes.get(id(part))
            if known is None:
                enter(part)
            elif known == _OPEN:
                raise MapError('is malformed: a part of it contains itself')
            continue
        item, nested = stack.pop()
        left.pop()
        size = sum(sizes[id(part)] for part in nested)
        sizes[id(item)] = size + _own_bytes(item) + ITEM_BYTES * len(_parts(item))
        if sizes[id(item)] > meter.memory_bytes:
            raise meter.too_large()
    meter.check_time()


def _parts(value: Any) -> Collection[Any]:
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return value  # type: ignore[no-any-return]
    if kind is dict:
        return value.values()  # type: ignore[no-any-return]
    if isinstance(value, Compound):
        return value.parts()
    if kind is np.ndarray and value.dtype.hasobject:
        return value.ravel().tolist()  # type: ignore[no-any-return]
    return ()


def _own_bytes(value: Any) -> int:
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    return value.nbytes if isinstance(value, np.ndarray) else ITEM_BYTES
