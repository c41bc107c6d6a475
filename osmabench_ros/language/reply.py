"""Replies of servers and models: JSON, errors, and their safe texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from osmabench_ros.base.limits.documents import parse_json
from osmabench_ros.errors import LanguageModelError, OsmabenchError
from osmabench_ros.language.model import TransientModelError

_LONGEST_EXCERPT = 300
_SHORTEST_KEY = 8


def excerpt(text: str) -> str:
    """Return the start of a text on one line, without control characters."""
    line = ' '.join(text[: 10 * _LONGEST_EXCERPT].split())[:_LONGEST_EXCERPT]
    return ''.join(character if character.isprintable() else '?' for character in line)


def without_secret(text: str, secret: str) -> str:
    """Return a text in which a key, unless too short to be one, is replaced by stars."""
    return text.replace(secret, '***') if len(secret) >= _SHORTEST_KEY else text


@contextmanager
def malformed_replies(name: str, host: str) -> Iterator[None]:
    """Turn whatever a reply makes our code or a library raise into a bad reply of one request."""
    try:
        yield
    except OsmabenchError:
        raise
    except Exception as error:
        what = excerpt(f'{type(error).__name__}: {error}')
        raise TransientModelError(
            f'{name} sent a malformed reply: {what}', reason=f'malformed replies from {host}'
        ) from None


def cut_off(name: str) -> TransientModelError:
    """Return the error of a reply that did not end."""
    what = 'cut off at the longest reply allowed'
    return TransientModelError(f'{name} was {what}', reason=f'replies {what}')


def json_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a reply; ValueError if `parse_json` refuses it."""
    try:
        data = parse_json(content, 'the reply', LanguageModelError)
    except OsmabenchError as error:
        raise ValueError(str(error)) from None
    if not isinstance(data, dict):
        raise ValueError('the reply is no JSON object')
    return data
