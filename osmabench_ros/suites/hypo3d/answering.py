"""Answers questions about told changes by rule: changes the graph, then reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode
from osmabench_ros.suites.hypo3d.frame import Side, frame_of, orientation
from osmabench_ros.suites.hypo3d.told import changed_graph, read_anchors, read_change
from osmabench_ros.vqa.answering.execution import QueryExecutor
from osmabench_ros.vqa.answering.references import ReferenceResolver
from osmabench_ros.vqa.answering.rule import RuleAnswerer
from osmabench_ros.vqa.english import definite, without_article
from osmabench_ros.vqa.graph_index import Embedder, GraphIndex, LabelMatcher
from osmabench_ros.vqa.questions import Answer, Inquiry, Query

_ASKED = re.compile(
    r'With (?P<facing>.+? at the (?:front|left|back|right)), in which direction is '
    r'(?P<thing>the .+) as seen from (?P<origin>the .+)\?'
)


def direction_question(thing: str, origin: str, anchors: Mapping[Side, str]) -> str:
    """Return the question where a thing is from another, which `RuleOfChanges` reads."""
    facing = orientation(anchors, definite)
    asked = f'in which direction is {definite(thing)} as seen from {definite(origin)}?'
    return f'{facing}{asked}'


class GraphReader:
    """Finds things, directions and answers to queries in one scene graph."""

    def __init__(
        self,
        graph: SceneGraph,
        vocabulary: Iterable[str] = (),
        embedder: Embedder | None = None,
        ids: Iterable[int] | None = None,
    ) -> None:
        self.graph = graph
        self.index = GraphIndex(graph, ids)
        matcher = LabelMatcher(self.index.by_label, vocabulary, embedder)
        self._resolver = ReferenceResolver(self.index, matcher)
        self._executor = QueryExecutor(self.index, self._resolver)

    def named(self, phrase: str) -> SceneNode | None:
        """Return the best observed thing that a phrase may mean."""
        return next(iter(self.all_named(phrase)), None)

    def all_named(self, phrase: str) -> tuple[SceneNode, ...]:
        """Return all that a phrase may mean, best observed first."""
        return self._resolver.resolve(phrase).nodes

    def answer(self, query: Query) -> str | int | float | None:
        """Return the answer to a query, None if the graph does not say."""
        value = self._executor.execute(query).value
        return None if isinstance(value, tuple) else value

    def direction(self, thing: str, origin: str, anchors: Mapping[Side, str]) -> str:
        """Return the direction of a thing from another in the frame of anchors, '' for none."""
        boxes = [
            None if (node := self.named(name)) is None else node.box for name in (thing, origin)
        ]
        frame = frame_of(self.graph, anchors, self.named)
        first, second = boxes
        if frame is None or first is None or second is None:
            return ''
        return frame.direction(first, second)


class RuleOfChanges:
    """Applies the change that a question tells to the recorded graph, and answers from that.

    Implements `Answerer`. A change that the map has no thing for leaves it as it is.
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
            changed, note = self._changed(semantic_map, change)
            found |= self._answers(changed, asked, note)
        return [found[item.id] for item in inquiries]

    def _reader(self, semantic_map: SemanticMap) -> GraphReader:
        known = semantic_map.label_set
        vocabulary = () if known is None else known.by_name
        return GraphReader(semantic_map.graph, vocabulary, self._embedder)

    def _changed(self, semantic_map: SemanticMap, sentence: str) -> tuple[SemanticMap, str]:
        if not sentence:
            return semantic_map, ''
        told = read_change(sentence)
        if told is None:
            return semantic_map, 'the change is not worded as the rules know'
        graph = changed_graph(semantic_map.graph, told, self._reader(semantic_map).named)
        if graph is None:
            return semantic_map, 'the map lacks a thing that the change names'
        return replace(semantic_map, graph=graph), ''

    def _answers(
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
            reader = reader or self._reader(semantic_map)
            thing, origin = (without_article(match[name]) for name in ('thing', 'origin'))
            value = reader.direction(thing, origin, read_anchors(match['facing']))
            reason = '' if value else 'the map gives no clear direction'
            found[item.id] = Answer(item.id, value or None, self.name, note=note or reason)
        for answer in rules.answer(semantic_map, others) if others else ():
            found[answer.question_id] = replace(answer, note=note or answer.note)
        return found
