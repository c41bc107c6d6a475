"""Reads .npy and .npz files from outside: no pickles, no allocation larger than the file."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.fence import read_in_fence
from osmabench_ros.base.reading import check_free_memory, opened
from osmabench_ros.errors import OsmabenchError, errors_as


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
            raise error(
                f'{path} cannot be read as .npy: {fault!s:.300}; save it again as an '
                'array of numbers'
            ) from fault


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
