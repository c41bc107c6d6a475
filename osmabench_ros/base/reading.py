"""The one way to open untrusted files: regular files of limited size, opened without blocking."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from osmabench_ros.base.fence import limit_error
from osmabench_ros.errors import LimitError, OsmabenchError

_MAX_SHOWN = 200


@contextmanager
def naming_errors(source: Path | str, kind: type[OsmabenchError]) -> Iterator[None]:
    """Turn every error of a block that parses a file into one that names the file."""
    try:
        yield
    except OsmabenchError:
        raise
    except MemoryError as error:
        raise LimitError(f'{source} needs more memory than this machine has free') from error
    except Exception as error:
        name, reason = type(error).__name__, str(error)[:_MAX_SHOWN]
        raise kind(f'{str(source)[:_MAX_SHOWN]} is malformed: {name}: {reason}') from error


_SHOWN_CHARACTERS = 300
_SURELY_FREE_BYTES = 2**24
_KINDS = {
    stat.S_IFDIR: 'a folder',
    stat.S_IFIFO: 'a pipe',
    stat.S_IFCHR: 'a device',
    stat.S_IFBLK: 'a device',
    stat.S_IFSOCK: 'a socket',
}


def shown(path: Path | str) -> str:
    """Return a path as errors show it: on one line, printable and shortened."""
    text = ''.join(
        char if char.isprintable() else ascii(char)[1:-1] for char in str(path)[: 2**16]
    )
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    part = _SHOWN_CHARACTERS // 2
    return f'{text[:part]}...{text[-part:]} (a path of {len(str(path))} characters)'


def check_free_memory(path: Path | str, size: int) -> None:
    """Raise LimitError if less memory is free than content of this size (bytes) needs."""
    # Asking costs as much as reading a small file.
    if size > _SURELY_FREE_BYTES and size > (free := _free_bytes()):
        raise LimitError(
            f'{shown(path)} needs {size / 2**30:.1f} GiB of memory, and '
            f'{free / 2**30:.1f} GiB are free; use a machine with more memory'
        )


def _free_bytes() -> int:
    import psutil

    return int(psutil.virtual_memory().available)


@contextmanager
def opened(path: Path | str, error: type[OsmabenchError]) -> Iterator[tuple[IO[bytes], int]]:
    """Open a file from outside; yield it and its size in bytes; name it in what goes wrong."""
    if '\0' in str(path):
        raise error(f'{shown(path)} is no path: it has the character NUL')

    def descriptor(name: str, flags: int) -> int:
        # A pipe without a writer would block, a terminal would become ours.
        number = os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)
        kind = _KINDS.get(stat.S_IFMT(os.fstat(number).st_mode))
        if kind:
            os.close(number)
            raise error(f'{shown(path)} is {kind}; give an ordinary file')
        return number

    try:
        with open(path, 'rb', opener=descriptor) as file:
            yield file, os.fstat(file.fileno()).st_size
    except FileNotFoundError as fault:
        raise error(f'{shown(path)} does not exist; check the path that names it') from fault
    except OSError as fault:
        raise error(
            f'{shown(path)} cannot be read: {fault.strerror or fault}; give a readable file'
        ) from fault
    except MemoryError as fault:
        raise LimitError(f'{shown(path)} does not fit into the memory of this machine') from fault
    except UnicodeEncodeError as fault:
        raise error(f'{shown(path)} is no path: it has characters without an encoding') from fault


def read_bytes(
    path: Path | str, error: type[OsmabenchError], max_bytes: int | None = None
) -> bytes:
    """Read a file; raises `error` if it is no ordinary one, LimitError beyond `max_bytes`."""
    with opened(path, error) as (file, size):
        if max_bytes is not None and size > max_bytes:
            raise limit_error(shown(path), f'has {size} bytes')
        check_free_memory(path, size)
        data = file.read(size)
        if file.read(1):
            raise error(
                f'{shown(path)} holds more than its {size} bytes; give an ordinary file that '
                'no process writes to'
            )
    return data
