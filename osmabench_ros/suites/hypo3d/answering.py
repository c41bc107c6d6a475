"""Answers questions about described changes by rule: changes the graph, then reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.suites.hypo3d.described_change import changed_graph, read_anchors, read_change
from osmabench_ros.suites.hypo3d.frame import Side, frame_of, orientation
from osmabench_ros.vqa.answering.rule import GraphReader, RuleAnswerer
from osmabench_ros.vqa.english import definite, without_article
from osmabench_ros.vqa.graph_index import Embedder
from osmabench_ros.vqa.questions import Answer, Inquiry

_ASKED = re.compile(
    r'With (?P<facing>.+? at the (?:front|left|back|right)), in which direction is '
    r'(?P<thing>the .+) as seen from (?P<origin>the .+)\?'
)


def direction_question(thing: str, origin: str, anchors: Mapping[Side, str]) -> str:
    """Return the question where a thing is from another, which `RuleOfChanges` reads."""
    facing = orientation(anchors, definite)
    asked = f'in which direction is {definite(thing)} as seen from {definite(origin)}?'
    return f'{facing}{asked}'


def direction_in(reader: GraphReader, thing: str, origin: str, anchors: Mapping[Side, str]) -> str:
    """Return the direction of a thing from another in the frame of anchors, '' for none."""
    found = [reader.named(name) for name in (thing, origin)]
    first, second = (None if node is None else node.box for node in found)
    frame = frame_of(reader.graph, anchors, reader.named)
    if frame is None or first is None or second is None:
        return ''
    return frame.direction(first, second)


class RuleOfChanges:
    """Applies the change that a question describes to the recorded graph, and answers from that.

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

    def _changed(self, semantic_map: SemanticMap, sentence: str) -> tuple[SemanticMap, str]:
        if not sentence:
            return semantic_map, ''
        change = read_change(sentence)
        if change is None:
            return semantic_map, 'the change is not worded as the rules know'
        reader = GraphReader.of_map(semantic_map, self._embedder)
        graph = changed_graph(semantic_map.graph, change, reader.named)
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
            reader = reader or GraphReader.of_map(semantic_map, self._embedder)
            thing, origin = (without_article(match[name]) for name in ('thing', 'origin'))
            value = direction_in(reader, thing, origin, read_anchors(match['facing']))
            reason = '' if value else 'the map gives no clear direction'
            found[item.id] = Answer(item.id, value or None, self.name, note=note or reason)
        for answer in rules.answer(semantic_map, others) if others else ():
            found[answer.question_id] = replace(answer, note=note or answer.note)
        return found
