"""Bounds the processor time that a reader spends on a file, step by step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from osmabench_ros.base.limits.allowance import allowance, exceeded


class Stopwatch:
    """Adds up the time of this thread in which it runs.

    Parameters
    ----------
    path : Path
        The file, for the error.
    size_bytes : int
        Its size, with which the time that it may take grows.
    """

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self._limit_s = allowance().time_s(size_bytes)
        self._spent_s = 0.0
        self._since_s: float | None = None

    @property
    def expired(self) -> bool:
        """Whether there is no time left."""
        running_s = 0.0 if self._since_s is None else time.thread_time() - self._since_s
        return self._spent_s + running_s > self._limit_s

    def start(self) -> None:
        """Let it run."""
        self._since_s = time.thread_time()

    def stop(self) -> None:
        """Let it stand still.

        Raises
        ------
        LimitError
            If there is no time left.
        """
        if self._since_s is not None:
            self._spent_s += time.thread_time() - self._since_s
            self._since_s = None
        if self.expired:
            raise exceeded(self._path, f'reading it takes over {self._limit_s:g} s', 'seconds')

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let it run in a block; errors as of `stop`."""
        self.start()
        try:
            yield
        finally:
            self.stop()
