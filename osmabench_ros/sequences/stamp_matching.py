"""Which messages of several topics belong together, by their header stamps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


def matched(
    stamps_ns: Mapping[str, Sequence[int]], reference: str, tolerance_ns: int
) -> list[dict[str, int]]:
    """Match each message of `reference` with the nearest of the other topics, in order of time.

    Stamps may be `tolerance_ns` apart, 0 for equal ones. A match that lacks a topic is left out,
    and a message belongs to the first match only.
    """
    ordered = {
        topic: np.unique(np.asarray(list(items), np.int64)) for topic, items in stamps_ns.items()
    }
    if any(len(items) == 0 for items in ordered.values()):
        return []
    centres = ordered[reference]
    nearest = {topic: items[_nearest(items, centres)] for topic, items in ordered.items()}
    found: list[dict[str, int]] = []
    last: dict[str, int] = {}
    for index in range(len(centres)):
        match = {topic: int(items[index]) for topic, items in nearest.items()}
        near = all(abs(stamp - int(centres[index])) <= tolerance_ns for stamp in match.values())
        fresh = all(last.get(topic) != stamp for topic, stamp in match.items())
        if near and fresh:
            found.append(match)
            last = match
    return found


def _nearest(items: NDArray[np.int64], centres: NDArray[np.int64]) -> NDArray[np.intp]:
    after = np.clip(np.searchsorted(items, centres), 0, len(items) - 1)
    before = np.clip(after - 1, 0, len(items) - 1)
    earlier = np.abs(items[before] - centres) <= np.abs(items[after] - centres)
    return np.where(earlier, before, after)
