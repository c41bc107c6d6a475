"""Options of the commands that may ask a language model."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from osmabench_ros.language.budget import Prices
from osmabench_ros.language.client import ModelClient
from osmabench_ros.language.settings import DEFAULTS, ModelSettings

OFFLINE = ('rule', 'deterministic', 'offline', '')
"""Who answers and judges without a model."""

_PANEL = 'Language model'


def _option(*names: str, help: str, **more: Any) -> Any:  # noqa: A002
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **more)


@dataclass(frozen=True)
class ModelOptions:
    """Where a language model is asked, and how much of it."""

    base_url: Annotated[str, _option('--base-url', help='Address of a server of your own.')] = ''
    cache: Annotated[
        Path | None, _option('--cache', help='Folder of kept replies; else ~/.cache/osmabench.')
    ] = None
    concurrency: Annotated[
        int, _option('--concurrency', min=1, help='Requests under way at a time.')
    ] = 4
    max_tokens: Annotated[
        int | None, _option('--max-tokens', help='Stop before more tokens than these are used.')
    ] = None
    max_cost: Annotated[
        float | None, _option('--max-cost', help='Stop before more than this is spent.')
    ] = None
    input_price: Annotated[
        float, _option('--input-price', help='Price of a million tokens sent.')
    ] = 0.0
    output_price: Annotated[
        float, _option('--output-price', help='Price of a million tokens received.')
    ] = 0.0
    timeout_s: Annotated[
        float, _option('--timeout', help='Longest wait for a whole reply, in seconds.')
    ] = DEFAULTS.timeout_s
    max_reply_mib: Annotated[
        float, _option('--max-reply', help='Largest reply in MiB, unpacked.')
    ] = DEFAULTS.max_reply_mib
    dry_run: Annotated[
        bool, _option('--dry-run', help='Print counts and expected cost; ask nobody.')
    ] = False

    def client(self, model: str) -> ModelClient | None:
        """Return a client for a model such as 'openai:qwen3'; None for who works offline."""
        if model in OFFLINE:
            return None
        return ModelSettings(
            model,
            self.base_url,
            self.cache,
            self.concurrency,
            self.max_tokens,
            self.max_cost,
            Prices(self.input_price, self.output_price),
            self.timeout_s,
            self.max_reply_mib,
        ).client()


def with_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `ModelOptions` in place of its parameter `options`.

    Typer reads options from a signature: the one of the command, with that parameter replaced by
    the fields.
    """
    fields = inspect.signature(ModelOptions, eval_str=True).parameters
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(command, eval_str=True).parameters.values()
        if parameter.name != 'options'
    ]
    added = [field.replace(kind=inspect.Parameter.KEYWORD_ONLY) for field in fields.values()]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        options = ModelOptions(**{name: values.pop(name) for name in fields})
        command(**values, options=options)

    signature = inspect.Signature([*own, *added])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    return run
