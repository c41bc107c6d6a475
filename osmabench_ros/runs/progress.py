"""How far a job is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Gets what is going on and the fraction done, 0 to 1; may raise to stop the job."""


LAST_SHARE = 0.01
"""Of the last stage, which only finishes up."""


class StagedProgress:
    """Puts the progress of stages one after another; the fraction never goes back.

    There are at least 2; each counts the same, but the last one next to nothing.
    """

    def __init__(self, progress: Progress | None, stages: int) -> None:
        self._progress = progress
        self._stages = max(stages, 2)
        self._entered = 0
        self._name = ''
        self._fraction = 0.0

    def enter(self, name: str) -> None:
        """Start the next stage."""
        self._name = name
        self._entered += 1
        self('', 0.0)

    def __call__(self, text: str, fraction: float) -> None:
        """Take the progress of the stage that was entered last."""
        if self._progress is None:
            return
        self._fraction = max(self._fraction, self._done(min(max(fraction, 0.0), 1.0)))
        self._progress(f'{self._name}: {text}' if text else self._name, self._fraction)

    def _done(self, fraction: float) -> float:
        before = max(self._entered, 1) - 1
        if before >= self._stages - 1:
            return 1.0 - LAST_SHARE * (1.0 - fraction)
        return (1.0 - LAST_SHARE) * (before + fraction) / (self._stages - 1)
