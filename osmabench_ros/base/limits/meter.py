"""Counts and limits the memory and processor time that reading one file takes."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.errors import LimitError

_LOCK = threading.Lock()


@contextmanager
def memory_headroom(max_bytes: int) -> Iterator[None]:
    """Limit the further memory of this process; beyond it, MemoryError is raised."""
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


_MIB = 2**20
_SURELY_FREE_BYTES = 1 << 24


class Meter:
    """What reading one file has left of its allowance; memory is taken before it is allocated."""

    def __init__(self, source: Path | str, size_bytes: int) -> None:
        limits = allowance()
        self.source = source
        self.max_depth = limits.depth
        self.memory_bytes = limits.memory_bytes(size_bytes)
        if size_bytes > _SURELY_FREE_BYTES:  # a sparse file may have any size
            import psutil

            self.memory_bytes = min(self.memory_bytes, psutil.virtual_memory().available)
        self._left_bytes = self.memory_bytes
        self._time_s = limits.time_s(size_bytes)
        self._end_s = time.thread_time() + self._time_s

    def take(self, count_bytes: int) -> None:
        """Count memory about to be allocated; raises LimitError if it is more than is left."""
        if count_bytes > self._left_bytes:
            raise self.too_large()
        self._left_bytes -= count_bytes

    def give_back(self, count_bytes: int) -> None:
        """Count memory that was freed."""
        self._left_bytes += count_bytes

    def too_large(self) -> LimitError:
        """Return the error of a file that takes more memory than it may."""
        what = f'unpacks to more than {self.memory_bytes / _MIB:.0f} MiB'
        return exceeded(self.source, what, 'memory_mib')

    def too_deep(self) -> LimitError:
        """Return the error of a file that nests deeper than it may."""
        return exceeded(self.source, f'is nested deeper than {self.max_depth} levels', 'depth')

    def check_time(self) -> None:
        """Raise LimitError if the processor time of this thread is used up."""
        if time.thread_time() > self._end_s:
            raise exceeded(
                self.source, f'takes more than {self._time_s:.0f} s of processor time', 'seconds'
            )
