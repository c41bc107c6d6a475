"""Changes as sentences describe them, and answers from a scene graph that they change by rule."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.relations import derive_relations
from osmabench_ros.semantics.scene_graph import RelationType, SceneGraph, SceneNode
from osmabench_ros.suites.hypo3d.frame import Named, Side, frame_of, orientation, sides_of
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.answering.rule import RuleAnswerer
from osmabench_ros.vqa.english import definite, indefinite, without_article
from osmabench_ros.vqa.graph_index import Embedder
from osmabench_ros.vqa.questions import Answer, Inquiry

_ASKED = re.compile(
    r'With (?P<facing>.+? at the (?:front|left|back|right)), in which direction is '
    r'(?P<thing>the .+) as seen from (?P<origin>the .+)\?'
)
_HELD = frozenset({RelationType.ON.value, RelationType.IN.value, RelationType.ATTACHED_TO.value})


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
        facing = orientation(self.anchors, definite)
        thing = definite(self.thing)
        way = f'{self.distance_m:g} m'
        text = {
            ChangeType.MOVEMENT: f'{facing}{thing} has been moved {way} to the {self.side.value}.',
            ChangeType.REMOVAL: f'{thing} has been removed.',
            ChangeType.ATTRIBUTE: f'{thing} has been painted {self.color}.',
            ChangeType.ADDITION: (
                f'{facing}{indefinite(self.thing)} like the one that is there has been added, '
                f'{way} to the {self.side.value} of {definite(self.other)}.'
            ),
            ChangeType.REPLACEMENT: (
                f'{thing} has been replaced by another {self.other} like the one that is there.'
            ),
        }[self.type]
        return text[0].upper() + text[1:]


_FACING = r'(?:with (?P<facing>.+? at the (?:front|left|back|right)), )?'
_SIDE = r'(?P<side>front|left|back|right)'
_WAY = r'(?P<distance>\d+(?:\.\d+)?) m to the ' + _SIDE
_READ: tuple[tuple[ChangeType, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        (ChangeType.MOVEMENT, rf'{_FACING}(?P<thing>the .+) has been moved {_WAY}\.'),
        (ChangeType.REMOVAL, r'(?P<thing>the .+) has been removed\.'),
        (ChangeType.ATTRIBUTE, r'(?P<thing>the .+) has been painted (?P<color>.+)\.'),
        (
            ChangeType.ADDITION,
            rf'{_FACING}(?P<thing>an? .+) like the one that is there has been added, '
            rf'{_WAY} of (?P<other>the .+)\.',
        ),
        (
            ChangeType.REPLACEMENT,
            r'(?P<thing>the .+) has been replaced by another (?P<other>.+) '
            r'like the one that is there\.',
        ),
    )
)
_ANCHOR = re.compile(r'(the .+?) at the (front|left|back|right)(?: and |$)', re.IGNORECASE)


def read_anchors(facing: str) -> dict[Side, str]:
    """Return the anchors of 'the bed at the front and the desk at the left'."""
    pairs = _ANCHOR.findall(facing)
    return sides_of((without_article(name), side.lower()) for name, side in pairs)


def read_change(sentence: str) -> DescribedChange | None:
    """Return the change that a sentence describes, None if it is worded otherwise."""
    for kind, pattern in _READ:
        match = pattern.fullmatch(sentence.strip())
        if match is None:
            continue
        said = match.groupdict()
        return DescribedChange(
            kind,
            without_article(_lower(said['thing'])),
            without_article(said.get('other') or ''),
            Side((said.get('side') or 'front').lower()),
            float(said.get('distance') or 0.0),
            said.get('color') or '',
            read_anchors(_lower(said.get('facing') or '')),
        )
    return None


def _lower(text: str) -> str:
    """Return a text that may have begun a sentence."""
    return text[:1].lower() + text[1:]


def apply_to_graph(
    graph: SceneGraph, change: DescribedChange, named: Named, *, new_id: int | None = None
) -> SceneGraph | None:
    """Apply a described change to a scene graph by rule; None if the graph lacks a named object.

    A moved object takes along its contents; a new one has the size of the object that it is like,
    at the same level; relations of changed objects are derived from boxes. `named` finds objects
    in the graph, and `new_id` is for a new one, by default the next free one.
    """
    thing = named(change.thing)
    if thing is None or thing.box is None:
        return None
    if change.type is ChangeType.ATTRIBUTE:
        painted = replace(thing, attributes={**thing.attributes, 'color': change.color})
        return _replace_nodes(graph, {thing.id: painted}, ())
    if change.type is ChangeType.REMOVAL:
        return _remove_node(graph, thing.id)
    if change.type is ChangeType.MOVEMENT:
        frame = frame_of(graph, change.anchors, named)
        if frame is None:
            return None
        shift = frame.axis(change.side) * change.distance_m
        moved = {
            key: _shift_node(graph.by_id[key], shift) for key in _find_carried(graph, thing.id)
        }
        return _replace_nodes(graph, moved, moved)
    key = 1 + max(node.id for node in graph.nodes) if new_id is None else new_id
    other = named(change.other)
    if other is None or other.box is None:
        return None
    if change.type is ChangeType.REPLACEMENT:
        foot = np.array([*thing.box.center[:2], thing.box.minimum[2]])
        new = _place_on(replace(other, id=key, parent=thing.parent), other.box, foot)
        return _replace_nodes(_remove_node(graph, thing.id), {key: new}, (key,))
    frame = frame_of(graph, change.anchors, named)
    if frame is None:
        return None
    center = other.box.center + frame.axis(change.side) * change.distance_m
    foot = np.array([*center[:2], thing.box.minimum[2]])
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
        if edge.type in _HELD and edge.target in found and edge.source not in found
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
    graph: SceneGraph,
    changed: Mapping[int, SceneNode],
    moved: Mapping[int, object] | tuple[int, ...],
) -> SceneGraph:
    """Return a graph with nodes changed or new, and new relations of those that moved."""
    rest = dict(changed)
    nodes = [rest.pop(node.id, node) for node in graph.nodes] + list(rest.values())
    if not moved:
        return replace(graph, nodes=tuple(nodes))
    ids = frozenset(moved)

    def is_new(source: int, target: int) -> bool:
        """Whether a relation is new: objects that move together keep their own relations."""
        return (source in ids) != (target in ids)

    kept = [edge for edge in graph.edges if not is_new(edge.source, edge.target)]
    new = [edge for edge in derive_relations(nodes) if is_new(edge.source, edge.target)]
    return replace(graph, nodes=tuple(nodes), edges=(*kept, *new))


def direction_question(thing: str, origin: str, anchors: Mapping[Side, str]) -> str:
    """Return the question where an object is from another, which `RuleOfChanges` reads."""
    facing = orientation(anchors, definite)
    asked = f'in which direction is {definite(thing)} as seen from {definite(origin)}?'
    return f'{facing}{asked}'


def direction_in(reader: GraphReader, thing: str, origin: str, anchors: Mapping[Side, str]) -> str:
    """Return the direction of an object from another in the frame of anchors, '' for none."""
    found = [reader.named(name) for name in (thing, origin)]
    first, second = (None if node is None else node.box for node in found)
    frame = frame_of(reader.graph, anchors, reader.named)
    if frame is None or first is None or second is None:
        return ''
    return frame.direction(first, second)


class RuleOfChanges:
    """Applies the change that a question describes to the recorded graph, and answers from that.

    Implements `Answerer`. A change of an object that the map lacks leaves it as it is.
    """

    name = 'rule'

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    def answer(
        self,
        semantic_map: SemanticMap,
        inquiries: Sequence[Inquiry],
        progress: Progress = silent,
    ) -> list[Answer]:
        """Return one answer for each inquiry, value None where map or rules give none."""
        found: dict[str, Answer] = {}
        changes = dict.fromkeys(item.context_change for item in inquiries)
        for number, change in enumerate(changes):
            progress('', number / len(changes))
            asked = [item for item in inquiries if item.context_change == change]
            changed, note = self._change_map(semantic_map, change)
            found |= self._answer_changed(changed, asked, note)
        return [found[item.id] for item in inquiries]

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

    def _answer_changed(
        self, semantic_map: SemanticMap, asked: Sequence[Inquiry], note: str
    ) -> dict[str, Answer]:
        rules = RuleAnswerer(self._embedder)
        reader: GraphReader | None = None
        others, found = [], {}
        for item in asked:
            match = _ASKED.fullmatch(item.text)
            if match is None:
                others.append(item)
                continue
            reader = reader or GraphReader.of_map(semantic_map, self._embedder)
            thing, origin = (without_article(match[name]) for name in ('thing', 'origin'))
            value = direction_in(reader, thing, origin, read_anchors(match['facing']))
            reason = '' if value else 'the map gives no clear direction'
            found[item.id] = Answer(item.id, value or None, self.name, note=note or reason)
        for answer in rules.answer(semantic_map, others) if others else ():
            found[answer.question_id] = replace(answer, note=note or answer.note)
        return found
