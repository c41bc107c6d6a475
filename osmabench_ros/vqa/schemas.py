"""What language models must reply, as models that make the JSON schema and check the reply."""

import re
from collections.abc import Iterable
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field

from osmabench_ros.language.model import ImagePart, ModelRequest, RefusalError, excerpt
from osmabench_ros.language.prompts import Prompt
from osmabench_ros.vqa.judging.reading import is_refusal

Reply = TypeVar('Reply', bound=BaseModel)


class SeenObject(BaseModel):
    """An object of a frame and how many of it there are."""

    name: str = Field(min_length=1, max_length=80)
    count: int = Field(1, ge=0, le=1000)


class Description(BaseModel):
    """Statements about one frame."""

    statements: list[str]
    objects: list[SeenObject]


class WrittenQuestion(BaseModel):
    """One question as a model writes it."""

    category: str
    question: str = Field(min_length=5, max_length=400)
    answer: str = Field(min_length=1, max_length=200)
    objects: list[str]


class WrittenQuestions(BaseModel):
    """All questions about one frame."""

    questions: list[WrittenQuestion]


class Check(BaseModel):
    """A second opinion on one question."""

    id: str
    verdict: Literal['keep', 'wrong', 'ambiguous', 'viewpoint', 'unsupported']
    reason: str = ''


class Checks(BaseModel):
    """Second opinions on a batch of questions."""

    checks: list[Check]


class GivenAnswer(BaseModel):
    """One answer from a graph; empty if the graph does not say."""

    id: str
    answer: str = Field(max_length=2000)
    nodes: list[int] = Field(default_factory=list)


class GivenAnswers(BaseModel):
    """Answers to a batch of questions."""

    answers: list[GivenAnswer]


class JudgedAnswer(BaseModel):
    """A verdict on one answer."""

    id: str
    same: bool
    reason: str = ''


class JudgedAnswers(BaseModel):
    """Verdicts on a batch of answers."""

    verdicts: list[JudgedAnswer]


def parse(model: type[Reply], text: str) -> Reply:
    """Return a reply as its model; ValueError if it does not fit, RefusalError for prose."""
    bare = _without_fence(text)
    if '{' not in bare and is_refusal(bare):
        raise RefusalError(f'declined: {excerpt(bare)}')
    return model.model_validate_json(bare)


def _without_fence(text: str) -> str:
    """Strip what servers without structured output put around JSON: thoughts and a code fence."""
    text = re.sub(r'^\s*<think>.*?</think>', '', text, flags=re.DOTALL).strip()
    if text.startswith('```') and text.endswith('```'):
        text = text[3:-3].removeprefix('json').strip()
    return text


_KEPT = ('type', 'enum', 'const', 'anyOf', 'minimum', 'maximum')


def schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a reply in the subset that all servers take.

    References are written out in place, objects are closed and all their properties required (as
    OpenAI's strict mode wants), and limits of text lengths are left to `parse`.
    """
    full = model.model_json_schema()
    return _portable(full, full.get('$defs', {}))


def make_request(
    prompt: Prompt,
    reply: type[BaseModel] | None,
    images: Iterable[ImagePart] = (),
    *,
    seed: int = 0,
    **values: Any,
) -> ModelRequest:
    """Return the request of a prompt filled with values, for a reply of a form, None for any."""
    form = None if reply is None else schema(reply)
    return ModelRequest(prompt.render(**values), prompt.system, tuple(images), form, seed=seed)


def _portable(part: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if '$ref' in part:
        return _portable(definitions[part['$ref'].rsplit('/', 1)[-1]], definitions)
    kept = {key: part[key] for key in _KEPT if key in part}
    if 'items' in part:
        kept['items'] = _portable(part['items'], definitions)
    if 'properties' in part:
        properties = part['properties'].items()
        kept['properties'] = {name: _portable(value, definitions) for name, value in properties}
        kept['required'] = list(kept['properties'])
        kept['additionalProperties'] = False
    return kept
