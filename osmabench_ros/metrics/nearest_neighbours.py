"""Exact nearest neighbours between clouds, in chunks."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.device import resolve_device, to_tensor
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import MetricError

if TYPE_CHECKING:
    import torch

PAIRS_PER_CHUNK = 16_000_000

# Distances that differ by less than this factor are equal: double precision on two devices may
# round them otherwise.
TIE = 1 + 1e-12


def find_nearest_by_grid(
    queries: torch.Tensor, references: torch.Tensor, max_distance_m: float = math.inf
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the nearest reference of every query.

    A query looks at the 27 cells around it; everything outside them is farther away than one
    edge, so a neighbour nearer than that is the nearest. Queries that found none this near try
    again with edges twice as long. Of equally near references the one with the lowest row wins.

    Parameters
    ----------
    queries, references : torch.Tensor of float32, shapes (N, 3), (M, 3)
        On one device, finite, M >= 1.
    max_distance_m : float
        References farther away do not count.

    Returns
    -------
    rows : torch.Tensor of int64, shape (N,)
        -1 where there is none.
    distances_m : torch.Tensor of float32, shape (N,)
        +inf where there is none.
    """
    import torch

    rows = torch.full((len(queries),), -1, dtype=torch.int64, device=queries.device)
    distances = torch.full_like(rows, math.inf, dtype=torch.float64)
    open_rows = torch.arange(len(queries), device=queries.device)
    edge = _choose_first_edge(references)
    while len(open_rows):
        grid = _Grid(references, edge)
        found, squared = grid.search(queries[open_rows])
        rows[open_rows], distances[open_rows] = found, squared.sqrt()
        if grid.is_one_block(queries[open_rows]) or edge >= max_distance_m:
            break
        open_rows = open_rows[distances[open_rows] > edge]
        edge *= 2
    too_far = distances > max_distance_m
    rows[too_far], distances[too_far] = -1, math.inf
    return rows, distances.to(torch.float32)


def _choose_first_edge(references: torch.Tensor) -> float:
    """Return an edge that gives a cell a few points if they lie on surfaces."""
    low = references.min(dim=0).values
    high = references.max(dim=0).values
    x, y, z = (float(side) for side in high - low)
    area = 2 * (x * y + y * z + x * z)
    return max(2 * math.sqrt(area / len(references)), 1e-6 * max(x, y, z), 1e-6)


class _Grid:
    """References sorted by cell; cells are numbered along z first, so three make one range."""

    def __init__(self, references: torch.Tensor, edge: float) -> None:
        self._edge = edge
        self._origin = references.min(dim=0).values.double()
        cells = self._cells(references)
        self._extent = cells.max(dim=0).values + 1
        self._keys, self._order = self._key(cells).sort(stable=True)
        self._points = references[self._order].double()

    def _cells(self, points: torch.Tensor) -> torch.Tensor:
        scaled = ((points.double() - self._origin) / self._edge).floor()
        # Far outside, the exact cell no longer matters; the clamp keeps the integers small.
        return scaled.clamp(-(2.0**20), 2.0**20).long()

    def _key(self, cells: torch.Tensor) -> torch.Tensor:
        columns: torch.Tensor = cells[..., 0] * self._extent[1] + cells[..., 1]
        return columns * self._extent[2] + cells[..., 2]

    def is_one_block(self, queries: torch.Tensor) -> bool:
        """Return whether every query already looks at every reference."""
        cells = self._cells(queries)
        return bool(((cells <= 1) & (cells >= self._extent - 2)).all())

    def search(self, queries: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the nearest row within the 27 cells and its squared distance."""
        import torch

        starts, counts = self._find_ranges(self._cells(queries))
        ends = counts.sum(dim=1).cumsum(dim=0)
        rows = []
        squared = []
        begin = 0
        while begin < len(queries):
            done = int(ends[begin - 1]) if begin else 0
            budget = torch.tensor([done + PAIRS_PER_CHUNK], device=ends.device)
            end = max(int(torch.searchsorted(ends, budget, right=True)), begin + 1)
            best = self._find_best(queries[begin:end], starts[begin:end], counts[begin:end])
            rows.append(best[0])
            squared.append(best[1])
            begin = end
        return torch.cat(rows), torch.cat(squared)

    def _find_ranges(self, cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return begin and length of the nine ranges of sorted references, shapes (N, 9)."""
        import torch

        steps = torch.arange(-1, 2, device=cells.device)
        offsets = torch.cartesian_prod(steps, steps)
        columns = cells[:, None, :2] + offsets
        low = torch.cat([columns, (cells[:, None, 2:] - 1).expand(-1, 9, 1)], dim=2)
        high = low.clone()
        high[..., 2] += 2
        inside = ((columns >= 0) & (columns < self._extent[:2])).all(dim=2)
        inside &= (high[..., 2] >= 0) & (low[..., 2] < self._extent[2])
        low[..., 2].clamp_(min=0)
        high[..., 2] = torch.minimum(high[..., 2], self._extent[2] - 1)
        starts = torch.searchsorted(self._keys, self._key(low))
        ends = torch.searchsorted(self._keys, self._key(high), right=True)
        return starts, torch.where(inside, ends - starts, 0)

    def _find_best(
        self, queries: torch.Tensor, starts: torch.Tensor, counts: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        n, device = len(queries), queries.device
        flat = counts.reshape(-1)
        total = int(flat.sum())
        owner = torch.repeat_interleave(torch.arange(n, device=device), counts.sum(dim=1))
        first = starts.reshape(-1) - (flat.cumsum(dim=0) - flat)
        place = torch.repeat_interleave(first, flat) + torch.arange(total, device=device)
        squared = (queries[owner].double() - self._points[place]).square().sum(dim=1)
        best = torch.full((n,), math.inf, dtype=torch.float64, device=device)
        best.scatter_reduce_(0, owner, squared, 'amin')
        wins = squared <= best[owner] * TIE**2
        rows = torch.full((n,), len(self._order), dtype=torch.int64, device=device)
        rows.scatter_reduce_(0, owner[wins], self._order[place[wins]], 'amin')
        return torch.where(rows == len(self._order), -1, rows), best


QUERIES_PER_CHUNK = 1_000_000


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

    def find_rows_within(self, distance_m: float) -> NDArray[np.int64]:
        """Return the indices of neighbours at most this far away, -1 where there is none."""
        return np.where(self.within(distance_m), self.indices, -1)


def validate_points(points: NDArray[np.floating], what: str) -> NDArray[np.floating]:
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


def find_distinct_rows(points: NDArray[np.floating]) -> NDArray[np.int64] | None:
    """Return the first row of every place that holds points, ascending; None if all differ."""
    order = np.lexsort(points.T)
    same = (points[order[1:]] == points[order[:-1]]).all(axis=1)
    return np.sort(order[np.append(True, ~same)]) if same.any() else None


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

        self._references = validate_points(references, what).astype(np.float32, copy=False)
        # Trees need no torch.
        needs_none = device == 'cpu' or (device == 'auto' and not has_gpu_driver())
        self._device = None if needs_none else resolve_device(device)
        self._rows = find_distinct_rows(self._references) if len(references) else None
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
        queries = validate_points(queries, what)
        indices = np.full(len(queries), -1, np.int64)
        distances = np.full(len(queries), np.inf, np.float32)
        if len(self):
            for start in range(0, len(queries), QUERIES_PER_CHUNK):
                part = slice(start, start + QUERIES_PER_CHUNK)
                indices[part], distances[part] = self._search(queries[part], max_distance_m)
                progress('nearest neighbours', min(part.stop / len(queries), 1.0))
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
        balls = self._tree.query_ball_point(queries[tied], far[tied, 0] * TIE, workers=-1)
        rows[tied] = [min(ball) for ball in balls]
        return rows, far[:, 0].astype(np.float32)

    def _search_grid(
        self, queries: NDArray[np.floating], max_distance_m: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        assert self._device is not None
        if self._on_device is None:
            self._on_device = to_tensor(self._references, self._device)
        wanted = to_tensor(queries.astype(np.float32, copy=False), self._device)
        rows, distances = find_nearest_by_grid(wanted, self._on_device, max_distance_m)
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


def has_gpu_driver() -> bool:
    """Return whether there is a driver that torch's 'cuda' needs, NVIDIA's or AMD's.

    Where there is none, `auto` means the CPU, and torch, two seconds to import, need not be.
    """
    try:
        ctypes.CDLL('libcuda.so.1')
    except OSError:
        return Path('/dev/kfd').exists()
    return True
