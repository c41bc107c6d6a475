"""Classes of the points of a map: its own, or those that text gives an open-vocabulary map."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.suites.prediction import labels_from_indices, predicted_labels
from osmabench_ros.suites.suite import SuiteContext


def point_labels(context: SuiteContext, vocabulary: NDArray[np.int64]) -> NDArray[np.int32] | None:
    """Return the class of every valid point of the map, None if there is no way to know it.

    A labeller is asked once for each vocabulary, whatever number of figures need its answer.
    """
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
    """Tell whether there are features or captions that a labeller can work with."""
    dense = semantic_map.dense
    if dense is None:
        return False
    if not semantic_map.feature_spaces:
        return any(node.captions for node in semantic_map.graph.nodes)
    if dense.feature_space and dense.feature_space not in semantic_map.feature_spaces:
        raise MetricError(f'map: there is no feature space "{dense.feature_space}"')
    return True
