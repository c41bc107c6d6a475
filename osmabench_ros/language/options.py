"""Options of a server behind which a language model runs, and where it is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field

from osmabench_ros.base.settings import setting
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError

_VARIABLES = {'openai': 'OPENAI_BASE_URL', 'gemini': 'GOOGLE_GEMINI_BASE_URL'}
OPENAI_SERVER = 'https://api.openai.com/v1'
_USUAL = {'openai': OPENAI_SERVER, 'gemini': 'https://generativelanguage.googleapis.com'}


def server_address(kind: str, base_url: str = '') -> str:
    """Return the configured address, else the environment's, else the usual one of the kind."""
    return base_url or os.environ.get(_VARIABLES.get(kind, ''), '') or _USUAL.get(kind, '')


def without_secrets(address: str) -> str:
    """Return an address without user, password, query and fragment, where keys may hide.

    Raises ConfigError if it is not http or https; no address is ''.
    """
    if not address:
        return ''
    try:
        parts = urlsplit(address)
        is_usable = parts.scheme in ('http', 'https') and parts.hostname and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        shown = address.rpartition('@')[2].partition('?')[0]
        raise ConfigError(
            f'the base_url of a language model is "{shown}"; it must be like http://127.0.0.1:8000'
        )
    host = parts.netloc.rpartition('@')[2].lower()
    return urlunsplit((parts.scheme, host, parts.path.rstrip('/'), '', ''))


class ServerOptions(Strict):
    """What may be set about a server; keys are not among it."""

    base_url: str = setting('', 'Address of a server of your own.')
    timeout_s: float = Field(
        120.0, gt=0, le=86_400, description='Longest wait for a whole reply, in seconds.'
    )


def checked_server_options(kind: str, model: str, options: Mapping[str, Any]) -> ServerOptions:
    """Return the options as their model; ConfigError names unknown or wrong ones."""
    if not model:
        raise ConfigError(f'language model "{kind}": name a model, e.g. {kind}:some-model')
    return validated(ServerOptions, options, f'language model "{kind}"')
