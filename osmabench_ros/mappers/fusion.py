"""Fuses points of frames in a voxel grid; integer sums do not depend on their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError

# Bits of a key for the voxel's x, y and z; what remains of 63 names the segment.
AXIS_BITS = (17, 17, 14)

SEGMENT_BITS = 63 - sum(AXIS_BITS)
# Number of different segments that a grid can hold.
MAX_SEGMENTS = 1 << SEGMENT_BITS

# Positions are rounded to this fraction of a voxel before they are summed.
POSITION_STEPS = 4096

# Voxels on each side of the origin.
_HALF_RANGE = np.array([1 << (bits - 1) for bits in AXIS_BITS], np.int64)
_MERGE_ROWS = 1 << 18


@dataclass(frozen=True, eq=False)
class FusedCells:
    """Cells of a voxel grid, one for each pair of voxel and segment, unless grids were joined.

    Parameters
    ----------
    voxels : ndarray of int64, shape (N,)
        Packed voxel index; cells of one voxel are neighbours in the arrays.
    segments : ndarray of int64, shape (N,)
        Segment that the points of the cell belong to.
    points : ndarray of float32, shape (N, 3)
        Mean of the fused points in metres.
    colors : ndarray of uint8, shape (N, 3)
        Mean RGB.
    counts : ndarray of int64, shape (N,)
        Points fused into the cell.
    frames : ndarray of int64, shape (N,)
        Calls of `VoxelFusion.add` that gave points to the cell.
    extras : ndarray of float64, shape (N, E)
        Means of the extra columns.
    """

    voxels: NDArray[np.int64]
    segments: NDArray[np.int64]
    points: NDArray[np.float32]
    colors: NDArray[np.uint8]
    counts: NDArray[np.int64]
    frames: NDArray[np.int64]
    extras: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.voxels)

    def select(self, mask: NDArray[np.bool_] | NDArray[np.integer]) -> FusedCells:
        """Return the cells that a mask or index array picks."""
        return FusedCells(*(getattr(self, item.name)[mask] for item in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[FusedCells]) -> FusedCells:
        """Put the cells of several grids one after another."""
        names = [item.name for item in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def vote_shares(self) -> NDArray[np.float64]:
        """Return for each cell its share of the points of its voxel, shape (N,), in (0, 1]."""
        _, voxel = np.unique(self.voxels, return_inverse=True)
        return np.asarray(self.counts / np.bincount(voxel, weights=self.counts)[voxel])

    def winner_rows(self, abstaining: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the row of the cell with most points per voxel; the lowest segment of equal ones.

        A cell of `abstaining` (N,) wins only where all cells of a voxel abstain.
        """
        votes = self.counts if abstaining is None else np.where(abstaining, 0, self.counts)
        order = np.lexsort((self.segments, -votes, self.voxels))
        _, first = np.unique(self.voxels[order], return_index=True)
        return np.asarray(order[first], np.int64)


def voxel_indices(voxels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the integer grid coordinates (N, 3) of packed voxel indices (N,)."""
    _, y_bits, z_bits = AXIS_BITS
    x = voxels >> (y_bits + z_bits)
    y = (voxels >> z_bits) & ((1 << y_bits) - 1)
    z = voxels & ((1 << z_bits) - 1)
    return np.stack([x, y, z], axis=1) - _HALF_RANGE


def _group(
    keys: NDArray[np.int64], columns: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sum the rows of equal neighbouring keys."""
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[first], np.add.reduceat(columns, first, axis=0)


def _sorted_group(
    keys: NDArray[np.int64], columns: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.argsort(keys, kind='stable')
    return _group(keys[order], columns[order])


class VoxelFusion:
    """Sums points, colours and `extra_columns` integers in voxels; memory grows with surface."""

    def __init__(self, voxel_m: float, extra_columns: int = 0) -> None:
        self.voxel_m = voxel_m
        self._width = 8 + extra_columns
        self._keys = np.empty(0, np.int64)
        self._sums = np.empty((0, self._width), np.int64)
        self._pending: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._pending_rows = 0

    def add(
        self,
        points: NDArray[np.floating],
        colors: NDArray[np.uint8],
        segments: NDArray[np.integer],
        extras: NDArray[np.integer] | None = None,
    ) -> None:
        """Fuse finite points (N, 3) of one frame, in world metres, with colours and extras (N, E).

        Raises MapError if a point or a segment (N,) is out of range.
        """
        if not len(points):
            return
        keys, steps = self._pack(points, segments)
        columns = np.empty((len(points), self._width), np.int64)
        columns[:, 0] = 1
        columns[:, 1:4] = steps
        columns[:, 4:7] = colors
        if extras is not None:
            columns[:, 8:] = extras
        # Neighbouring pixels often share a cell: summing them first leaves less to sort.
        part = _sorted_group(*_group(keys, columns))
        part[1][:, 7] = 1
        self._pending.append(part)
        self._pending_rows += len(part[0])
        if self._pending_rows > max(_MERGE_ROWS, len(self._keys)):
            self._merge()

    def absorb(self, other: VoxelFusion) -> None:
        """Fuse what another grid of equal voxels and columns holds; `other` keeps it."""
        other._merge()
        self._pending.append((other._keys, other._sums))
        self._pending_rows += len(other._keys)

    def _pack(
        self, points: NDArray[np.floating], segments: NDArray[np.integer]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the key of each point and its position in the voxel, in POSITION_STEPS."""
        steps = np.floor(points * np.float64(POSITION_STEPS / self.voxel_m)).astype(np.int64)
        index = steps // POSITION_STEPS
        steps -= index * POSITION_STEPS
        index += _HALF_RANGE
        if (index < 0).any() or (index >= 2 * _HALF_RANGE).any():
            reach = (_HALF_RANGE * self.voxel_m).astype(int).tolist()
            raise MapError(
                f'a point is {float(np.abs(points).max()):.0f} m from the origin; the voxel '
                f'grid reaches {reach} m: check poses and depth, or set a larger voxel_m'
            )
        if segments.min() < 0 or segments.max() >= MAX_SEGMENTS:
            raise MapError(
                f'segments are from {int(segments.min())} to {int(segments.max())}; a map holds '
                f'0 to {MAX_SEGMENTS - 1}: check that instance ids stay the same between frames'
            )
        _, y_bits, z_bits = AXIS_BITS
        voxels = (((index[:, 0] << y_bits) | index[:, 1]) << z_bits) | index[:, 2]
        return (voxels << SEGMENT_BITS) | segments, steps

    def _merge(self) -> None:
        if self._pending:
            parts = [(self._keys, self._sums), *self._pending]
            keys = np.concatenate([part[0] for part in parts])
            sums = np.concatenate([part[1] for part in parts])
            self._keys, self._sums = _sorted_group(keys, sums)
            self._pending, self._pending_rows = [], 0

    def cells(self) -> FusedCells:
        """Return all cells so far, ordered by voxel and segment."""
        self._merge()
        voxels = self._keys >> SEGMENT_BITS
        counts = self._sums[:, 0]
        means = self._sums[:, 1:] / counts[:, None]
        points = (voxel_indices(voxels) + means[:, :3] / POSITION_STEPS) * self.voxel_m
        # Flooring to steps moved each point by half a step on average.
        points += self.voxel_m / POSITION_STEPS / 2
        return FusedCells(
            voxels=voxels,
            segments=self._keys & (MAX_SEGMENTS - 1),
            points=points.astype(np.float32),
            colors=np.rint(means[:, 3:6]).astype(np.uint8),
            counts=counts.copy(),
            frames=self._sums[:, 7].copy(),
            extras=means[:, 7:],
        )
