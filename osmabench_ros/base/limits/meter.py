"""Counts what reading one file takes of memory and processor time, and stops it at the limits."""

from __future__ import annotations

import time
from pathlib import Path

from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.errors import LimitError

_MIB = 2**20
_SURELY_FREE_BYTES = 1 << 24


class Meter:
    """What reading one file has left of its allowance, which grows with its size.

    A reader that builds values itself takes memory from the meter before it allocates, and checks
    the time every few thousand steps.
    """

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
        """Count memory that was let go."""
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
