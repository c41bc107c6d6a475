"""Changes as sentences describe them, and answers from a scene graph that they change by rule."""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic.dataclasses import dataclass

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.scenes.changes import find_foot
from osmabench_ros.semantics.relations import derive_relations
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode
from osmabench_ros.suites.hypo3d.frame import Side, frame_of
from osmabench_ros.vqa import wording
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.answering.rule import RuleAnswerer
from osmabench_ros.vqa.graph_index import keep_nodes
from osmabench_ros.vqa.questions import Answer, Inquiry


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
    object that it is put next to, or its replacement. `side` and `number` are the direction and
    distance in metres of the move, or of the new object from `other`, centre to centre; `facing`
    says which objects are at the sides of the scene.
    """

    type: ChangeType
    thing: str
    other: str = ''
    side: Side = Side.FRONT
    number: float = 0.0
    facing: str = ''
    color: str = ''

    @property
    def sentence(self) -> str:
        """The change as a sentence, which `read_change` reads back."""
        words: dict[str, Any] = {**vars(self), 'number': f'{self.number:g}'}
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
        if match := pattern.fullmatch(sentence.strip()):
            nouns, words = wording.read_match(match)
            fields: dict[str, Any] = dict(zip(('thing', 'other'), nouns, strict=False)) | words
            return DescribedChange(kind, **fields)
    return None


def apply_to_graph(
    reader: GraphReader, change: DescribedChange, *, new_id: int | None = None
) -> SceneGraph | None:
    """Apply a described change to a scene graph by rule; None if the graph lacks a named object.

    Nothing moves with an object; a new one has the size of the object that it is like, at the same
    level; relations of changed objects are derived from boxes. `new_id` is for a new object, by
    default the next free one.
    """
    graph = reader.graph
    thing = reader.named(change.thing)
    other = reader.named(change.other) if change.other else thing
    if not (thing and thing.box and other and other.box):
        return None
    key = 1 + max(graph.by_id) if new_id is None else new_id
    if change.type is ChangeType.REMOVAL:
        return _change_graph(graph, gone=thing.id)
    if change.type is ChangeType.ATTRIBUTE:
        attributes = {**thing.attributes, 'color': change.color}
        return _change_graph(graph, replace(thing, attributes=attributes))
    if change.type is ChangeType.REPLACEMENT:
        new = _shift_node(other, find_foot(thing.box) - find_foot(other.box))
        return _change_graph(graph, replace(new, id=key, parent=thing.parent), gone=thing.id)
    frame = frame_of(reader, change.facing)
    if frame is None:
        return None
    shift = frame.axis(change.side) * change.number
    if change.type is ChangeType.MOVEMENT:
        return _change_graph(graph, _shift_node(thing, shift))
    level = [1.0, 1.0, 0.0]
    new = _shift_node(thing, (other.box.center + shift - thing.box.center) * level)
    return _change_graph(graph, replace(new, id=key, parent=other.parent))


def find_touched_nodes(before: SceneGraph, after: SceneGraph) -> frozenset[int]:
    """Return the ids of nodes that came, went or were replaced when a graph was changed."""
    old, new = before.by_id, after.by_id
    return frozenset(key for key in old.keys() | new.keys() if old.get(key) is not new.get(key))


def _shift_node(node: SceneNode, shift: NDArray[np.float64]) -> SceneNode:
    box = AxisAlignedBox(node.known_box.minimum + shift, node.known_box.maximum + shift)
    return replace(node, box=box, oriented_box=None)


def _change_graph(graph: SceneGraph, new: SceneNode | None = None, gone: int = 0) -> SceneGraph:
    """Return a graph with a node changed or new, and without another, and its new relations."""
    kept = keep_nodes(graph, lambda node: node.id != gone)
    old = dict(kept.by_id)
    nodes = old if new is None else old | {new.id: new}
    same = {key for key, node in old.items() if nodes[key].box is node.box}
    unchanged = [edge for edge in kept.edges if {edge.source, edge.target} <= same]
    derived = derive_relations(tuple(nodes.values()))
    changed = [edge for edge in derived if not {edge.source, edge.target} <= same]
    return replace(graph, nodes=tuple(nodes.values()), edges=(*unchanged, *changed))


class RuleOfChanges(RuleAnswerer):
    """Applies the change that a question describes to the recorded graph, and answers from that.

    A change of an object that the map lacks leaves it as it is.
    """

    def answering(self, semantic_map: SemanticMap) -> Callable[[Inquiry], Answer]:
        """Return what answers each question; the map after each change is kept."""
        reader = self._read(semantic_map)
        answer_from = super().answering

        @cache
        def apply(sentence: str) -> tuple[Callable[[Inquiry], Answer], str]:
            change = read_change(sentence)
            graph = None if change is None else apply_to_graph(reader, change)
            if graph is not None:
                return answer_from(replace(semantic_map, graph=graph)), ''
            lacks = 'the map lacks a thing that the change names'
            note = lacks if change else 'the change is not worded as the rules know'
            return answer_from(semantic_map), note if sentence else ''

        def answer(item: Inquiry) -> Answer:
            answering, note = apply(item.context_change)
            found = answering(item)
            return replace(found, note=note or found.note)

        return answer
