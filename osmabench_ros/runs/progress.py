"""Telling how far a job is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Gets what is going on and the fraction done, 0 to 1; may raise to stop the job."""


class StagedProgress:
    """Puts the progress of stages one after another; the fraction never goes back.

    Parameters
    ----------
    progress : callable, optional
        Gets the name of the stage with what it says, and the fraction of all stages.
    stages : int
        How many there are; each counts the same.
    """

    def __init__(self, progress: Progress | None, stages: int) -> None:
        self._progress = progress
        self._stages = max(stages, 1)
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
        done = (max(self._entered, 1) - 1 + min(max(fraction, 0.0), 1.0)) / self._stages
        self._fraction = max(self._fraction, min(done, 1.0))
        self._progress(f'{self._name}: {text}' if text else self._name, self._fraction)
