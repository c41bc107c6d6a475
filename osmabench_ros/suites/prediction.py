"""The dense part of a map with the class ids of the ground truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import ConfigError, MetricError
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.metrics.confusion import OUTSIDE
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet


@dataclass(frozen=True, eq=False)
class PredictedCloud:
    """Points (N, 3) in metres that the method looked at, their rows, and how many were invalid."""

    points: NDArray[np.float32]
    rows: NDArray[np.int64]
    excluded: int


def predicted_cloud(semantic_map: SemanticMap) -> PredictedCloud | None:
    """Return the valid points of a map, None if the method gives no points at all."""
    dense = semantic_map.dense
    if dense is None:
        return None
    n = len(dense.points)
    for name in ('labels', 'instances', 'valid'):
        array = getattr(dense, name)
        if array is not None and array.shape != (n,):
            raise MetricError(f'map: {name} have shape {array.shape}, but there are {n} points')
    rows = np.arange(n) if dense.valid is None else np.flatnonzero(dense.valid)
    points = dense.points if len(rows) == n else dense.points[rows]
    return PredictedCloud(points, rows, n - len(rows))


def predicted_labels(semantic_map: SemanticMap, label_set: LabelSet) -> NDArray[np.int32] | None:
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
    return _translated(dense.labels, semantic_map.label_set, label_set)


def _check(label_set: LabelSet, labels: NDArray[np.int32]) -> None:
    try:
        label_set.check(labels, 'map')
    except ConfigError as error:
        raise MetricError(str(error)) from error


def _translated(
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
    ids = np.array([node.id for node in nodes], np.int64)
    classes = np.array([_class_of(node.label, label_set) for node in nodes], np.int32)
    order = np.argsort(ids)
    place = np.searchsorted(ids[order], dense.instances).clip(max=len(ids) - 1)
    known = ids[order][place] == dense.instances
    return np.where(known, classes[order][place], UNLABELLED).astype(np.int32)


def _class_of(name: str, label_set: LabelSet) -> int:
    found = label_set.id_of(name)
    return OUTSIDE if found == UNLABELLED else found


def labels_from_indices(
    indices: NDArray[np.integer], vocabulary: Sequence[int] | NDArray[np.integer], points: int
) -> NDArray[np.int32]:
    """Return class ids for the indices that a labeller gave, UNLABELLED for -1."""
    if indices.shape != (points,):
        raise MetricError(f'labeller gave {indices.shape} labels for a map of {points} points')
    if points and not (indices.min() >= -1 and indices.max() < len(vocabulary)):
        raise MetricError('labeller gave an index outside the vocabulary')
    table = np.append(np.asarray(vocabulary, np.int32), np.int32(UNLABELLED))
    return np.asarray(table[indices], np.int32)
