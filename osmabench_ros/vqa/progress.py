"""How the stages of question answering report their progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with a text and a fraction in 0 to 1; may raise to stop the work."""


def silent(text: str, fraction: float) -> None:
    """Do nothing."""


def share(progress: Progress, start: float, end: float, prefix: str = '') -> Progress:
    """Return a callback that takes up a share of another."""
    return lambda text, fraction: progress(prefix + text, start + fraction * (end - start))


def counted(progress: Progress | None, done: str, total: int, what: str) -> Progress:
    """Return a callback that reports fractions as numbers: '<done> 30 of 184 <what>'."""

    def tell(text: str, fraction: float) -> None:
        del text
        if progress is not None:
            progress(f'{done} {round(fraction * total)} of {total} {what}', fraction)

    return tell
