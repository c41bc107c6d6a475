"""How much shared memory each process of a run gets: what there is, in equal parts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
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
