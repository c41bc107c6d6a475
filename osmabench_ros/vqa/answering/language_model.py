"""Answers from a recorded scene graph by a language model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.language.client import ModelClient, Parsed, raise_if_incomplete
from osmabench_ros.language.model import ModelRequest
from osmabench_ros.language.prompts import Prompt, load_prompt
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.vqa.graph_text import GraphText, graph_text
from osmabench_ros.vqa.judging.reading import is_refusal
from osmabench_ros.vqa.questions import Answer, Inquiry
from osmabench_ros.vqa.schemas import GivenAnswer, GivenAnswers, parse, schema

BATCH = 10
"""Questions a prompt, as in OSMa-Bench."""

DEFAULT_GRAPH_TOKENS = 60_000
_WHOLE_GRAPH = 10_000_000


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
