"""Parts of a scene that figures are given for: classes and rooms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.metrics.segmentation import scene_vocabulary
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import NodeKind
from osmabench_ros.suites.point_labels import point_labels
from osmabench_ros.suites.suite import SuiteContext


@dataclass(frozen=True, eq=False)
class Part:
    """A class, or a room, whose name begins with "room ".

    Rows are of the true surface, ascending, and of the map's valid points, None if unknown.
    """

    name: str
    surface: NDArray[np.intp]
    predicted: NDArray[np.intp] | None

    def holds(self, rows: NDArray[np.intp], count: int) -> NDArray[np.bool_]:
        """Tell which rows of the true surface, that has so many points, belong to it."""
        mask = np.zeros(count, bool)
        mask[self.surface] = True
        return mask[rows]


def classes_of(context: SuiteContext) -> Iterator[Part]:
    """Yield the classes of the visible surface, with the points to which the map gives them."""
    truth = context.ground_truth
    labels = truth.surface.labels
    predicted = point_labels(context, scene_vocabulary(labels, ()))
    own = {} if predicted is None else rows_by_label(predicted)
    nothing = None if predicted is None else np.zeros(0, np.intp)
    for class_id, rows in rows_by_label(labels).items():
        if class_id != UNLABELLED:
            yield Part(truth.label_set.name_of(class_id), rows, own.get(class_id, nothing))


def rows_by_label(labels: NDArray[np.integer]) -> dict[int, NDArray[np.intp]]:
    """Return the ascending rows of every class id; -1 (no such class) counts as unlabelled."""
    if not len(labels):
        return {}
    short = labels.astype(np.uint16)
    # NumPy sorts 16 bits in linear time.
    order = np.argsort(short, kind='stable')
    values, starts = np.unique(short[order], return_index=True)
    return dict(zip(values.tolist(), np.split(order, starts[1:]), strict=True))


def rooms_of(context: SuiteContext) -> Iterator[Part]:
    """Yield the rooms of the true scene that have a box, with what lies in it."""
    truth, cloud = context.ground_truth, context.matches.predicted
    assert cloud is not None
    for room in truth.graph.of_kind(NodeKind.ROOM):
        if room.box is not None:
            name = f'room {room.source_id or room.label or room.id}'
            inside = np.flatnonzero(room.box.contains(truth.surface.points))
            yield Part(name, inside, np.flatnonzero(room.box.contains(cloud.points)))
