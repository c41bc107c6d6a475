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
        self._left_s = self._limit_s

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of a block.

        Raises
        ------
        LimitError
            If there is no time left after it.
        """
        start_s = time.thread_time()
        try:
            yield
        finally:
            self._left_s -= time.thread_time() - start_s
            if self._left_s < 0:
                raise exceeded(self._path, f'reading it takes over {self._limit_s:g} s', 'seconds')
