"""Answers by a language model that looks things up in the map with tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import Field

from osmabench_ros.base.progress import Progress, share, silent
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.language.client import Parsed, raise_if_incomplete
from osmabench_ros.language.model import ModelRequest, Tool, ToolCall, ToolReply, ToolResult, Turn
from osmabench_ros.language.prompts import load_prompt
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.vqa.answering.answerer import AnsweringMaterial
from osmabench_ros.vqa.answering.language_model import question_data
from osmabench_ros.vqa.answering.map_tools import (
    ANSWER,
    GiveAnswer,
    MapTools,
    ToolFaultError,
    arguments_of,
    checked_arguments,
    declared_tools,
)
from osmabench_ros.vqa.answering.pictures import question_images
from osmabench_ros.vqa.judging.reading import is_refusal
from osmabench_ros.vqa.questions import Answer, Inquiry, ToolUse

MOST_CALLS = 8
"""Calls of one reply that are served; the rest is dropped."""

_LONGEST_ANSWER, _LONGEST_NAME = 2000, 64
_KEPT_ARGUMENTS, _KEPT_RESULT = 300, 1000

_MOST_KEPT = 60
"""Uses of tools in a transcript, so that its line can be read again."""
_NOTHING_SAID = 'neither an answer nor a call of a tool'


class ToolOptions(Strict):
    """Options of the answerer `tools`: how many replies it has for one question."""

    rounds: int = Field(12, ge=1, le=24)


class ToolAnswerer:
    """Gives a language model tools on the map, and one conversation for each question."""

    def __init__(self, *, material: AnsweringMaterial, options: dict[str, Any]) -> None:
        self._client = material.required_client('tools')
        self._rounds = validated(ToolOptions, options, 'answerer "tools"').rounds
        self._material = material
        self._prompt = load_prompt('answer_with_tools')
        self._incomplete: Counter[str] = Counter()
        self.name = f'{self._client.name} tools'

    @property
    def summary(self) -> dict[str, Any]:
        """Summary for the report: the prompt, and why how many conversations gave no answer."""
        return {
            'prompt': self._prompt.identity,
            'rounds': self._rounds,
            'incomplete': dict(sorted(self._incomplete.items())),
        }

    def answer(
        self,
        semantic_map: SemanticMap,
        inquiries: Sequence[Inquiry],
        progress: Progress = silent,
    ) -> list[Answer]:
        """Return one answer for each inquiry; IncompleteError holds all if the server failed."""
        tools, declared = MapTools(semantic_map, self._material.embedder), declared_tools()
        talks = [_Conversation(self.name, item, self._first(item)) for item in inquiries]
        for number in range(self._rounds):
            open_talks = [talk for talk in talks if talk.answer is None]
            # In the last round there is nothing left to do but to answer.
            offered = declared if number + 1 < self._rounds else declared[-1:]
            outcomes = self._client.ask_all(
                [talk.request(offered) for talk in open_talks],
                ToolReply.model_validate_json,
                progress=share(progress, number / self._rounds, (number + 1) / self._rounds),
                what=f'round {number + 1}',
            )
            for talk, outcome in zip(open_talks, outcomes, strict=True):
                talk.take(outcome, tools)
        for talk in talks:
            if talk.answer is None:
                talk.give_up(f'no answer within {self._rounds} rounds of tools')
        self._incomplete = Counter(talk.incomplete for talk in talks if talk.incomplete)
        answers = [talk.result for talk in talks]
        known = semantic_map.graph.by_id
        answers = [replace(a, nodes=tuple(n for n in a.nodes if n in known)) for a in answers]
        raise_if_incomplete([answer.failure for answer in answers], 'questions', answers)
        return answers

    def _first(self, item: Inquiry) -> ModelRequest:
        return ModelRequest(
            self._prompt.render(question=question_data(item)),
            self._prompt.system,
            question_images(item, self._material.question_images),
        )


@dataclass
class _Conversation:
    """One question, what was looked up for it, and in the end its answer."""

    name: str
    item: Inquiry
    first: ModelRequest
    turns: list[Turn] = field(default_factory=list)
    used: list[ToolUse] = field(default_factory=list)
    answer: Answer | None = None
    incomplete: str = ''

    def request(self, tools: tuple[Tool, ...]) -> ModelRequest:
        return replace(self.first, tools=tools, turns=tuple(self.turns))

    def take(self, outcome: Parsed[ToolReply], tools: MapTools) -> None:
        """Serve the calls of a reply, or end with its answer."""
        reply = outcome.value
        if reply is None:
            self._end(None, note=str(outcome.error), failure=outcome.failure)
        elif not reply.calls and reply.text.strip():
            self._end(reply.text.strip()[:_LONGEST_ANSWER])
        elif not reply.calls:
            self.give_up(_NOTHING_SAID)
        else:
            calls = reply.calls[:MOST_CALLS]
            results = tuple(self._served(call, tools) for call in calls)
            sent = tuple(_well_formed(call) for call in calls)
            self.turns.append(Turn(ToolReply(text=reply.text, calls=sent), results))

    def _served(self, call: ToolCall, tools: MapTools) -> ToolResult:
        result = self._answered(call) if call.name == ANSWER else tools.call(call)
        said = result.text[:_KEPT_RESULT]
        if result.image is not None:
            said += f' (picture {result.image.sha256[:12]})'
        name, arguments = call.name[:_LONGEST_NAME], call.arguments[:_KEPT_ARGUMENTS]
        self.used.append(ToolUse(name, arguments, said))
        return result

    def _answered(self, call: ToolCall) -> ToolResult:
        """End with the answer of a call; one that is malformed may be mended."""
        try:
            given: GiveAnswer = checked_arguments(GiveAnswer, call)
        except ToolFaultError as fault:
            return ToolResult(f'error: {fault}')
        if self.answer is None:
            self._end(given.answer, tuple(given.nodes))
        return ToolResult('taken')

    def give_up(self, reason: str) -> None:
        """End without an answer, by the fault of the model."""
        self.incomplete = reason
        self._end(None, note=reason)

    def _end(
        self,
        value: str | None,
        nodes: tuple[int, ...] = (),
        note: str = '',
        failure: str = '',
    ) -> None:
        if value is not None and not value.strip():
            value, note = None, 'the model says that the map has no answer'
        elif value is not None and is_refusal(value):
            note = 'declined'
        self.answer = Answer(self.item.id, value, self.name, nodes, note, failure)

    @property
    def result(self) -> Answer:
        """The answer with what was looked up."""
        assert self.answer is not None
        return replace(self.answer, transcript=tuple(self.used[:_MOST_KEPT]))


def _well_formed(call: ToolCall) -> ToolCall:
    """Return a call as it is sent back: servers choke on malformed ones, even their own."""
    call = call.model_copy(update={'name': call.name[:_LONGEST_NAME] or 'unnamed'})
    try:
        arguments_of(call)
    except ToolFaultError:
        return call.model_copy(update={'arguments': '{}'})
    return call
