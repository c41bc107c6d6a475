"""Gemini models through google-genai."""

import base64
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from osmabench_ros.errors import LanguageModelError
from osmabench_ros.language import model as interface
from osmabench_ros.language.hosted import HostedModel

# Finish reasons of replies that were withheld, and would be again.
_DECLINED = frozenset(
    ('SAFETY', 'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'LANGUAGE', 'MODEL_ARMOR',
     'IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION')
)  # fmt: skip


class GeminiModel(HostedModel):
    """One Gemini model, for example ``'gemini-2.5-flash'``, with the options of `ServerOptions`.

    The key comes from GEMINI_API_KEY or GOOGLE_API_KEY and travels in a header, not the address.
    """

    kind = 'gemini'
    key_variables = ('GEMINI_API_KEY', 'GOOGLE_API_KEY')

    def connect(self, address: str, http: Any) -> None:
        """Make the client of google-genai."""
        if not self._key:
            raise LanguageModelError(f'{self.name} needs a key in {self.key_variables[0]}')
        from google import genai

        self._client = genai.Client(
            api_key=self._key,
            vertexai=False,
            http_options={'base_url': address, 'httpx_async_client': http},
        )

    async def ask(
        self, request: interface.ModelRequest
    ) -> tuple[interface.ToolReply, interface.Usage]:
        """Ask once."""
        prompt = [*_encode_images(request.images), {'text': request.prompt}]
        contents = [{'role': 'user', 'parts': prompt}]
        for turn in request.turns:
            contents += _write_turn(turn)
        response = await self._client.aio.models.generate_content(
            model=self._model, contents=contents, config=_make_config(request)
        )
        feedback, counts = response.prompt_feedback, response.usage_metadata
        if feedback is not None and feedback.block_reason:
            self.check_end(_read_reason(feedback.block_reason), is_cut_off=False)
        candidate = response.candidates[0]
        finish = _read_reason(candidate.finish_reason)
        self.check_end(finish if finish in _DECLINED else '', is_cut_off=finish == 'MAX_TOKENS')
        usage = interface.Usage()
        if counts is not None:
            output = (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0)
            usage = interface.Usage(counts.prompt_token_count or 0, output)
        parts = (candidate.content.parts if candidate.content is not None else None) or []
        text = ''.join(part.text for part in parts if part.text and not part.thought)
        calls = tuple(_read_call(part) for part in parts if part.function_call is not None)
        return interface.ToolReply(text=text, calls=calls), usage


def _write_turn(turn: interface.Turn) -> list[dict[str, Any]]:
    """Return the messages of a turn: the calls of the model, and their results."""
    text = [{'text': turn.reply.text}] if turn.reply.text else []
    results = [
        {'function_response': {**_identify(call), 'response': {'result': result.text}}}
        for call, result in zip(turn.reply.calls, turn.results, strict=True)
    ]
    return [
        {'role': 'model', 'parts': [*text, *map(_write_call, turn.reply.calls)]},
        {'role': 'user', 'parts': [*results, *_encode_images(turn.images)]},
    ]


def _encode_images(images: Sequence[interface.ImagePart]) -> list[dict[str, Any]]:
    return [
        {'inline_data': {'data': image.data, 'mime_type': image.media_type}} for image in images
    ]


def _write_call(call: interface.ToolCall) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    with suppress(ValueError):
        arguments = interface.json_object(call.arguments.encode())
    part: dict[str, Any] = {'function_call': {**_identify(call), 'args': arguments}}
    if call.signature:
        part['thought_signature'] = base64.b64decode(call.signature)
    return part


def _identify(call: interface.ToolCall) -> dict[str, str | None]:
    return {'name': call.name, 'id': call.id or None}


def _make_config(request: interface.ModelRequest) -> dict[str, Any]:
    tools = [asdict(tool) for tool in request.tools]
    return {  # None is as if a parameter were not there
        'temperature': request.temperature,
        'max_output_tokens': request.max_output_tokens,
        'seed': request.seed,
        'automatic_function_calling': {'disable': True},
        'system_instruction': request.system or None,
        'response_mime_type': 'application/json' if request.schema else None,
        'response_json_schema': request.schema,
        'tools': [{'function_declarations': tools}] if tools else None,
    }


def _read_call(part: Any) -> interface.ToolCall:
    call = part.function_call
    return interface.ToolCall(
        name=call.name or '',
        arguments=json.dumps(call.args or {}, sort_keys=True),
        id=call.id or '',
        signature=base64.b64encode(part.thought_signature or b'').decode(),
    )


def _read_reason(reason: Any) -> str:
    return str(getattr(reason, 'value', reason) or 'no reason')
