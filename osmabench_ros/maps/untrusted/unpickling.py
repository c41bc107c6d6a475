"""Reads untrusted pickles as plain data, without running any code."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.compressed import maybe_gzip
from osmabench_ros.base.limits.meter import Meter
from osmabench_ros.errors import MapError, UnsafePickleError
from osmabench_ros.maps.untrusted.pickle_machine import PickleMachine
from osmabench_ros.maps.untrusted.pickle_names import DropArray
from osmabench_ros.maps.untrusted.torch_files import names_of_torch

_BUFFER_BYTES = 1 << 20


def load_pickle(path: Path, *, drop: DropArray | None = None) -> Any:
    """Read a pickle, plain or gzip, without running any code.

    Returns numbers, texts, containers, arrays, and `Inert` for objects of known foreign classes;
    arrays that `drop` selects become None. Raises UnsafePickleError, which names it, if it asks
    for anything outside the allow-list, MapError if the file is missing, cut off or malformed,
    LimitError beyond the memory or time that a file of its size may take.
    """
    if not path.is_file():
        raise MapError(f'{path} does not exist')
    try:
        meter = Meter(path, path.stat().st_size)
        with path.open('rb') as plain:
            unpacked = io.BufferedReader(maybe_gzip(plain, meter), _BUFFER_BYTES)
            return PickleMachine(unpacked, names_of_torch(meter, drop), meter).load()
    except UnsafePickleError as error:
        raise UnsafePickleError(f'{path} {error}') from error
    except (MapError, OSError, EOFError, zlib.error) as error:
        raise MapError(f'{path} {error}') from error
