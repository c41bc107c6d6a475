"""The straightforward ways in which published evaluation code computes the same figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def double_loop_confusion(
    truth: NDArray[np.integer], predicted: NDArray[np.integer], classes: int
) -> NDArray[np.int64]:
    """Count every cell of the matrix with a pass over all points."""
    counts = np.zeros((classes, classes), np.int64)
    for i in range(classes):
        for j in range(classes):
            counts[i, j] = np.sum((truth == i) & (predicted == j))
    return counts


def brute_force_nearest(
    queries: NDArray[np.floating], references: NDArray[np.floating]
) -> NDArray[np.int64]:
    """Compute all distances of a query and take the least."""
    return np.array([np.argmin(((references - query) ** 2).sum(axis=1)) for query in queries])


def plain_tree_nearest(
    queries: NDArray[np.floating], references: NDArray[np.floating]
) -> NDArray[np.int64]:
    """Ask a k-d tree for the points in the order they come."""
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(references).query(queries)[1])


def broadcast_ranking(
    features: NDArray[np.float32], prompts: NDArray[np.float32]
) -> NDArray[np.int64]:
    """Broadcast features against prompts, divide by the lengths, sort all prompts."""
    dots = (features[:, None] * prompts[None]).sum(axis=-1)
    lengths = np.linalg.norm(features, axis=1)[:, None] * np.linalg.norm(prompts, axis=1)[None]
    return np.argsort(-dots / lengths, axis=1)


def per_point_frequency(
    object_ids: NDArray[np.integer],
    rows: NDArray[np.integer],
    best: NDArray[np.integer],
    words: Sequence[frozenset[int]],
) -> float:
    """Go through the points one by one, counting the points of the object at each."""
    found, seen = 0.0, set()
    for object_id, row in zip(object_ids, rows, strict=True):
        size = np.sum(object_ids == object_id)
        if any(label in words[object_id] for label in best[row]):
            found += 1 / size
        seen.add(int(object_id))
    return found / len(seen)
