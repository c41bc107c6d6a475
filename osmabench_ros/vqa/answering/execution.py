"""Executes the query of a question on a recorded scene graph, whose nodes its phrases name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneNode
from osmabench_ros.vqa.english import (
    ADJECTIVES,
    COLORS,
    MATERIALS,
    basic_color,
    color_name,
    confusable,
    material_noun,
)
from osmabench_ros.vqa.graph_index import (
    GraphIndex,
    LabelMatcher,
    centre_distance_m,
    extent,
    gap_m,
)
from osmabench_ros.vqa.knowledge import knowledge
from osmabench_ros.vqa.questions import AnswerValue, Query, QueryKind

_MATERIAL_WORDS = frozenset(MATERIALS) | frozenset(MATERIALS.values())
_ON, _IN = RelationType.ON.value, RelationType.IN.value
_NEXT_TO, _ATTACHED = RelationType.NEXT_TO.value, RelationType.ATTACHED_TO.value


@dataclass(frozen=True)
class GraphAnswer:
    """The answer of a graph: None if it does not say, then the note has the reason."""

    value: AnswerValue | None
    nodes: tuple[int, ...] = ()
    note: str = ''


class SilentError(Exception):
    """The graph does not say; the message becomes the finding's note."""


class QueryExecutor:
    """Answers queries from one scene graph."""

    def __init__(self, index: GraphIndex, resolver: ReferenceResolver) -> None:
        self._index = index
        self._resolver = resolver

    def execute(self, query: Query) -> GraphAnswer:
        """Return the answer of the graph to a query."""
        handler = _HANDLERS[query.kind]
        try:
            return handler(self, query)
        except SilentError as silence:
            return GraphAnswer(None, note=str(silence))

    def _existing(self, phrase: str) -> tuple[SceneNode, ...]:
        found = self._resolver.resolve(phrase)
        if found.attribute_unknown:
            raise SilentError(f'the map does not give the attribute in "{phrase}"')
        return found.nodes

    def _candidates(self, phrase: str) -> tuple[SceneNode, ...]:
        """Return the candidates for a definite phrase, without adjectives the map cannot check."""
        found = self._resolver.resolve(phrase)
        if found.nodes:
            return found.nodes
        noun = phrase.split()
        for cut in range(1, len(noun)) if found.attribute_unknown else ():
            fallback = self._resolver.resolve(' '.join(noun[cut:]))
            if fallback.nodes:
                return fallback.nodes
        raise SilentError(f'the map has no {phrase}')

    def _one(self, phrase: str) -> SceneNode:
        return self._candidates(phrase)[0]

    def _boxed(self, phrase: str) -> SceneNode:
        for node in self._candidates(phrase):
            if node.box is not None:
                return node
        raise SilentError(f'the {phrase} has no box in the map')

    def _presence(self, query: Query) -> GraphAnswer:
        found = [self._existing(phrase) for phrase in query.phrases]
        there = [bool(nodes) for nodes in found]
        value = {
            QueryKind.EXISTS: there[0],
            QueryKind.ABSENT: not there[0],
            QueryKind.BOTH: all(there),
            QueryKind.EITHER: any(there),
            QueryKind.FIRST_ONLY: there[0] and not there[-1],
            QueryKind.NEITHER: not any(there),
        }[query.kind]
        return yes_no(value, *(node for nodes in found for node in nodes[:1]))

    def _count(self, query: Query) -> GraphAnswer:
        nodes = self._existing(query.phrases[0])
        return GraphAnswer(len(nodes), _ids(nodes))

    def _more_of(self, query: Query) -> GraphAnswer:
        first, second = (self._existing(phrase) for phrase in query.phrases)
        return yes_no(len(first) > len(second), *first, *second)

    def _height(self, query: Query) -> GraphAnswer:
        node = self._boxed(query.phrases[0])
        return GraphAnswer(round(extent(node, 'taller') or 0.0, 3), (node.id,))

    def _distance(self, query: Query) -> GraphAnswer:
        first, second = (self._boxed(phrase) for phrase in query.phrases)
        return GraphAnswer(round(centre_distance_m(first, second), 3), (first.id, second.id))

    def _attribute(self, query: Query) -> GraphAnswer:
        key, normal = _ATTRIBUTE_OF[query.kind]
        for node in self._candidates(query.phrases[0]):
            value = attribute(node, key)
            if value is None:
                continue
            if query.kind is QueryKind.HAS_COLOR:
                return yes_no(confusable(value, query.word), node)
            if query.word:
                return yes_no(normal(value) == normal(query.word), node)
            return GraphAnswer(normal(value), (node.id,))
        raise SilentError(f'the map gives no {key} for {query.phrases[0]}')

    def _needs_relations(self) -> None:
        if not self._index.has_relations:
            raise SilentError('the map has no relations')

    def _related(self, query: Query) -> GraphAnswer:
        self._needs_relations()
        sources, targets = (self._candidates(phrase) for phrase in query.phrases)
        for source in sources:
            for target in targets:
                if self._index.related(query.word, source.id, target.id):
                    return yes_no(True, source, target)
        return yes_no(False, sources[0], targets[0])

    def _named_neighbour(self, query: Query) -> GraphAnswer:
        self._needs_relations()
        relation, is_target = _NEIGHBOUR_OF[query.kind]
        relation = relation or query.word
        look = self._index.targets if is_target else self._index.sources
        for node in self._candidates(query.phrases[0]):
            named = [i for i in look(relation, node.id) if self._index.by_id[i].label]
            objects = [i for i in named if self._index.by_id[i].kind is NodeKind.OBJECT]
            if named:
                other = self._index.by_id[(objects or named)[0]]
                label = knowledge().spelt(normalised_name(other.label))
                return GraphAnswer(label, (node.id, other.id))
        raise SilentError(f'the map names nothing {relation} for {query.phrases[0]}')

    def _which_more(self, query: Query) -> GraphAnswer:
        values = self._extents(query)
        return self._choice(query, values[0] > values[1])

    def _is_more(self, query: Query) -> GraphAnswer:
        values = self._extents(query)
        return yes_no(values[0] > values[1], *(self._boxed(p) for p in query.phrases))

    def _extents(self, query: Query) -> list[float]:
        return [extent(self._boxed(phrase), query.word) or 0.0 for phrase in query.phrases]

    def _closer(self, query: Query) -> GraphAnswer:
        first, second, origin = (self._boxed(phrase) for phrase in query.phrases)
        return self._choice(
            query, centre_distance_m(first, origin) < centre_distance_m(second, origin)
        )

    def _choice(self, query: Query, is_first: bool) -> GraphAnswer:
        nodes = tuple(self._boxed(phrase).id for phrase in query.phrases)
        return GraphAnswer(query.phrases[0 if is_first else 1], nodes)

    def _reachable(self, query: Query) -> GraphAnswer:
        node = self._boxed(query.phrases[0])
        top = float(node.known_box.maximum[2]) - self._index.floor_height_m(node)
        return yes_no(top <= (query.number or 0.0), node)

    def _passable(self, query: Query) -> GraphAnswer:
        first, second = (self._boxed(phrase) for phrase in query.phrases)
        return yes_no(gap_m(first, second) >= (query.number or 0.0), first, second)

    def _clearance(self, query: Query) -> GraphAnswer:
        node = self._boxed(query.phrases[0])
        return yes_no(self._index.space_above_m(node) >= (query.number or 0.0), node)

    def _affords_by(self, query: Query) -> GraphAnswer:
        self._needs_relations()
        relation = _ON if query.kind is QueryKind.AFFORDS_ON else _NEXT_TO
        nodes = self._candidates(query.phrases[0])
        for node in nodes:
            for other in self._index.sources(relation, node.id):
                if _affords(self._index.by_id[other], query.word):
                    return yes_no(True, node, self._index.by_id[other])
        return yes_no(False, nodes[0])

    def _affords_count(self, query: Query) -> GraphAnswer:
        nodes = [node for node in self._index.things if _affords(node, query.word)]
        return GraphAnswer(len(nodes), _ids(nodes))

    def _loaded(self, query: Query) -> GraphAnswer:
        self._needs_relations()
        nodes = self._candidates(query.phrases[0])
        loaded = any(self._index.sources(_ON, node.id) for node in nodes)
        return yes_no(loaded is (query.kind is QueryKind.LOADED), *nodes)


_ATTRIBUTE_OF: Mapping[QueryKind, tuple[str, Callable[[str], str]]] = {
    QueryKind.COLOR_OF: ('color', basic_color),
    QueryKind.HAS_COLOR: ('color', basic_color),
    QueryKind.MATERIAL_OF: ('material', material_noun),
    QueryKind.HAS_MATERIAL: ('material', material_noun),
}

_NEIGHBOUR_OF: Mapping[QueryKind, tuple[str, bool]] = {
    QueryKind.RELATED_TO: ('', False),
    QueryKind.SUPPORTED_BY: (_ON, False),
    QueryKind.SUPPORT_OF: (_ON, True),
    QueryKind.CONTAINER_OF: (_IN, True),
    QueryKind.OPEN_FIRST: (_IN, True),
    QueryKind.FIXED_TO: (_ATTACHED, True),
}
"""Relation, '' for that of the question, and whether the target of it is asked for."""

_Handler = Callable[[QueryExecutor, Query], GraphAnswer]
_HANDLERS: Mapping[QueryKind, _Handler] = {
    **dict.fromkeys(
        (
            QueryKind.EXISTS,
            QueryKind.ABSENT,
            QueryKind.BOTH,
            QueryKind.EITHER,
            QueryKind.FIRST_ONLY,
            QueryKind.NEITHER,
        ),
        QueryExecutor._presence,
    ),
    **dict.fromkeys(_ATTRIBUTE_OF, QueryExecutor._attribute),
    **dict.fromkeys(_NEIGHBOUR_OF, QueryExecutor._named_neighbour),
    QueryKind.COUNT: QueryExecutor._count,
    QueryKind.MORE_OF: QueryExecutor._more_of,
    QueryKind.HEIGHT: QueryExecutor._height,
    QueryKind.DISTANCE: QueryExecutor._distance,
    QueryKind.RELATED: QueryExecutor._related,
    QueryKind.WHICH_MORE: QueryExecutor._which_more,
    QueryKind.IS_MORE: QueryExecutor._is_more,
    QueryKind.CLOSER: QueryExecutor._closer,
    QueryKind.REACHABLE: QueryExecutor._reachable,
    QueryKind.PASSABLE: QueryExecutor._passable,
    QueryKind.CLEARANCE: QueryExecutor._clearance,
    QueryKind.AFFORDS_ON: QueryExecutor._affords_by,
    QueryKind.AFFORDS_NEAR: QueryExecutor._affords_by,
    QueryKind.AFFORDS_COUNT: QueryExecutor._affords_count,
    QueryKind.LOADED: QueryExecutor._loaded,
    QueryKind.UNLOADED: QueryExecutor._loaded,
}


def _ids(nodes: tuple[SceneNode, ...] | list[SceneNode]) -> tuple[int, ...]:
    return tuple(node.id for node in nodes)


def yes_no(value: bool, *nodes: SceneNode) -> GraphAnswer:
    """Return yes or no, which rests on nodes."""
    return GraphAnswer('yes' if value else 'no', _ids(nodes))


def _affords(node: SceneNode, affordance: str) -> bool:
    return bool(node.label) and knowledge().affords(normalised_name(node.label), affordance)


@dataclass(frozen=True, eq=False)
class Referents:
    """Things a phrase may mean, best observed first, and if the map lacks the attribute."""

    nodes: tuple[SceneNode, ...]
    attribute_unknown: bool = False


class ReferenceResolver:
    """Resolves noun phrases in one map."""

    def __init__(self, index: GraphIndex, matcher: LabelMatcher) -> None:
        self._index = index
        self._matcher = matcher
        self._found: dict[str, Referents] = {}

    def resolve(self, phrase: str) -> Referents:
        """Return the nodes that a phrase such as 'red wooden chair' means."""
        if phrase not in self._found:
            self._found[phrase] = self._search(phrase)
        return self._found[phrase]

    def _search(self, phrase: str) -> Referents:
        words = phrase.split()
        cuts = [cut for cut in range(len(words)) if set(words[:cut]) <= ADJECTIVES]
        # 'glass door' may be a label itself; 'red chair' only looks like one to an embedder, so
        # similarity is asked about bare nouns first.
        for match, order in (
            (self._matcher.same, cuts),
            (self._matcher.similar, cuts[::-1]),
        ):
            for cut in order:
                nodes = self._named(match(' '.join(words[cut:])))
                if nodes:
                    return _with_attributes(nodes, words[:cut])
        return Referents(())

    def _named(self, labels: frozenset[str]) -> tuple[SceneNode, ...]:
        nodes = [node for label in sorted(labels) for node in self._index.by_label[label]]
        return tuple(sorted(nodes, key=_reliability))


def _reliability(node: SceneNode) -> tuple[float, float, int]:
    score = node.labels[0].score if node.labels else math.nan
    return (-node.observations, 0.0 if math.isnan(score) else -score, node.id)


def _with_attributes(nodes: tuple[SceneNode, ...], adjectives: list[str]) -> Referents:
    material = next((material_noun(w) for w in adjectives if w in MATERIALS.values()), '')
    color = ' '.join(word for word in adjectives if word not in MATERIALS.values())
    unknown = False
    for key, wanted, alike in (
        ('color', color, confusable),
        ('material', material, _same_material),
    ):
        if not wanted:
            continue
        values = {node.id: attribute(node, key) for node in nodes}
        unknown = unknown or None in values.values()
        nodes = _matching(nodes, values, wanted, alike)
    return Referents(nodes, unknown and not nodes)


def _same_material(first: str, second: str) -> bool:
    return material_noun(first) == material_noun(second)


def _matching(
    nodes: tuple[SceneNode, ...],
    values: Mapping[int, str | None],
    wanted: str,
    alike: Callable[[str, str], bool],
) -> tuple[SceneNode, ...]:
    """Return the nodes whose value may be the wanted one, the same basic colour first."""
    found = [
        (basic_color(value) != basic_color(wanted), node)
        for node in nodes
        if (value := values[node.id]) is not None and alike(value, wanted)
    ]
    return tuple(node for _, node in sorted(found, key=lambda pair: pair[0]))


def attribute(node: SceneNode, key: str) -> str | None:
    """Return the colour or material of a node, or the only one in its caption, else None."""
    value = node.attributes.get(key)
    if isinstance(value, str) and value:
        return value
    words = {word for caption in node.captions for word in re.findall(r'[a-z]+', caption.lower())}
    known = frozenset(COLORS) if key == 'color' else _MATERIAL_WORDS
    normal = color_name if key == 'color' else material_noun
    values = {normal(word) for word in words & known}
    return values.pop() if len(values) == 1 else None
