"""Which failures of a server may pass, and what may be shown of them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from osmabench_ros.errors import LanguageModelError
from osmabench_ros.language.excerpt import excerpt
from osmabench_ros.language.model import AuthenticationError, TransientModelError
from osmabench_ros.language.reply_json import json_object
from osmabench_ros.language.server import HttpReply

_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_OUT_OF_CREDIT = ('insufficient_quota', 'billing_hard_limit_reached')
_WRONG_KEY = ('API_KEY_INVALID', 'invalid_api_key')


def failure(model: str, reply: HttpReply) -> LanguageModelError:
    """Return the error for an HTTP status other than success, with an excerpt of the body.

    408, 409, 425, 429 and 5xx may pass, but no 429 that says that money or quota are used up.
    """
    status, body = reply.status, reply.content.decode('utf-8', 'replace')
    text = excerpt(error_fields(reply.content).get('message') or body)
    message = f'{model} replied with HTTP status {status}: {text or "(empty)"}'
    reason = f'{status} {_PHRASES.get(status, "")}'.strip() + f' from {reply.host}'
    details = list(_texts(_parsed(reply.content)))
    if _is_used_up(details):
        return LanguageModelError(
            f'{message}; the quota of the key is used up',
            reason=f'the quota of the key at {reply.host} is used up',
        )
    if status in (408, 409, 425, 429) or status >= 500:
        wait = _seconds(reply.retry_after)
        wait = _retry_delay(details) if wait is None else wait
        return TransientModelError(message, wait, reason=reason)
    if status in (401, 403) or any(value in _WRONG_KEY for _, value in details):
        return AuthenticationError(f'{message}; check the key in the environment', reason=reason)
    return LanguageModelError(message, reason=reason)


def error_fields(content: bytes) -> dict[str, str]:
    """Return the texts of the object `error` of a reply, such as its `param` and `code`."""
    error = _parsed(content).get('error')
    if not isinstance(error, dict):
        return {}
    return {key: value for key, value in error.items() if isinstance(value, str)}


def _parsed(content: bytes) -> dict[str, Any]:
    """Return the object of an error; Google puts it into a list of one."""
    try:
        return json_object(content.strip().removeprefix(b'[').removesuffix(b']'))
    except ValueError:
        return {}


def _texts(data: Any, key: str = '') -> Iterator[tuple[str, str]]:
    """Yield all texts of a JSON value with the key they stand under."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _texts(value, str(name))
    elif isinstance(data, list):
        for value in data:
            yield from _texts(value, key)
    elif isinstance(data, str):
        yield key, data


def _is_used_up(details: list[tuple[str, str]]) -> bool:
    """Tell whether waiting a little cannot help: no credit (OpenAI), a daily quota (Google)."""
    return any(
        value in _OUT_OF_CREDIT or (key == 'quotaId' and 'PerDay' in value)
        for key, value in details
    )


def _retry_delay(details: list[tuple[str, str]]) -> float | None:
    """Return Google's google.rpc.RetryInfo, e.g. '34.07s', in seconds."""
    for key, value in details:
        if key == 'retryDelay' and re.fullmatch(r'\d+(?:\.\d+)?s', value):
            return float(value[:-1])
    return None


def _seconds(value: str | None) -> float | None:
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        # When to ask again may come as a date of the wall clock, which nothing else here uses.
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError, OSError):
        return None
