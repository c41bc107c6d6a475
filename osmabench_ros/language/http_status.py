"""Which failures of a server may pass, and what may be told about them."""

from __future__ import annotations

from osmabench_ros.errors import LanguageModelError
from osmabench_ros.language.model import TransientModelError

_LONGEST_EXCERPT = 300


def failure(
    model: str, status: int, body: str, retry_after: str | None, secret: str
) -> LanguageModelError:
    """Return the error for an HTTP status other than success.

    Parameters
    ----------
    model : str
        Name in the message.
    status : int
        HTTP status; 408, 409, 425, 429 and 5xx may pass.
    body : str
        Reply of the server; an excerpt goes into the message.
    retry_after : str, optional
        Header of that name, seconds.
    secret : str
        Key that must not appear, even if the server repeats it.
    """
    excerpt = without_secret(' '.join(body.split()), secret)[:_LONGEST_EXCERPT]
    message = f'{model} replied with HTTP status {status}: {excerpt or "(empty)"}'
    if status in (408, 409, 425, 429) or status >= 500:
        return TransientModelError(message, _seconds(retry_after))
    if status in (401, 403):
        message += '; check the key in the environment'
    return LanguageModelError(message)


def without_secret(text: str, secret: str) -> str:
    """Return a text in which a key is replaced by stars."""
    return text.replace(secret, '***') if secret else text


def _seconds(value: str | None) -> float | None:
    try:
        return None if value is None else max(0.0, float(value))
    except ValueError:
        return None
