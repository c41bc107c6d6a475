"""Projection matrices that map the nearest visible plane to -1 and the farthest to 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.intrinsics import Intrinsics

CUBE_FACES = 6


def camera_projection(intrinsics: Intrinsics, near_m: float, far_m: float) -> NDArray[np.float64]:
    """Return the matrix from optical to clip coordinates, shape (4, 4).

    Image row 0 comes out in texture row 0, so no image is flipped when it is read back.
    """
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
    """Return the matrix from the world to the clip coordinates of one face of a cube.

    Faces 0 to 5 are +x, -x, +y, -y, +z, -z; `position` is the middle of the cube in the world; the
    range is along the axis of the face.
    """
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
    """Return the orthographic matrix along a direction that just holds a box.

    The longer side of what is seen lies along the first clip axis.
    """
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
