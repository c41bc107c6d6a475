"""Gemini models through google-genai."""

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
    json_object,
)

KEY_VARIABLES = ('GEMINI_API_KEY', 'GOOGLE_API_KEY')
_DECLINED = frozenset(
    ('SAFETY', 'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'LANGUAGE', 'MODEL_ARMOR',
     'IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION')
)  # fmt: skip
"""Finish reasons of replies that were withheld, and would be again."""


class GeminiModel(HostedModel):
    """One Gemini model, for example ``'gemini-2.5-flash'``, with the options of `ServerOptions`.

    The key comes from GEMINI_API_KEY or GOOGLE_API_KEY and travels in a header, not the address.
    """

    def __init__(self, *, model: str, options: Mapping[str, Any]) -> None:
        key = next((os.environ[v].strip() for v in KEY_VARIABLES if os.environ.get(v)), '')
        super().__init__('gemini', model, options, key)
        if not key:
            raise LanguageModelError(
                f'{self.name} needs a key in the environment variable {KEY_VARIABLES[0]}'
            )
        with needing('Gemini needs google-genai', extra('language')):
            from google import genai
        self._client = genai.Client(
            api_key=key,
            vertexai=False,
            http_options={'base_url': self._base_url, 'httpx_async_client': self._http},
        )

    async def ask(self, request: ModelRequest) -> ModelReply:
        """Ask once."""
        response = await self._client.aio.models.generate_content(
            model=self._model, contents=_contents(request), config=_config(request)
        )
        return self._reply(response, with_tools=bool(request.tools))

    def _reply(self, response: Any, *, with_tools: bool) -> ModelReply:
        feedback = response.prompt_feedback
        if feedback is not None and feedback.block_reason:
            raise RefusalError(f'{self.name} declined: {_name(feedback.block_reason)}')
        candidate = response.candidates[0]
        finish = _name(candidate.finish_reason)
        if finish in _DECLINED:
            raise RefusalError(f'{self.name} declined: {finish}')
        if finish == 'MAX_TOKENS':
            raise cut_off(self.name)
        parts = (candidate.content.parts if candidate.content is not None else None) or []
        text = ''.join(part.text for part in parts if part.text and not part.thought)
        if with_tools:
            calls = tuple(_call(part) for part in parts if part.function_call is not None)
            text = ToolReply(text=text, calls=calls).model_dump_json()
        elif not text:
            raise ValueError(f'it is empty ({finish})')
        return ModelReply(text, _usage(response.usage_metadata))


def _contents(request: ModelRequest) -> list[dict[str, Any]]:
    contents = [{'role': 'user', 'parts': [*_shown(request.images), {'text': request.prompt}]}]
    for turn in request.turns:
        contents += _messages(turn)
    return contents


def _messages(turn: Turn) -> list[dict[str, Any]]:
    """Return the messages of a turn: the calls of the model, and their results."""
    text = [{'text': turn.reply.text}] if turn.reply.text else []
    results = [
        {'function_response': {**_name_of(call), 'response': {'result': result.text}}}
        for call, result in zip(turn.reply.calls, turn.results, strict=True)
    ]
    return [
        {'role': 'model', 'parts': [*text, *map(_call_part, turn.reply.calls)]},
        {'role': 'user', 'parts': [*results, *_shown(turn.images)]},
    ]


def _shown(images: Sequence[ImagePart]) -> list[dict[str, Any]]:
    return [
        {'inline_data': {'data': image.data, 'mime_type': image.media_type}} for image in images
    ]


def _call_part(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json_object(call.arguments.encode())
    except ValueError:
        arguments = {}
    part: dict[str, Any] = {'function_call': {**_name_of(call), 'args': arguments}}
    if call.signature:
        part['thought_signature'] = base64.b64decode(call.signature)
    return part


def _name_of(call: ToolCall) -> dict[str, str | None]:
    return {'name': call.name, 'id': call.id or None}


def _config(request: ModelRequest) -> dict[str, Any]:
    config: dict[str, Any] = {
        'temperature': request.temperature,
        'max_output_tokens': request.max_output_tokens,
        'seed': request.seed,
        'automatic_function_calling': {'disable': True},
    }
    if request.system:
        config['system_instruction'] = request.system
    if request.schema is not None:
        config['response_mime_type'] = 'application/json'
        config['response_json_schema'] = dict(request.schema)
    if request.tools:
        config['tools'] = [{'function_declarations': [tool.key for tool in request.tools]}]
    return config


def _call(part: Any) -> ToolCall:
    call = part.function_call
    return ToolCall(
        name=call.name or '',
        arguments=json.dumps(call.args or {}, sort_keys=True),
        id=call.id or '',
        signature=base64.b64encode(part.thought_signature or b'').decode(),
    )


def _name(reason: Any) -> str:
    return str(getattr(reason, 'value', reason) or 'no reason')


def _usage(counts: Any) -> Usage:
    if counts is None:
        return Usage()
    output = (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0)
    return Usage(counts.prompt_token_count or 0, output)
