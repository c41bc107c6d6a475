"""Bounds the memory that a library may take while it reads a stranger's file."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCK = threading.Lock()


@contextmanager
def memory_headroom(max_bytes: int) -> Iterator[None]:
    """Let this process take no more than so much further memory; then comes a MemoryError.

    A damaged file may claim any number of elements, and a library that believes it would take all
    memory of the machine. The limit is on address space, of all threads, as long as the block
    lasts; an earlier limit comes back after it.
    """
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
