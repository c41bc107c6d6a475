"""Finds language models by name through entry points."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from osmabench_ros.errors import ConfigError, suggestion
from osmabench_ros.language.model import LanguageModel, LanguageModelFactory

GROUP = 'osmabench.language_models'
"""Entry-point group of language models."""


def _registered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def language_model_names() -> list[str]:
    """Return the kinds of servers that are installed, in alphabetical order."""
    return sorted(_registered())


def make_language_model(reference: str, options: Mapping[str, Any] | None = None) -> LanguageModel:
    """Make a language model.

    Parameters
    ----------
    reference : str
        Kind of server and model, e.g. ``'gemini:gemini-2.5-flash'``, ``'openai:qwen3'``.
    options : mapping, optional
        The server's own options.

    Raises
    ------
    ConfigError
        If there is no such kind, it cannot be imported, or an option is wrong.
    """
    kind, _, model = reference.partition(':')
    registered = _registered()
    if kind not in registered:
        raise ConfigError(
            f'there is no language model "{kind}" in the entry points of group "{GROUP}". '
            f'{suggestion(kind, registered)}'
        )
    try:
        factory = cast('LanguageModelFactory', registered[kind].load())
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f'language model "{kind}" cannot be imported from "{registered[kind].value}": '
            f'{error}; reinstall the package that provides it'
        ) from error
    return factory(model=model, options=dict(options or {}))
