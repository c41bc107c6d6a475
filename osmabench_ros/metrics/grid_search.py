"""Exact nearest neighbours on a voxel grid in torch, for devices that have no k-d tree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

PAIRS_PER_CHUNK = 16_000_000

TIE = 1 + 1e-12
"""Distances that differ by less than this factor are equal: double precision on two devices may
round them otherwise."""


def nearest_by_grid(
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
    edge = _first_edge(references)
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


def _first_edge(references: torch.Tensor) -> float:
    """Return an edge that gives a cell a few points if they lie on surfaces."""
    low, high = references.min(dim=0).values, references.max(dim=0).values
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

        starts, counts = self._ranges(self._cells(queries))
        ends = counts.sum(dim=1).cumsum(dim=0)
        rows, squared, begin = [], [], 0
        while begin < len(queries):
            done = int(ends[begin - 1]) if begin else 0
            budget = torch.tensor([done + PAIRS_PER_CHUNK], device=ends.device)
            end = max(int(torch.searchsorted(ends, budget, right=True)), begin + 1)
            best = self._best(queries[begin:end], starts[begin:end], counts[begin:end])
            rows.append(best[0])
            squared.append(best[1])
            begin = end
        return torch.cat(rows), torch.cat(squared)

    def _ranges(self, cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
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

    def _best(
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
