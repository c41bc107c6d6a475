"""Clouds seen from above, as images."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from osmabench_ros.semantics.storeys import find_storey

# Height above the floor; higher surfaces (ceilings, lintels, lamps) are cut away.
CUT_HEIGHT_M = 2.0

BELOW_FLOOR_M = 0.5
_MOST_CELLS = 560
_SMALLEST_CELL_M = 0.02
_MARGIN_M = 0.3
_HIGHER_M = 0.08
_PIT_CELLS = 5
_SHADE_STEPS = (1, 2, 4)
_SHADE_STRENGTH = 0.9
_DEEPEST_M = 0.6

# The row of the point in every cell of an image, -1 where there is none.
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class TopGrid:
    """Cells of an image that looks down on the world, in metres; rows run from +y to -y.

    Storeys lie side by side, the lowest on the left; each is `panel` cells wide.
    """

    left_m: float
    top_m: float
    cell_m: float
    panel: int
    height: int
    floors_m: tuple[float, ...]

    @classmethod
    def around(cls, points: NDArray[np.floating], floors_m: tuple[float, ...]) -> 'TopGrid':
        """Return a grid that holds all points (N, 3) with a margin; one cell without points."""
        if not len(points):
            return cls(0.0, 0.0, _SMALLEST_CELL_M, 1, 1, floors_m[:1])
        low = points[:, :2].min(axis=0).astype(float) - _MARGIN_M
        high = points[:, :2].max(axis=0).astype(float) + _MARGIN_M
        cell_m = max(_SMALLEST_CELL_M, float((high - low).max()) / _MOST_CELLS)
        panel, height = (int(np.ceil(edge / cell_m)) for edge in high - low)
        return cls(float(low[0]), float(high[1]), cell_m, panel, height, floors_m)

    @property
    def width(self) -> int:
        """Columns of the image."""
        return self.panel * len(self.floors_m)

    def find_pixels(self, points: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return image coordinates (..., 2), x right and y down, of world points (..., 3)."""
        x = (points[..., 0] - self.left_m) / self.cell_m
        y = (self.top_m - points[..., 1]) / self.cell_m
        x = x + self.panel * find_storey(points[..., 2], self.floors_m)
        return np.stack([x, y], axis=-1).astype(np.float64)


def draw_top_view(
    points: NDArray[np.floating], colors: NDArray[np.uint8], grid: TopGrid, splat_m: float = 0.05
) -> NDArray[np.uint8]:
    """Draw the highest point of every cell below the cut, relief shaded, as RGBA (h, w, 4)."""
    own = find_storey(points[:, 2], grid.floors_m)
    views = []
    for number, z in enumerate(grid.floors_m):
        rows = np.flatnonzero(own == number)
        panel = replace(grid, floors_m=(z,))
        views.append(_draw_storey_view(points[rows], colors[rows], panel, splat_m))
    return np.concatenate(views, axis=1)


def _draw_storey_view(
    points: NDArray[np.floating], colors: NDArray[np.uint8], grid: TopGrid, splat_m: float
) -> NDArray[np.uint8]:
    image = np.zeros((grid.height, grid.width, 4), np.uint8)
    heights = points[:, 2]
    rows = _find_highest_rows(points, grid)
    if not (rows >= 0).any():
        return image
    radius = round(splat_m / grid.cell_m)
    rows = _fill_holes(_extend_points(rows, heights, radius), 2 * max(1, radius))
    rows = _cover_pits(rows, heights)
    drawn = rows >= 0
    shade = _shade(_look_up(heights, rows, np.nan))[..., None]
    image[drawn, :3] = (colors[rows] * shade + 0.5)[drawn].astype(np.uint8)
    image[drawn, 3] = 255
    return image


def _look_up(heights: NDArray[np.floating], rows: Rows, absent: float) -> NDArray[np.floating]:
    """Return the height of the point in every cell."""
    return np.where(rows >= 0, heights[rows], absent)


def _find_highest_rows(points: NDArray[np.floating], grid: TopGrid) -> Rows:
    """Return the row of the highest point of every cell, -1 where there is none."""
    rows = np.full((grid.height, grid.width), -1, np.int64)
    cells = np.floor(grid.find_pixels(points)).astype(np.int64)
    above_m = points[:, 2] - grid.floors_m[0]
    inside = (cells >= 0).all(axis=1) & (cells < (grid.width, grid.height)).all(axis=1)
    kept = np.flatnonzero(inside & (above_m <= CUT_HEIGHT_M) & (above_m >= -BELOW_FLOOR_M))
    # The last of equal indices is what stays, so the highest point comes last.
    kept = kept[np.argsort(points[kept, 2], kind='stable')]
    rows[cells[kept, 1], cells[kept, 0]] = kept
    return rows


def _extend_points(rows: Rows, heights: NDArray[np.floating], radius: int) -> Rows:
    """Let points cover neighbouring cells that are empty or clearly lower."""
    found = rows.copy()
    levels = _look_up(heights, rows, -np.inf)
    # Without this margin, noise of the surface would smear its texture.
    best = levels + np.where(np.isfinite(levels), _HIGHER_M, 0.0)
    steps = range(-radius, radius + 1)
    for dy, dx in ((dy, dx) for dy in steps for dx in steps):
        if 0 < dx * dx + dy * dy <= radius * radius:
            moved = _shift_image(levels, dy, dx, -np.inf)
            wins = moved > best
            found[wins], best[wins] = _shift_image(rows, dy, dx, -1)[wins], moved[wins]
    return found


def _shift_image(image: NDArray[Any], dy: int, dx: int, fill: float) -> NDArray[Any]:
    return np.asarray(ndimage.shift(image, (dy, dx), order=0, cval=fill))


def _fill_holes(rows: Rows, radius: int) -> Rows:
    """Fill small holes with the nearest colour, without growing outwards."""
    drawn = rows >= 0
    far_out = ndimage.distance_transform_edt(~np.pad(drawn, radius)) > radius
    closed = ndimage.distance_transform_edt(~far_out) > radius
    _, (y, x) = ndimage.distance_transform_edt(~drawn, return_indices=True)
    filled = drawn | closed[radius:-radius, radius:-radius]
    return np.where(filled, rows[y, x], -1)


def _cover_pits(rows: Rows, heights: NDArray[np.floating]) -> Rows:
    """Cover narrow gaps through which much lower points are visible."""
    levels = _look_up(heights, rows, -np.inf)
    with np.errstate(invalid='ignore'):
        depths = ndimage.grey_closing(levels, size=_PIT_CELLS) - levels
    pits = (rows >= 0) & (depths > _HIGHER_M)
    if pits.all():
        return rows
    _, (y, x) = ndimage.distance_transform_edt(pits | (rows < 0), return_indices=True)
    return np.where(pits, rows[y, x], rows)


def _shade(heights: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return a factor in (0, 1] that darkens cells next to higher ones (eye-dome lighting).

    `heights` are NaN where nothing is drawn.
    """
    depth = np.zeros(heights.shape)
    for step in _SHADE_STEPS:
        for dy, dx in ((0, step), (0, -step), (step, 0), (-step, 0)):
            rise = _shift_image(heights, dy, dx, np.nan) - heights
            depth += np.clip(np.nan_to_num(rise), 0.0, _DEEPEST_M)
    return np.asarray(np.exp(-_SHADE_STRENGTH * depth / len(_SHADE_STEPS)))
