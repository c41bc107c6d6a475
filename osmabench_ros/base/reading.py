"""Opens untrusted files: regular, of limited size, without blocking; arrays without pickles."""

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.fence import limit_error, read_in_fence
from osmabench_ros.errors import LimitError, OsmabenchError, describe_error, errors_as


@contextmanager
def naming_errors(source: Path | str, kind: type[OsmabenchError]) -> Iterator[None]:
    """Turn every error of a block that parses a file into one that names the file."""
    needs = f'{source} needs more memory than this machine has free'
    with (
        errors_as(LimitError, needs, MemoryError),
        errors_as(kind, f'{source} is malformed', Exception),
    ):
        yield


_SURELY_FREE_BYTES = 2**24


def check_free_memory(path: Path | str, size: int) -> None:
    """Raise LimitError if less memory is free than content of this size (bytes) needs."""
    if size <= _SURELY_FREE_BYTES:  # asking costs as much as reading a small file
        return
    import psutil

    free = psutil.virtual_memory().available
    if size > free:
        needed, left = (f'{count / 2**30:.1f} GiB' for count in (size, free))
        raise LimitError(f'{path} needs {needed} of memory, and {left} are free')


@contextmanager
def opened(path: Path | str, error: type[OsmabenchError]) -> Iterator[tuple[IO[bytes], int]]:
    """Open a file from outside; yield it and its size in bytes; errors name it."""
    try:
        with open(_open_regular_file(path), 'rb') as file:
            yield file, os.fstat(file.fileno()).st_size
    except FileNotFoundError as fault:
        raise error(f'{path} does not exist; check the path that names it') from fault
    except OSError as fault:
        problem = f'{path} cannot be read: {describe_error(fault)}'
        raise error(f'{problem}; give a readable file') from fault


def _open_regular_file(path: Path | str) -> int:
    try:
        # A pipe without a writer would block, a terminal would become ours.
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except ValueError as fault:  # NUL, or characters without an encoding
        raise OSError(f'it is not a path: {fault}') from fault
    mode = os.fstat(number).st_mode
    if not stat.S_ISREG(mode):
        os.close(number)
        raise OSError('it is a folder' if stat.S_ISDIR(mode) else 'it is not an ordinary file')
    return number


def read_bytes(
    path: Path | str, error: type[OsmabenchError], max_bytes: int | None = None
) -> bytes:
    """Read a file; raises `error` if it is not ordinary, LimitError beyond `max_bytes`."""
    with opened(path, error) as (file, size):
        if max_bytes is not None and size > max_bytes:
            raise limit_error(path, f'has {size} bytes')
        check_free_memory(path, size)
        return file.read(size)


def read_npy(path: Path | str, error: type[OsmabenchError]) -> NDArray[Any]:
    """Read a .npy file in native byte order; raises `error`, or LimitError if too large."""
    with opened(path, error) as (_, size):
        check_free_memory(path, size)
        try:
            # Mapping refuses pickled objects and a shape for which the file is too small.
            mapped = np.load(path, mmap_mode='r', allow_pickle=False)
            if not isinstance(mapped, np.memmap) or mapped.dtype.itemsize == 0:
                raise ValueError('it is not an array of numbers')
            return np.array(mapped, mapped.dtype.newbyteorder('='))
        except Exception as fault:  # NumPy parses the header with ast, which raises many kinds
            what = f'{path} cannot be read as .npy: {fault!s:.300}'
            raise error(f'{what}; save it again as an array of numbers') from fault


def read_npz(
    path: Path, error: type[OsmabenchError], names: Collection[str] | None = None
) -> dict[str, NDArray[Any]]:
    """Read arrays of a .npz archive; raises `error` if it is damaged, LimitError if too large."""
    with opened(path, error):
        arrays: dict[str, NDArray[Any]] = read_in_fence(load_npz, path, names=names, error=error)
    return arrays


def load_npz(
    path: Path, names: Collection[str] | None, error: type[OsmabenchError]
) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive, in the fence."""
    # zipfile and zlib raise many kinds for hostile bytes.
    with errors_as(error, f'{path} cannot be read as .npz', Exception, remedy='save it again'):
        with np.load(path, allow_pickle=False) as archive:
            wanted = archive.files if names is None else set(archive.files) & set(names)
            arrays = {name: archive[name] for name in wanted}
        if not all(array.dtype.itemsize for array in arrays.values()):
            raise ValueError('it is not an archive of numbers')
        return {
            name: array.astype(array.dtype.newbyteorder('='), copy=False)
            for name, array in arrays.items()
        }
