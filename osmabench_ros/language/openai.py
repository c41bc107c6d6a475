"""Models behind OpenAI's chat API: vLLM, Ollama, llama.cpp, OpenAI and others."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from osmabench_ros.base.configuration import extra
from osmabench_ros.errors import LanguageModelError, needing
from osmabench_ros.language.hosted import HostedModel
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
)
from osmabench_ros.language.options import OPENAI_SERVER

KEY_VARIABLE = 'OPENAI_API_KEY'

_SUBSTITUTES: Mapping[str, str | None] = {
    'max_tokens': 'max_completion_tokens',
    'temperature': None,
    'seed': None,
}
"""Parameters that some models take under another name, or not at all: reasoning models mostly."""


class OpenAIModel(HostedModel):
    """One model of a compatible server, with the options of `ServerOptions`.

    `base_url` comes from OPENAI_BASE_URL if not set, else is OpenAI's. The key comes from
    OPENAI_API_KEY; local servers need none.
    """

    def __init__(self, *, model: str, options: Mapping[str, Any]) -> None:
        key = os.environ.get(KEY_VARIABLE, '').strip()
        super().__init__('openai', model, options, key)
        if not key and self.server == OPENAI_SERVER:
            raise LanguageModelError(
                f'{self.name} needs a key in the environment variable {KEY_VARIABLE}, or a server '
                'of your own in the option base_url'
            )
        with needing('models behind the API of OpenAI need openai', extra('language')):
            import openai
        self._rejected: type[Exception] = openai.BadRequestError
        client = openai.AsyncOpenAI(
            # The library wants a key for servers that need none, too.
            api_key=key or 'none',
            base_url=self._base_url,
            max_retries=0,
            http_client=self._http,
        )
        self._create = client.chat.completions.create
        self._unsupported: frozenset[str] = frozenset()

    async def ask(self, request: ModelRequest) -> ModelReply:
        """Ask; a parameter that the server calls unsupported is left out or renamed from then on.

        The request is then repeated at once: nothing was generated, or paid for.
        """
        while True:
            try:
                completion = await self._create(**self._payload(request))
                return self._reply(completion, with_tools=bool(request.tools))
            except self._rejected as error:
                parameter = getattr(error, 'param', None) or ''
                if parameter not in _SUBSTITUTES or parameter in self._unsupported:
                    raise
                self._unsupported |= {parameter}

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
        for name in self._unsupported:
            value, substitute = payload.pop(name), _SUBSTITUTES[name]
            if substitute is not None:
                payload[substitute] = value
        if request.schema is not None:
            payload['response_format'] = {
                'type': 'json_schema',
                'json_schema': {'name': 'reply', 'strict': True, 'schema': dict(request.schema)},
            }
        if request.tools:
            payload['tools'] = [
                {'type': 'function', 'function': tool.key} for tool in request.tools
            ]
        return payload

    def _reply(self, completion: Any, *, with_tools: bool) -> ModelReply:
        choice = completion.choices[0]
        message, finish = choice.message, choice.finish_reason
        refusal = getattr(message, 'refusal', None)
        if refusal or finish == 'content_filter':
            raise RefusalError(f'{self.name} declined: {self.shown(refusal or finish)}')
        if finish == 'length':
            raise cut_off(self.name)
        usage = Usage()
        if (counts := completion.usage) is not None:
            usage = Usage(counts.prompt_tokens or 0, counts.completion_tokens or 0)
        text = _text(message.content)
        if with_tools:
            calls = tuple(_call(*item) for item in enumerate(message.tool_calls or ()))
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


def _call(place: int, call: Any) -> ToolCall:
    arguments = call.function.arguments or '{}'
    # Some servers send the object itself.
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True)
    return ToolCall(name=call.function.name, arguments=text, id=call.id or f'call_{place}')


def _text(content: Any) -> str:
    """Return a content, which some servers send in parts."""
    if isinstance(content, list):
        return ''.join(part.get('text') or '' for part in content)
    return content or ''
