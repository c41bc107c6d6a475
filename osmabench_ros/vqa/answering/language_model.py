"""Answers by a language model in one prompt: from the graph, from a caption, from nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.language.client import ModelClient, Parsed, raise_if_incomplete
from osmabench_ros.language.model import ImagePart, ModelRequest, estimated_tokens
from osmabench_ros.language.prompts import load_prompt
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import THINGS, SceneGraph, SceneNode
from osmabench_ros.vqa.answering.answerer import GRAPH, AnsweringMaterial
from osmabench_ros.vqa.answering.pictures import question_images
from osmabench_ros.vqa.judging.reading import is_refusal
from osmabench_ros.vqa.questions import LETTERS, Answer, AnswerType, Inquiry
from osmabench_ros.vqa.schemas import GivenAnswer, GivenAnswers, parse, schema

BATCH = 10
"""Questions a prompt, as in OSMa-Bench."""

DEFAULT_GRAPH_TOKENS = 60_000
_WHOLE_GRAPH = 10_000_000
_LONGEST_CAPTION = 200
_MOST_CAPTIONS = 3


@dataclass(frozen=True)
class Shown:
    """What a prompt shows of a map: values of its template, and pictures."""

    values: Mapping[str, Any] = field(default_factory=dict)
    images: tuple[ImagePart, ...] = ()
    nodes: frozenset[int] = frozenset()
    """Ids that an answer may name."""


class PromptedAnswerer:
    """Asks a language model in batches, each with one prompt that shows something of the map."""

    def __init__(self, material: AnsweringMaterial, answerer: str, prompt: str) -> None:
        self._client = material.required_client(answerer)
        self.name = f'{self._client.name} {answerer}'
        self.prompt = load_prompt(prompt)
        self._images = material.question_images

    @property
    def summary(self) -> dict[str, Any]:
        """Summary for the report: the prompt."""
        return {'prompt': self.prompt.identity}

    def shown(self, semantic_map: SemanticMap) -> Shown:
        """Return what every prompt shows of a map: nothing."""
        del semantic_map
        return Shown()

    def requests(
        self, semantic_map: SemanticMap, inquiries: Sequence[Inquiry]
    ) -> list[ModelRequest]:
        """Return the requests that `answer` would make."""
        shown = self.shown(semantic_map)
        return [self._request(batch, shown) for batch in batches(inquiries)]

    def _request(self, batch: Sequence[Inquiry], shown: Shown) -> ModelRequest:
        asked = [question_data(item) for item in batch]
        own = tuple(image for item in batch for image in question_images(item, self._images))
        return ModelRequest(
            self.prompt.render(questions=asked, **shown.values),
            self.prompt.system,
            (*shown.images, *own),
            schema(GivenAnswers),
        )

    def answer(
        self,
        semantic_map: SemanticMap,
        inquiries: Sequence[Inquiry],
        progress: Progress = silent,
    ) -> list[Answer]:
        """Return one answer for each inquiry; IncompleteError holds all if the server failed."""
        shown = self.shown(semantic_map)
        requests = [self._request(batch, shown) for batch in batches(inquiries)]
        outcomes = self._client.ask_all(
            requests, partial(parse, GivenAnswers), progress=progress, what='answers'
        )
        return joined(inquiries, outcomes, self.name, shown.nodes)


class CaptionOptions(Strict):
    """Options of the answerer `caption`: the budget of a prompt for the graph."""

    graph_tokens: int = Field(DEFAULT_GRAPH_TOKENS, ge=100)


class GraphOptions(CaptionOptions):
    """Options of the answerer `graph`; `compat` has the published prompts."""

    compat: bool = False


class LanguageModelAnswerer(PromptedAnswerer):
    """Puts the graph, up to `graph_tokens`, and a batch of questions into each prompt."""

    def __init__(
        self,
        client: ModelClient,
        *,
        graph_tokens: int = DEFAULT_GRAPH_TOKENS,
        compat: bool = False,
        question_images: Path | None = None,
    ) -> None:
        prompt = 'answer_from_graph_compat' if compat else 'answer_from_graph'
        super().__init__(AnsweringMaterial(client, question_images=question_images), GRAPH, prompt)
        self.name = client.name
        self._budget = _WHOLE_GRAPH if compat else graph_tokens
        self._compat = compat
        self.dropped_nodes = 0
        self.dropped_relations = 0

    @property
    def summary(self) -> dict[str, Any]:
        """Summary for the report: the prompt, its budget, and what did not fit."""
        return {
            'prompt': self.prompt.identity,
            'compat': self._compat,
            'graph_tokens': self._budget,
            'dropped_nodes': self.dropped_nodes,
            'dropped_relations': self.dropped_relations,
        }

    def shown(self, semantic_map: SemanticMap) -> Shown:
        """Return the graph as far as it fits."""
        text = graph_text(semantic_map.graph, self._budget, relations=not self._compat)
        self.dropped_nodes = text.nodes_dropped
        self.dropped_relations = text.relations_dropped
        values = {'nodes': text.nodes, 'relations': text.relations}
        return Shown(values, nodes=frozenset(semantic_map.graph.by_id))


def graph_answerer(
    *, material: AnsweringMaterial, options: dict[str, Any]
) -> LanguageModelAnswerer:
    """Make the answerer that reads the graph as JSON."""
    checked = validated(GraphOptions, options, 'answerer "graph"')
    return LanguageModelAnswerer(
        material.required_client(GRAPH),
        graph_tokens=checked.graph_tokens,
        compat=checked.compat,
        question_images=material.question_images,
    )


class QuestionOnlyAnswerer(PromptedAnswerer):
    """Asks a language model the questions without any map, as a baseline."""

    def __init__(self, client: ModelClient) -> None:
        super().__init__(AnsweringMaterial(client), 'question_only', 'answer_without_map')
        self.name = f'{client.name} without map'


def question_only(*, material: AnsweringMaterial, options: dict[str, Any]) -> QuestionOnlyAnswerer:
    """Make the answerer that sees no map, and no image of a question; it has no options."""
    validated(Strict, options, 'answerer "question_only"')
    return QuestionOnlyAnswerer(material.required_client('question_only'))


class CaptionAnswerer(PromptedAnswerer):
    """Describes the graph to a language model in sentences, as text models are in Hypo3D."""

    def __init__(self, material: AnsweringMaterial, graph_tokens: int) -> None:
        super().__init__(material, 'caption', 'answer_from_caption')
        self._budget = graph_tokens
        self._dropped = 0

    @property
    def summary(self) -> dict[str, Any]:
        """Summary for the report: the prompt, its budget, and how many things did not fit."""
        about = {'graph_tokens': self._budget, 'dropped_nodes': self._dropped}
        return {**super().summary, **about, 'dropped_relations': 0}

    def shown(self, semantic_map: SemanticMap) -> Shown:
        """Return the caption as far as it fits."""
        sentences, self._dropped = caption(semantic_map.graph, self._budget)
        return Shown({'caption': ' '.join(sentences)}, nodes=frozenset(semantic_map.graph.by_id))


def caption_answerer(*, material: AnsweringMaterial, options: dict[str, Any]) -> CaptionAnswerer:
    """Make the answerer that reads a caption."""
    checked = validated(CaptionOptions, options, 'answerer "caption"')
    return CaptionAnswerer(material, checked.graph_tokens)


def caption(graph: SceneGraph, max_tokens: int) -> tuple[list[str], int]:
    """Return a sentence for each thing within a budget, and how many things had no room."""
    things = sorted((node for node in graph.nodes if node.kind in THINGS), key=_importance)
    relations: dict[int, list[str]] = {}
    for edge in graph.edges:
        target = graph.by_id[edge.target]
        if target.kind in THINGS:
            words = f'{edge.type or edge.text} {_called(target)}'
            relations.setdefault(edge.source, []).append(words)
    sentences: list[str] = []
    left = max_tokens
    for node in things:
        sentence = _sentence(node, graph, relations.get(node.id, ()))
        left -= estimated_tokens(sentence) + 1
        if left < 0:
            break
        sentences.append(sentence)
    return sentences, len(things) - len(sentences)


def _called(node: SceneNode) -> str:
    return f'the {normalised_name(node.label) or "unnamed thing"} (object {node.id})'


def _sentence(node: SceneNode, graph: SceneGraph, relations: Sequence[str]) -> str:
    parts = described(node, graph)
    about = [f'{key} {value}' for key, value in parts.get('attributes', {}).items()]
    about += [f'in the room {parts["room"]}'] if parts.get('room') else []
    if 'center' in parts:
        x, y, z = parts['center']
        width, depth, height = parts['size']
        about.append(f'centred at ({x}, {y}, {z}) m and {width} x {depth} x {height} m large')
    about += [f'described as {json.dumps(text)}' for text in parts.get('captions', ())]
    about += relations
    called = _called(node)
    return f'{called[0].upper()}{called[1:]} is {", ".join(about) or "there"}.'


_FORMS: Mapping[AnswerType, str] = {
    AnswerType.CHOICE: 'the letter of one option',
    AnswerType.COORDINATES: 'x, y, z in metres',
    AnswerType.SET: 'all of them, separated by commas, in any order',
    AnswerType.ORDERED_LIST: 'all of them in order, separated by commas',
    AnswerType.BOX: 'x, y, z of the lower corner and x, y, z of the upper one, in metres',
}
"""How answers of those types are to be written of which the prompts do not speak."""


def question_data(item: Inquiry) -> dict[str, Any]:
    """Return a question as prompts have it; what only some questions have stands in these."""
    data: dict[str, Any] = {
        'id': item.id,
        'question': item.text,
        'answer_type': item.answer_type.value,
    }
    if item.answer_type in _FORMS:
        data['write'] = _FORMS[item.answer_type]
    if item.options:
        data['options'] = dict(zip(LETTERS, item.options, strict=False))
    if item.unit.value:
        data['unit'] = item.unit.value
    if item.context_change:
        data['changed_since'] = item.context_change
    return data


def batches(inquiries: Sequence[Inquiry]) -> list[Sequence[Inquiry]]:
    """Cut inquiries into batches in order; one with images of its own stands alone."""
    found: list[list[Inquiry]] = []
    for item in inquiries:
        joins = found and len(found[-1]) < BATCH and not (item.images or found[-1][-1].images)
        if joins:
            found[-1].append(item)
        else:
            found.append([item])
    return [*found]


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
        line = json.dumps(described(node, graph), ensure_ascii=False)
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
    known = {node.id for node in things}
    ends = ({edge.source, edge.target} for edge in graph.edges)
    ends_lost = sum(pair <= known and not pair <= kept for pair in ends)
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


def described(node: SceneNode, graph: SceneGraph) -> dict[str, Any]:
    """Return what a graph knows of a node, as prompts have it; unknown parts are left out."""
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


def _relation_lines(graph: SceneGraph, kept: set[int]) -> Iterator[str]:
    seen: set[str] = set()
    for edge in graph.edges:
        if edge.source in kept and edge.target in kept:
            word = ' '.join((edge.type or edge.text).split())[:60]
            line = f'{edge.source} {word} {edge.target}'
            if line not in seen:
                seen.add(line)
                yield line
