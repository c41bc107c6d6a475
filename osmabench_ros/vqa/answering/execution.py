"""Executes the query of a question on a recorded scene graph; its phrases name the nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.language.embedding import Embedder
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode
from osmabench_ros.semantics.storeys import find_storey, find_storeys
from osmabench_ros.vqa import english
from osmabench_ros.vqa.answering.ways import FloorWays, ways_of_map
from osmabench_ros.vqa.graph_index import GraphIndex, LabelMatcher, attribute
from osmabench_ros.vqa.questions import AnswerValue

if TYPE_CHECKING:
    from osmabench_ros.vqa.kinds import Query


@dataclass(frozen=True)
class GraphAnswer:
    """The answer of a graph with its tolerance; None if it does not say: the note says why."""

    value: AnswerValue | None
    nodes: tuple[int, ...] = ()
    note: str = ''
    tolerance: float = 0.0


class SilentError(Exception):
    """The graph does not say; the message becomes the finding's note."""


def answer_from(value: AnswerValue, *nodes: SceneNode) -> GraphAnswer:
    """Return an answer that rests on nodes, 'yes' or 'no' for a truth value."""
    if isinstance(value, (bool, np.bool_)):
        value = 'yes' if value else 'no'
    return GraphAnswer(value, tuple(node.id for node in nodes))


class GraphReader:
    """Finds objects by noun phrases in one scene graph, and answers to queries.

    The objects are those in `ids`, else all; an `index` of the graph spares making one. Without
    `ways` nothing is known of them; `storeys_m` gives the heights of the floors, and is asked only
    by a question that needs them.
    """

    def __init__(
        self,
        graph: SceneGraph,
        vocabulary: Iterable[str] = (),
        embedder: Embedder | None = None,
        ids: Iterable[int] | None = None,
        *,
        index: GraphIndex | None = None,
        ways: FloorWays | None = None,
        storeys_m: Callable[[], tuple[float, ...]] = tuple,
    ) -> None:
        self.graph = graph
        self.index = index or GraphIndex(graph, ids)
        self.matcher = LabelMatcher(self.index.by_label, vocabulary, embedder)
        self._find_line = None if ways is None else cache(ways.path)
        self._storeys_m = cache(storeys_m)
        self._resolve = cache(self._search)

    @classmethod
    def of_map(cls, semantic_map: SemanticMap, embedder: Embedder | None = None) -> GraphReader:
        """Return a reader of a map, which knows its label set, its ways and its floors."""
        known, dense = semantic_map.label_set, semantic_map.dense
        vocabulary = () if known is None else known.by_name
        ways = ways_of_map(semantic_map)
        storeys_m = tuple if dense is None else partial(find_storeys, dense.valid_points)
        return cls(semantic_map.graph, vocabulary, embedder, ways=ways, storeys_m=storeys_m)

    def named(self, phrase: str) -> SceneNode | None:
        """Return the best observed object that a phrase may mean."""
        return next(iter(self.all_named(phrase)), None)

    def all_named(self, phrase: str) -> tuple[SceneNode, ...]:
        """Return all that a phrase may mean, best observed first."""
        return self._resolve(phrase)[0]

    def execute(self, query: Query) -> GraphAnswer:
        """Return the answer of the graph to a query, numbers to three decimals."""
        try:
            found = query.kind.find(self, query)
        except SilentError as silence:
            return GraphAnswer(None, note=str(silence))
        assert found.value is not None
        value = round(found.value, 3) if isinstance(found.value, float) else found.value
        return replace(found, value=value, tolerance=query.kind.tolerance(found.value))

    def existing(self, phrase: str) -> tuple[SceneNode, ...]:
        """Return all nodes that a phrase may mean, possibly none."""
        nodes, is_unknown = self._resolve(phrase)
        if is_unknown:
            raise SilentError(f'the map does not give the attribute in "{phrase}"')
        return nodes

    def candidates(self, phrase: str) -> tuple[SceneNode, ...]:
        """Return the candidates for a definite phrase, without adjectives the map cannot check."""
        nodes, is_unknown = self._resolve(phrase)
        words = phrase.split()
        for cut in range(1, len(words)) if is_unknown else ():
            nodes = nodes or self.all_named(' '.join(words[cut:]))
        if not nodes:
            raise SilentError(f'the map has no {phrase}')
        return nodes

    def one(self, phrase: str) -> SceneNode:
        """Return the best candidate for a definite phrase."""
        return self.candidates(phrase)[0]

    def boxed(self, phrase: str) -> SceneNode:
        """Return the best candidate that has a box."""
        for node in self.candidates(phrase):
            if node.box is not None:
                return node
        raise SilentError(f'the {phrase} has no box in the map')

    def several(self, phrase: str) -> list[SceneNode]:
        """Return all boxed nodes that a phrase means, at least two."""
        nodes = [node for node in self.existing(phrase) if node.box is not None]
        if len(nodes) < 2:
            raise SilentError(f'the map has fewer than two of "{phrase}"')
        return nodes

    def related_candidates(self, phrase: str) -> tuple[SceneNode, ...]:
        """Return the candidates for a definite phrase in a map that has relations."""
        if not self.index.pairs:
            raise SilentError('the map has no relations')
        return self.candidates(phrase)

    def room(self, node: SceneNode) -> SceneNode:
        """Return the room of a node."""
        room = None if node.parent is None else self.index.graph.by_id[node.parent]
        if room is None or room.kind is not NodeKind.ROOM:
            raise SilentError(f'the map gives no room of the {normalised_name(node.label)}')
        return room

    def room_area_m2(self, node: SceneNode) -> float:
        """Return the floor area of the room of a node, to three decimals."""
        room = self.room(node)
        if room.box is None:
            raise SilentError('the room has no box in the map')
        return round(float(np.prod(room.box.size[:2])), 3)

    def walk_m(self, first: SceneNode, second: SceneNode) -> float:
        """Return the length of the way between two boxed nodes."""
        line = self.line_m(*sorted((first, second), key=lambda node: node.id))
        return float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())

    def line_m(self, first: SceneNode, second: SceneNode) -> NDArray[np.float64]:
        """Return the way between two boxed nodes as a polyline (N, 3)."""
        if self._find_line is None:
            raise SilentError('the map has no points to find a way on')
        line = self._find_line(first.known_box, second.known_box)
        if line is None:
            raise SilentError('the map has no way there')
        return line

    def storey(self, node: SceneNode) -> int:
        """Return the number of the floor of a boxed node, 0 for the lowest."""
        if not self._storeys_m():
            raise SilentError('the map has no points to find floors in')
        return int(find_storey(node.known_box.minimum[2], self._storeys_m()))

    def _search(self, phrase: str) -> tuple[tuple[SceneNode, ...], bool]:
        """Return the nodes of a phrase, and whether there are none for want of an attribute."""
        words = phrase.split()
        cuts = [cut for cut in range(len(words)) if set(words[:cut]) <= english.ADJECTIVES]
        # 'glass door' may be a label itself; 'red chair' only looks like one to an embedder, so
        # similarity is asked about bare nouns first.
        for match, order in ((self.matcher.same, cuts), (self.matcher.similar, cuts[::-1])):
            for cut in order:
                labels = sorted(match(' '.join(words[cut:])))
                nodes = [node for label in labels for node in self.index.by_label[label]]
                if nodes:
                    return _choose_by_attributes(sorted(nodes, key=_reliability), words[:cut])
        return (), False


def _reliability(node: SceneNode) -> tuple[float, float, int]:
    score = node.labels[0].score if node.labels else math.nan
    return (-node.observations, 0.0 if math.isnan(score) else -score, node.id)


def _choose_by_attributes(
    nodes: list[SceneNode], adjectives: list[str]
) -> tuple[tuple[SceneNode, ...], bool]:
    """Return the nodes that adjectives may describe, the same basic colour first."""
    materials = [word for word in adjectives if word in english.MATERIALS.values()]
    material = english.material_noun(' '.join(materials[:1]))
    color = ' '.join(word for word in adjectives if word not in materials)
    unknown = False
    for key, wanted, alike in (
        ('color', color, english.confusable),
        ('material', material, english.is_one_material),
    ):
        if wanted:
            values = {node: attribute(node, key) for node in nodes}
            unknown = unknown or None in values.values()
            known = {node: value for node, value in values.items() if value is not None}
            fitting = [node for node, value in known.items() if alike(value, wanted)]
            basic = english.basic_color(wanted)
            nodes = sorted(fitting, key=lambda node: english.basic_color(known[node]) != basic)
    return tuple(nodes), unknown and not nodes
