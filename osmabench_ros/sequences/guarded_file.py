"""A file for a recording, with some disk space in reserve for its end."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)
RESERVE_BYTES = 16 * 2**20


class DiskReserve:
    """Space that is kept in a file to finish others with; OSError if there is not enough."""

    def __init__(self, path: Path, size_bytes: int = RESERVE_BYTES) -> None:
        self._path = path
        self.used = False
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.posix_fallocate(descriptor, 0, size_bytes)
        except OSError:
            self.release()
            raise
        finally:
            os.close(descriptor)

    def use(self) -> bool:
        """Free the space; false if that has happened before."""
        if self.used:
            return False
        self.used = True
        self.release()
        return True

    def release(self) -> None:
        """Give the space back."""
        with contextlib.suppress(OSError):
            self._path.unlink()


class GuardedFile:
    """A new file that goes on for a while on the reserve of its recording when the disk is full.

    The reserve is for its end: look at `DiskReserve.used` after each write, and finish.
    """

    def __init__(self, path: Path, reserve: DiskReserve) -> None:
        self.path = path
        self._reserve = reserve
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self._position = 0

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Write all of it; OSError if the reserve is used up too, or the disk fails."""
        rest = memoryview(data)
        while rest:
            try:
                written = os.write(self._descriptor, rest)
            except OSError as error:
                if error.errno in FULL and self._reserve.use():
                    continue
                raise
            self._position += written
            rest = rest[written:]
        return len(data)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._position

    def flush(self) -> None:
        """Do nothing; every write goes to the kernel."""

    def close(self) -> None:
        """Close the file; harmless a second time."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
