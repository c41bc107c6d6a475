"""Gemini models through google-genai."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from osmabench_ros.errors import LanguageModelError, MissingDependencyError
from osmabench_ros.language.address import server_address, without_secrets
from osmabench_ros.language.http_status import failure, without_secret
from osmabench_ros.language.model import (
    ModelReply,
    ModelRequest,
    RefusalError,
    TransientModelError,
    Usage,
)
from osmabench_ros.language.options import checked_server_options

KEY_VARIABLES = ('GEMINI_API_KEY', 'GOOGLE_API_KEY')
_DECLINED = frozenset(
    ('SAFETY', 'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'LANGUAGE', 'MODEL_ARMOR',
     'IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION')
)  # fmt: skip
"""Finish reasons of replies that were withheld, and would be again."""


class GeminiModel:
    """One Gemini model.

    Parameters
    ----------
    model : str
        For example ``'gemini-2.5-flash'``.
    options : mapping
        `base_url`, `timeout_s`. The key comes from GEMINI_API_KEY or GOOGLE_API_KEY and travels
        in a header, never in the address.
    """

    def __init__(self, *, model: str, options: Mapping[str, Any]) -> None:
        checked = checked_server_options('gemini', model, options)
        self.name = f'gemini/{model}'
        base = server_address('gemini', checked.base_url)
        self.server = without_secrets(base)
        self._model = model
        self._key = next((os.environ[v] for v in KEY_VARIABLES if os.environ.get(v)), '')
        if not self._key:
            raise LanguageModelError(
                f'{self.name} needs a key in the environment variable {KEY_VARIABLES[0]}'
            )
        try:
            from google import genai
            from google.genai import types
        except ImportError as error:
            raise MissingDependencyError(
                'Gemini needs google-genai; install osmabench_ros[language]'
            ) from error
        self._types = types
        self._client = genai.Client(
            api_key=self._key,
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=base,
                timeout=int(checked.timeout_s * 1000),
                # One attempt: waiting and trying again is the caller's, for every server alike.
                retry_options=types.HttpRetryOptions(attempts=1),
            ),
        )

    def generate(self, request: ModelRequest) -> ModelReply:
        """Ask once; see `LanguageModel.generate`."""
        from google.genai import errors

        try:
            response = self._client.models.generate_content(
                model=self._model, contents=self._contents(request), config=self._config(request)
            )
        except errors.APIError as error:
            raise failure(
                self.name, int(error.code or 0), _body(error), _retry_after(error), self._key
            ) from None
        except Exception as error:
            # The HTTP library underneath changes between versions of google-genai.
            message = without_secret(f'{type(error).__name__}: {error}', self._key)
            raise TransientModelError(f'{self.name} gave no usable reply: {message}') from None
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
        candidates = response.candidates or []
        if not candidates:
            raise TransientModelError(f'{self.name} sent a reply without a candidate')
        finish = _name(candidates[0].finish_reason)
        if finish in _DECLINED:
            raise RefusalError(f'{self.name} declined: {finish}')
        content = candidates[0].content
        parts = (content.parts if content is not None else None) or []
        text = ''.join(part.text for part in parts if part.text and not part.thought)
        if not text:
            raise TransientModelError(f'{self.name} sent an empty reply ({finish})')
        if finish == 'MAX_TOKENS':
            raise TransientModelError(f'{self.name} was cut off at the longest reply allowed')
        return ModelReply(text, _usage(response.usage_metadata))


def _name(reason: Any) -> str:
    return str(getattr(reason, 'value', reason) or 'no reason')


def _usage(metadata: Any) -> Usage:
    if metadata is None:
        return Usage()
    thoughts = getattr(metadata, 'thoughts_token_count', None) or 0
    return Usage(
        metadata.prompt_token_count or 0, (metadata.candidates_token_count or 0) + thoughts
    )


def _body(error: Any) -> str:
    """Return the reply of the server behind an error, as far as the library kept it."""
    try:
        return json.dumps(error.details)
    except (AttributeError, TypeError, ValueError):
        return str(error)


def _retry_after(error: Any) -> str | None:
    headers = getattr(getattr(error, 'response', None), 'headers', None) or {}
    value = headers.get('Retry-After') or headers.get('retry-after')
    return None if value is None else str(value)
