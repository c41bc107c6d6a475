"""Changes as sentences describe them, and answers from a scene graph that they change by rule."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.relations import derive_relations
from osmabench_ros.semantics.scene_graph import RelationType, SceneEdge, SceneGraph, SceneNode
from osmabench_ros.suites.hypo3d.frame import Named, Side, frame_of, read_anchors, say_anchors
from osmabench_ros.vqa import wording
from osmabench_ros.vqa.answering.answerer import OneByOne
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.answering.rule import RuleAnswerer
from osmabench_ros.vqa.graph_index import Embedder
from osmabench_ros.vqa.questions import Answer, Inquiry

HELD = frozenset({RelationType.ON.value, RelationType.IN.value, RelationType.ATTACHED_TO.value})
"""Relations of an object to another that takes it along."""


class ChangeType(str, Enum):
    """The kinds of changes of Hypo3D."""

    MOVEMENT = 'movement'
    REMOVAL = 'removal'
    ATTRIBUTE = 'attribute'
    ADDITION = 'addition'
    REPLACEMENT = 'replacement'


@dataclass(frozen=True)
class DescribedChange:
    """A change in words; phrases are as in questions, without article.

    `thing` moves, is removed, painted or replaced; an added object looks like it. `other` is the
    object that it is put next to, or its replacement. `side` and `distance_m` are the direction
    and distance of the move, or of the new object from `other`, centre to centre; `anchors` are
    objects at the sides of the scene.
    """

    type: ChangeType
    thing: str
    other: str = ''
    side: Side = Side.FRONT
    distance_m: float = 0.0
    color: str = ''
    anchors: Mapping[Side, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def sentence(self) -> str:
        """The change as a sentence, which `read_change` reads back."""
        words = {
            'facing': say_anchors(self.anchors),
            'number': f'{self.distance_m:g}',
            'side': self.side.value,
            'color': self.color,
        }
        text = wording.fill_wording(_WORDINGS[self.type], (self.thing, self.other), words)
        return text[0].upper() + text[1:]


_WORDINGS = {
    ChangeType.MOVEMENT: 'With {facing}, {0:the} has been moved {number} m to the {side}.',
    ChangeType.REMOVAL: '{0:the} has been removed.',
    ChangeType.ATTRIBUTE: '{0:the} has been painted {color}.',
    ChangeType.ADDITION: (
        'With {facing}, {0:a} like the one that is there has been added, {number} m to the {side} '
        'of {1:the}.'
    ),
    ChangeType.REPLACEMENT: (
        '{0:the} has been replaced by another {1:name} like the one that is there.'
    ),
}
_READ = {kind: wording.compile_wording(text) for kind, text in _WORDINGS.items()}


def read_change(sentence: str) -> DescribedChange | None:
    """Return the change that a sentence describes, None if it is worded otherwise."""
    for kind, pattern in _READ.items():
        match = pattern.fullmatch(sentence.strip())
        if match is not None:
            nouns, words = wording.read_match(match)
            return DescribedChange(
                kind,
                nouns[0],
                ''.join(nouns[1:]),
                Side(words.get('side', Side.FRONT)),
                float(words.get('number', 0.0)),
                words.get('color', ''),
                read_anchors(words.get('facing', '')),
            )
    return None


def apply_to_graph(
    graph: SceneGraph, change: DescribedChange, named: Named, *, new_id: int | None = None
) -> SceneGraph | None:
    """Apply a described change to a scene graph by rule; None if the graph lacks a named object.

    A moved object takes along its contents; a new one has the size of the object that it is like,
    at the same level; relations of changed objects are derived from boxes. `named` finds objects
    in the graph, and `new_id` is for a new one, by default the next free one.
    """
    thing = named(change.thing)
    other = named(change.other)
    frame = frame_of(graph, change.anchors, named)
    shift = None if frame is None else frame.axis(change.side) * change.distance_m
    if thing is None or thing.box is None:
        return None
    if change.type is ChangeType.ATTRIBUTE:
        painted = replace(thing, attributes={**thing.attributes, 'color': change.color})
        return _replace_nodes(graph, {thing.id: painted}, ())
    if change.type is ChangeType.REMOVAL:
        return _remove_node(graph, thing.id)
    if change.type is ChangeType.MOVEMENT:
        if shift is None:
            return None
        carried = _find_carried(graph, thing.id)
        return _replace_nodes(
            graph, {key: _shift_node(graph.by_id[key], shift) for key in carried}, carried
        )
    key = 1 + max(node.id for node in graph.nodes) if new_id is None else new_id
    if other is None or other.box is None:
        return None
    if change.type is ChangeType.REPLACEMENT:
        foot = np.array([*thing.box.center[:2], thing.box.minimum[2]])
        new = _place_on(replace(other, id=key, parent=thing.parent), other.box, foot)
        return _replace_nodes(_remove_node(graph, thing.id), {key: new}, (key,))
    if shift is None:
        return None
    foot = np.array([*(other.box.center + shift)[:2], thing.box.minimum[2]])
    new = _place_on(replace(thing, id=key, parent=other.parent), thing.box, foot)
    return _replace_nodes(graph, {key: new}, (key,))


def find_touched_nodes(before: SceneGraph, after: SceneGraph) -> frozenset[int]:
    """Return the ids of nodes that came, went, or have another box or other attributes."""
    old, new = before.by_id, after.by_id
    different = {
        key
        for key in old.keys() & new.keys()
        if old[key].attributes != new[key].attributes or _is_apart(old[key].box, new[key].box)
    }
    return frozenset(different | (old.keys() ^ new.keys()))


def _is_apart(first: AxisAlignedBox | None, second: AxisAlignedBox | None) -> bool:
    if first is None or second is None:
        return first is not second
    return bool(np.abs(first.center - second.center).max() > 1e-3)


def _find_carried(graph: SceneGraph, key: int) -> frozenset[int]:
    """Return a node and all that it carries."""
    found = {key}
    while more := {
        edge.source
        for edge in graph.edges
        if edge.type in HELD and edge.target in found and edge.source not in found
    }:
        found |= more
    return frozenset(found)


def _shift_node(node: SceneNode, shift: NDArray[np.float64]) -> SceneNode:
    if node.box is None:
        return node
    box = AxisAlignedBox(node.box.minimum + shift, node.box.maximum + shift)
    return replace(node, box=box, oriented_box=None)


def _place_on(node: SceneNode, box: AxisAlignedBox, foot: NDArray[np.float64]) -> SceneNode:
    """Return a node with the size of a box, the middle of its lower side at a point."""
    half = np.array([*box.size[:2] / 2, 0.0])
    placed = AxisAlignedBox(foot - half, foot + half + [0.0, 0.0, box.size[2]])
    return replace(node, box=placed, oriented_box=None, feature_row=None, feature_space='')


def _remove_node(graph: SceneGraph, key: int) -> SceneGraph:
    nodes = tuple(
        replace(node, parent=None) if node.parent == key else node
        for node in graph.nodes
        if node.id != key
    )
    edges = tuple(edge for edge in graph.edges if key not in (edge.source, edge.target))
    return replace(graph, nodes=nodes, edges=edges)


def _replace_nodes(
    graph: SceneGraph, changed: Mapping[int, SceneNode], moved: Collection[int]
) -> SceneGraph:
    """Return a graph with nodes changed or new, and new relations of those that moved.

    Objects that move together keep their own relations.
    """
    rest = dict(changed)
    nodes = [rest.pop(node.id, node) for node in graph.nodes] + list(rest.values())
    if not moved:
        return replace(graph, nodes=tuple(nodes))

    def is_new(edge: SceneEdge) -> bool:
        return (edge.source in moved) != (edge.target in moved)

    kept = [edge for edge in graph.edges if not is_new(edge)]
    new = [edge for edge in derive_relations(nodes) if is_new(edge)]
    return replace(graph, nodes=tuple(nodes), edges=(*kept, *new))


class RuleOfChanges(OneByOne):
    """Applies the change that a question describes to the recorded graph, and answers from that.

    A change of an object that the map lacks leaves it as it is.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    def answering(self, semantic_map: SemanticMap) -> Callable[[Inquiry], Answer]:
        """Return what answers each question; the map after each change is kept."""

        @cache
        def apply(sentence: str) -> tuple[Callable[[Inquiry], Answer], str]:
            changed, note = self._change_map(semantic_map, sentence)
            return RuleAnswerer(self._embedder).answering(changed), note

        def answer(item: Inquiry) -> Answer:
            answering, note = apply(item.context_change)
            found = answering(item)
            return replace(found, note=note or found.note)

        return answer

    def _change_map(self, semantic_map: SemanticMap, sentence: str) -> tuple[SemanticMap, str]:
        if not sentence:
            return semantic_map, ''
        change = read_change(sentence)
        if change is None:
            return semantic_map, 'the change is not worded as the rules know'
        reader = GraphReader.of_map(semantic_map, self._embedder)
        graph = apply_to_graph(semantic_map.graph, change, reader.named)
        if graph is None:
            return semantic_map, 'the map lacks a thing that the change names'
        return replace(semantic_map, graph=graph), ''
