"""Finds language models by name through entry points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from osmabench_ros.extensions import LANGUAGE_MODELS, extension_names, load_extension
from osmabench_ros.language.model import LanguageModel, LanguageModelFactory


def language_model_names() -> list[str]:
    """Return the kinds of servers that are installed, in alphabetical order."""
    return extension_names(LANGUAGE_MODELS)


def make_language_model(reference: str, options: Mapping[str, Any] | None = None) -> LanguageModel:
    """Make a language model of a kind of server, e.g. ``'gemini:gemini-2.5-flash'``.

    Raises ConfigError if there is no such kind, it cannot be imported, or an option is wrong.
    """
    kind, _, model = reference.partition(':')
    factory = cast('LanguageModelFactory', load_extension(LANGUAGE_MODELS, kind))
    return factory(model=model, options=dict(options or {}))
