"""The answerer by a language model: the loop of prompts and replies, and contexts of a graph."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol

from pydantic import Field

from osmabench_ros.base.progress import Progress, share, silent
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.language import model
from osmabench_ros.language.client import Outcome, Parser, raise_if_incomplete
from osmabench_ros.language.prompts import load_prompt
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import THINGS, SceneGraph, SceneNode
from osmabench_ros.vqa.answering.answerer import GRAPH, AnsweringMaterial
from osmabench_ros.vqa.answering.pictures import question_images
from osmabench_ros.vqa.judging.reading import is_refusal
from osmabench_ros.vqa.questions import LETTERS, Answer, AnswerType, Inquiry, ToolUse
from osmabench_ros.vqa.schemas import GivenAnswer, GivenAnswers, make_request, parse

# Questions per prompt, as in OSMa-Bench.
BATCH = 10

DEFAULT_GRAPH_TOKENS = 60_000
# Calls of one reply that are served; the rest is dropped.
MOST_CALLS = 8

MOST_ARGUMENT_CHARACTERS = 4000
_LONGEST_ANSWER, _LONGEST_NAME = 2000, 64
_KEPT_ARGUMENTS, _KEPT_RESULT = 300, 1000
# Uses of tools in a transcript, so that its line can be read again.
_MOST_KEPT = 60

_WHOLE_GRAPH = 10_000_000
_LONGEST_CAPTION = 200
_MOST_CAPTIONS = 3
# Models read letters of any language, and not their escapes.
to_json = partial(json.dumps, ensure_ascii=False)
# How answers name an answerer after its model; others are called by their name.
_TITLES = {GRAPH: '', 'question_only': ' without map'}


class Tools(Protocol):
    """Tools on one map, for a language model that calls functions."""

    # The tools as a model gets them; the last one gives the answer.
    declared: tuple[model.Tool, ...]

    def call(self, call: model.ToolCall) -> model.ToolResult | GivenAnswer:
        """Return the result of a call, or the answer that it gives."""
        ...


@dataclass(frozen=True)
class Shown:
    """What each prompt shows of a map: values of its template, pictures, tools to call.

    An answer may name `nodes`; `dropped` counts what did not fit, for the report; a question has
    at most `rounds` replies.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    images: tuple[model.ImagePart, ...] = ()
    nodes: frozenset[int] = frozenset()
    dropped: Mapping[str, int] = field(default_factory=dict)
    tools: Tools | None = None
    rounds: int = 1


class Context(Strict):
    """Provides what prompts show of a map; its fields are the options of the answerer."""

    name: ClassVar[str]
    prompt: ClassVar[str]
    shows_question_images: ClassVar[bool] = True

    @property
    def prompt_name(self) -> str:
        """Name of the prompt file."""
        return self.prompt

    def shown(self, _semantic_map: SemanticMap, _material: AnsweringMaterial) -> Shown:
        """Return what every prompt shows of a map; raises QuestionError if it cannot."""
        return Shown()


class LanguageModelAnswerer:
    """Asks a language model about a map that a context shows it. Implements `Answerer`.

    Without tools a prompt has a batch of questions and one reply. With tools each question is a
    conversation.
    """

    def __init__(
        self, context: type[Context], *, material: AnsweringMaterial, options: dict[str, Any]
    ) -> None:
        self._client = material.require_client(context.name)
        self._context = validated(context, options, f'answerer "{context.name}"')
        self._material = material
        self.prompt = load_prompt(self._context.prompt_name)
        self.name = self._client.name + _TITLES.get(context.name, f' {context.name}')
        self._counted: Mapping[str, Any] = {}

    @property
    def summary(self) -> dict[str, Any]:
        """Summary for the report: the prompt, options, and what did not fit or had no end."""
        return {
            'prompt': self.prompt.identity,
            **self._context.model_dump(),
            **self._counted,
        }

    def answer(
        self,
        semantic_map: SemanticMap,
        inquiries: Sequence[Inquiry],
        progress: Progress = silent,
    ) -> list[Answer]:
        """Return one answer for each inquiry; IncompleteError holds all if the server failed."""
        shown = self._context.shown(semantic_map, self._material)
        talks, rounds = self._talks(inquiries, shown), shown.rounds
        read: Parser[GivenAnswers | model.ToolReply] = (
            model.ToolReply.model_validate_json if shown.tools else partial(parse, GivenAnswers)
        )
        for number in range(rounds):
            open_talks = [talk for talk in talks if talk.given is None]
            requests = [talk.request for talk in open_talks]
            if number + 1 == rounds:  # nothing is left to do but to answer
                requests = [replace(item, tools=item.tools[-1:]) for item in requests]
            outcomes = self._client.ask_all(
                requests,
                read,
                progress=share(progress, number / rounds, (number + 1) / rounds),
                what=f'round {number + 1}' if shown.tools else 'answers',
            )
            for talk, outcome in zip(open_talks, outcomes, strict=True):
                talk.take(outcome, shown.tools)
        for talk in talks:
            if talk.given is None:
                talk.give_up(f'no answer within {rounds} rounds of tools')
        self._counted = shown.dropped
        if shown.tools:
            reasons = Counter(talk.incomplete for talk in talks if talk.incomplete)
            self._counted = {'incomplete': dict(sorted(reasons.items()))}
        answers = [talk.answer_to(item, self.name, shown) for talk in talks for item in talk.asked]
        raise_if_incomplete([answer.failure for answer in answers], 'questions', answers)
        return answers

    def _talks(self, inquiries: Sequence[Inquiry], shown: Shown) -> list[_Talk]:
        images = self._material.question_images if self._context.shows_question_images else None
        talks = []
        for batch in batches(inquiries, 1 if shown.tools else BATCH):
            own = tuple(image for item in batch for image in question_images(item, images))
            asked = [question_data(item) for item in batch]
            form = None if shown.tools else GivenAnswers
            about = {'questions': asked, 'question': asked[0], **shown.values}
            request = make_request(self.prompt, form, (*shown.images, *own), **about)
            tools = shown.tools.declared if shown.tools else ()
            talks.append(_Talk(batch, replace(request, tools=tools)))
        return talks


@dataclass
class _Talk:
    """Some questions to a model, the calls of tools that it made, and in the end its answers."""

    asked: Sequence[Inquiry]
    request: model.ModelRequest
    given: Mapping[str, GivenAnswer] | None = None
    note: str = 'the reply left this question out'
    failure: str = ''
    incomplete: str = ''
    used: list[ToolUse] = field(default_factory=list)

    def take(self, outcome: Outcome[GivenAnswers | model.ToolReply], tools: Tools | None) -> None:
        """Serve the calls of a reply, or end with its answers."""
        reply = outcome.value
        if reply is None:
            self.given = {}
            self.note = str(outcome.error)
            self.failure = outcome.failure
        elif isinstance(reply, GivenAnswers):
            self.given = {item.id: item for item in reversed(reply.answers)}
        elif tools is not None and reply.calls:
            calls = reply.calls[:MOST_CALLS]
            results = tuple(self._serve_call(call, tools) for call in calls)
            sent = tuple(_well_formed(call) for call in calls)
            turn = model.Turn(model.ToolReply(text=reply.text, calls=sent), results)
            self.request = replace(self.request, turns=(*self.request.turns, turn))
        elif text := reply.text.strip()[:_LONGEST_ANSWER]:
            self._end(GivenAnswer(id='', answer=text))
        else:
            self.give_up('neither an answer nor a call of a tool')

    def _serve_call(self, call: model.ToolCall, tools: Tools) -> model.ToolResult:
        result = tools.call(call)
        if isinstance(result, GivenAnswer):
            self._end(result)
            result = model.ToolResult('taken')
        said = result.text[:_KEPT_RESULT]
        if result.image is not None:
            said += f' (picture {result.image.sha256[:12]})'
        name = call.name[:_LONGEST_NAME]
        arguments = call.arguments[:_KEPT_ARGUMENTS]
        self.used.append(ToolUse(name, arguments, said))
        return result

    def _end(self, answer: GivenAnswer) -> None:
        if self.given is None:
            self.given = {item.id: answer for item in self.asked}

    def give_up(self, reason: str) -> None:
        """End without an answer, by the fault of the model."""
        self.given = {}
        self.note = reason
        self.incomplete = reason

    def answer_to(self, item: Inquiry, name: str, shown: Shown) -> Answer:
        """Return the answer to a question, with the tools that were called for it."""
        given = (self.given or {}).get(item.id)
        used = tuple(self.used[:_MOST_KEPT])
        if given is None:
            return Answer(item.id, None, name, (), self.note, self.failure, used)
        nodes = tuple(node for node in given.nodes if node in shown.nodes)
        note = 'declined' if is_refusal(given.answer) else ''
        if not given.answer.strip():
            note = 'the model says that the map has no answer'
            return Answer(item.id, None, name, nodes, note, transcript=used)
        return Answer(item.id, given.answer, name, nodes, note, transcript=used)


def arguments_of(call: model.ToolCall) -> dict[str, Any]:
    """Return the arguments of a call; ValueError if they are too long or not a JSON object."""
    if len(call.arguments) > MOST_ARGUMENT_CHARACTERS:
        raise ValueError(f'the arguments have more than {MOST_ARGUMENT_CHARACTERS} characters')
    try:
        return model.json_object(call.arguments.encode())
    except ValueError as error:
        raise ValueError(f'the arguments are not a JSON object: {error}') from error


def _well_formed(call: model.ToolCall) -> model.ToolCall:
    """Return a call as it is sent back: servers choke on malformed ones, even their own."""
    call = call.model_copy(update={'name': call.name[:_LONGEST_NAME] or 'unnamed'})
    try:
        arguments_of(call)
    except ValueError:
        return call.model_copy(update={'arguments': '{}'})
    return call


class QuestionOnly(Context):
    """Shows nothing of the map and no image of a question, as a baseline."""

    name = 'question_only'
    prompt = 'answer_without_map'
    shows_question_images = False


class Caption(Context):
    """Describes the graph in sentences, as Hypo3D's text models get it."""

    name = 'caption'
    prompt = 'answer_from_caption'
    graph_tokens: int = Field(DEFAULT_GRAPH_TOKENS, ge=100)

    def shown(self, semantic_map: SemanticMap, _material: AnsweringMaterial) -> Shown:
        """Return the caption as far as it fits."""
        sentences, left_out = caption(semantic_map.graph, self.graph_tokens)
        dropped = {'dropped_nodes': left_out, 'dropped_relations': 0}
        known = frozenset(semantic_map.graph.by_id)
        return Shown({'caption': ' '.join(sentences)}, nodes=known, dropped=dropped)


class Graph(Caption):
    """Shows the graph as JSON up to `graph_tokens`; `compat` is the published way: nodes, all."""

    name = GRAPH
    prompt = 'answer_from_graph'
    compat: bool = False

    @property
    def prompt_name(self) -> str:
        """Name of the prompt file."""
        return f'{self.prompt}_compat' if self.compat else self.prompt

    def shown(self, semantic_map: SemanticMap, _material: AnsweringMaterial) -> Shown:
        """Return the graph as far as it fits."""
        budget = _WHOLE_GRAPH if self.compat else self.graph_tokens
        return show_graph(semantic_map.graph, budget, relations=not self.compat)


graph_answerer = partial(LanguageModelAnswerer, Graph)
caption_answerer = partial(LanguageModelAnswerer, Caption)
question_only = partial(LanguageModelAnswerer, QuestionOnly)


def caption(graph: SceneGraph, max_tokens: int) -> tuple[list[str], int]:
    """Return a sentence for each object within a budget, and how many objects had no room."""
    things = _by_importance(graph)
    sentences, _ = _fitting((_sentence(node, graph) for node in things), max_tokens)
    return sentences, len(things) - len(sentences)


def _by_importance(graph: SceneGraph) -> list[SceneNode]:
    things = (node for node in graph.nodes if node.kind in THINGS)
    return sorted(things, key=lambda node: (not node.label, -node.observations, node.id))


def _fitting(lines: Iterable[str], max_tokens: int) -> tuple[list[str], int]:
    """Return the first lines that fit into a budget, and the tokens left of it."""
    kept: list[str] = []
    for line in lines:
        cost = model.estimated_tokens(line) + 1
        if cost > max_tokens:
            break
        max_tokens -= cost
        kept.append(line)
    return kept, max_tokens


def _name_node(node: SceneNode) -> str:
    return f'the {normalised_name(node.label) or "unnamed thing"} (object {node.id})'


def _sentence(node: SceneNode, graph: SceneGraph) -> str:
    parts = described(node, graph)
    about = [f'{key} {value}' for key, value in parts.get('attributes', {}).items()]
    about += [f'in the room {parts["room"]}'] if parts.get('room') else []
    if 'center' in parts:
        x, y, z = parts['center']
        width, depth, height = parts['size']
        about.append(f'centred at ({x}, {y}, {z}) m and {width} x {depth} x {height} m large')
    about += [f'described as {to_json(text)}' for text in parts.get('captions', ())]
    for edge in graph.edges:
        target = graph.by_id[edge.target]
        if edge.source == node.id and target.kind in THINGS:
            about.append(f'{edge.type or edge.text} {_name_node(target)}')
    called = _name_node(node)
    return f'{called[0].upper()}{called[1:]} is {", ".join(about) or "there"}.'


# How answers of those types are to be written of which the prompts do not speak.
_FORMS: Mapping[AnswerType, str] = {
    AnswerType.CHOICE: 'the letter of one option',
    AnswerType.COORDINATES: 'x, y, z in metres',
    AnswerType.SET: 'all of them, separated by commas, in any order',
    AnswerType.ORDERED_LIST: 'all of them in order, separated by commas',
    AnswerType.BOX: 'x, y, z of the lower corner and x, y, z of the upper one, in metres',
}


def question_data(item: Inquiry) -> dict[str, Any]:
    """Return a question as prompts have it, with the parts that only some questions have."""
    data = {
        'id': item.id,
        'question': item.text,
        'answer_type': item.answer_type.value,
        'write': _FORMS.get(item.answer_type),
        'options': dict(zip(LETTERS, item.options, strict=False)),
        'unit': item.unit.value,
        'changed_since': item.context_change,
    }
    return {key: value for key, value in data.items() if value}


def batches(inquiries: Sequence[Inquiry], most: int = BATCH) -> list[list[Inquiry]]:
    """Cut inquiries into batches in order; one with images is asked separately."""
    found: list[list[Inquiry]] = []
    for item in inquiries:
        joins = found and len(found[-1]) < most and not (item.images or found[-1][-1].images)
        if joins:
            found[-1].append(item)
        else:
            found.append([item])
    return found


def show_graph(graph: SceneGraph, max_tokens: int, *, relations: bool = True) -> Shown:
    """Return objects and relations as lines within an estimated budget, objects first."""
    things = _by_importance(graph)
    lines, left = _fitting((to_json(described(node, graph)) for node in things), max_tokens)
    kept = {node.id for node in things[: len(lines)]}
    related = []
    said = dict.fromkeys(
        f'{edge.source} {" ".join((edge.type or edge.text).split())[:60]} {edge.target}'
        for edge in graph.edges
        if relations and edge.source in kept and edge.target in kept
    )
    for line in said:
        cost = model.estimated_tokens(line) + 1
        if cost <= left:
            left -= cost
            related.append(line)
    known = {node.id for node in things}
    ends = ({edge.source, edge.target} for edge in graph.edges)
    ends_lost = sum(pair <= known and not pair <= kept for pair in ends)
    return Shown(
        {'nodes': '\n'.join(lines), 'relations': '\n'.join(related)},
        nodes=frozenset(graph.by_id),
        dropped={
            'dropped_nodes': len(things) - len(kept),
            'dropped_relations': len(said) - len(related) + (ends_lost if relations else 0),
        },
    )


def described(node: SceneNode, graph: SceneGraph) -> dict[str, Any]:
    """Return the known properties of a node, as prompts have them; unknown ones are left out."""
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
