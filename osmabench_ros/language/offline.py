"""The model that is not there: serves what the cache holds, asks no server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osmabench_ros.errors import LanguageModelError
from osmabench_ros.language.address import server_address, without_secrets
from osmabench_ros.language.model import ModelReply, ModelRequest


class OfflineModel:
    """Stands for another model, e.g. ``'gemini/gemini-2.5-flash'``, when there is no network.

    `base_url`, the only option, is the address that model was asked at, if not the usual one.
    """

    def __init__(self, *, model: str = '', options: Mapping[str, Any] | None = None) -> None:
        given = dict(options or {})
        base_url = str(given.pop('base_url', ''))
        if given:
            raise LanguageModelError(
                f'the offline model has the option base_url alone, not {sorted(given)}'
            )
        self.name = model or 'offline'
        self.server = without_secrets(server_address(model.partition('/')[0], base_url))

    def generate(self, request: ModelRequest) -> ModelReply:
        """Raise: what is not in the cache cannot be had without a network."""
        place = f' at {self.server}' if self.server else ''
        start = ' '.join(request.prompt.split())[:60]
        raise LanguageModelError(
            f'no reply of {self.name}{place} is in the cache for the prompt that starts '
            f'"{start}"; run once with that model, set base_url to the address it was asked at, '
            'or use the rule answerer and the deterministic judge',
            reason=f'no reply of {self.name}{place} is in the cache',
        )
