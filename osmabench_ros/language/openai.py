"""Models behind OpenAI's chat API: vLLM, Ollama, llama.cpp, OpenAI and others."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from typing import Any

from osmabench_ros.errors import LanguageModelError, MissingDependencyError
from osmabench_ros.language.address import is_usual, server_address, without_secrets
from osmabench_ros.language.http_status import error_fields, failure, without_secret
from osmabench_ros.language.model import (
    ModelReply,
    ModelRequest,
    RefusalError,
    TransientModelError,
    Usage,
)
from osmabench_ros.language.options import ServerOptions, checked_server_options

KEY_VARIABLE = 'OPENAI_API_KEY'

_SUBSTITUTES: Mapping[str, str | None] = {
    'max_tokens': 'max_completion_tokens',
    'temperature': None,
    'seed': None,
}
"""Parameters that some models take under another name, or not at all: reasoning models mostly."""


class OpenAIModel:
    """One model of a compatible server.

    Parameters
    ----------
    model : str
        Name the server knows it by.
    options : mapping
        `base_url` (else from OPENAI_BASE_URL, else OpenAI's), `timeout_s`. The key comes from
        OPENAI_API_KEY; local servers need none.
    """

    def __init__(self, *, model: str, options: Mapping[str, Any]) -> None:
        checked: ServerOptions = checked_server_options('openai', model, options)
        self.name = f'openai/{model}'
        self._model = model
        self._timeout_s = checked.timeout_s
        base = server_address('openai', checked.base_url)
        self.server = without_secrets(base)
        self._url = f'{base.rstrip("/")}/chat/completions'
        self._key = os.environ.get(KEY_VARIABLE, '')
        self._unsupported: frozenset[str] = frozenset()
        if not self._key and is_usual('openai', base):
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
            status, body, retry_after = self._post(self._payload(request))
            if status == 200:
                break
            rejected = error_fields(body).get('param', '')
            if status != 400 or rejected not in _SUBSTITUTES or rejected in self._unsupported:
                raise failure(self.name, status, body, retry_after, self._key)
            self._unsupported |= {rejected}
        try:
            return self._reply(json.loads(body))
        except ValueError as error:
            raise TransientModelError(f'{self.name} sent a reply that is not JSON') from error

    def _post(self, payload: Mapping[str, Any]) -> tuple[int, str, str | None]:
        """Return status, body and the header Retry-After."""
        try:
            import requests
        except ImportError as error:
            raise MissingDependencyError(
                'language models need requests; install osmabench_ros[language]'
            ) from error
        try:
            response = requests.post(
                self._url,
                json=payload,
                auth=self._authorised,
                timeout=self._timeout_s,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            message = without_secret(str(error), self._key)
            raise TransientModelError(f'{self.name} cannot be reached: {message}') from None
        return response.status_code, response.text, response.headers.get('Retry-After')

    def _authorised(self, prepared: Any) -> Any:
        """Set the key; a header alone would give way to a password in ~/.netrc."""
        if self._key:
            prepared.headers['Authorization'] = f'Bearer {self._key}'
        return prepared

    def _payload(self, request: ModelRequest) -> dict[str, Any]:
        content: list[dict[str, Any]] = [
            {
                'type': 'image_url',
                'image_url': {
                    'url': f'data:{image.media_type};base64,'
                    f'{base64.b64encode(image.data).decode()}'
                },
            }
            for image in request.images
        ]
        content.append({'type': 'text', 'text': request.prompt})
        messages: list[dict[str, Any]] = [
            {'role': 'user', 'content': content if request.images else request.prompt}
        ]
        if request.system:
            messages.insert(0, {'role': 'system', 'content': request.system})
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
        return {
            substitute: value
            for key, value in payload.items()
            if (substitute := self._spelt(key)) is not None
        }

    def _spelt(self, key: str) -> str | None:
        return _SUBSTITUTES[key] if key in self._unsupported else key

    def _reply(self, data: Any) -> ModelReply:
        try:
            choice = data['choices'][0]
            message, finish = dict(choice['message']), choice.get('finish_reason')
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise TransientModelError(f'{self.name} sent a reply without a choice') from error
        if message.get('refusal') or finish == 'content_filter':
            raise RefusalError(f'{self.name} declined: {message.get("refusal") or finish}')
        if finish == 'length':
            raise TransientModelError(f'{self.name} was cut off at the longest reply allowed')
        text = _text(message.get('content'))
        if not text:
            raise TransientModelError(f'{self.name} sent an empty reply')
        return ModelReply(text, _usage(data.get('usage')))


def _text(content: Any) -> str:
    """Return a content, which some servers send in parts."""
    if isinstance(content, list):
        return ''.join(str(part.get('text') or '') for part in content if isinstance(part, dict))
    return str(content or '')


def _usage(usage: Any) -> Usage:
    """Return the tokens; a server may count them in part, or not at all."""
    counts = usage if isinstance(usage, dict) else {}
    return Usage(*(int(counts.get(key) or 0) for key in ('prompt_tokens', 'completion_tokens')))
