"""A fault of a map, and what finding them shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a map: its file, the key or row in it ('' for the whole file), what."""

    file: str
    place: str
    message: str

    def __str__(self) -> str:
        return ': '.join(part for part in (self.file, self.place, self.message) if part)


def json_fault(place: str, message: str) -> Fault:
    """Return a fault of map.json."""
    return Fault('map.json', place, message)


def rows_of(mask: NDArray[np.bool_]) -> str:
    """Return the first rows that a mask marks, and how many more there are."""
    rows = np.flatnonzero(mask)
    first = ', '.join(str(row) for row in rows[:3])
    return f'row {first}' + (f' and {len(rows) - 3} more' if len(rows) > 3 else '')


def repeated(values: list[Any]) -> Iterator[tuple[int, int, Any]]:
    """Yield (position, first position, value) of everything that was there before."""
    seen: dict[Any, int] = {}
    for i, value in enumerate(values):
        if value in seen:
            yield i, seen[value], value
        else:
            seen[value] = i


def class_ids(document: Mapping[str, Any]) -> set[int] | None:
    """Return the class ids of map.json, None without a label set."""
    label_set = document.get('label_set')
    return {item['id'] for item in label_set['classes']} if label_set else None
