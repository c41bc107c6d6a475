"""The model that is not there: serves what the cache holds, asks no server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osmabench_ros.errors import LanguageModelError
from osmabench_ros.language.model import ModelReply, ModelRequest


class OfflineModel:
    """Stands for another model when there is no network.

    Parameters
    ----------
    model : str
        Name of the model whose cached replies are wanted, e.g. ``'gemini/gemini-2.5-flash'``.
    options : mapping
        Must be empty.
    """

    def __init__(self, *, model: str = '', options: Mapping[str, Any] | None = None) -> None:
        if options:
            raise LanguageModelError(f'the offline model has no options, not {sorted(options)}')
        self.name = model or 'offline'

    def generate(self, request: ModelRequest) -> ModelReply:
        """Raise: what is not in the cache cannot be had without a network."""
        start = ' '.join(request.prompt.split())[:60]
        raise LanguageModelError(
            f'no reply of {self.name} is in the cache for the prompt that starts "{start}"; '
            'run once with that model, or use the rule answerer and the deterministic judge'
        )
