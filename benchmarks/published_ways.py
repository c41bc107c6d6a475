"""The straightforward ways in which published evaluation code computes the same figures."""

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
    features: NDArray[np.float32], prompts: NDArray[np.float32], n: int
) -> NDArray[np.int64]:
    """Broadcast a hundred features at a time against all prompts, then sort all prompts.

    So does OpenLex3D: `cosine_similarity` of torch over a third axis, the result widened to
    float64, all of it sorted, the last n taken. On the CPU torch uses all processors for it.
    """
    import torch

    text = torch.from_numpy(prompts)[None]
    similarity = np.zeros((len(features), len(prompts)))
    for start in range(0, len(features), 100):
        batch = torch.from_numpy(features[start : start + 100])[:, None]
        similarity[start : start + 100] = torch.nn.functional.cosine_similarity(batch, text, dim=2)
    return np.argsort(similarity, axis=1)[:, : -n - 1 : -1]


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
