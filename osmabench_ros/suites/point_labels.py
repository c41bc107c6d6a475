"""Classes of the points of a map: of the points, of the nodes, or by text features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.confusion import OUTSIDE
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.suites.prediction import labels_from_indices, predicted_labels
from osmabench_ros.suites.suite import SuiteContext


def ranked_labels(
    semantic_map: SemanticMap, label_set: LabelSet, k: int
) -> NDArray[np.int32] | None:
    """Return the k best classes of every point of a map, (N + 1, k), the last row for no point."""
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


def point_labels(context: SuiteContext, vocabulary: NDArray[np.int64]) -> NDArray[np.int32] | None:
    """Return the class of every valid point of the map, None if it cannot be known."""
    key = tuple(vocabulary.tolist())
    known = context.labels_by_vocabulary
    if key not in known:
        known[key] = _labels(context, vocabulary)
    return known[key]


def _labels(context: SuiteContext, vocabulary: NDArray[np.int64]) -> NDArray[np.int32] | None:
    truth, predicted = context.ground_truth, context.matches.predicted
    if predicted is None:
        return None
    labels = predicted_labels(context.semantic_map, truth.label_set)
    if labels is None and context.labeller is not None and _has_material(context.semantic_map):
        names = [truth.label_set.name_of(int(item)) for item in vocabulary]
        indices = context.labeller(context.semantic_map, names)
        dense = context.semantic_map.dense
        labels = labels_from_indices(indices, vocabulary, len(dense.points) if dense else 0)
    return None if labels is None else labels[predicted.rows]


def _has_material(semantic_map: SemanticMap) -> bool:
    """Return whether there are features or captions that a labeller can work with."""
    dense = semantic_map.dense
    if dense is None:
        return False
    if not semantic_map.feature_spaces:
        return any(node.captions for node in semantic_map.graph.nodes)
    if dense.feature_space and dense.feature_space not in semantic_map.feature_spaces:
        raise MetricError(f'map: there is no feature space "{dense.feature_space}"')
    return True
