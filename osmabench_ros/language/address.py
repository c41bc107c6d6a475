"""Where the server of a language model is, which distinguishes two that serve one model name."""

from __future__ import annotations

import os
from urllib.parse import urlsplit, urlunsplit

from osmabench_ros.errors import ConfigError

_VARIABLES = {'openai': 'OPENAI_BASE_URL', 'gemini': 'GOOGLE_GEMINI_BASE_URL'}
OPENAI_SERVER = 'https://api.openai.com/v1'
_USUAL = {
    'openai': OPENAI_SERVER,
    'gemini': 'https://generativelanguage.googleapis.com',
}


def server_address(kind: str, base_url: str = '') -> str:
    """Return the address of a kind of server, e.g. ``'openai'``.

    It is the configured one; if '', the environment's, else the usual one of the kind, else ''.
    """
    return base_url or os.environ.get(_VARIABLES.get(kind, ''), '') or _USUAL.get(kind, '')


def checked_address(kind: str, base_url: str) -> str:
    """Return the address of a kind of server; raises ConfigError if it is not http or https."""
    address = server_address(kind, base_url)
    shown = without_secrets(address)
    parts = urlsplit(shown)
    try:
        usable = parts.scheme in ('http', 'https') and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f'the base_url of a language model is "{shown}"; it must be like http://127.0.0.1:8000'
        )
    return address


def host_of(address: str) -> str:
    """Return scheme, host and port of an address; ValueError if it is none."""
    parts = urlsplit(address)
    return f'{parts.scheme}://{parts.netloc.rpartition("@")[2].lower()}'


def is_usual(kind: str, address: str) -> bool:
    """Return whether an address is that of the company whose API the kind speaks."""
    return without_secrets(address) == _USUAL.get(kind)


def without_secrets(address: str) -> str:
    """Return an address without user, password, query and fragment, where keys may hide.

    Raises ConfigError if it is no address.
    """
    try:
        parts = urlsplit(address)
        host = parts.netloc.rpartition('@')[2].lower()
    except ValueError as error:
        raise ConfigError(f'the base_url of a language model is no address: {error}') from None
    return urlunsplit((parts.scheme, host, parts.path.rstrip('/'), '', ''))
