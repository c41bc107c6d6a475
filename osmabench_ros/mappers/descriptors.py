"""Describes pieces of surface by numbers that a classifier can compare."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.mappers.regions import Voxels

FEATURES = (
    'lightness',
    'red_green',
    'yellow_blue',
    'lightness_spread',
    'chroma_spread',
    'texture',
    'upward',
    'downward',
    'curvature',
    'lowest',
    'highest',
    'log_area',
    'log_length',
    'log_width',
    'log_height',
)
"""Names of the columns of `describe_patches`."""


def floor_height(points: NDArray[np.floating]) -> float:
    """Return the height of the floor in metres: that below which 1 % of the points lie."""
    return float(np.quantile(points[:, 2], 0.01)) if len(points) else 0.0


def _grouped(
    values: NDArray[np.floating], regions: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    sizes = np.bincount(regions, minlength=count)
    return np.asarray(np.bincount(regions, weights=values, minlength=count) / sizes)


def _extremes(
    values: NDArray[np.floating], order: NDArray[np.int64], starts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ordered = values[order].astype(np.float64)
    return np.minimum.reduceat(ordered, starts), np.maximum.reduceat(ordered, starts)


def _footprints(
    points: NDArray[np.float32], regions: NDArray[np.int64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return length and width (standard deviations along the principal axes) of footprints."""
    x, y = (points[:, axis].astype(np.float64) for axis in (0, 1))
    dx = x - _grouped(x, regions, count)[regions]
    dy = y - _grouped(y, regions, count)[regions]
    xx, yy, xy = (_grouped(part, regions, count) for part in (dx * dx, dy * dy, dx * dy))
    mean, root = (xx + yy) / 2, np.sqrt(((xx - yy) / 2) ** 2 + xy**2)
    return np.sqrt(mean + root), np.sqrt(np.maximum(mean - root, 0.0))


def cut_patches(
    points: NDArray[np.float32], regions: NDArray[np.int64], patch_m: float
) -> NDArray[np.int64]:
    """Return the patch of each voxel, numbered from 0: regions cut by a grid.

    Light changes along a large surface, so its colour is judged piece by piece.
    """
    cells = np.floor(points / patch_m).astype(np.int64)
    keys = np.column_stack([regions, cells])
    order = np.lexsort(keys.T[::-1])
    changed = (np.diff(keys[order], axis=0) != 0).any(axis=1)
    patches = np.empty(len(points), np.int64)
    patches[order] = np.concatenate([[0], np.cumsum(changed)])[: len(points)]
    return patches


def describe_patches(
    voxels: Voxels, regions: NDArray[np.int64], patches: NDArray[np.int64], voxel_m: float
) -> NDArray[np.float64]:
    """Return the features (P, F) of patches, columns as in FEATURES.

    Colour is that of the patch, shape that of the region it belongs to. Regions and patches number
    the voxels from 0, none empty; a patch lies in one region.
    """
    if not len(voxels):
        return np.empty((0, len(FEATURES)))
    _, first = np.unique(patches, return_index=True)
    shape = _shape_features(voxels, regions, voxel_m)
    return np.hstack([_color_features(voxels, patches), shape[regions[first]]])


def _color_features(voxels: Voxels, groups: NDArray[np.int64]) -> NDArray[np.float64]:
    count = int(groups.max()) + 1
    lab = [_grouped(voxels.lab[:, axis], groups, count) for axis in range(3)]
    spread = [
        _grouped((voxels.lab[:, axis] - lab[axis][groups]) ** 2, groups, count)
        for axis in range(3)
    ]
    chroma_spread = np.sqrt(spread[1] + spread[2])
    texture = _grouped(voxels.texture, groups, count)
    return np.column_stack([*lab, np.sqrt(spread[0]), chroma_spread, texture])


def _shape_features(
    voxels: Voxels, groups: NDArray[np.int64], voxel_m: float
) -> NDArray[np.float64]:
    count = int(groups.max()) + 1
    order = np.argsort(groups, kind='stable')
    starts = np.searchsorted(groups[order], np.arange(count))
    height = voxels.points[:, 2] - floor_height(voxels.points)
    lowest, highest = _extremes(height, order, starts)
    length, width = _footprints(voxels.points, groups, count)
    curvature = 1.0 - np.linalg.norm(voxels.normals, axis=1)
    return np.column_stack(
        [
            _grouped(np.maximum(voxels.normals[:, 2], 0.0), groups, count),
            _grouped(np.maximum(-voxels.normals[:, 2], 0.0), groups, count),
            _grouped(curvature, groups, count),
            lowest,
            highest,
            np.log(np.bincount(groups, minlength=count) * voxel_m**2),
            np.log(length + voxel_m / 2),
            np.log(width + voxel_m / 2),
            np.log(highest - lowest + voxel_m),
        ]
    )
