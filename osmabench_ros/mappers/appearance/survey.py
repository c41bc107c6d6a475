"""Fuses colour, texture and orientation of what the camera sees, without any ground truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers.appearance.descriptors import Voxels
from osmabench_ros.mappers.fusion import FusedCells, VoxelFusion
from osmabench_ros.semantics.labels import lab_from_rgb

VOXEL_M = 0.05
STRIDE_PX = 3
"""Every so many-th row and column of the images is used."""

MAX_DEPTH_M = 6.0
"""Pixels farther away are left out."""

_MAX_STEP = 0.1
"""Depth steps above this share of the depth are edges, where no normal is taken."""


@dataclass(frozen=True, eq=False)
class SurfaceSamples:
    """Pixels of a frame in the world: metres, unit normals (0 at edges), RGB, flat `rows`."""

    points: NDArray[np.float32]
    normals: NDArray[np.float32]
    colors: NDArray[np.uint8]
    rows: NDArray[np.int64]


def surface_samples(frame: Frame) -> SurfaceSamples:
    """Return every `STRIDE_PX`-th pixel with a valid depth of at most `MAX_DEPTH_M`."""
    thin = (slice(STRIDE_PX // 2, None, STRIDE_PX),) * 2
    depth = frame.depth_m[thin]
    grid = frame.intrinsics.rays()[thin] * np.nan_to_num(depth, nan=0.0, posinf=0.0)[..., None]
    used = (frame.valid & (frame.depth_m <= MAX_DEPTH_M))[thin]
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


_NORMAL_STEPS = 1 << 12
_LUMA = np.array([299, 587, 114])


class Survey:
    """Voxels with mean colour, texture and normal."""

    def __init__(self) -> None:
        self._fusion = VoxelFusion(VOXEL_M, extra_columns=4)

    def add(self, frame: Frame) -> SurfaceSamples:
        """Fuse a frame and return what was taken of it."""
        samples = surface_samples(frame)
        luma = samples.colors.astype(np.int64) @ _LUMA // 1000
        extras = np.empty((len(luma), 4), np.int64)
        extras[:, :3] = np.rint(samples.normals * _NORMAL_STEPS)
        extras[:, 3] = luma * luma
        segments = np.zeros(len(luma), np.int64)
        self._fusion.add(samples.points, samples.colors, segments, extras)
        return samples

    def voxels(self) -> tuple[Voxels, FusedCells]:
        """Return the voxels so far with their features, and the fused cells they come from."""
        cells = self._fusion.cells()
        luma = cells.colors.astype(np.float64) @ (_LUMA / 1000)
        variance = np.maximum(cells.extras[:, 3] - luma**2, 0.0)
        voxels = Voxels(
            keys=cells.voxels,
            points=cells.points,
            lab=lab_from_rgb(cells.colors),
            texture=np.sqrt(variance),
            normals=cells.extras[:, :3] / _NORMAL_STEPS,
        )
        return voxels, cells
