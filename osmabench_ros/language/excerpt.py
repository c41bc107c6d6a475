"""What of a server's texts may be shown: a little, on one line, without keys."""

from __future__ import annotations

_LONGEST_EXCERPT = 300


def excerpt(text: str) -> str:
    """Return the start of a text on one line, without control characters."""
    line = ' '.join(text[: 10 * _LONGEST_EXCERPT].split())[:_LONGEST_EXCERPT]
    return ''.join(character if character.isprintable() else '?' for character in line)


def without_secret(text: str, secret: str) -> str:
    """Return a text in which a key is replaced by stars."""
    return text.replace(secret, '***') if secret else text
