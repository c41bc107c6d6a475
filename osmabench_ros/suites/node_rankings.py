"""Ranked classes of points, from the labels of the nodes they belong to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.confusion import OUTSIDE
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet


def ranked_labels(
    semantic_map: SemanticMap, label_set: LabelSet, k: int
) -> NDArray[np.int32] | None:
    """Return the k best classes of every point of a map, shape (N + 1, k), best first.

    The last row stands for no point; OUTSIDE fills short rankings and replaces names that the
    label set lacks. None unless some node has more than one label.
    """
    dense, nodes = semantic_map.dense, semantic_map.graph.nodes
    if dense is None or dense.instances is None:
        return None
    if not any(len(node.labels) > 1 for node in nodes):
        return None
    table = np.full((len(nodes) + 1, k), OUTSIDE, np.int32)
    for row, node in enumerate(nodes):
        for rank, label in enumerate(node.labels[:k]):
            found = label_set.id_of(label.name)
            table[row, rank] = OUTSIDE if found == UNLABELLED else found
    place = {node.id: row for row, node in enumerate(nodes)}
    ids, inverse = np.unique(dense.instances, return_inverse=True)
    rows = np.array([place.get(int(item), len(nodes)) for item in ids], np.int64)
    return np.concatenate([table[rows[inverse]], table[-1:]])
