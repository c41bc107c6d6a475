"""What a depth image says about the surface: points and normals on a coarser grid of pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.frame import Frame

_MAX_STEP = 0.1
"""Depth steps above this share of the depth are edges, where no normal is taken."""


@dataclass(frozen=True, eq=False)
class SurfaceSamples:
    """Pixels of one frame in the world: points in metres, normals, RGB, and their `rows`.

    Normals are unit vectors towards the camera, zero at depth edges; `rows` index the flattened
    images.
    """

    points: NDArray[np.float32]
    normals: NDArray[np.float32]
    colors: NDArray[np.uint8]
    rows: NDArray[np.int64]


def surface_samples(frame: Frame, stride: int, max_depth_m: float) -> SurfaceSamples:
    """Return every `stride`-th pixel whose depth is valid and at most `max_depth_m`."""
    thin = (slice(stride // 2, None, stride),) * 2
    depth = frame.depth_m[thin]
    grid = frame.intrinsics.rays()[thin] * np.nan_to_num(depth, nan=0.0, posinf=0.0)[..., None]
    used = (frame.valid & (frame.depth_m <= max_depth_m))[thin]
    normals = _normals(grid)[used] @ frame.camera_pose.rotation.T
    rows = np.arange(frame.depth_m.size).reshape(frame.depth_m.shape)[thin][used]
    return SurfaceSamples(
        points=frame.camera_pose.transform(grid[used]).astype(np.float32),
        normals=normals.astype(np.float32),
        colors=frame.color[thin][used],
        rows=rows,
    )


def _normals(grid: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return unit normals (h, w, 3) towards the camera by central differences, 0 at edges."""
    normals = np.zeros_like(grid)
    if min(grid.shape[:2]) < 3:
        return normals
    across = grid[1:-1, 2:] - grid[1:-1, :-2]
    down = grid[2:, 1:-1] - grid[:-2, 1:-1]
    found = np.cross(down, across)
    found /= np.maximum(np.linalg.norm(found, axis=2, keepdims=True), 1e-12)
    middle = grid[1:-1, 1:-1]
    found *= -np.sign((found * middle).sum(axis=2, keepdims=True))
    step = np.maximum(np.abs(across[..., 2]), np.abs(down[..., 2]))
    smooth = (middle[..., 2] > 0) & (step < _MAX_STEP * middle[..., 2])
    normals[1:-1, 1:-1] = np.where(smooth[..., None], found, 0.0)
    return normals
