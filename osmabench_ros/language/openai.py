"""Models behind OpenAI's chat API: vLLM, Ollama, llama.cpp, OpenAI and others."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import Any

from osmabench_ros.errors import LanguageModelError, MissingDependencyError
from osmabench_ros.language.http_status import failure, without_secret
from osmabench_ros.language.model import (
    ModelReply,
    ModelRequest,
    RefusalError,
    TransientModelError,
    Usage,
)
from osmabench_ros.language.options import ServerOptions, checked_server_options

DEFAULT_URL = 'https://api.openai.com/v1'
KEY_VARIABLE = 'OPENAI_API_KEY'
URL_VARIABLE = 'OPENAI_BASE_URL'


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
        base = checked.base_url or os.environ.get(URL_VARIABLE) or DEFAULT_URL
        self._url = f'{base.rstrip("/")}/chat/completions'
        self._key = os.environ.get(KEY_VARIABLE, '')
        if not self._key and base == DEFAULT_URL:
            raise LanguageModelError(
                f'{self.name} needs a key in the environment variable {KEY_VARIABLE}, or a server '
                'of your own in the option base_url'
            )

    def generate(self, request: ModelRequest) -> ModelReply:
        """Ask once; see `LanguageModel.generate`."""
        try:
            import requests
        except ImportError as error:
            raise MissingDependencyError(
                'language models need requests; install osmabench_ros[language]'
            ) from error
        headers = {'Authorization': f'Bearer {self._key}'} if self._key else {}
        try:
            response = requests.post(
                self._url,
                json=self._payload(request),
                headers=headers,
                timeout=self._timeout_s,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            message = without_secret(str(error), self._key)
            raise TransientModelError(f'{self.name} cannot be reached: {message}') from None
        if response.status_code != 200:
            retry_after = response.headers.get('Retry-After')
            raise failure(self.name, response.status_code, response.text, retry_after, self._key)
        try:
            return self._reply(response.json())
        except ValueError as error:
            raise TransientModelError(f'{self.name} sent a reply that is not JSON') from error

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
                'json_schema': {'name': 'reply', 'schema': dict(request.schema)},
            }
        return payload

    def _reply(self, data: Any) -> ModelReply:
        try:
            choice = data['choices'][0]
            message, finish = choice['message'], choice.get('finish_reason')
        except (KeyError, IndexError, TypeError) as error:
            raise TransientModelError(f'{self.name} sent a reply without a choice') from error
        if message.get('refusal') or finish == 'content_filter':
            raise RefusalError(f'{self.name} declined: {message.get("refusal") or finish}')
        text = message.get('content')
        if not text:
            raise TransientModelError(f'{self.name} sent an empty reply')
        if finish == 'length':
            raise TransientModelError(f'{self.name} was cut off at the longest reply allowed')
        usage = data.get('usage') or {}
        return ModelReply(
            str(text),
            Usage(int(usage.get('prompt_tokens', 0)), int(usage.get('completion_tokens', 0))),
        )
