"""What a camera or a light can see at all, by the bounding box of each mesh."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def frustum_planes(clip_from_world: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the six planes (a, b, c, d) of a frustum; inside is ``a x + b y + c z + d >= 0``.

    They follow from -w <= x, y, z <= w in clip coordinates (Gribb and Hartmann 2001).
    """
    x, y, z, w = clip_from_world
    return np.stack([w + x, w - x, w + y, w - y, w + z, w - z])


def boxes_in_frustum(
    minimum: NDArray[np.float64], maximum: NDArray[np.float64], planes: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which of N boxes, by corners in the world, may reach into a frustum.

    `planes` come from `frustum_planes`; no box that reaches into it is ever left out.
    """
    center, extent = (minimum + maximum) / 2, (maximum - minimum) / 2
    reach = center @ planes[:, :3].T + planes[:, 3] + extent @ np.abs(planes[:, :3]).T
    return np.asarray((reach >= 0).all(axis=1))


def distance_to_boxes(
    minimum: NDArray[np.float64], maximum: NDArray[np.float64], point: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the distance in metres from a point to each of N boxes, 0 inside."""
    gap = np.maximum(np.maximum(minimum - point, point - maximum), 0.0)
    return np.asarray(np.sqrt((gap**2).sum(axis=1)))
