"""A model without server: replies come from the cache only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osmabench_ros.base.strict import validated
from osmabench_ros.errors import LanguageModelError
from osmabench_ros.language.model import ModelReply, ModelRequest
from osmabench_ros.language.settings import ServerOptions, server_address, without_secrets


class OfflineModel:
    """Stands for another model, once asked at `base_url`, when there is no network."""

    def __init__(self, *, model: str = '', options: Mapping[str, Any] | None = None) -> None:
        base_url = validated(ServerOptions, options or {}, 'language model "offline"').base_url
        self.name = model or 'offline'
        self.server = without_secrets(server_address(model.partition('/')[0], base_url))

    def generate(self, request: ModelRequest) -> ModelReply:
        """Raise an error, as the reply is not in the cache."""
        place = f' at {self.server}' if self.server else ''
        start = ' '.join(request.prompt.split())[:60]
        raise LanguageModelError(
            f'no reply of {self.name}{place} is in the cache for the prompt that starts '
            f'"{start}"; run once with that model, set base_url to the address it was asked at, '
            'or use the rule answerer and the deterministic judge',
            reason=f'no reply of {self.name}{place} is in the cache',
        )
