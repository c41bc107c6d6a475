"""Chooses changes of a scene that can be made to its meshes and described without ambiguity."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from osmabench_ros.errors import SceneError
from osmabench_ros.scenes import changes
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneGraph, SceneNode
from osmabench_ros.suites.hypo3d.described_change import (
    ChangeType,
    DescribedChange,
    apply_to_graph,
    find_touched_nodes,
)
from osmabench_ros.suites.hypo3d.frame import Side, chosen_anchors, frame_of
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.english import BASIC_COLORS, confusable
from osmabench_ros.vqa.exact.view import SceneView, color_of, label_of, shuffled

DEFAULT_CHANGES = 3

_DISTANCES_M = (0.6, 0.8, 1.0, 1.2, 1.5)
_MOST_TRIALS = 30
_HELD = (RelationType.ON.value, RelationType.IN.value, RelationType.ATTACHED_TO.value)


Draws = Iterator[tuple[changes.Change, DescribedChange]]
"""Changes as they would be made, and as they are described."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A change as it is made and described, and the scene and its graph after it."""

    change: changes.Change
    described: DescribedChange
    scene: Scene
    graph: SceneGraph
    touched: frozenset[int]


def chosen_hypotheses(
    scene: Scene,
    graph: SceneGraph,
    seen: Collection[int],
    seed: int,
    count: int = DEFAULT_CHANGES,
) -> list[Hypothesis]:
    """Choose changes of a scene that can be made and described without ambiguity, seeded.

    Only `seen` instances are changed, or named by a description. Types differ as far as there are
    five; fewer than `count` come where none fits.
    """
    view = whole_view(scene, graph)
    rng = np.random.default_rng([seed, 3])
    chooser = _Chooser(scene, view, frozenset(seen), rng)
    # What moves can be asked about in all kinds; so there is always a movement.
    rest = [kind for kind in ChangeType if kind is not ChangeType.MOVEMENT]
    order = [ChangeType.MOVEMENT, *shuffled(rng, rest)]
    found: list[Hypothesis] = []
    for number in range(max(count, len(order))):
        if len(found) == count:
            break
        made = chooser.hypothesis(order[number % len(order)])
        if made is not None:
            found.append(made)
    return found


def whole_view(scene: Scene, graph: SceneGraph) -> SceneView:
    """Return the view of a scene and its exact graph of which everything is seen."""
    return SceneView(graph, graph.by_id, structure=scene.label_set.structure_names)


def anchors_of(view: SceneView, seen: Collection[int]) -> dict[Side, str]:
    """Return seen objects at the sides of a scene, from which directions follow."""
    names = {key: name for key, name in view.names.items() if key in seen}
    return chosen_anchors(view.graph, names)


class _Chooser:
    """Draws changes of one scene; no object is part of two of them."""

    def __init__(
        self, scene: Scene, view: SceneView, seen: frozenset[int], rng: np.random.Generator
    ) -> None:
        self._scene, self._view, self._rng = scene, view, rng
        self._named = [node for node in view.named_boxed if node.id in seen]
        edges = view.graph.edges
        self._holders = {edge.source: edge.target for edge in edges if edge.type in _HELD}
        self._laden = {edge.target for edge in edges if edge.type in _HELD}
        self._standing = {e.source for e in edges if e.type == RelationType.ON.value}
        self.anchors = anchors_of(view, seen)
        self._used = set(self.anchors.values())
        self._reader = GraphReader(view.graph)
        self._draws: Mapping[ChangeType, Callable[[], Draws]] = {
            ChangeType.MOVEMENT: self._draw_moves,
            ChangeType.REMOVAL: self._draw_removals,
            ChangeType.ATTRIBUTE: self._draw_paintings,
            ChangeType.ADDITION: self._draw_additions,
            ChangeType.REPLACEMENT: self._draw_replacements,
        }

    def hypothesis(self, kind: ChangeType) -> Hypothesis | None:
        """Return the first change of a kind that the scene admits, None if none does."""
        before = self._view.graph
        for number, (change, described) in enumerate(self._draws[kind]()):
            if number == _MOST_TRIALS:
                break
            by_rule = apply_to_graph(before, described, self._reader.named)
            if by_rule is None:
                continue
            try:
                scene = changes.apply_changes(self._scene, (change,))
            except SceneError:
                continue
            self._used |= {described.thing, described.other}
            touched = find_touched_nodes(before, by_rule)
            return Hypothesis(change, described, scene, build_ground_truth_graph(scene), touched)
        return None

    def _list_free(self) -> list[SceneNode]:
        """Return named objects that no change has touched, and that hold nothing."""
        nodes = [node for node in self._named if node.id not in self._laden]
        names = self._view.names
        return shuffled(self._rng, [node for node in nodes if names[node.id] not in self._used])

    def _draw_moves(self) -> Draws:
        frame = frame_of(self._view.graph, self.anchors, self._reader.named)
        if frame is None:
            return
        for node in self._list_free():
            if node.id not in self._standing:
                continue
            side, distance = self._draw_way()
            x, y, z = (frame.axis(side) * distance).tolist()
            name = self._view.name(node)
            described = DescribedChange(
                ChangeType.MOVEMENT, name, side=side, distance_m=distance, anchors=self.anchors
            )
            yield changes.Move(kind='move', object=node.source_id, offset_m=(x, y, z)), described

    def _draw_way(self) -> tuple[Side, float]:
        side = tuple(Side)[int(self._rng.integers(4))]
        return side, _DISTANCES_M[int(self._rng.integers(len(_DISTANCES_M)))]

    def _draw_removals(self) -> Draws:
        for node in self._list_free():
            described = DescribedChange(ChangeType.REMOVAL, self._view.name(node))
            yield changes.Remove(kind='remove', object=node.source_id), described

    def _draw_paintings(self) -> Draws:
        for node in self._list_free():
            name, old = self._view.name(node), color_of(node)
            new = [color for color in sorted(BASIC_COLORS) if old and not confusable(old, color)]
            # The name of an object must not say the colour that it no longer has.
            if not new or name != label_of(node):
                continue
            color = shuffled(self._rng, new)[0]
            described = DescribedChange(ChangeType.ATTRIBUTE, name, color=color)
            yield changes.Recolor(kind='recolor', object=node.source_id, color=color), described

    def _draw_additions(self) -> Draws:
        frame = frame_of(self._view.graph, self.anchors, self._reader.named)
        if frame is None:
            return
        for like in self._list_free():
            name = self._view.name(like)
            if self._find_holder_kind(like) is not NodeKind.BACKGROUND or name != label_of(like):
                continue
            for beside in shuffled(self._rng, self._named)[:8]:
                if beside is like or beside.box is None or like.box is None:
                    continue
                side, distance = self._draw_way()
                x, y, _ = (beside.box.center + frame.axis(side) * distance).tolist()
                where = (x, y, float(like.box.minimum[2]))
                described = DescribedChange(
                    ChangeType.ADDITION,
                    name,
                    self._view.name(beside),
                    side,
                    distance,
                    anchors=self.anchors,
                )
                new = f'{like.source_id}_added'
                change = changes.Add(kind='add', name=new, like=like.source_id, position_m=where)
                yield change, described

    def _draw_replacements(self) -> Draws:
        for old in self._list_free():
            for new in self._list_free()[:4]:
                name = self._view.name(new)
                same = label_of(old) == label_of(new) or name != label_of(new)
                if same or not {old.id, new.id} <= self._standing:
                    continue
                described = DescribedChange(ChangeType.REPLACEMENT, self._view.name(old), name)
                yield (
                    changes.Replace(kind='replace', object=old.source_id, like=new.source_id),
                    described,
                )

    def _find_holder_kind(self, node: SceneNode) -> NodeKind | None:
        holder = self._holders.get(node.id)
        on = node.id in self._standing and holder is not None
        return self._view.graph.by_id[holder].kind if on and holder is not None else None
