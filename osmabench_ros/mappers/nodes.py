"""Scene-graph nodes from the points and label votes of an object."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.mappers.color_names import color_name
from osmabench_ros.mappers.fitted_boxes import trimmed_box, upright_box
from osmabench_ros.mappers.fusion import FusedCells
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind, SceneNode, ScoredLabel

_MIN_LABEL_SHARE = 0.02


def voted_labels(votes: Mapping[int, float], label_set: LabelSet) -> tuple[ScoredLabel, ...]:
    """Return the classes that got at least 2 % of the votes, best first.

    Parameters
    ----------
    votes : mapping of int to float
        Votes by class id; UNLABELLED counts against the others but is never named.
    label_set : LabelSet
        Names of the classes.
    """
    total = sum(votes.values())
    shares = sorted((-count / total, class_id) for class_id, count in votes.items())
    return tuple(
        ScoredLabel(label_set.name_of(class_id), -share, class_id)
        for share, class_id in shares
        if class_id != UNLABELLED and -share >= _MIN_LABEL_SHARE
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


def make_node(
    node_id: int,
    cells: FusedCells,
    labels: tuple[ScoredLabel, ...],
    label_set: LabelSet,
    observations: int,
) -> SceneNode:
    """Build a node from the fused cells of one object.

    Parameters
    ----------
    node_id : int
        Id of the node, >= 1.
    cells : FusedCells
        At least one.
    labels : tuple of ScoredLabel
        Best first.
    label_set : LabelSet
        Tells structure from objects.
    observations : int
        Frames that showed the object.
    """
    oriented = upright_box(cells.points)
    return SceneNode(
        id=node_id,
        kind=kind_of(labels, label_set),
        labels=labels,
        attributes={
            'color': color_name(cells.colors, cells.counts),
            **size_attributes(oriented.size),
        },
        box=trimmed_box(cells.points),
        oriented_box=oriented,
        observations=observations,
    )
