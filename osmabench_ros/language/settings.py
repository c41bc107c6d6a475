"""A client from the few things a user sets."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from osmabench_ros.language.budget import Ledger, Prices
from osmabench_ros.language.cache import ResponseCache
from osmabench_ros.language.client import ModelClient, Patience
from osmabench_ros.language.options import ServerOptions
from osmabench_ros.language.registry import make_language_model

DEFAULTS = ServerOptions()


def default_cache_directory() -> Path:
    """Return the folder for replies: $XDG_CACHE_HOME/osmabench/responses or below ~/.cache."""
    base = os.environ.get('XDG_CACHE_HOME')
    return (Path(base) if base else Path.home() / '.cache') / 'osmabench' / 'responses'


@dataclass(frozen=True)
class ModelSettings:
    """Which model to ask, e.g. ``'gemini:gemini-2.5-flash'``, and how much of it.

    '' and None take the usual server, default cache, no budget; tokens are those in and out.
    """

    model: str
    base_url: str = ''
    cache_directory: Path | None = None
    concurrency: int = 4
    max_tokens: int | None = None
    max_cost: float | None = None
    prices: Prices = field(default_factory=Prices)
    timeout_s: float = DEFAULTS.timeout_s
    max_reply_mib: float = DEFAULTS.max_reply_mib

    def client(self, patience: Patience | None = None) -> ModelClient:
        """Return a client; a wrong name or a missing key is an error here."""
        kind = self.model.partition(':')[0]
        options: dict[str, Any] = {'base_url': self.base_url}
        if kind != 'offline':
            options |= {'timeout_s': self.timeout_s, 'max_reply_mib': self.max_reply_mib}
        model = make_language_model(self.model, options)
        return ModelClient(
            model,
            cache=ResponseCache(self.cache_directory or default_cache_directory()),
            ledger=Ledger(self.prices, max_tokens=self.max_tokens, max_cost=self.max_cost),
            patience=patience,
            concurrency=self.concurrency,
        )
