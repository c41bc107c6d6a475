"""Describes pieces of surface by numbers that a classifier can compare."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from osmabench_ros.mappers.fusion import AXIS_BITS
from osmabench_ros.semantics.storeys import measure_heights_above_floor

# Largest difference of colour (CIE 1976) between neighbours in a region.
MAX_COLOR_STEP = 6.0

# Largest angle between their normals.
MAX_ANGLE_RAD = 0.35

# Regions are cut into patches of this size; the colour of each is judged separately.
PATCH_M = 1.0

_SMALL_VOXELS = 4
_ABSORBING_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Voxels:
    """The statistics of each occupied voxel.

    Parameters
    ----------
    keys : ndarray of int64, shape (N,)
        Packed voxel indices, unique and ascending.
    points : ndarray of float32, shape (N, 3)
        Metres.
    lab : ndarray of float64, shape (N, 3)
        Mean colour in CIELAB.
    texture : ndarray of float64, shape (N,)
        Standard deviation of the luma within the voxel, 0 to 255.
    normals : ndarray of float64, shape (N, 3)
        Mean normal; shorter than 1 on curved surfaces and edges, 0 where none was seen.
    """

    keys: NDArray[np.int64]
    points: NDArray[np.float32]
    lab: NDArray[np.float64]
    texture: NDArray[np.float64]
    normals: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.keys)


def neighbour_pairs(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return index pairs (P, 2) of voxels that touch by a face, an edge or a corner."""
    _, y_bits, z_bits = AXIS_BITS
    pairs = [np.empty((0, 2), np.int64)]
    for dx, dy, dz in product((-1, 0, 1), repeat=3):
        step = (dx << (y_bits + z_bits)) + (dy << z_bits) + dz
        if step <= 0 or not len(keys):
            continue
        at = np.minimum(np.searchsorted(keys, keys + step), len(keys) - 1)
        found = np.flatnonzero(keys[at] == keys + step)
        pairs.append(np.column_stack([found, at[found]]))
    return np.concatenate(pairs)


def components(count: int, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each of `count` items the number of its connected component, by first item."""
    ones = np.ones(len(pairs), np.int8)
    graph = coo_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    _, labels = connected_components(graph, directed=False)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[inverse.reshape(-1)])


def grow_regions(voxels: Voxels, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the region of each voxel, grown by colour and normal."""
    color = np.linalg.norm(voxels.lab[pairs[:, 0]] - voxels.lab[pairs[:, 1]], axis=1)
    unit = voxels.normals / np.maximum(np.linalg.norm(voxels.normals, axis=1), 1e-9)[:, None]
    cosine = (unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(axis=1)
    alike = (color <= MAX_COLOR_STEP) & (cosine >= np.cos(MAX_ANGLE_RAD))
    regions = components(len(voxels), pairs[alike])
    for _ in range(_ABSORBING_ROUNDS):
        regions = _absorb_small(regions, pairs)
    return regions


def _absorb_small(regions: NDArray[np.int64], pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Join each small region with the larger region it touches most."""
    if not len(regions):
        return regions
    sizes = np.bincount(regions)
    both = regions[np.concatenate([pairs, pairs[:, ::-1]])]
    both = both[(sizes[both[:, 0]] < _SMALL_VOXELS) & (sizes[both[:, 1]] > sizes[both[:, 0]])]
    contacts, counts = np.unique(both, axis=0, return_counts=True)
    order = np.lexsort((contacts[:, 1], -counts, contacts[:, 0]))
    small, first = np.unique(contacts[order, 0], return_index=True)
    target = np.arange(len(sizes))
    target[small] = contacts[order[first], 1]
    _, renumbered = np.unique(target[regions], return_inverse=True)
    return np.asarray(renumbered.reshape(-1))


# Names of the columns of `describe_patches`.
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


def _grouped(
    values: NDArray[np.floating], regions: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    sizes = np.bincount(regions, minlength=count)
    return np.asarray(np.bincount(regions, weights=values, minlength=count) / sizes)


def _footprints(
    points: NDArray[np.float32], regions: NDArray[np.int64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return length and width (standard deviations along the principal axes) of footprints."""
    x, y = (points[:, axis].astype(np.float64) for axis in (0, 1))
    dx = x - _grouped(x, regions, count)[regions]
    dy = y - _grouped(y, regions, count)[regions]
    xx, yy, xy = (_grouped(part, regions, count) for part in (dx * dx, dy * dy, dx * dy))
    mean = (xx + yy) / 2
    root = np.sqrt(((xx - yy) / 2) ** 2 + xy**2)
    return np.sqrt(mean + root), np.sqrt(np.maximum(mean - root, 0.0))


def cut_patches(points: NDArray[np.float32], regions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the patch of each voxel, numbered from 0: regions cut by a grid, as light changes."""
    cells = np.floor(points / PATCH_M).astype(np.int64)
    keys = np.column_stack([regions, cells])
    order = np.lexsort(keys.T[::-1])
    changed = (np.diff(keys[order], axis=0) != 0).any(axis=1)
    patches = np.empty(len(points), np.int64)
    patches[order] = np.concatenate([[0], np.cumsum(changed)])[: len(points)]
    return patches


def describe_patches(
    voxels: Voxels, regions: NDArray[np.int64], patches: NDArray[np.int64], voxel_m: float
) -> NDArray[np.float64]:
    """Return the features (P, F) of patches, columns as in FEATURES; shape is of the region."""
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
    height = measure_heights_above_floor(voxels.points)[order].astype(np.float64)
    lowest, highest = (part.reduceat(height, starts) for part in (np.minimum, np.maximum))
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
