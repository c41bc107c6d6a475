"""Reads untrusted .npy and .npz files: no pickles, no allocation larger than the file."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.base.limits.reading import check_free_memory, opened, shown
from osmabench_ros.errors import OsmabenchError

_BLOCK_BYTES = 2**20
_LAST_CHARACTER = 0x10FFFF
_SHOWN_CHARACTERS = 300
_SURELY_HARMLESS = 2**16


def read_npy(path: Path | str, error: type[OsmabenchError]) -> NDArray[Any]:
    """Read a .npy file in native byte order; raises `error`, or LimitError if too large."""
    with opened(path, error) as (file, size):
        check_free_memory(path, size)
        return _array(file, size, shown(path), error)


def read_npz(
    path: Path | str, error: type[OsmabenchError], names: Collection[str] | None = None
) -> dict[str, NDArray[Any]]:
    """Read arrays of a .npz archive; raises `error` if it is damaged, LimitError if too large."""
    with opened(path, error) as (file, size):
        try:
            with zipfile.ZipFile(file) as archive:
                return dict(_members(archive, names, shown(path), size, error))
        except (OsmabenchError, OSError, MemoryError):
            raise
        except Exception as fault:  # zipfile and zlib have many ways to dislike hostile bytes
            raise error(f'{shown(path)} cannot be read as .npz: {fault}; save it again') from fault


def _members(
    archive: zipfile.ZipFile,
    names: Collection[str] | None,
    source: str,
    size: int,
    error: type[OsmabenchError],
) -> list[tuple[str, NDArray[Any]]]:
    chosen = [
        (info.filename.removesuffix('.npy'), info)
        for info in archive.infolist()
        if names is None or info.filename.removesuffix('.npy') in names
    ]
    if len({name for name, _ in chosen}) < len(chosen):
        raise error(f'{source} holds two arrays of one name; save it again')
    # No member gives more than the directory says: zipfile stops there, and _array asks for it.
    unpacked = sum(info.file_size for _, info in chosen)
    if unpacked > allowance().memory_bytes(size):
        raise exceeded(source, f'unpacks to {unpacked} bytes', 'memory_ratio')
    check_free_memory(source, unpacked)
    arrays = []
    for name, info in chosen:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # zipfile unpacks the others in pieces of any size.
            raise error(f'{source}: {shown(name)} is compressed otherwise than NumPy does')
        with archive.open(info) as member:
            where = f'{source}: {shown(name)}'
            arrays.append((name, _array(member, info.file_size, where, error)))
    return arrays


def _array(stream: IO[bytes], size: int, source: str, error: type[OsmabenchError]) -> NDArray[Any]:
    """Read an array from a stream that must be `size` bytes long."""
    try:
        shape, fortran_order, dtype = _header(stream)
        if dtype.hasobject:
            raise ValueError('it holds pickled Python objects, which are never loaded')
        # An empty array takes no bytes, however many rows it claims.
        if max(shape, default=0) > max(size, _SURELY_HARMLESS):
            raise ValueError(f'it claims shape {shape}, but holds {size} bytes')
        needed, there = math.prod(shape) * dtype.itemsize, size - stream.tell()
        if needed != there:
            raise ValueError(f'it claims {needed} bytes in shape {shape}, but holds {there}')
        order: Literal['F', 'C'] = 'F' if fortran_order else 'C'
        return _filled(stream, np.empty(math.prod(shape), dtype)).reshape(shape, order=order)
    except OSError:
        raise
    except Exception as fault:  # NumPy parses the header with ast, which raises many kinds
        text = str(fault)[:_SHOWN_CHARACTERS]
        raise error(
            f'{source} cannot be read as .npy: {text}; save it again as an array of numbers'
        ) from fault


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f'version {version} is not supported; save it as 1.0 or 2.0')
    if min(shape, default=0) < 0 or dtype.itemsize == 0:
        raise ValueError(f'shape {shape} of {dtype} is no array')
    return shape, fortran_order, dtype


def _filled(stream: IO[bytes], array: NDArray[Any]) -> NDArray[Any]:
    """Fill an array with exactly what the stream holds; return it in native byte order."""
    content: Any = array.view(np.uint8)
    place = 0
    while place < len(content):
        block = stream.read(min(_BLOCK_BYTES, len(content) - place))
        if not block:
            raise ValueError('it ends before its data do')
        content[place : place + len(block)] = np.frombuffer(block, np.uint8)
        place += len(block)
    if stream.read(1):
        raise ValueError('it goes on after its data')
    array = array.astype(array.dtype.newbyteorder('='), copy=False)
    if array.dtype.kind == 'U' and array.view(np.uint32).max(initial=0) > _LAST_CHARACTER:
        raise ValueError('a text in it has characters that do not exist')
    return array
