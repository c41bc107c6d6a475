"""Occupied cells of a cloud."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError

_BITS = 21
_HALF = 1 << (_BITS - 1)


def occupied_voxels(points: NDArray[np.floating], edge_m: float) -> NDArray[np.int64]:
    """Return the keys of the cells that hold a point, ascending and without repeats.

    Cells are aligned with the origin of the world, so keys of several clouds can be compared.

    Parameters
    ----------
    points : ndarray, shape (N, 3)
        Finite coordinates in metres.
    edge_m : float
        Edge of a cell, > 0.

    Raises
    ------
    MetricError
        If a point is more than 2**20 cells away from the origin.
    """
    return np.unique(voxel_keys(points, edge_m))


def voxel_keys(points: NDArray[np.floating], edge_m: float) -> NDArray[np.int64]:
    """Return the key of each point's cell, shape (N,); see `occupied_voxels`."""
    if not edge_m > 0:
        raise MetricError(f'a voxel needs an edge > 0, not {edge_m} m')
    keys = np.zeros(len(points), np.int64)
    for axis in range(3):
        cells = np.floor(points[:, axis].astype(np.float64) / edge_m).astype(np.int64) + _HALF
        if len(cells) and not (cells.min() >= 0 and cells.max() < 1 << _BITS):
            raise MetricError(
                f'points reach beyond {_HALF} voxels of {edge_m} m around the origin; '
                'take larger voxels or check the units of the map'
            )
        keys = (keys << _BITS) | cells
    return keys
