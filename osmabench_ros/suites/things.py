"""Objects of the ground truth and nodes of a map, and how their surfaces overlap."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.metrics.confusion import OUTSIDE
from osmabench_ros.metrics.overlaps import Overlaps, overlaps_of_instances, overlaps_of_masks
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.suite import SuiteContext


def seen_things(truth: GroundTruth) -> list[SceneNode]:
    """Return the true objects that the trajectory saw, without the parts of the building."""
    seen = frozenset(truth.seen_instances)
    return [node for node in truth.graph.of_kind(NodeKind.OBJECT) if node.id in seen]


def mask_overlaps(context: SuiteContext, gate_m: float) -> Overlaps | None:
    """Return how the masks of a map cover the visible surface, None if it has no masks.

    A surface point belongs to the masks of the nearest map point within the gate. Masks that
    overlap each other are taken from the map's membership, if it has one.
    """
    dense, predicted = context.semantic_map.dense, context.matches.predicted
    if dense is None or predicted is None:
        return None
    if dense.instances is None and dense.membership is None:
        return None
    near, surface = context.matches.surface_to_map, context.ground_truth.surface
    rows = np.append(predicted.rows, -1)[np.where(near.within(gate_m), near.indices, -1)]
    if dense.membership is not None:
        member = dense.membership
        return overlaps_of_masks(
            surface.instances, rows, member.node_ids, member.offsets, member.point_indices
        )
    assert dense.instances is not None
    return overlaps_of_instances(surface.instances, np.append(dense.instances, 0)[rows])


@dataclass(frozen=True, eq=False)
class Masks:
    """Masks of things and the things, with their classes.

    Parameters
    ----------
    overlaps : Overlaps
        Masks that do not lie mostly on the building, and all seen things.
    classes, true_classes : ndarray of int64, shapes (P,), (G,)
        Class ids in the label set of the ground truth; OUTSIDE for what it has no class for.
    confidence : ndarray of float64, shape (P,)
        Score of the mask's label; 1 where the method gives none.
    background : int
        Masks left out because at least half of them lies on the building.
    """

    overlaps: Overlaps
    classes: NDArray[np.int64]
    true_classes: NDArray[np.int64]
    confidence: NDArray[np.float64]
    background: int


def masks_of_things(context: SuiteContext, overlaps: Overlaps) -> Masks:
    """Leave out masks on the building and things that were not seen, and look up classes."""
    truth = context.ground_truth
    things = {node.id for node in seen_things(truth)}
    true = np.array([int(item) in things for item in overlaps.true_ids], bool)
    structure = {node.id for node in truth.graph.of_kind(NodeKind.BACKGROUND)}
    on_building = np.array([int(item) in structure for item in overlaps.true_ids], bool)
    covered = overlaps.shared[:, on_building].sum(axis=1)
    building = (overlaps.predicted_sizes > 0) & (2 * covered >= overlaps.predicted_sizes)
    kept = overlaps.select(~building, true)
    nodes = [context.semantic_map.graph.by_id.get(int(item)) for item in kept.predicted_ids]
    true_nodes = [truth.graph.by_id[int(item)] for item in kept.true_ids]
    return Masks(
        kept,
        np.array([_class_of(node, truth.label_set) for node in nodes], np.int64),
        np.array([node.class_id for node in true_nodes], np.int64),
        np.array([_confidence(node) for node in nodes], np.float64),
        int(building.sum()),
    )


def _class_of(node: SceneNode | None, label_set: LabelSet) -> int:
    found = UNLABELLED if node is None else label_set.id_of(node.label)
    return OUTSIDE if found == UNLABELLED else found


def _confidence(node: SceneNode | None) -> float:
    score = node.labels[0].score if node is not None and node.labels else math.nan
    return 1.0 if math.isnan(score) else score
