"""How much shared memory each process of a run gets, and what a killed one leaves of it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

FOLDER = Path('/dev/shm')  # noqa: S108 - where Linux keeps POSIX shared memory
SEGMENT_BYTES = 32 * 2**20
"""Of a process, where there is enough: images of several megabytes on their way at once."""

SMALLEST_SEGMENT_BYTES = 2**19
"""What Fast DDS takes unasked."""

PROCESSES, PORT_BYTES = 8, 2**20
"""Most processes of a run, and what Fast DDS takes for each beside its segment."""

SEGMENT_VARIABLE, MESSAGE_VARIABLE = 'OSMABENCH_SEGMENT_BYTES', 'OSMABENCH_MESSAGE_BYTES'
"""Names by which config/fastdds_localhost.xml reads the sizes."""

SEGMENT_LOCK = re.compile('fastrtps_[0-9a-f]{16}_el')
"""What Fast DDS calls the file that the process of a segment keeps locked."""


def free_bytes() -> int | None:
    """Return how much shared memory is free; None where that is not limited by a folder."""
    if not FOLDER.is_dir():
        return None
    return shutil.disk_usage(FOLDER).free if os.access(FOLDER, os.W_OK) else 0


def segment_bytes() -> int:
    """Return the size of the segment of a process; a container has 64 MB for all by default.

    Fast DDS reserves a segment as a whole, and a process that gets none sends by UDP, where images
    wait for heartbeats of seconds.
    """
    free = free_bytes()
    if free is None:
        return SEGMENT_BYTES
    share = free // PROCESSES - PORT_BYTES
    return min(max(share, SMALLEST_SEGMENT_BYTES), SEGMENT_BYTES)


def segment_environment() -> Mapping[str, str]:
    """Return the variables of config/fastdds_localhost.xml."""
    size = segment_bytes()
    return {SEGMENT_VARIABLE: str(size), MESSAGE_VARIABLE: str(size // 2)}


class SegmentsInUse:
    """Segments that processes have made; Fast DDS leaves them behind where a process is killed."""

    def __init__(self) -> None:
        self._lock_files: set[Path] = set()

    def note(self, processes: Iterable[int]) -> None:
        """Remember those of processes that run: who made a segment holds its lock file open."""
        for number in processes:
            with contextlib.suppress(OSError):
                for link in Path(f'/proc/{number}/fd').iterdir():
                    with contextlib.suppress(OSError):
                        target = link.readlink()
                        if target.parent == FOLDER and SEGMENT_LOCK.fullmatch(target.name):
                            self._lock_files.add(target)

    def remove_left(self) -> None:
        """Remove those whose process has ended."""
        for lock_file in self._lock_files:
            remove_if_dead(lock_file)


def remove_if_dead(lock_file: Path) -> None:
    """Remove a segment and its lock file unless a process holds that."""
    with contextlib.suppress(OSError), lock_file.open('rb') as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock_file.with_name(lock_file.name.removesuffix('_el')).unlink(missing_ok=True)
        lock_file.unlink()
