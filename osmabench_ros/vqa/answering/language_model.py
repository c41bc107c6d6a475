"""Answers from a recorded scene graph, written within a budget, by a language model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.language.client import ModelClient, Parsed, raise_if_incomplete
from osmabench_ros.language.model import ModelRequest, estimated_tokens
from osmabench_ros.language.prompts import Prompt, load_prompt
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode
from osmabench_ros.vqa.graph_index import THINGS
from osmabench_ros.vqa.judging.reading import is_refusal
from osmabench_ros.vqa.questions import Answer, Inquiry
from osmabench_ros.vqa.schemas import GivenAnswer, GivenAnswers, parse, schema

BATCH = 10
"""Questions a prompt, as in OSMa-Bench."""

DEFAULT_GRAPH_TOKENS = 60_000
_WHOLE_GRAPH = 10_000_000
_LONGEST_CAPTION = 200
_MOST_CAPTIONS = 3


class LanguageModelAnswerer:
    """Puts the graph, up to `graph_tokens`, and a batch of questions into each prompt."""

    def __init__(
        self,
        client: ModelClient,
        *,
        graph_tokens: int = DEFAULT_GRAPH_TOKENS,
        compat: bool = False,
    ) -> None:
        self.name = client.name
        self._client = client
        self._budget = _WHOLE_GRAPH if compat else graph_tokens
        self._compat = compat
        self._prompt = load_prompt('answer_from_graph_compat' if compat else 'answer_from_graph')
        self.dropped_nodes = 0
        self.dropped_relations = 0

    @property
    def prompt(self) -> Prompt:
        """The prompt in use, for provenance."""
        return self._prompt

    @property
    def summary(self) -> dict[str, Any]:
        """Summary for the report: the prompt, its budget, and what did not fit."""
        return {
            'prompt': self._prompt.identity,
            'compat': self._compat,
            'graph_tokens': self._budget,
            'dropped_nodes': self.dropped_nodes,
            'dropped_relations': self.dropped_relations,
        }

    def requests(
        self, semantic_map: SemanticMap, inquiries: Sequence[Inquiry]
    ) -> list[ModelRequest]:
        """Return the requests that `answer` would make."""
        text = self._text(semantic_map)
        return [_request(self._prompt, batch, text) for batch in batches(inquiries)]

    def _text(self, semantic_map: SemanticMap) -> GraphText:
        text = graph_text(semantic_map.graph, self._budget, relations=not self._compat)
        self.dropped_nodes = text.nodes_dropped
        self.dropped_relations = text.relations_dropped
        return text

    def answer(
        self,
        semantic_map: SemanticMap,
        inquiries: Sequence[Inquiry],
        progress: Progress = silent,
    ) -> list[Answer]:
        """Return one answer for each inquiry; IncompleteError holds all if the server failed."""
        requests = self.requests(semantic_map, inquiries)
        outcomes = self._client.ask_all(
            requests, partial(parse, GivenAnswers), progress=progress, what='answers'
        )
        known = frozenset(semantic_map.graph.by_id)
        return joined(inquiries, outcomes, self.name, known)


class QuestionOnlyAnswerer:
    """Asks a language model the questions without any map, as a baseline."""

    def __init__(self, client: ModelClient) -> None:
        self.name = f'{client.name} without map'
        self._client = client
        self._prompt = load_prompt('answer_without_map')

    def requests(self, inquiries: Sequence[Inquiry]) -> list[ModelRequest]:
        """Return the requests that `answer` would make."""
        return [_request(self._prompt, batch, None) for batch in batches(inquiries)]

    def answer(
        self,
        semantic_map: SemanticMap,
        inquiries: Sequence[Inquiry],
        progress: Progress = silent,
    ) -> list[Answer]:
        """Return one answer for each inquiry; ignores the map."""
        del semantic_map
        outcomes = self._client.ask_all(
            self.requests(inquiries),
            partial(parse, GivenAnswers),
            progress=progress,
            what='guesses',
        )
        return joined(inquiries, outcomes, self.name, frozenset())


def batches(inquiries: Sequence[Inquiry], size: int = BATCH) -> list[Sequence[Inquiry]]:
    """Cut inquiries into batches."""
    return [inquiries[start : start + size] for start in range(0, len(inquiries), size)]


def _request(prompt: Prompt, batch: Sequence[Inquiry], text: GraphText | None) -> ModelRequest:
    questions = [
        {'id': item.id, 'question': item.text, 'answer_type': item.answer_type.value}
        for item in batch
    ]
    graph = {'nodes': text.nodes, 'relations': text.relations} if text is not None else {}
    return ModelRequest(
        prompt.render(questions=questions, **graph), prompt.system, schema=schema(GivenAnswers)
    )


def joined(
    inquiries: Sequence[Inquiry],
    outcomes: Sequence[Parsed[GivenAnswers]],
    name: str,
    known: frozenset[int],
) -> list[Answer]:
    """Join replies with questions by id; IncompleteError has the answers if a server failed."""
    answers: list[Answer] = []
    for batch, outcome in zip(batches(inquiries), outcomes, strict=True):
        given: dict[str, GivenAnswer] = {}
        for answer in outcome.value.answers if outcome.value is not None else ():
            given.setdefault(answer.id, answer)
        answers += [_answer(item, given.get(item.id), name, known, outcome) for item in batch]
    raise_if_incomplete([answer.failure for answer in answers], 'questions', answers)
    return answers


def _answer(
    item: Inquiry,
    given: GivenAnswer | None,
    name: str,
    known: frozenset[int],
    outcome: Parsed[GivenAnswers],
) -> Answer:
    if given is None:
        note = str(outcome.error or 'the reply left this question out')
        return Answer(item.id, None, name, note=note, failure=outcome.failure)
    nodes = tuple(node for node in given.nodes if node in known)
    if not given.answer.strip():
        return Answer(item.id, None, name, nodes, 'the model says that the graph has no answer')
    refused = 'declined' if is_refusal(given.answer) else ''
    return Answer(item.id, given.answer, name, nodes, refused)


@dataclass(frozen=True)
class GraphText:
    """A graph for a prompt: a JSON object or relation a line, and what was dropped."""

    nodes: str
    relations: str
    node_ids: frozenset[int]
    nodes_dropped: int
    relations_dropped: int
    tokens: int


def graph_text(graph: SceneGraph, max_tokens: int, *, relations: bool = True) -> GraphText:
    """Serialise the things of a graph within an estimated budget, nodes before relations."""
    left = max_tokens
    lines: list[str] = []
    kept: set[int] = set()
    things = sorted((node for node in graph.nodes if node.kind in THINGS), key=_importance)
    for node in things:
        line = json.dumps(_described(node, graph), ensure_ascii=False)
        cost = estimated_tokens(line) + 1
        if cost > left:
            break
        left -= cost
        lines.append(line)
        kept.add(node.id)
    related, relations_dropped = [], 0
    for edge_line in _relation_lines(graph, kept) if relations else ():
        cost = estimated_tokens(edge_line) + 1
        if cost > left:
            relations_dropped += 1
            continue
        left -= cost
        related.append(edge_line)
    ends_lost = sum(not {e.source, e.target} <= kept for e in _thing_edges(graph, things))
    return GraphText(
        '\n'.join(lines),
        '\n'.join(related),
        frozenset(kept),
        len(things) - len(kept),
        relations_dropped + (ends_lost if relations else 0),
        max_tokens - left,
    )


def _importance(node: SceneNode) -> tuple[bool, int, int]:
    return not node.label, -node.observations, node.id


def _described(node: SceneNode, graph: SceneGraph) -> dict[str, Any]:
    room = graph.by_id.get(node.parent) if node.parent is not None else None
    attributes = {
        k: round(v, 2) if isinstance(v, float) else v for k, v in node.attributes.items()
    }
    parts: dict[str, Any] = {
        'id': node.id,
        'label': normalised_name(node.label) or None,
        'captions': [_short(text) for text in node.captions[:_MOST_CAPTIONS]],
        'attributes': attributes,
        'room': room.label if room is not None else None,
    }
    if node.box is not None:
        parts['center'] = [round(float(v), 2) for v in node.box.center]
        parts['size'] = [round(float(v), 2) for v in node.box.size]
    return {key: value for key, value in parts.items() if value not in (None, [], {})}


def _short(text: str) -> str:
    plain = ' '.join(text.split())
    return plain if len(plain) <= _LONGEST_CAPTION else plain[: _LONGEST_CAPTION - 1] + '…'


def _thing_edges(graph: SceneGraph, things: list[SceneNode]) -> Iterator[Any]:
    ids = {node.id for node in things}
    return (edge for edge in graph.edges if edge.source in ids and edge.target in ids)


def _relation_lines(graph: SceneGraph, kept: set[int]) -> Iterator[str]:
    seen: set[str] = set()
    for edge in graph.edges:
        if edge.source in kept and edge.target in kept:
            word = ' '.join((edge.type or edge.text).split())[:60]
            line = f'{edge.source} {word} {edge.target}'
            if line not in seen:
                seen.add(line)
                yield line
