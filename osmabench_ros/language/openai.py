"""Models behind OpenAI's chat API: vLLM, Ollama, llama.cpp, OpenAI and others."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from osmabench_ros.errors import LanguageModelError
from osmabench_ros.language.model import (
    ImagePart,
    ModelReply,
    ModelRequest,
    RefusalError,
    ToolCall,
    ToolReply,
    Turn,
    Usage,
    cut_off,
    excerpt,
    json_object,
    malformed_replies,
    token_count,
)
from osmabench_ros.language.options import (
    OPENAI_SERVER,
    ServerOptions,
    checked_address,
    checked_server_options,
    without_secrets,
)
from osmabench_ros.language.server import Server, error_fields, failure

KEY_VARIABLE = 'OPENAI_API_KEY'

_SUBSTITUTES: Mapping[str, str | None] = {
    'max_tokens': 'max_completion_tokens',
    'temperature': None,
    'seed': None,
}
"""Parameters that some models take under another name, or not at all: reasoning models mostly."""


class OpenAIModel:
    """One model of a compatible server, with the options of `ServerOptions`.

    `base_url` comes from OPENAI_BASE_URL if not set, else is OpenAI's. The key comes from
    OPENAI_API_KEY; local servers need none.
    """

    def __init__(self, *, model: str, options: Mapping[str, Any]) -> None:
        checked: ServerOptions = checked_server_options('openai', model, options)
        self.name = f'openai/{model}'
        self._model = model
        base = checked_address('openai', checked.base_url)
        self.server = without_secrets(base)
        self._url = f'{base.rstrip("/")}/chat/completions'
        key = os.environ.get(KEY_VARIABLE, '').strip()
        self._server = Server(self.name, key, checked)
        self._headers = {'Authorization': f'Bearer {key}'} if key else {}
        self._unsupported: frozenset[str] = frozenset()
        if not key and self.server == OPENAI_SERVER:
            raise LanguageModelError(
                f'{self.name} needs a key in the environment variable {KEY_VARIABLE}, or a server '
                'of your own in the option base_url'
            )

    def generate(self, request: ModelRequest) -> ModelReply:
        """Ask once; see `LanguageModel.generate`.

        A parameter that the server calls unsupported is left out or renamed from then on, and
        the request repeated at once: nothing was generated, or paid for.
        """
        while True:
            body = json.dumps(self._payload(request)).encode()
            reply = self._server.post(self._url, body, self._headers)
            if reply.status == 200:
                break
            rejected = error_fields(reply.content).get('param', '')
            if (
                reply.status != 400
                or rejected not in _SUBSTITUTES
                or rejected in self._unsupported
            ):
                raise failure(self.name, reply)
            self._unsupported |= {rejected}
        with malformed_replies(self.name, reply.host):
            return self._reply(json_object(reply.content), with_tools=bool(request.tools))

    def _payload(self, request: ModelRequest) -> dict[str, Any]:
        content = [*_shown(request.images), {'type': 'text', 'text': request.prompt}]
        messages: list[dict[str, Any]] = [
            {'role': 'user', 'content': content if request.images else request.prompt}
        ]
        if request.system:
            messages.insert(0, {'role': 'system', 'content': request.system})
        for turn in request.turns:
            messages += _messages(turn)
        payload: dict[str, Any] = {
            'model': self._model,
            'messages': messages,
            'temperature': request.temperature,
            'max_tokens': request.max_output_tokens,
            'seed': request.seed,
        }
        if request.schema is not None:
            payload['response_format'] = {
                'type': 'json_schema',
                'json_schema': {'name': 'reply', 'strict': True, 'schema': dict(request.schema)},
            }
        if request.tools:
            payload['tools'] = [
                {'type': 'function', 'function': tool.key} for tool in request.tools
            ]
        return {
            substitute: value
            for key, value in payload.items()
            if (substitute := self._spelt(key)) is not None
        }

    def _spelt(self, key: str) -> str | None:
        return _SUBSTITUTES[key] if key in self._unsupported else key

    def _reply(self, data: dict[str, Any], *, with_tools: bool) -> ModelReply:
        choice = data['choices'][0]
        message, finish = choice['message'], choice.get('finish_reason')
        usage = _usage(data.get('usage'))
        if message.get('refusal') or finish == 'content_filter':
            raise RefusalError(
                f'{self.name} declined: {excerpt(str(message.get("refusal") or finish))}'
            )
        if finish == 'length':
            raise cut_off(self.name)
        text = _text(message.get('content'))
        if with_tools:
            calls = tuple(_call(*item) for item in enumerate(message.get('tool_calls') or ()))
            return ModelReply(ToolReply(text=text, calls=calls).model_dump_json(), usage)
        if not text:
            raise ValueError('it is empty')
        return ModelReply(text, usage)


def _shown(images: Sequence[ImagePart]) -> list[dict[str, Any]]:
    """Return images as parts of a content."""
    encoded = ((image.media_type, base64.b64encode(image.data).decode()) for image in images)
    return [
        {'type': 'image_url', 'image_url': {'url': f'data:{kind};base64,{data}'}}
        for kind, data in encoded
    ]


def _messages(turn: Turn) -> list[dict[str, Any]]:
    """Return the messages of a turn; results have no images in this API, the user shows them."""
    calls = [
        {
            'id': call.id,
            'type': 'function',
            'function': {'name': call.name, 'arguments': call.arguments},
        }
        for call in turn.reply.calls
    ]
    messages: list[dict[str, Any]] = [
        {'role': 'assistant', 'content': turn.reply.text or None, 'tool_calls': calls}
    ]
    messages += [
        {'role': 'tool', 'tool_call_id': call.id, 'content': result.text}
        for call, result in zip(turn.reply.calls, turn.results, strict=True)
    ]
    if turn.images:
        messages.append({'role': 'user', 'content': _shown(turn.images)})
    return messages


def _call(place: int, data: dict[str, Any]) -> ToolCall:
    function = data['function']
    arguments = function.get('arguments') or '{}'
    # Some servers send the object itself.
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True)
    name, number = str(function['name']), str(data.get('id') or f'call_{place}')
    return ToolCall(name=name, arguments=text, id=number)


def _text(content: Any) -> str:
    """Return a content, which some servers send in parts."""
    if isinstance(content, list):
        return ''.join(part.get('text') or '' for part in content)
    return content or ''


def _usage(usage: Any) -> Usage:
    """Return the tokens; a server may count them in part, or not at all."""
    counts = {} if usage is None else usage
    return Usage(*(token_count(counts.get(key)) for key in ('prompt_tokens', 'completion_tokens')))
