"""Cache of language-model replies on disk; no request is sent twice."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from osmabench_ros.base.files import atomic_write
from osmabench_ros.errors import LanguageModelError, RunError
from osmabench_ros.language.model import (
    LanguageModel,
    ModelReply,
    ModelRequest,
    Usage,
    json_object,
)


class ResponseCache:
    """Keeps one small file for each reply: the reply and its tokens; no prompt, no key."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def get(self, model: LanguageModel, request: ModelRequest) -> ModelReply | None:
        """Return the reply kept for a request, None if there is none or it is damaged."""
        try:
            data = json_object(self._path(model, request).read_bytes())
            usage = Usage(data['prompt_tokens'], data['output_tokens'])
            return ModelReply(data['text'], usage, cached=True, refusal=data.get('refusal', ''))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, model: LanguageModel, request: ModelRequest, reply: ModelReply) -> None:
        """Keep a reply; the file appears whole or not at all."""
        data = {
            'model': model.name,
            **asdict(reply.usage),
            'text': reply.text,
            **({'refusal': reply.refusal} if reply.refusal else {}),
        }
        try:
            with atomic_write(self._path(model, request), overwrite=True) as draft:
                draft.write_text(json.dumps(data, ensure_ascii=False, sort_keys=True), 'utf-8')
        except RunError as error:
            raise LanguageModelError(
                f'the response cache {self._directory} cannot be written: {error}'
            ) from error

    def _path(self, model: LanguageModel, request: ModelRequest) -> Path:
        key = request.cache_key(model.name, model.server)
        return self._directory / key[:2] / f'{key}.json'
