"""Replies of language models on disk: what was answered is never asked again."""

from __future__ import annotations

import json
from pathlib import Path

from osmabench_ros.base.files import written_file
from osmabench_ros.errors import LanguageModelError, RunError
from osmabench_ros.language.model import LanguageModel, ModelReply, ModelRequest, Usage


class ResponseCache:
    """Keeps one small file for each reply.

    Parameters
    ----------
    directory : Path
        Made at the first write. A file in it holds the reply and its tokens; no prompt, no key.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def get(self, model: LanguageModel, request: ModelRequest) -> ModelReply | None:
        """Return the reply kept for a request, None if there is none or it is unreadable."""
        try:
            data = json.loads(self._path(model, request).read_text(encoding='utf-8'))
            usage = Usage(int(data['prompt_tokens']), int(data['output_tokens']))
            return ModelReply(str(data['text']), usage, cached=True)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, model: LanguageModel, request: ModelRequest, reply: ModelReply) -> None:
        """Keep a reply; the file appears whole or not at all.

        Raises
        ------
        LanguageModelError
            If the folder cannot be written to.
        """
        path = self._path(model, request)
        data = {
            'model': model.name,
            'output_tokens': reply.usage.output_tokens,
            'prompt_tokens': reply.usage.prompt_tokens,
            'text': reply.text,
        }
        try:
            with written_file(path, overwrite=True) as draft:
                draft.write_text(json.dumps(data, ensure_ascii=False, sort_keys=True), 'utf-8')
        except RunError as error:
            raise LanguageModelError(
                f'the response cache {self._directory} cannot be written: {error}'
            ) from error

    def _path(self, model: LanguageModel, request: ModelRequest) -> Path:
        key = request.cache_key(model.name, model.server)
        return self._directory / key[:2] / f'{key}.json'
