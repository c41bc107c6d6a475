"""Memory and processor time that reading one file in this process takes."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from osmabench_ros.base.limits.allowance import allowance, exceeded

_LOCK = threading.Lock()


@contextmanager
def memory_headroom(max_bytes: int) -> Iterator[None]:
    """Limit the further memory of this process; beyond it, MemoryError is raised."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        _start_linear_algebra()  # a reader's process has one thread, and its own limit by now
    with _LOCK:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path('/proc/self/statm').read_text().split()[0])
        limit = pages * resource.getpagesize() + max_bytes
        for earlier in (soft, hard):
            if earlier != resource.RLIM_INFINITY:
                limit = min(limit, earlier)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@cache
def _start_linear_algebra() -> None:
    """Let BLAS take its memory, 32 MiB a processor, which is no file's; denied, it ends us."""
    from scipy.linalg.blas import dgemm

    square = np.ones((512, 512))
    np.matmul(square, square)
    dgemm(1.0, square, square)  # NumPy and SciPy bring one BLAS each


class Stopwatch:
    """Adds up processor time of this thread, up to a limit that grows with the file size."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self._limit_s = allowance().time_s(size_bytes)
        self._left_s = self._limit_s

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of a block; raises LimitError if the limit is then used up."""
        start_s = time.thread_time()
        try:
            yield
        finally:
            self._left_s -= time.thread_time() - start_s
            if self._left_s < 0:
                raise exceeded(self._path, f'reading it takes over {self._limit_s:g} s', 'seconds')
