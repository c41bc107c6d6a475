"""Scene-graph nodes from the points and label votes of an object."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.mappers.color_constancy import without_light
from osmabench_ros.mappers.color_names import color_indices, most_frequent_color
from osmabench_ros.mappers.fitted_boxes import trimmed_box, upright_box
from osmabench_ros.mappers.fusion import FusedCells
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind, SceneNode, ScoredLabel

_MIN_LABEL_SHARE = 0.02


def voted_labels(votes: NDArray[np.floating], label_set: LabelSet) -> tuple[ScoredLabel, ...]:
    """Return the classes that got at least 2 % of the votes, best first, lower id in a tie.

    `votes` has one number for each class of the label set, in its order.
    """
    shares = votes / max(float(votes.sum()), 1e-12)
    ranked = np.argsort(-shares, kind='stable')
    return tuple(
        ScoredLabel(label_set.classes[i].name, float(shares[i]), label_set.classes[i].id)
        for i in ranked[shares[ranked] >= _MIN_LABEL_SHARE]
    )


def kind_of(labels: tuple[ScoredLabel, ...], label_set: LabelSet) -> NodeKind:
    """Return BACKGROUND for walls, floors and the like, else OBJECT."""
    known = label_set.by_id.get(labels[0].class_id) if labels else None
    return NodeKind.BACKGROUND if known is not None and known.structure else NodeKind.OBJECT


def size_attributes(size: NDArray[np.float64]) -> dict[str, float]:
    """Return the sizes of an upright box as attributes in metres, rounded to millimetres."""
    length, width = sorted((float(size[0]), float(size[1])), reverse=True)
    return {
        'height_m': round(float(size[2]), 3),
        'length_m': round(length, 3),
        'width_m': round(width, 3),
    }


class NodeBuilder:
    """Makes nodes of groups of fused cells; the label set separates structure from objects."""

    def __init__(self, cells: FusedCells, label_set: LabelSet) -> None:
        self._cells = cells
        self._colors = color_indices(without_light(cells.points, cells.colors))
        self._label_set = label_set

    def node(
        self,
        node_id: int,
        rows: NDArray[np.integer],
        votes: NDArray[np.floating],
        observations: int,
    ) -> SceneNode:
        """Build the node of one object from its cells, at least one.

        `votes` has one number for each class of the label set; `observations` counts the frames
        that showed the object.
        """
        points, counts = self._cells.points[rows], self._cells.counts[rows]
        labels = voted_labels(votes, self._label_set)
        oriented = upright_box(points)
        return SceneNode(
            id=node_id,
            kind=kind_of(labels, self._label_set),
            labels=labels,
            attributes={
                'color': most_frequent_color(self._colors[rows], counts),
                **size_attributes(oriented.size),
            },
            box=trimmed_box(points),
            oriented_box=oriented,
            observations=observations,
        )
