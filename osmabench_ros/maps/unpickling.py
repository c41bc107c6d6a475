"""Reads pickles of strangers: only data comes out, nothing runs."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import IO, Any

from osmabench_ros.errors import MapError, UnsafePickleError
from osmabench_ros.maps.pickle_machine import PickleMachine
from osmabench_ros.maps.pickle_names import DropArray
from osmabench_ros.maps.torch_files import names_of_torch

MAX_BYTES = 16 << 30
"""Largest decompressed size of a pickle; the image masks in ConceptGraphs maps take gigabytes."""
_GZIP_MAGIC = b'\x1f\x8b'
_BUFFER_BYTES = 1 << 20


class CappedStream(io.RawIOBase):
    """Passes reads on until a number of bytes has come, then raises.

    Parameters
    ----------
    stream : binary file
        Where the bytes come from, e.g. a decompressor.
    max_bytes : int
        Largest number of bytes that is read.
    """

    def __init__(self, stream: IO[bytes], max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._count = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, never more than one byte beyond the limit."""
        left = self._max_bytes - self._count + 1
        data = self._stream.read(min(len(buffer), left))
        self._count += len(data)
        if self._count > self._max_bytes:
            raise MapError(
                f'unpacks to more than {self._max_bytes} bytes: refused as a decompression bomb'
            )
        buffer[: len(data)] = data
        return len(data)


def load_pickle(path: Path, *, max_bytes: int = MAX_BYTES, drop: DropArray | None = None) -> Any:
    """Read a pickle, plain or gzip, without running anything it asks for.

    Parameters
    ----------
    path : Path
        A .pkl or .pkl.gz file.
    max_bytes : int
        Largest decompressed size.
    drop : callable, optional
        Arrays that are not needed, by element type and shape; they become None.

    Returns
    -------
    object
        Numbers, texts, containers, arrays, and `Inert` for objects of known foreign classes.

    Raises
    ------
    UnsafePickleError
        If the pickle asks for anything outside the allow-list; names it.
    MapError
        If the file is missing, cut off, malformed or too large.
    """
    if not path.is_file():
        raise MapError(f'{path} does not exist')
    try:
        with path.open('rb') as plain:
            packed = plain.read(2) == _GZIP_MAGIC
            plain.seek(0)
            stream: Any = gzip.GzipFile(fileobj=plain) if packed else plain
            capped = io.BufferedReader(CappedStream(stream, max_bytes), _BUFFER_BYTES)
            return PickleMachine(capped, names_of_torch(drop)).load()
    except UnsafePickleError as error:
        raise UnsafePickleError(f'{path} {error}') from error
    except (MapError, OSError, EOFError, zlib.error) as error:
        raise MapError(f'{path} {error}') from error
