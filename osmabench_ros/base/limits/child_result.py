"""Results of the limited child: plain values as JSON, arrays in one memory-mapped file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

VALUES, ARRAYS = 'values.json', 'arrays.bin'
_MARK = '$array'
_KINDS = 'biufc'
_ALIGNMENT = 64


class ResultWriter:
    """Writes a result to `VALUES` and `ARRAYS` in a folder; MemoryError beyond `max_bytes`."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder, self._left = folder, max_bytes

    def write(self, result: Any) -> None:
        """Write lists, dicts with names as keys, plain values, and arrays of numbers in them."""
        with (self._folder / ARRAYS).open('wb') as self._arrays:
            text = json.dumps(self._plain(result)).encode()
        self._take(len(text))
        (self._folder / VALUES).write_bytes(text)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            if not all(isinstance(key, str) and key != _MARK for key in value):
                raise TypeError('keys of a result are names')
            return {key: self._plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._plain(item) for item in value]
        if value is None or isinstance(value, (str, bool, int, float)):
            return value
        return {_MARK: self._stored(value)}

    def _stored(self, value: Any) -> list[Any]:
        import numpy as np

        array = np.ascontiguousarray(value)
        if not isinstance(value, np.ndarray) or array.dtype.kind not in _KINDS:
            raise TypeError(f'a result holds {type(value).__name__}')
        padding = -self._arrays.tell() % _ALIGNMENT
        self._take(padding + array.nbytes)
        self._arrays.write(b'\0' * padding)
        place = self._arrays.tell()
        array.tofile(self._arrays)
        return [array.dtype.str, list(value.shape), place]

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise MemoryError('the result is too large')


def read_result(folder: Path, max_bytes: int) -> Any:
    """Return what `ResultWriter` wrote, arrays mapped; ValueError if it is anything else."""
    values = folder / VALUES
    if values.stat().st_size > max_bytes:
        raise ValueError('the result is too large')
    return _decoded(json.loads(values.read_bytes()), _Arrays(folder / ARRAYS))


class _Arrays:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._bytes: NDArray[Any] | None = None

    def at(self, kind: str, shape: list[int], place: int) -> NDArray[Any]:
        """Return an array of a type and shape that begins at a byte of the file."""
        import numpy as np

        if self._bytes is None:
            size = self._path.stat().st_size
            # Copy on write: for those who use it, it is an array like any other.
            self._bytes = (
                np.memmap(self._path, np.uint8, 'c') if size else np.zeros(0, np.uint8)
            ).view(np.ndarray)
        dtype = np.dtype(kind)
        size = math.prod(shape) * dtype.itemsize
        end = place + size
        if dtype.kind not in _KINDS or min([place, *shape]) < 0 or end > len(self._bytes):
            raise ValueError('an array of the result lies outside of its file')
        return self._bytes[place:end].view(dtype).reshape(shape)


def _decoded(value: Any, arrays: _Arrays) -> Any:
    if isinstance(value, dict):
        if _MARK in value:
            kind, shape, place = value[_MARK]
            return arrays.at(str(kind), [int(size) for size in shape], int(place))
        return {key: _decoded(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_decoded(item, arrays) for item in value]
    return value
