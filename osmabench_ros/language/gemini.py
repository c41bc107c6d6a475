"""Gemini models through google-genai."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from osmabench_ros.errors import LanguageModelError, needing
from osmabench_ros.language.model import (
    ModelReply,
    ModelRequest,
    RefusalError,
    Usage,
    cut_off,
    json_object,
    malformed_replies,
    token_count,
)
from osmabench_ros.language.options import (
    checked_address,
    checked_server_options,
    host_of,
    without_secrets,
)
from osmabench_ros.language.server import Server, failure

KEY_VARIABLES = ('GEMINI_API_KEY', 'GOOGLE_API_KEY')
_DECLINED = frozenset(
    ('SAFETY', 'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'LANGUAGE', 'MODEL_ARMOR',
     'IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION')
)  # fmt: skip
"""Finish reasons of replies that were withheld, and would be again."""


class GeminiModel:
    """One Gemini model, for example ``'gemini-2.5-flash'``, with the options of `ServerOptions`.

    The key comes from GEMINI_API_KEY or GOOGLE_API_KEY and travels in a header, not the address.
    """

    def __init__(self, *, model: str, options: Mapping[str, Any]) -> None:
        checked = checked_server_options('gemini', model, options)
        self.name = f'gemini/{model}'
        base = checked_address('gemini', checked.base_url)
        self.server = without_secrets(base)
        self._model = model
        key = next((os.environ[v].strip() for v in KEY_VARIABLES if os.environ.get(v)), '')
        if not key:
            raise LanguageModelError(
                f'{self.name} needs a key in the environment variable {KEY_VARIABLES[0]}'
            )
        with needing('Gemini needs google-genai', 'install osmabench_ros[language]'):
            from google import genai
            from google.genai import types
        self._types = types
        self._client = genai.Client(
            api_key=key,
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=base,
                client_args={'transport': _Transport(self.name, Server(self.name, key, checked))},
                # One attempt: waiting and trying again is the caller's, for every server alike.
                retry_options=types.HttpRetryOptions(attempts=1),
            ),
        )

    def generate(self, request: ModelRequest) -> ModelReply:
        """Ask once; see `LanguageModel.generate`."""
        with malformed_replies(self.name, host_of(self.server)):
            response = self._client.models.generate_content(
                model=self._model, contents=self._contents(request), config=self._config(request)
            )
            return self._reply(response)

    def _contents(self, request: ModelRequest) -> list[Any]:
        parts = [
            self._types.Part.from_bytes(data=image.data, mime_type=image.media_type)
            for image in request.images
        ]
        parts.append(self._types.Part.from_text(text=request.prompt))
        return [self._types.Content(role='user', parts=parts)]

    def _config(self, request: ModelRequest) -> Any:
        structured = request.schema is not None
        return self._types.GenerateContentConfig(
            system_instruction=request.system or None,
            temperature=request.temperature,
            max_output_tokens=request.max_output_tokens,
            seed=request.seed,
            response_mime_type='application/json' if structured else None,
            response_json_schema=dict(request.schema) if request.schema is not None else None,
            automatic_function_calling=self._types.AutomaticFunctionCallingConfig(disable=True),
        )

    def _reply(self, response: Any) -> ModelReply:
        feedback = getattr(response, 'prompt_feedback', None)
        if feedback is not None and feedback.block_reason:
            raise RefusalError(f'{self.name} declined: {_name(feedback.block_reason)}')
        finish = _name(response.candidates[0].finish_reason)
        if finish in _DECLINED:
            raise RefusalError(f'{self.name} declined: {finish}')
        content = response.candidates[0].content
        parts = (content.parts if content is not None else None) or []
        text = ''.join(part.text for part in parts if part.text and not part.thought)
        if finish == 'MAX_TOKENS':
            raise cut_off(self.name)
        if not text:
            raise ValueError(f'it is empty ({finish})')
        return ModelReply(text, _usage(response.usage_metadata))


class _Transport:
    """Carries the requests of google-genai, whose HTTP library has no bounds of its own."""

    def __init__(self, name: str, server: Server) -> None:
        self._name = name
        self._server = server

    def handle_request(self, request: Any) -> Any:
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in _OWN_HEADERS
        }
        reply = self._server.post(str(request.url), request.read(), headers)
        if reply.status != 200:
            raise failure(self._name, reply)
        data = json_object(reply.content)
        for key in _COUNTS:
            token_count((data.get('usageMetadata') or {}).get(key))
        library = sys.modules[type(request).__module__.partition('.')[0]]
        return library.Response(200, content=json.dumps(data).encode(), request=request)

    def close(self) -> None:
        """Do nothing: connections end with their request."""

    def __enter__(self) -> _Transport:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


_OWN_HEADERS = frozenset(
    (
        'accept-encoding',
        'connection',
        'content-length',
        'content-type',
        'host',
        'transfer-encoding',
    )
)
_COUNTS = ('promptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount')


def _name(reason: Any) -> str:
    return str(getattr(reason, 'value', reason) or 'no reason')


def _usage(metadata: Any) -> Usage:
    if metadata is None:
        return Usage()
    thoughts = getattr(metadata, 'thoughts_token_count', None) or 0
    return Usage(
        metadata.prompt_token_count or 0, (metadata.candidates_token_count or 0) + thoughts
    )
