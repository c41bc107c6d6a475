"""Fuses colour, texture and orientation of what the camera sees, without any ground truth."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers.color_names import lab_from_rgb
from osmabench_ros.mappers.fusion import FusedCells, VoxelFusion
from osmabench_ros.mappers.options import MapperOptions
from osmabench_ros.mappers.regions import Voxels
from osmabench_ros.mappers.surface import SurfaceSamples, surface_samples

_NORMAL_STEPS = 1 << 12
_LUMA = np.array([299, 587, 114])


class SurveyOptions(MapperOptions):
    """How appearance is fused and cut into regions.

    Parameters
    ----------
    voxel_m : float
        Edge of a voxel.
    stride : int
        Every how many-th row and column of the images is used.
    max_depth_m : float
        Pixels farther away are left out.
    max_color_step : float
        Largest difference of colour (CIE 1976) between neighbours in a region.
    max_angle_rad : float
        Largest angle between their normals.
    patch_m : float
        Regions are cut into patches of this size, whose colours are judged one by one.
    """

    voxel_m: float = Field(0.05, gt=0.005, le=1.0)
    stride: int = Field(3, ge=1, le=64)
    max_depth_m: float = Field(6.0, gt=0.0)
    max_color_step: float = Field(6.0, gt=0.0)
    max_angle_rad: float = Field(0.35, gt=0.0, le=np.pi)
    patch_m: float = Field(1.0, gt=0.0)


class Survey:
    """Voxels with mean colour, texture and normal."""

    def __init__(self, options: SurveyOptions) -> None:
        self.options = options
        self._fusion = VoxelFusion(options.voxel_m, extra_columns=4)

    def add(self, frame: Frame) -> SurfaceSamples:
        """Fuse a frame and return what was taken of it."""
        samples = surface_samples(frame, self.options.stride, self.options.max_depth_m)
        luma = samples.colors.astype(np.int64) @ _LUMA // 1000
        extras = np.empty((len(luma), 4), np.int64)
        extras[:, :3] = np.rint(samples.normals * _NORMAL_STEPS)
        extras[:, 3] = luma * luma
        segments = np.zeros(len(luma), np.int64)
        self._fusion.add(samples.points, samples.colors, segments, extras)
        return samples

    def voxels(self) -> tuple[Voxels, FusedCells]:
        """Return what is known so far, once as features and once as fused."""
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
