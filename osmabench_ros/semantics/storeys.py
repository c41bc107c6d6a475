"""The floors of a building, found in points of its surfaces."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Levels nearer to each other than this are one storey.
STOREY_M = 2.0

SMALLEST_FLOOR_M2 = 4.0
# A smaller level is a landing or furniture, also one with a smaller share of the largest level.
SMALLEST_SHARE = 0.1

# As far below its floor, an object still is on a storey.
BELOW_FLOOR_M = 0.1

# As large a share of the points may lie below the lowest floor.
LOWEST_SHARE = 0.01

_CELL_M, _BIN_M = 0.1, 0.05
_FREE_M, _FREE_SHARE = 1.0, 0.5


def find_storeys(points: NDArray[np.floating], *, with_roofs: bool = False) -> tuple[float, ...]:
    """Return the heights of the floors under surface points, from below.

    A floor is a level of some size most of which is free up to a metre above it, and which the
    building goes on above, unlike a ceiling or a roof; `with_roofs` takes roofs as well.

    Parameters
    ----------
    points : ndarray, shape (N, 3)
        World metres, z up.

    Returns
    -------
    tuple of float
        World z, ascending by at least STOREY_M; empty without a floor.
    """
    if not len(points):
        return ()
    low = points.min(axis=0).astype(np.float64)
    steps = ((points - low) / (_CELL_M, _CELL_M, _BIN_M)).astype(np.int64)
    # Cells are numbered by those that occur, so that memory and time depend on no extent.
    packed = steps[:, 0] * (int(steps[:, 1].max()) + 1) + steps[:, 1]
    known, column = np.unique(packed, return_inverse=True)
    voxels = np.unique(steps[:, 2] * len(known) + column)
    bins, columns = np.divmod(voxels, len(known))

    def cells(first: int, last: int) -> NDArray[np.int64]:
        start, end = np.searchsorted(bins, (first, last))
        return np.unique(columns[start:end])

    found: list[float] = []
    occupied, counts = np.unique(bins, return_counts=True)
    enough = max(SMALLEST_FLOOR_M2, SMALLEST_SHARE * _CELL_M**2 * counts.max())
    candidates = np.union1d(occupied, occupied - 1)
    for number in candidates[(candidates >= 0) & (candidates < occupied[-1])].tolist():
        floor = cells(number, number + 2)
        height_m = float(low[2]) + (number + 1) * _BIN_M
        is_new = not found or height_m - found[-1] > STOREY_M
        is_under = with_roofs or height_m + _FREE_M < float(points[:, 2].max())
        if len(floor) * _CELL_M**2 < enough or not is_new or not is_under:
            continue
        above = cells(number + 2, number + 2 + round(_FREE_M / _BIN_M))
        if np.isin(floor, above).mean() < 1 - _FREE_SHARE:
            level = points[(steps[:, 2] == number) | (steps[:, 2] == number + 1), 2]
            found.append(float(np.median(level)))
    return tuple(found)


def find_storey(heights_m: ArrayLike, storeys_m: ArrayLike) -> NDArray[np.int64]:
    """Return the numbers of the storeys that heights (N,) are on, the lowest is 0."""
    bounds = np.asarray(storeys_m, np.float64)[1:] - BELOW_FLOOR_M
    heights = np.asarray(heights_m, np.float64)
    return np.asarray(np.searchsorted(bounds, heights, side='right'), np.int64)


def find_lowest_level(points: NDArray[np.floating]) -> float:
    """Return the height in metres below which LOWEST_SHARE of points (N, 3) lie, 0 for none."""
    return float(np.quantile(points[:, 2], LOWEST_SHARE)) if len(points) else 0.0


def find_floor_heights(points: NDArray[np.floating]) -> tuple[float, ...]:
    """Return `find_storeys` of a building of several floors, else only the lowest level."""
    found = find_storeys(points)
    return found if len(found) > 1 else (find_lowest_level(points),)


def measure_heights_above_floor(points: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return how high points (N, 3) lie above the floor of their storey, metres (N,)."""
    floors_m = np.array(find_floor_heights(points), points.dtype)
    return points[:, 2] - floors_m[find_storey(points[:, 2], floors_m)]
