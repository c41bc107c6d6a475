"""Where the nodes of a scene graph are drawn, and in which colour."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.reports.palette import Rgb, class_colors, word_color
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode


def node_colors(graph: SceneGraph, label_set: LabelSet | None) -> dict[int, Rgb]:
    """Return the colour of every node: of its class, else of its word, else no class's grey."""
    colors = class_colors(label_set or LabelSet('none', ()))
    return {node.id: _node_color(node, label_set, colors) for node in graph.nodes}


def _node_color(node: SceneNode, label_set: LabelSet | None, colors: Mapping[int, Rgb]) -> Rgb:
    class_id = label_set.id_of(node.label) if label_set and node.label else UNLABELLED
    if class_id == UNLABELLED and node.label:
        return word_color(node.label)
    return colors[class_id]


def centers(graph: SceneGraph) -> dict[int, NDArray[np.float64]]:
    """Return the centre (3,) of every node that has a box, metres."""
    found = {}
    for node in graph.nodes:
        if node.oriented_box is not None:
            found[node.id] = node.oriented_box.pose.translation
        elif node.box is not None:
            found[node.id] = node.box.center
    return found
