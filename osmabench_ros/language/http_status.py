"""Which failures of a server may pass, and what may be told about them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

from osmabench_ros.errors import LanguageModelError
from osmabench_ros.language.model import TransientModelError

_LONGEST_EXCERPT = 300
_OUT_OF_CREDIT = ('insufficient_quota', 'billing_hard_limit_reached')
_WRONG_KEY = ('API_KEY_INVALID', 'invalid_api_key')


def failure(
    model: str, status: int, body: str, retry_after: str | None, secret: str
) -> LanguageModelError:
    """Return the error for an HTTP status other than success.

    Parameters
    ----------
    model : str
        Name in the message.
    status : int
        HTTP status; 408, 409, 425, 429 and 5xx may pass, but for a 429 that says that the money
        or the day's share is used up.
    body : str
        Reply of the server; an excerpt goes into the message.
    retry_after : str, optional
        Header of that name: seconds or a date.
    secret : str
        Key that must not appear, even if the server repeats it.
    """
    told = error_fields(body).get('message') or body
    excerpt = without_secret(' '.join(told.split()), secret)[:_LONGEST_EXCERPT]
    message = f'{model} replied with HTTP status {status}: {excerpt or "(empty)"}'
    details = list(_texts(_parsed(body)))
    if _is_used_up(details):
        return LanguageModelError(f'{message}; the quota of the key is used up')
    if status in (408, 409, 425, 429) or status >= 500:
        wait = _seconds(retry_after)
        return TransientModelError(message, _retry_delay(details) if wait is None else wait)
    if status in (401, 403) or any(value in _WRONG_KEY for _, value in details):
        message += '; check the key in the environment'
    return LanguageModelError(message)


def without_secret(text: str, secret: str) -> str:
    """Return a text in which a key is replaced by stars."""
    return text.replace(secret, '***') if secret else text


def error_fields(body: str) -> dict[str, str]:
    """Return the texts of the object `error` of a reply, such as its `param` and `code`."""
    data = _parsed(body)
    if isinstance(data, list) and len(data) == 1:
        (data,) = data
    error = data.get('error') if isinstance(data, dict) else None
    if not isinstance(error, dict):
        return {}
    return {key: value for key, value in error.items() if isinstance(value, str)}


def _parsed(body: str) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


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
    except ValueError:
        return None
