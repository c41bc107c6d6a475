"""Exact nearest neighbours between clouds, in chunks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.device import resolve_device, to_tensor
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.grid_search import TIE

if TYPE_CHECKING:
    import torch

QUERIES_PER_CHUNK = 1_000_000
_SORT_CELL_M = 0.25
_FIRST_CANDIDATES = 9
"""One more than the corners of a cell of a lattice, all equally near to its middle."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest reference of every query.

    Parameters
    ----------
    indices : ndarray of int64, shape (N,)
        Row in the references; -1 where none is near enough.
    distances_m : ndarray of float32, shape (N,)
        Metres; +inf where there is none.
    """

    indices: NDArray[np.int64]
    distances_m: NDArray[np.float32]

    def within(self, distance_m: float) -> NDArray[np.bool_]:
        """Return which queries have a neighbour at most this far away."""
        return self.distances_m <= distance_m


def checked_points(points: NDArray[np.floating], what: str) -> NDArray[np.floating]:
    """Return points of shape (N, 3) unchanged.

    Raises MetricError if the shape is another or a coordinate is not finite; `what` is named.
    """
    if points.ndim != 2 or points.shape[1] != 3:
        raise MetricError(f'{what}: points have shape {points.shape}, expected (N, 3)')
    # A sum is not finite as soon as one term is not, and needs no temporary array.
    if not np.isfinite(points.sum(dtype=np.float64)):
        bad = int((~np.isfinite(points).all(axis=1)).sum())
        raise MetricError(
            f'{what}: {bad} of {len(points)} points have NaN or infinite coordinates; '
            'remove them or mark them invalid in the map'
        )
    return points


def coherent_order(points: NDArray[np.floating], cell_m: float = _SORT_CELL_M) -> NDArray[np.intp]:
    """Return an order of points that keeps those of one cell together.

    Tree queries in this order find their branches in the processor's cache.
    """
    keys = np.zeros(len(points), np.int64)
    for axis in range(3) if len(points) else ():
        values = points[:, axis]
        cells = ((values - values.min()) / cell_m).astype(np.int32)
        keys *= int(cells.max()) + 1
        keys += cells
    return np.argsort(keys)


def distinct_rows(points: NDArray[np.floating]) -> NDArray[np.int64] | None:
    """Return the first row of every place that holds points, ascending; None if all differ."""
    bits = np.ascontiguousarray(points, np.float32).view(np.uint32).astype(np.uint64)
    keys = bits[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ bits[:, 1] * np.uint64(0xC2B2AE3D27D4EB4F)
    keys ^= bits[:, 2] * np.uint64(0x165667B19E3779F9)
    order = np.argsort(keys)
    ordered = keys[order]
    if (ordered[1:] != ordered[:-1]).all():
        return None
    same = (points[order[1:]] == points[order[:-1]]).all(axis=1)
    if not same.any():
        return None
    starts = np.concatenate([[0], np.flatnonzero(~same) + 1])
    return np.sort(np.minimum.reduceat(order, starts))


class NeighbourIndex:
    """References that are searched more than once.

    On the CPU a k-d tree (scipy) answers, on CUDA a voxel grid; both are exact. Of several
    references that are equally near, as on a lattice of voxels, the one with the lowest row
    answers, so that both give the same.

    Parameters
    ----------
    references : ndarray, shape (M, 3)
        Finite coordinates in metres; may be empty.
    device : str
        'auto', 'cpu' or 'cuda'.
    what : str
        Names the cloud in errors.
    """

    def __init__(
        self, references: NDArray[np.floating], device: str = 'auto', what: str = 'references'
    ) -> None:
        from scipy.spatial import cKDTree

        self._references = checked_points(references, what).astype(np.float32, copy=False)
        # Trees need no torch, so that maps can be drawn where it is not installed.
        self._device = None if device == 'cpu' else resolve_device(device)
        self._rows = distinct_rows(self._references) if len(references) else None
        if self._rows is not None:
            self._references = self._references[self._rows]
        self._tree = None
        self._on_device: torch.Tensor | None = None
        on_cpu = self._device is None or self._device.type == 'cpu'
        if on_cpu and len(references):
            # Sliding-midpoint splits build twice as fast and answer as fast on surfaces.
            self._tree = cKDTree(self._references, balanced_tree=False, compact_nodes=False)

    def __len__(self) -> int:
        """Return the number of references, those at one place counted once."""
        return len(self._references)

    def query(
        self,
        queries: NDArray[np.floating],
        *,
        max_distance_m: float = math.inf,
        what: str = 'queries',
        progress: Progress = silent,
    ) -> Neighbours:
        """Find the nearest reference of every query.

        Parameters
        ----------
        queries : ndarray, shape (N, 3)
            Finite coordinates in metres.
        max_distance_m : float
            References farther away do not count, those exactly that far do.
        what : str
            Names the queries in errors.
        progress : callable, optional
            Called with a text and the fraction done.

        Raises
        ------
        MetricError
            If a coordinate is not finite.
        """
        queries = checked_points(queries, what)
        indices = np.full(len(queries), -1, np.int64)
        distances = np.full(len(queries), np.inf, np.float32)
        if len(self):
            order = coherent_order(queries)
            for start in range(0, len(queries), QUERIES_PER_CHUNK):
                rows = order[start : start + QUERIES_PER_CHUNK]
                indices[rows], distances[rows] = self._search(queries[rows], max_distance_m)
                progress('nearest neighbours', (start + len(rows)) / len(queries))
        return Neighbours(indices, distances)

    def _search(
        self, queries: NDArray[np.floating], max_distance_m: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        if self._tree is not None:
            rows, distances = self._search_tree(queries, max_distance_m)
        else:
            rows, distances = self._search_grid(queries, max_distance_m)
        if self._rows is not None:
            rows = np.where(rows >= 0, self._rows[rows], -1)
        return rows, distances

    def _search_tree(
        self, queries: NDArray[np.floating], max_distance_m: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        assert self._tree is not None
        # scipy's bound is exclusive, ours inclusive.
        bound = np.nextafter(max_distance_m, math.inf)
        far, near = self._tree.query(queries, k=2, distance_upper_bound=bound, workers=-1)
        rows = np.where(near[:, 0] == len(self._references), -1, near[:, 0]).astype(np.int64)
        tied = np.flatnonzero(np.isfinite(far[:, 1]) & (far[:, 1] <= far[:, 0] * TIE))
        candidates = _FIRST_CANDIDATES
        while len(tied):
            candidates = min(candidates, len(self._references))
            away, found = self._tree.query(queries[tied], k=candidates, workers=-1)
            among = away <= away[:, :1] * TIE
            rows[tied] = np.where(among, found, len(self._references)).min(axis=1)
            tied = tied[among[:, -1] & (candidates < len(self._references))]
            candidates *= 4
        return rows, far[:, 0].astype(np.float32)

    def _search_grid(
        self, queries: NDArray[np.floating], max_distance_m: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        from osmabench_ros.metrics.grid_search import nearest_by_grid

        assert self._device is not None
        if self._on_device is None:
            self._on_device = to_tensor(self._references, self._device)
        wanted = to_tensor(queries.astype(np.float32, copy=False), self._device)
        rows, distances = nearest_by_grid(wanted, self._on_device, max_distance_m)
        return rows.cpu().numpy(), distances.cpu().numpy()


def nearest(
    queries: NDArray[np.floating],
    references: NDArray[np.floating],
    *,
    max_distance_m: float = math.inf,
    device: str = 'auto',
) -> Neighbours:
    """Find the nearest reference of every query once; see `NeighbourIndex`."""
    return NeighbourIndex(references, device).query(queries, max_distance_m=max_distance_m)
