"""Classes of the points of a map: of the points, of the nodes, or by text features."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import ConfigError, MetricError
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.metrics.confusion import OUTSIDE
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.suites.suite import SuiteContext


def predict_labels(semantic_map: SemanticMap, label_set: LabelSet) -> NDArray[np.int32] | None:
    """Return the class of every point of a map in the label set of the ground truth.

    Labels come from the points, else from the nodes they belong to, and are translated by name:
    UNLABELLED for none, OUTSIDE (-1) for no such class. None if neither points nor nodes have
    labels; raises MetricError if a label is unknown to the map's own label set, or that is
    missing.
    """
    dense = semantic_map.dense
    assert dense is not None
    if dense.labels is None:
        return _labels_of_nodes(semantic_map, dense, label_set)
    if semantic_map.label_set is None:
        raise MetricError('map: points have labels, but there is no label set to read them by')
    if semantic_map.label_set == label_set:
        _check(label_set, dense.labels)
        return dense.labels
    return _translate_labels(dense.labels, semantic_map.label_set, label_set)


def _check(label_set: LabelSet, labels: NDArray[np.int32]) -> None:
    try:
        label_set.check(labels, 'map')
    except ConfigError as error:
        raise MetricError(str(error)) from error


def _translate_labels(
    labels: NDArray[np.int32], source: LabelSet, target: LabelSet
) -> NDArray[np.int32]:
    _check(source, labels)
    table = np.full(UNLABELLED + 1, OUTSIDE, np.int32)
    for item in source.classes:
        found = target.by_name.get(item.name)
        table[item.id] = OUTSIDE if found is None else found.id
    table[UNLABELLED] = UNLABELLED
    return np.asarray(table[labels])


def _labels_of_nodes(
    semantic_map: SemanticMap, dense: DenseMap, label_set: LabelSet
) -> NDArray[np.int32] | None:
    nodes = [node for node in semantic_map.graph.nodes if node.labels]
    if dense.instances is None or not nodes:
        return None
    classes = [class_or_outside(node.label, label_set) for node in nodes]
    rows = rows_of_ids([node.id for node in nodes], dense.instances)
    return np.array([*classes, UNLABELLED], np.int32)[rows]


def class_or_outside(name: str, label_set: LabelSet) -> int:
    """Return the class of a name, OUTSIDE if the label set has none."""
    found = label_set.id_of(name)
    return OUTSIDE if found == UNLABELLED else found


def rows_of_ids(
    ids: Sequence[int] | NDArray[np.integer], wanted: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Return the row of each wanted id among different ids, -1 where there is none."""
    import pandas as pd

    return np.asarray(pd.Index(np.asarray(ids, np.int64)).get_indexer(wanted), np.int64)


def rank_labels(
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
            table[row, rank] = class_or_outside(label.name, label_set)
    rows = rows_of_ids([node.id for node in nodes], dense.instances)
    return np.asarray(table[np.append(rows, -1)])


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
    labels = predict_labels(context.semantic_map, truth.label_set)
    if labels is None and context.labeller is not None and _has_material(context.semantic_map):
        names = [truth.label_set.name_of(int(item)) for item in vocabulary]
        indices = context.labeller(context.semantic_map, names)
        dense = context.semantic_map.dense
        labels = _labels_of_indices(indices, vocabulary, len(dense.points) if dense else 0)
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


def _labels_of_indices(
    indices: NDArray[np.integer], vocabulary: Sequence[int] | NDArray[np.integer], points: int
) -> NDArray[np.int32]:
    """Return class ids for the indices that a labeller gave, UNLABELLED for -1."""
    if indices.shape != (points,):
        raise MetricError(f'labeller gave {indices.shape} labels for a map of {points} points')
    if points and not (indices.min() >= -1 and indices.max() < len(vocabulary)):
        raise MetricError('labeller gave an index outside the vocabulary')
    table = np.append(np.asarray(vocabulary, np.int32), np.int32(UNLABELLED))
    return np.asarray(table[indices], np.int32)
