"""NumPy array files, read without trust: no pickles, no allocation that the file does not back."""

from __future__ import annotations

import math
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError, UnsafePickleError


def write_npy(stream: IO[bytes], array: NDArray[Any]) -> None:
    """Write an array as .npy version 1.0, little-endian, C order; equal arrays, equal bytes."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder('<'))
    np.lib.format.write_array(stream, little, version=(1, 0), allow_pickle=False)


def _declared(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f'version {version} is not supported; save it as 1.0 or 2.0')
    return shape, dtype


def read_npy(path: Path) -> NDArray[Any]:
    """Read a .npy file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    ndarray
        Of native byte order.

    Raises
    ------
    UnsafePickleError
        If it holds pickled objects.
    MapError
        If the file is missing, no .npy file, or shorter than its header claims.
    """
    if not path.is_file():
        raise MapError(f'{path} does not exist')
    with path.open('rb') as stream:
        try:
            shape, dtype = _declared(stream)
        except Exception as error:  # NumPy parses the header with ast, which raises many kinds
            raise MapError(f'{path} is no readable .npy file: {error}') from error
        if dtype.hasobject:
            raise UnsafePickleError(
                f'{path} holds pickled Python objects, which are never loaded; '
                'save it as an array of numbers'
            )
        needed, there = math.prod(shape) * dtype.itemsize, path.stat().st_size - stream.tell()
        if min(shape, default=0) < 0 or needed != there:
            raise MapError(
                f'{path} claims {needed} bytes of data in shape {shape} but holds {there}'
            )
    array = np.load(path, allow_pickle=False)
    return np.asarray(array, array.dtype.newbyteorder('='))
