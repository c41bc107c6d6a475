"""Reads .npy and .npz files from outside: no pickles, no allocation larger than the file."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.fence import read_in_fence
from osmabench_ros.base.reading import check_free_memory, opened
from osmabench_ros.errors import OsmabenchError

_MAX_EMPTY_ROWS = 2**16


def read_npy(path: Path | str, error: type[OsmabenchError]) -> NDArray[Any]:
    """Read a .npy file in native byte order; raises `error`, or LimitError if too large."""
    with opened(path, error) as (file, size):
        check_free_memory(path, size)
        try:
            return _array(file, size)
        except OSError:
            raise
        except Exception as fault:  # NumPy parses the header with ast, which raises many kinds
            raise error(
                f'{path} cannot be read as .npy: {fault!s:.300}; save it again as an '
                'array of numbers'
            ) from fault


def _array(file: IO[bytes], size: int) -> NDArray[Any]:
    """Read an array from a file that must be `size` bytes long."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise ValueError(f'version {version} is not supported; save it as 1.0 or 2.0')
    if dtype.hasobject:
        raise ValueError('it holds pickled Python objects, which are never loaded')
    # An empty array takes no bytes, however many rows it claims.
    if min(shape, default=0) < 0 or max(shape, default=0) > max(size, _MAX_EMPTY_ROWS):
        raise ValueError(f'it claims shape {shape}, but holds {size} bytes')
    claimed, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if claimed != there or dtype.itemsize == 0:
        raise ValueError(f'it claims {claimed} bytes in shape {shape}, but holds {there}')
    file.seek(0)
    array: NDArray[Any] = np.load(file, allow_pickle=False)
    return array.astype(array.dtype.newbyteorder('='), copy=False)


def read_npz(
    path: Path, error: type[OsmabenchError], names: Collection[str] | None = None
) -> dict[str, NDArray[Any]]:
    """Read arrays of a .npz archive; raises `error` if it is damaged, LimitError if too large."""
    with opened(path, error):
        found = read_in_fence(load_npz, path, names=None if names is None else list(names))
    if isinstance(found, str):
        raise error(f'{path} cannot be read as .npz: {found}; save it again')
    arrays: dict[str, NDArray[Any]] = found
    return arrays


def load_npz(path: Path, names: list[str] | None) -> dict[str, NDArray[Any]] | str:
    """Return the arrays of an archive, or why it cannot be read; in the fence."""
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                name = info.filename.removesuffix('.npy')
                if names is None or name in names:
                    with archive.open(info) as member:
                        arrays[name] = _array(member, info.file_size)
    except MemoryError:
        raise
    except Exception as fault:  # zipfile and zlib raise many kinds for hostile bytes
        return f'{fault!r:.300}'
    return arrays
