"""Learns class prototypes for the appearance mapper from sequences with ground truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers.descriptors import FEATURES, cut_patches, describe_patches
from osmabench_ros.mappers.fusion import VoxelFusion
from osmabench_ros.mappers.oracle import require_ground_truth
from osmabench_ros.mappers.prototypes import Prototypes
from osmabench_ros.mappers.regions import grow_regions, neighbour_pairs
from osmabench_ros.mappers.survey import Survey, SurveyOptions
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

_MIN_PURITY = 0.6
"""Patches that mix classes more than this teach nothing."""

_ROUNDS = 25
_SCALE_FLOOR = 0.05
"""Smallest within-prototype spread of a feature, as a share of its spread over all patches."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """Patches of one sequence: true classes, descriptors (R, F) and voxel counts (R,)."""

    names: tuple[str, ...]
    descriptors: NDArray[np.float64]
    weights: NDArray[np.float64]


def take_lesson(frames: Iterable[Frame], label_set: LabelSet, options: SurveyOptions) -> Lesson:
    """Return the patches that the appearance mapper would form, with their true classes.

    Patches that mix classes are left out. Raises ConfigError if a frame has no ground truth.
    """
    survey = Survey(options)
    votes = VoxelFusion(options.voxel_m)
    for frame in frames:
        semantic, _ = require_ground_truth(frame, 'appearance (learning)')
        samples = survey.add(frame)
        truth = semantic.reshape(-1)[samples.rows].astype(np.int64)
        number = np.searchsorted(label_set.ids, np.where(truth == UNLABELLED, -1, truth)) + 1
        number[truth == UNLABELLED] = 0
        votes.add(samples.points, samples.colors, number)
    voxels, _ = survey.voxels()
    regions = grow_regions(
        voxels, neighbour_pairs(voxels.keys), options.max_color_step, options.max_angle_rad
    )
    patches = cut_patches(voxels.points, regions, options.patch_m)
    descriptors = describe_patches(voxels, regions, patches, options.voxel_m)
    cells = votes.cells()
    table = np.zeros((len(descriptors), len(label_set.classes) + 1))
    np.add.at(table, (patches[np.searchsorted(voxels.keys, cells.voxels)], cells.segments), 1.0)
    best = table.argmax(axis=1)
    pure = (best > 0) & (table.max(axis=1) >= _MIN_PURITY * table.sum(axis=1))
    names = tuple(label_set.classes[i - 1].name for i in best[pure])
    weights = np.bincount(patches, minlength=len(descriptors))[pure].astype(np.float64)
    return Lesson(names, descriptors[pure], weights)


def learn_prototypes(
    lessons: Iterable[Lesson], *, per_class: int, seed: int, provenance: Mapping[str, Any]
) -> Prototypes:
    """Cluster the patches of each class; a cluster's mean is a prototype, `per_class` or fewer.

    `provenance` is kept in the file. Raises ConfigError if there are no patches.
    """
    taken = list(lessons)
    names = np.array([name for lesson in taken for name in lesson.names])
    if not len(names):
        raise ConfigError('the frames to learn from show nothing that has a class')
    descriptors = np.concatenate([lesson.descriptors for lesson in taken])
    weights = np.concatenate([lesson.weights for lesson in taken])
    spread = np.maximum(descriptors.std(axis=0), 1e-3)
    centers, shares, owners, residual = [], [], [], np.zeros(len(FEATURES))
    for name in sorted(set(names.tolist())):
        own = names == name
        rng = np.random.default_rng(seed)
        found, member = _cluster(descriptors[own] / spread, weights[own], per_class, rng)
        mass = np.bincount(member, weights=weights[own], minlength=len(found))
        residual += weights[own] @ (descriptors[own] / spread - found[member]) ** 2
        centers.append(found[mass > 0] * spread)
        shares.append(mass[mass > 0])
        owners += [name] * int((mass > 0).sum())
    scale = spread * np.maximum(np.sqrt(residual / weights.sum()), _SCALE_FLOOR)
    mass = np.concatenate(shares)
    return Prototypes(
        tuple(owners), np.concatenate(centers) / scale, scale, mass / mass.sum(), provenance
    )


def _cluster(
    items: NDArray[np.float64], weights: NDArray[np.float64], most: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return centres and the centre of each item: weighted k-means, k-means++ seeding."""
    centers = items[[int(rng.choice(len(items), p=weights / weights.sum()))]]
    while len(centers) < min(most, len(items)):
        distance = _squared(items, centers).min(axis=1) * weights
        if distance.sum() <= 0:
            break
        pick = int(rng.choice(len(items), p=distance / distance.sum()))
        centers = np.vstack([centers, items[pick]])
    for _ in range(_ROUNDS):
        member = _squared(items, centers).argmin(axis=1)
        mass = np.bincount(member, weights=weights, minlength=len(centers))
        sums = np.zeros_like(centers)
        np.add.at(sums, member, items * weights[:, None])
        centers = np.where(mass[:, None] > 0, sums / np.maximum(mass, 1e-12)[:, None], centers)
    return centers, np.asarray(_squared(items, centers).argmin(axis=1))


def _squared(items: NDArray[np.float64], centers: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(((items[:, None] - centers) ** 2).sum(axis=2))
