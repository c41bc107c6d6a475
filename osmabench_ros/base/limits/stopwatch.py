"""Bounds the processor time that a reader spends on a file, step by step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from osmabench_ros.base.limits.allowance import allowance, exceeded


class Stopwatch:
    """Adds up processor time of this thread; what a file may take grows with its size."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self._limit_s = allowance().time_s(size_bytes)
        self._left_s = self._limit_s

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of a block; raises LimitError if there is none left after it."""
        start_s = time.thread_time()
        try:
            yield
        finally:
            self._left_s -= time.thread_time() - start_s
            if self._left_s < 0:
                raise exceeded(self._path, f'reading it takes over {self._limit_s:g} s', 'seconds')
