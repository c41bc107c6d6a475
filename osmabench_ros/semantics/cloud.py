"""Points with classes and instances; boxes and points that are close, covered, enclosed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox


@dataclass(frozen=True, eq=False)
class LabelledCloud:
    """Points in the world, z-up metres.

    Parameters
    ----------
    points : ndarray of float32, shape (N, 3)
        Metres.
    labels : ndarray of int32, shape (N,)
        Class id, UNLABELLED where there is none.
    instances : ndarray of int32, shape (N,)
        Instance id, 0 where there is none.
    normals : ndarray of float32, shape (N, 3), optional
        Unit normals.
    """

    points: NDArray[np.float32]
    labels: NDArray[np.int32]
    instances: NDArray[np.int32]
    normals: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        n = len(self.points)
        shapes = self.points.shape, self.labels.shape, self.instances.shape
        if shapes != ((n, 3), (n,), (n,)):
            raise ValueError(f'a labelled cloud needs shapes (N, 3), (N,), (N,), not {shapes}')

    def __len__(self) -> int:
        return len(self.points)

    def select(self, mask: NDArray[np.bool_] | NDArray[np.integer]) -> LabelledCloud:
        """Return the points that a mask or index array picks."""
        normals = None if self.normals is None else self.normals[mask]
        return LabelledCloud(self.points[mask], self.labels[mask], self.instances[mask], normals)


def joined(clouds: Sequence[LabelledCloud]) -> LabelledCloud:
    """Return the points of several clouds; with normals if all have them."""
    normals = [cloud.normals for cloud in clouds if cloud.normals is not None]
    return LabelledCloud(
        np.concatenate([cloud.points for cloud in clouds]),
        np.concatenate([cloud.labels for cloud in clouds]),
        np.concatenate([cloud.instances for cloud in clouds]),
        np.concatenate(normals) if len(normals) == len(clouds) else None,
    )


def close_pairs(
    low: NDArray[np.float64], high: NDArray[np.float64], reach_m: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs (P,), first < second, of boxes at most `reach_m` apart along every axis."""
    order = np.argsort(low[:, 0], kind='stable')
    starts = low[order, 0]
    ends = np.searchsorted(starts, high[order, 0] + reach_m, side='right')
    first = [np.zeros(0, np.int64)]
    second = [np.zeros(0, np.int64)]
    for position, end in enumerate(ends):
        index = order[position]
        others = order[position + 1 : end]
        gap = np.maximum(low[others] - high[index], low[index] - high[others])
        near = others[(gap[:, 1:] <= reach_m).all(axis=1)]
        first.append(np.full(len(near), index))
        second.append(near)
    a = np.concatenate(first)
    b = np.concatenate(second)
    a, b = np.minimum(a, b), np.maximum(a, b)
    rank = np.lexsort((b, a))
    return a[rank], b[rank]


# Edge of the cells a footprint is divided into, at least; no more than MAX_CELLS a side.
CELL_M = 0.05

MAX_CELLS = 6
# Points may lie this much outside their own box.
MARGIN_M = 0.005

# Directions around an object in which the walls of a container are looked for.
SECTORS = 16


class SurfacePoints:
    """Points on the surface of an object, (N, 3) in world metres, sorted for box queries."""

    def __init__(self, points: ArrayLike) -> None:
        array = np.asarray(points, np.float64).reshape(-1, 3)
        self._points = array[np.argsort(array[:, 0], kind='stable')]

    def within(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the points (M, 3) inside a box."""
        start, stop = np.searchsorted(self._points[:, 0], [low[0], high[0]])
        part = self._points[start:stop]
        return part[((part[:, 1:] >= low[1:]) & (part[:, 1:] <= high[1:])).all(axis=1)]

    def measure_cover(self, box: AxisAlignedBox, z_low: float, z_high: float) -> float:
        """Return the share of a box's footprint that has points between two heights."""
        low = box.minimum.copy()
        high = box.maximum.copy()
        low[2], high[2] = z_low, z_high
        points = self.within(low, high)
        cells = np.clip((box.size[:2] / CELL_M).astype(int), 1, MAX_CELLS)
        scaled = (points[:, :2] - low[:2]) / np.maximum(box.size[:2], 1e-9) * cells
        index = np.minimum(scaled.astype(int), cells - 1)
        return len(np.unique(index[:, 0] * MAX_CELLS + index[:, 1])) / float(cells.prod())

    def measure_height_gap(self, box: AxisAlignedBox, gap_m: float) -> float:
        """Return the distance of the box's bottom from the surface within `gap_m` of it.

        The surface's height is the 80th percentile of its points, which is on the upper face
        of a thin sheet seen from both sides. Infinite without points.
        """
        low = box.minimum.copy()
        high = box.maximum.copy()
        low[2], high[2] = box.minimum[2] - gap_m, box.minimum[2] + gap_m
        points = self.within(low, high)
        if not len(points):
            return float('inf')
        return abs(float(np.quantile(points[:, 2], 0.8)) - float(box.minimum[2]))

    def measure_enclosure(
        self, box: AxisAlignedBox, z_low: float, z_high: float, within: AxisAlignedBox
    ) -> float:
        """Return the largest arc of horizontal directions from the box that meet a point.

        The share of the full circle, so that a wall counts and the legs of a table do not. Only
        points of the surface inside `within` and between the two heights count.
        """
        low = within.minimum - MARGIN_M
        high = within.maximum + MARGIN_M
        low[2], high[2] = z_low, z_high
        offset = self.within(low, high)[:, :2] - box.center[:2]
        angle = np.arctan2(offset[:, 1], offset[:, 0])
        sector = np.floor((angle / (2 * np.pi) + 0.5) * SECTORS).astype(int) % SECTORS
        hit = np.zeros(SECTORS, bool)
        hit[sector] = True
        # One empty sector between two others is a gap in the points.
        hit |= np.roll(hit, 1) & np.roll(hit, -1)
        return _find_longest_run(hit) / SECTORS

    def touching(self, box: AxisAlignedBox, gap_m: float) -> int:
        """Return the number of points within `gap_m` of a box, along the axes."""
        return len(self.within(box.minimum - gap_m, box.maximum + gap_m))


def _find_longest_run(circle: NDArray[np.bool_]) -> int:
    """Return the length of the longest run of True on a circle."""
    if circle.all():
        return len(circle)
    runs = groupby(np.roll(circle, -int(np.argmin(circle))).tolist())
    return max((len(list(run)) for is_hit, run in runs if is_hit), default=0)
