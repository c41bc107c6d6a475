"""NumPy array files, read without trust: no pickles, no allocation that the file does not back."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError, UnsafePickleError

MAX_BYTES = 8 << 30
"""Largest decompressed size of an archive of arrays."""


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


def read_npz(
    path: Path, names: Collection[str] | None = None, *, max_bytes: int = MAX_BYTES
) -> dict[str, NDArray[Any]]:
    """Read arrays of a .npz archive.

    Parameters
    ----------
    path : Path
        The file.
    names : collection of str, optional
        Arrays that are read, those that are missing are left out; default: all.
    max_bytes : int
        Largest sum of unpacked sizes.

    Returns
    -------
    dict of str to ndarray

    Raises
    ------
    MapError
        If the file is missing, damaged, holds pickled objects, or unpacks to more than allowed.
    """
    if not path.is_file():
        raise MapError(f'{path} does not exist')
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {
                info.filename.removesuffix('.npy'): info.file_size for info in archive.infolist()
            }
        wanted = [name for name in sizes if names is None or name in names]
        if sum(sizes[name] for name in wanted) > max_bytes:
            raise MapError(f'{path} unpacks to more than {max_bytes} bytes')
        with np.load(path, allow_pickle=False) as data:
            return {name: np.asarray(data[name]) for name in wanted}
    except MapError:
        raise
    except Exception as error:  # zipfile and zlib have many ways to dislike hostile bytes
        raise MapError(f'{path} cannot be read as .npz: {error}') from error
