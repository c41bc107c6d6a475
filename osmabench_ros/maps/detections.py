"""Conversion of boxes with class hypotheses, as in vision_msgs/Detection3D, to nodes and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet, normalised_name
from osmabench_ros.semantics.scene_graph import SceneNode, ScoredLabel


@dataclass(frozen=True, eq=False)
class Detection:
    """A box (pose, size (3,) in metres) and what may be in it: (class name or id, score)."""

    pose: Pose
    size: NDArray[np.float64]
    hypotheses: tuple[tuple[str, float], ...] = ()
    id: str = ''


def nodes_of_detections(
    detections: Sequence[Detection], label_set: LabelSet | None = None
) -> tuple[SceneNode, ...]:
    """Return one node a detection, labels best first; ValueError names a bad size.

    Classes by number are looked up in the label set, else called "class <number>"; ids are kept as
    node ids if all are different whole numbers from 1 up, else as source ids.
    """
    nodes = []
    for node_id, item in zip(_node_ids(detections), detections, strict=True):
        try:
            box = OrientedBox(item.pose, item.size)
            flat = box.axis_aligned()
        except ValueError as error:
            raise ValueError(f'detection {item.id or node_id}: {error}') from error
        nodes.append(
            SceneNode(
                node_id,
                labels=_labels(item.hypotheses, label_set),
                box=flat,
                oriented_box=box,
                source_id=item.id,
            )
        )
    return tuple(nodes)


def detection_of_node(node: SceneNode) -> Detection | None:
    """Return a node as a box with hypotheses by class name, None if it has no box."""
    hypotheses = tuple((label.name, label.score) for label in node.labels)
    if node.oriented_box is not None:
        box = node.oriented_box
        return Detection(box.pose, box.size, hypotheses, str(node.id))
    if node.box is not None:
        pose = Pose(np.eye(3), node.box.center)
        return Detection(pose, node.box.size, hypotheses, str(node.id))
    return None


def _node_ids(detections: Sequence[Detection]) -> list[int]:
    names = [item.id for item in detections]
    if len(set(names)) == len(names) and all(_is_node_id(name) for name in names):
        return [int(name) for name in names]
    return list(range(1, len(names) + 1))


def _is_node_id(name: str) -> bool:
    return name.isascii() and name.isdigit() and 1 <= int(name) < 2**31


def _labels(
    hypotheses: Sequence[tuple[str, float]], label_set: LabelSet | None
) -> tuple[ScoredLabel, ...]:
    made = []
    for given, score in hypotheses:
        name, class_id = class_of(given, label_set)
        if name:
            made.append(ScoredLabel(name, float(score), class_id))
    return tuple(sorted(made, key=_badness))


def _badness(label: ScoredLabel) -> float:
    return math.inf if math.isnan(label.score) else -label.score


def class_of(given: str, label_set: LabelSet | None) -> tuple[str, int]:
    """Return name and id of a class that is given by name or by number."""
    if given.isascii() and given.isdigit():
        number = int(given)
        found = label_set.by_id.get(number) if label_set else None
        return (found.name, found.id) if found else (f'class {number}', UNLABELLED)
    name = normalised_name(given)
    return name, UNLABELLED if label_set is None else label_set.id_of(name)
