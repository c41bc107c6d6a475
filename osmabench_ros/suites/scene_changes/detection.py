"""The changes between two maps of one place, and the true ones between two ground truths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics.graph_matching import box_of, match_nodes
from osmabench_ros.scenes.change_kinds import ChangeType
from osmabench_ros.semantics.labels import is_structure, normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.vqa.knowledge import knowledge

CHANGE_TYPES = (
    ChangeType.ADDITION,
    ChangeType.REMOVAL,
    ChangeType.MOVEMENT,
    ChangeType.REPLACEMENT,
)
"""What is detected; another colour or an open door is not."""


class DetectionOptions(Strict):
    """When things of two maps are the same, lengths in metres.

    Parameters
    ----------
    moved_m : float
        Least way of a thing that has moved.
    min_iou : float
        Least overlap of a thing with another one that has taken its place.
    size_ratio : float
        Most that the longest edge of a thing may differ between its two places, as a factor.
    seen_within_m : float
        A place was looked at by a map that has points this close to the box.
    """

    moved_m: float = Field(0.15, gt=0)
    min_iou: float = Field(0.15, gt=0, le=1)
    size_ratio: float = Field(1.6, ge=1)
    seen_within_m: float = Field(0.25, gt=0)


@dataclass(frozen=True, eq=False)
class ObjectChange:
    """A thing that came (no `before`), went (no `after`), moved, or gave way to another.

    `moved_m` is the way of a thing that moved, else 0.
    """

    type: ChangeType
    before: SceneNode | None
    after: SceneNode | None
    moved_m: float = 0.0

    @property
    def boxes(self) -> list[AxisAlignedBox]:
        """Where it was and is, metres."""
        found = (box_of(node) for node in (self.before, self.after) if node is not None)
        return [box for box in found if box is not None]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        sides = {'before': self.before, 'after': self.after}
        return {
            'type': self.type.value,
            'moved_m': round(self.moved_m, 3),
            **{key: None if node is None else _node_to_json(node) for key, node in sides.items()},
        }


def _node_to_json(node: SceneNode) -> dict[str, Any]:
    box = bounds_of(node)
    corners = {'min': box.minimum.round(4).tolist(), 'max': box.maximum.round(4).tolist()}
    return {'id': node.id, 'label': node.label, 'box': corners}


@dataclass(frozen=True, eq=False)
class Differences:
    """Changes, and what came or went at a place that the other map has not looked at."""

    changes: tuple[ObjectChange, ...]
    unseen: tuple[ObjectChange, ...] = ()

    def of_type(self, kind: ChangeType) -> list[ObjectChange]:
        """Return the changes of one type in order."""
        return [item for item in self.changes if item.type is kind]


Looked = Callable[[AxisAlignedBox], bool]
"""Whether a place was looked at."""


def detected_changes(
    before: SemanticMap, after: SemanticMap, options: DetectionOptions | None = None
) -> Differences:
    """Return what changed between two maps in one frame.

    Named objects that have boxes are compared; points, where there are any, show what was looked
    at. Objects of one name, or synonyms, are paired so that as many as possible have stayed and
    the rest went the shortest way. The way of a box is, along each axis, what both of its faces
    have moved: a thing of which more is seen has not moved. Of what is left over, what lies where
    another thing lay has replaced it.
    """
    options = options or DetectionOptions()
    sides = _things(before), _things(after)
    looked = tuple(_looked(item, options.seen_within_m) for item in (before, after))
    pairs = _same_things(*sides, options)
    found = [
        ObjectChange(ChangeType.MOVEMENT, first, second, way_m)
        for first, second, way_m in pairs
        if way_m > options.moved_m
    ]
    kept = {node.id for node, _, _ in pairs}, {node.id for _, node, _ in pairs}
    gone, come = (
        [node for node in nodes if node.id not in ids]
        for nodes, ids in zip(sides, kept, strict=True)
    )
    for first, second in _in_place_of(gone, come, options.min_iou):
        found.append(ObjectChange(ChangeType.REPLACEMENT, first, second))
        gone.remove(first)
        come.remove(second)
    single = [(ObjectChange(ChangeType.REMOVAL, node, None), looked[1]) for node in gone]
    single += [(ObjectChange(ChangeType.ADDITION, None, node), looked[0]) for node in come]
    found += [item for item, by in single if by(item.boxes[0])]
    return Differences(tuple(found), tuple(item for item, _ in single if item not in found))


def _things(semantic_map: SemanticMap) -> list[SceneNode]:
    return [
        node
        for node in semantic_map.graph.of_kind(NodeKind.OBJECT)
        if node.label and not is_structure(node.label) and box_of(node) is not None
    ]


def bounds_of(node: SceneNode) -> AxisAlignedBox:
    """Return the bounds of a node that has a box of some kind."""
    box = box_of(node)
    assert box is not None
    return box


def way_m(first: AxisAlignedBox, second: AxisAlignedBox) -> float:
    """Return how far a box has moved, by what both faces along each axis have, in metres."""
    low, high = second.minimum - first.minimum, second.maximum - first.maximum
    together = np.where(low * high > 0, np.minimum(np.abs(low), np.abs(high)), 0.0)
    return float(np.linalg.norm(together))


def _same_things(
    before: Sequence[SceneNode], after: Sequence[SceneNode], options: DetectionOptions
) -> list[tuple[SceneNode, SceneNode, float]]:
    """Return pairs of one name and size, with the way from one place to the other."""
    from scipy.optimize import linear_sum_assignment

    groups: dict[str, tuple[list[SceneNode], list[SceneNode]]] = defaultdict(lambda: ([], []))
    for side, nodes in enumerate((before, after)):
        for node in nodes:
            groups[_name(node)][side].append(node)
    pairs = []
    for old, new in groups.values():
        ways = np.array([[way_m(bounds_of(a), bounds_of(b)) for b in new] for a in old])
        ways = ways.reshape(len(old), len(new))
        stayed = ways <= options.moved_m
        # A thing that stays is worth more than any ways.
        cost = np.where(stayed, 0.001 * ways, 1.0 + ways / (1.0 + ways.max(initial=0.0)))
        for i, j in zip(*linear_sum_assignment(cost), strict=True):
            if stayed[i, j] or _alike(old[i], new[j], options.size_ratio):
                pairs.append((old[i], new[j], float(ways[i, j])))
    return pairs


def _name(node: SceneNode) -> str:
    return knowledge().canonical(normalised_name(node.label))


def names_agree(first: SceneNode, second: SceneNode) -> bool:
    """Return whether two nodes have one name, or synonyms."""
    return _name(first) == _name(second)


def _alike(first: SceneNode, second: SceneNode, ratio: float) -> bool:
    edges = sorted(float(bounds_of(node).size.max()) for node in (first, second))
    return edges[1] <= ratio * max(edges[0], 1e-6)


def _in_place_of(
    gone: Sequence[SceneNode], come: Sequence[SceneNode], min_iou: float
) -> list[tuple[SceneNode, SceneNode]]:
    """Return pairs of a thing that went and one that came to where it was."""
    iou = np.array([[bounds_of(b).iou(bounds_of(a)) for a in gone] for b in come])
    found = match_nodes(range(len(come)), range(len(gone)), iou.reshape(len(come), len(gone)),
                        min_iou=min_iou)  # fmt: skip
    return [(gone[old], come[new]) for new, old in found.pairs]


def _looked(semantic_map: SemanticMap, within_m: float) -> Looked:
    dense = semantic_map.dense
    if dense is None or not len(dense.points):
        return lambda _: True
    points = dense.valid_points
    return lambda box: _near(points, box, within_m)


def _near(points: NDArray[np.floating], box: AxisAlignedBox, within_m: float) -> bool:
    low, high = box.minimum - within_m, box.maximum + within_m
    return bool(((points >= low) & (points <= high)).all(axis=1).any())


_STANDS_WITHIN_M = 0.1
"""A thing has replaced another if the middles of their lower sides are this close, per axis."""


def true_changes(
    before: GroundTruth, after: GroundTruth, options: DetectionOptions | None = None
) -> Differences:
    """Return what changed between two states of a scene, by the ids of its objects.

    A thing that no camera saw where it stood, or the place of one that the other path has not
    looked at, makes a change that no map can show: it is `unseen`. Ground truths of different data
    sets, whose ids mean different things, are a ConfigError.
    """
    if (before.dataset, before.label_set.sha256) != (after.dataset, after.label_set.sha256):
        raise ConfigError(
            f'ground truth of {before.dataset}/{before.scene} and of {after.dataset}/'
            f'{after.scene}: changes are found by the ids of objects, which mean nothing across '
            'data sets; give two states of one scene'
        )
    options = options or DetectionOptions()
    old, new = (
        {node.id: node for node in truth.graph.of_kind(NodeKind.OBJECT) if node.box is not None}
        for truth in (before, after)
    )
    found = [
        ObjectChange(ChangeType.MOVEMENT, node, new[key], way)
        for key, node in old.items()
        if key in new and (way := way_m(bounds_of(node), bounds_of(new[key]))) > options.moved_m
    ]
    gone = [node for key, node in old.items() if key not in new]
    come = [node for key, node in new.items() if key not in old]
    for first in list(gone):
        for second in come:
            if (np.abs(_foot(first) - _foot(second)) <= _STANDS_WITHIN_M).all():
                found.append(ObjectChange(ChangeType.REPLACEMENT, first, second))
                gone.remove(first)
                come.remove(second)
                break
    found += [ObjectChange(ChangeType.REMOVAL, node, None) for node in gone]
    found += [ObjectChange(ChangeType.ADDITION, None, node) for node in come]
    within_m = options.seen_within_m

    def was_seen(item: ObjectChange) -> bool:
        sides = ((item.before, before, after), (item.after, after, before))
        return all(
            node.id in own.seen_instances
            and _near(other.surface.points, bounds_of(node), within_m)
            for node, own, other in sides
            if node is not None
        )

    seen = [item for item in found if was_seen(item)]
    return Differences(tuple(seen), tuple(item for item in found if item not in seen))


def _foot(node: SceneNode) -> NDArray[np.float64]:
    box = bounds_of(node)
    return np.array([*box.center[:2], box.minimum[2]])
