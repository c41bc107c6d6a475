"""The maps that a method had while it mapped, kept beside the final one and spread evenly."""

from __future__ import annotations

from pathlib import Path

from osmabench_ros.base.owned_folder import claim_folder, remove_ours
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.storage import write_map

NAME_DIGITS = 19
"""Digits of a stamp in nanoseconds, so that the order of names is that of time."""


class SnapshotFolder:
    """Writes at most `limit` (2 or more) intermediate maps, in folders named by stamp in ns.

    Once there are more than the limit, every second one is removed and from then on only every
    second that comes is kept, and so on: what is there is always spread evenly over the run.
    """

    def __init__(self, directory: Path, limit: int) -> None:
        self.directory = directory
        self._limit = max(limit, 2)
        self._stride = 1
        self._taken = 0
        self._kept: dict[int, Path] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, semantic_map: SemanticMap) -> bool:
        """Write a map if it is its turn, return whether it was; MapError if the map has faults."""
        number = self._taken
        path = self.directory / f'{semantic_map.header.stamp_ns:0{NAME_DIGITS}d}'
        if path.exists():
            return False
        self._taken += 1
        if number % self._stride:
            return False
        claim_folder(self.directory)
        write_map(semantic_map, path)
        self._kept[number] = path
        if len(self._kept) > self._limit:
            self._thin_out()
        return True

    def _thin_out(self) -> None:
        self._stride *= 2
        for number in [number for number in self._kept if number % self._stride]:
            remove_ours(self._kept.pop(number))


def snapshots_in(directory: Path) -> list[Path]:
    """Return the folders of intermediate maps in the order of time; empty if there are none."""
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if path.name.isdigit())
