"""What of a server's texts may be shown: a little, on one line, without keys."""

from __future__ import annotations

_LONGEST_EXCERPT = 300
_SHORTEST_KEY = 8


def excerpt(text: str) -> str:
    """Return the start of a text on one line, without control characters."""
    line = ' '.join(text[: 10 * _LONGEST_EXCERPT].split())[:_LONGEST_EXCERPT]
    return ''.join(character if character.isprintable() else '?' for character in line)


def without_secret(text: str, secret: str) -> str:
    """Return a text in which a key is replaced by stars.

    What is too short to be a key, such as the "none" that some servers of one's own want, stays:
    it may be part of any word.
    """
    return text.replace(secret, '***') if len(secret) >= _SHORTEST_KEY else text
