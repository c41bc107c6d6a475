"""The interface of language models, their requests, and replies as safe texts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass as checked_dataclass

from osmabench_ros.base.documents import parse_json
from osmabench_ros.errors import LanguageModelError, OsmabenchError

_MAX_EXCERPT = 300
_MIN_KEY = 8


class TransientModelError(LanguageModelError):
    """A request failed in a way that may pass; the server may ask to wait `retry_after_s`."""

    def __init__(
        self, message: str, retry_after_s: float | None = None, *, reason: str = ''
    ) -> None:
        super().__init__(message, reason=reason)
        self.retry_after_s = retry_after_s


class EmptyReplyError(TransientModelError):
    """The server answered, with nothing."""


class RefusalError(LanguageModelError):
    """The model declined to answer; asking again would not help."""


class UnavailableError(LanguageModelError):
    """The server would take no other request either: nobody listens, or the key is wrong."""


@dataclass(frozen=True)
class ImagePart:
    """An encoded image that goes with a prompt; ``'image/png'`` or ``'image/jpeg'``."""

    data: bytes
    media_type: str = 'image/png'

    @cached_property
    def sha256(self) -> str:
        """Hex digest of the file."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class Tool:
    """A function that a model may call; `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class ToolCall(BaseModel, frozen=True):
    """A call of a tool as the model made it: the arguments are a text that should be JSON."""

    name: str
    arguments: str
    id: str = ''
    signature: str = ''
    """What some servers want back with the call, in base64."""


class ToolReply(BaseModel, frozen=True):
    """A reply to a request with tools, which `ModelReply.text` holds as JSON."""

    text: str = ''
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class ToolResult:
    """Result of a tool: a text, and maybe an image."""

    text: str
    image: ImagePart | None = None


@dataclass(frozen=True)
class Turn:
    """A reply that called tools, and their results in the order of the calls."""

    reply: ToolReply
    results: tuple[ToolResult, ...]

    @property
    def images(self) -> tuple[ImagePart, ...]:
        """The pictures among the results."""
        return tuple(result.image for result in self.results if result.image is not None)

    @property
    def key(self) -> dict[str, Any]:
        """Data that distinguish the turn from others, as JSON."""
        return {
            'reply': self.reply.model_dump(),
            'results': [result.text for result in self.results],
            'images': [image.sha256 for image in self.images],
        }


@dataclass(frozen=True)
class ModelRequest:
    """One question to a language model.

    Parameters
    ----------
    prompt : str
        Message of the user.
    system : str
        Role of the model.
    images : tuple of ImagePart
        Shown before the prompt.
    schema : mapping, optional
        JSON schema of the reply; None for free text.
    temperature : float
        0 for the likeliest reply.
    max_output_tokens : int
        Longest reply.
    seed : int
        For models that have one.
    tools : tuple of Tool
        Functions that the model may call. The reply is then a `ToolReply` as JSON.
    turns : tuple of Turn
        Calls and results that followed the prompt.
    """

    prompt: str
    system: str = ''
    images: tuple[ImagePart, ...] = ()
    schema: Mapping[str, Any] | None = None
    temperature: float = 0.0
    max_output_tokens: int = 8192
    seed: int = 0
    tools: tuple[Tool, ...] = ()
    turns: tuple[Turn, ...] = ()

    def cache_key(self, model: str, server: str) -> str:
        """Return a digest of a model, its server's address and all that shapes the reply."""
        shapes = ('prompt', 'system', 'schema', 'temperature', 'max_output_tokens', 'seed')
        parts: dict[str, Any] = {
            'model': model,
            'server': server,
            'images': [image.sha256 for image in self.images],
            **{name: getattr(self, name) for name in shapes},
        }
        if self.tools:  # keys of other requests do not change
            parts['tools'] = [asdict(tool) for tool in self.tools]
            parts['turns'] = [turn.key for turn in self.turns]
        text = json.dumps(parts, sort_keys=True, separators=(',', ':'))
        return hashlib.sha256(text.encode()).hexdigest()


MAX_TOKENS = 10**9
"""No request takes more: a server that says so sends nonsense."""

_Tokens = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
_EXACT = ConfigDict(strict=True)


@checked_dataclass(frozen=True, config=_EXACT)
class Usage:
    """Tokens of one request, as the server counts them; 0 if it does not."""

    prompt_tokens: _Tokens = 0
    output_tokens: _Tokens = 0


@checked_dataclass(frozen=True, config=_EXACT)
class ModelReply:
    """A reply; ValueError if it is not a text or the tokens are not counts.

    Parameters
    ----------
    text : str
        The reply, JSON if a schema or tools were given.
    usage : Usage
        Tokens used.
    refusal : str
        How the model declined, if it did.
    """

    text: str
    usage: Usage = Usage()
    refusal: str = ''

    def __post_init__(self) -> None:
        (self.text + self.refusal).encode()  # half of a surrogate pair is not a text


class LanguageModel(Protocol):
    """A model behind any kind of server.

    A model is made by its entry point in the group ``osmabench.language_models``, called as
    ``factory(model=str, options=dict)``. Keys come only from the environment.
    """

    name: str
    """Server kind and model, as in cache keys and reports, e.g. ``'gemini/gemini-2.5-flash'``."""

    server: str
    """Address asked, without secrets; two servers may have different models of one name."""

    def generate(self, request: ModelRequest) -> ModelReply:
        """Ask once.

        Raises TransientModelError if trying again may help, LanguageModelError if it does not.
        """
        ...


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text has: a token for four characters, rounded up."""
    return -(-len(text) // 4)


IMAGE_TOKENS = 800
"""About as many tokens as an image takes, where the server has not said."""


def estimated_prompt_tokens(request: ModelRequest) -> int:
    """Return about how many tokens a request sends."""
    text = estimated_tokens(request.system) + estimated_tokens(request.prompt)
    images = len(request.images) + sum(len(turn.images) for turn in request.turns)
    if request.tools:
        sent = [asdict(tool) for tool in request.tools], [turn.key for turn in request.turns]
        text += estimated_tokens(json.dumps(sent))
    return text + IMAGE_TOKENS * images


def excerpt(text: str) -> str:
    """Return the start of a text on one line."""
    return ' '.join(text[: 10 * _MAX_EXCERPT].split())[:_MAX_EXCERPT]


def without_secret(text: str, secret: str) -> str:
    """Return a text in which a key, unless too short to be one, is replaced by stars.

    Characters of the key may be written as escapes of JSON or Python.
    """
    if len(secret) < _MIN_KEY:
        return text
    spellings = (
        rf'(?:\\*{re.escape(char)}|\\+u{{?0*{ord(char):x}}}?|\\+x{ord(char):02x})'
        for char in secret
    )
    return re.sub(''.join(spellings), '***', text, flags=re.IGNORECASE)


def malformed_reply(model: LanguageModel, what: str) -> TransientModelError:
    """Return the error of a reply that cannot be read."""
    return TransientModelError(
        f'{model.name} sent a malformed reply: {what}',
        reason=f'malformed replies from {model.server}',
    )


def json_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a reply; ValueError if `parse_json` refuses it."""
    try:
        data = parse_json(content, 'the reply', LanguageModelError)
    except OsmabenchError as error:
        raise ValueError(str(error)) from None
    if not isinstance(data, dict):
        raise ValueError('the reply is not a JSON object')
    return data
