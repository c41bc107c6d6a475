"""Scores of detected changes: precision and recall by type, and BenchBot's object map quality."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.metrics.graph_matching import box_of, match_nodes
from osmabench_ros.metrics.object_map_quality import (
    ADDED,
    REMOVED,
    ObjectMapQuality,
    ProposedBoxes,
    TrueBoxes,
    filled,
    object_map_quality,
)
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.semantics.labels import LabelSet, normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode
from osmabench_ros.suites.scene_changes.detection import (
    CHANGE_TYPES,
    Differences,
    ObjectChange,
    bounds_of,
    names_agree,
)

SUITE = 'scene_changes'
MIN_IOU = 0.1
"""Overlap of every box of a detected change with that of the true one, inclusive."""


def matched_changes(
    detected: Sequence[ObjectChange], true: Sequence[ObjectChange]
) -> tuple[tuple[int, int], ...]:
    """Return pairs of a detected and a true change, as rows of both.

    Both are of one type and one name, and their boxes overlap by MIN_IOU before and after.
    """
    shared = np.array([[_overlap(a, b) for b in true] for a in detected])
    rows = range(len(detected)), range(len(true))
    return match_nodes(*rows, shared.reshape(len(detected), len(true)), min_iou=MIN_IOU).pairs


def _overlap(first: ObjectChange, second: ObjectChange) -> float:
    """Return the smaller overlap of the places before and after, 0 for different changes."""
    if first.type is not second.type:
        return 0.0
    overlaps = []
    for a, b in ((first.before, second.before), (first.after, second.after)):
        if a is not None and b is not None:
            overlaps.append(bounds_of(a).iou(bounds_of(b)) if names_agree(a, b) else 0.0)
    return min(overlaps)


def change_records(detected: Differences, true: Differences) -> Iterator[MetricRecord]:
    """Yield precision, recall and F1, of all changes and by type.

    What is true and `unseen` on the other side counts for nothing: it is neither missed, nor
    wrong where it is detected all the same.
    """
    everything = (*true.changes, *true.unseen)
    pairs = matched_changes(detected.changes, everything)
    excused = {row for row, other in pairs if other >= len(true.changes)}
    right = {row for row, _ in pairs} - excused
    for kind in (None, *CHANGE_TYPES):
        own = {i for i, item in enumerate(detected.changes) if kind in (None, item.type)}
        said, hits = len(own - excused), len(own & right)
        wanted = sum(kind in (None, item.type) for item in true.changes)
        mode, name = Mode.STRICT.value, '' if kind is None else kind.value
        yield MetricRecord.of_share(SUITE, mode, 'precision', hits, said, name)
        yield MetricRecord.of_share(SUITE, mode, 'recall', hits, wanted, name)
        f1 = 2 * hits / (said + wanted) if said + wanted else None
        yield MetricRecord(SUITE, mode, 'f1', name, f1, n=said + wanted)


def quality_of_map(
    nodes: Sequence[SceneNode], true: SceneGraph, label_set: LabelSet
) -> ObjectMapQuality:
    """Return BenchBot's quality of an object map, against all objects of the scene."""
    objects = [node for node in true.of_kind(NodeKind.OBJECT) if node.box is not None]
    columns = _columns(label_set)
    return object_map_quality(
        TrueBoxes(_corners(objects), _classes(objects, columns)),
        ProposedBoxes(_corners(nodes), _label_probs(nodes, columns)),
    )


def quality_of_changes(
    detected: Differences, true: Differences, label_set: LabelSet
) -> ObjectMapQuality:
    """Return BenchBot's quality of a list of changes.

    It knows what came and what went: a thing that moved, or was replaced, went and came. As its
    code does, changes count that no camera could see.
    """
    columns = _columns(label_set)
    wanted, states = _came_and_went((*true.changes, *true.unseen))
    said, said_states = _came_and_went(detected.changes)
    return object_map_quality(
        TrueBoxes(_corners(wanted), _classes(wanted, columns), np.array(states, np.int64)),
        ProposedBoxes(_corners(said), _label_probs(said, columns), np.eye(3)[said_states]),
    )


def _came_and_went(changes: Sequence[ObjectChange]) -> tuple[list[SceneNode], list[int]]:
    found = [(item.before, REMOVED) for item in changes]
    found += [(item.after, ADDED) for item in changes]
    there = [(node, state) for node, state in found if node is not None]
    return [node for node, _ in there], [state for _, state in there]


def quality_records(found: ObjectMapQuality, prefix: str) -> Iterator[MetricRecord]:
    """Yield the figures of BenchBot under its names, `prefix` first."""
    figures = {
        '': (found.omq, found.true_positives + found.false_negatives),
        '_avg_pairwise': (found.pairwise, found.true_positives),
        '_avg_label': (found.label, found.true_positives),
        '_avg_spatial': (found.spatial, found.true_positives),
        '_avg_fp_quality': (found.fp_quality, found.false_positives),
        '_avg_state_quality': (found.state, found.true_positives),
    }
    for name, (value, count) in figures.items():
        if value is not None:
            yield MetricRecord(SUITE, Mode.COMPAT.value, f'{prefix}{name}', value=value, n=count)


def _columns(label_set: LabelSet) -> Mapping[str, int]:
    """Return the columns of classes by normalised name; one more is for the background."""
    names = dict.fromkeys(normalised_name(item.name) for item in label_set.classes)
    return {name: column for column, name in enumerate(names)}


def _corners(nodes: Sequence[SceneNode]) -> NDArray[np.float64]:
    boxes = [box_of(node) for node in nodes]
    corners = [(box.minimum, box.maximum) for box in boxes if box is not None]
    return np.array(corners, np.float64).reshape(-1, 2, 3)


def _classes(nodes: Sequence[SceneNode], columns: Mapping[str, int]) -> NDArray[np.int64]:
    background = len(columns)
    return np.array(
        [columns.get(normalised_name(node.label), background) for node in nodes], np.int64
    )


def _label_probs(nodes: Sequence[SceneNode], columns: Mapping[str, int]) -> NDArray[np.float64]:
    """Return distributions over classes; what a node does not give to any is background.

    A label without score is certain. Scores above 1 in sum are scaled, as BenchBot does.
    """
    probs = np.zeros((len(nodes), len(columns) + 1))
    for row, node in zip(probs, nodes, strict=True):
        for label in node.labels:
            column = columns.get(normalised_name(label.name), -1)
            row[column] += 1.0 if math.isnan(label.score) else max(label.score, 0.0)
    return filled(probs)
