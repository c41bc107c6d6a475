"""Gemini models through google-genai."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from osmabench_ros.base.configuration import extra
from osmabench_ros.errors import LanguageModelError, needing
from osmabench_ros.language.model import (
    ImagePart,
    ModelReply,
    ModelRequest,
    RefusalError,
    ToolCall,
    ToolReply,
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
        with needing('Gemini needs google-genai', extra('language')):
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
            return self._reply(response, with_tools=bool(request.tools))

    def _contents(self, request: ModelRequest) -> list[Any]:
        parts = [*self._shown(request.images), self._types.Part.from_text(text=request.prompt)]
        contents = [self._types.Content(role='user', parts=parts)]
        for turn in request.turns:
            said = [self._types.Part.from_text(text=turn.reply.text)] if turn.reply.text else []
            calls = [self._call_part(call) for call in turn.reply.calls]
            contents.append(self._types.Content(role='model', parts=[*said, *calls]))
            results = [
                self._types.Part(
                    function_response=self._types.FunctionResponse(
                        id=call.id or None, name=call.name, response={'result': result.text}
                    )
                )
                for call, result in zip(turn.reply.calls, turn.results, strict=True)
            ]
            shown = self._shown(turn.images)
            contents.append(self._types.Content(role='user', parts=[*results, *shown]))
        return contents

    def _shown(self, images: Sequence[ImagePart]) -> list[Any]:
        return [
            self._types.Part.from_bytes(data=image.data, mime_type=image.media_type)
            for image in images
        ]

    def _call_part(self, call: ToolCall) -> Any:
        try:
            arguments = json_object(call.arguments.encode())
        except ValueError:
            arguments = {}
        function = self._types.FunctionCall(id=call.id or None, name=call.name, args=arguments)
        signature = base64.b64decode(call.signature) or None
        return self._types.Part(function_call=function, thought_signature=signature)

    def _config(self, request: ModelRequest) -> Any:
        structured = request.schema is not None
        return self._types.GenerateContentConfig(
            system_instruction=request.system or None,
            temperature=request.temperature,
            max_output_tokens=request.max_output_tokens,
            seed=request.seed,
            response_mime_type='application/json' if structured else None,
            response_json_schema=dict(request.schema) if request.schema is not None else None,
            tools=self._tools(request) or None,
            automatic_function_calling=self._types.AutomaticFunctionCallingConfig(disable=True),
        )

    def _tools(self, request: ModelRequest) -> list[Any]:
        declared = [self._types.FunctionDeclaration(**tool.key) for tool in request.tools]
        return [self._types.Tool(function_declarations=declared)] if declared else []

    def _reply(self, response: Any, *, with_tools: bool) -> ModelReply:
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
        if with_tools:
            calls = tuple(_call(part) for part in parts if part.function_call is not None)
            text = ToolReply(text=text, calls=calls).model_dump_json()
        elif not text:
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


def _usage(metadata: Any) -> Usage:
    if metadata is None:
        return Usage()
    thoughts = getattr(metadata, 'thoughts_token_count', None) or 0
    return Usage(
        metadata.prompt_token_count or 0, (metadata.candidates_token_count or 0) + thoughts
    )
