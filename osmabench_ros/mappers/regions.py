"""Regions of a voxel map: neighbouring voxels of similar colour and orientation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from osmabench_ros.mappers.fusion import AXIS_BITS

_SMALL_VOXELS = 4
_ABSORBING_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Voxels:
    """What is known of each occupied voxel.

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
    """Return index pairs (P, 2) of voxels that touch by a face, an edge or a corner.

    `keys` are packed voxel indices, unique and ascending.
    """
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


def grow_regions(
    voxels: Voxels, pairs: NDArray[np.int64], max_color_step: float, max_angle_rad: float
) -> NDArray[np.int64]:
    """Return the region of each voxel, numbered from 0.

    Neighbours belong together if their colours differ by at most `max_color_step` (CIE 1976) and
    their normals by at most `max_angle_rad`. Regions of a few voxels join the region they touch
    most.
    """
    color = np.linalg.norm(voxels.lab[pairs[:, 0]] - voxels.lab[pairs[:, 1]], axis=1)
    unit = voxels.normals / np.maximum(np.linalg.norm(voxels.normals, axis=1), 1e-9)[:, None]
    cosine = (unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(axis=1)
    alike = (color <= max_color_step) & (cosine >= np.cos(max_angle_rad))
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
