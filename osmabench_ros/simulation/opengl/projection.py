"""Projection matrices, and visibility of boxes for cameras and lights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.intrinsics import Intrinsics


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


CUBE_FACES = 6


def camera_projection(intrinsics: Intrinsics, near_m: float, far_m: float) -> NDArray[np.float64]:
    """Return the matrix (4, 4) from optical to clip coordinates; image row 0 is texture row 0."""
    width, height = intrinsics.width, intrinsics.height
    span = far_m - near_m
    return np.array(
        [
            [2 * intrinsics.fx / width, 0, 2 * (intrinsics.cx + 0.5) / width - 1, 0],
            [0, 2 * intrinsics.fy / height, 2 * (intrinsics.cy + 0.5) / height - 1, 0],
            [0, 0, (far_m + near_m) / span, -2 * far_m * near_m / span],
            [0, 0, 1, 0],
        ]
    )


def cube_projection(
    face: int, position: NDArray[np.float64], near_m: float, far_m: float
) -> NDArray[np.float64]:
    """Return the matrix from the world to clip coordinates of face +x, -x, +y, -y, +z, -z."""
    axis, sign = face // 2, 1.0 - 2.0 * (face % 2)
    span = far_m - near_m
    matrix = np.zeros((4, 4))
    matrix[0, (axis + 1) % 3] = matrix[1, (axis + 2) % 3] = 1.0
    matrix[2, axis], matrix[2, 3] = sign * (far_m + near_m) / span, -2 * far_m * near_m / span
    matrix[3, axis] = sign
    to_position = np.eye(4)
    to_position[:3, 3] = -position
    return np.asarray(matrix @ to_position)


def parallel_projection(
    direction: NDArray[np.float64], box: AxisAlignedBox
) -> NDArray[np.float64]:
    """Return the orthographic matrix along a direction that just holds a box."""
    forward = direction / np.linalg.norm(direction)
    helper = np.eye(3)[int(np.abs(forward).argmin())]
    across = np.cross(helper, forward)
    across /= np.linalg.norm(across)
    axes = np.stack([across, np.cross(forward, across), forward])
    center, extent = axes @ box.center, np.abs(axes) @ (box.size / 2) + 0.01
    order = [0, 1, 2] if extent[0] >= extent[1] else [1, 0, 2]
    matrix = np.eye(4)
    matrix[:3, :3] = (axes / extent[:, None])[order]
    matrix[:3, 3] = (-center / extent)[order]
    return matrix
