"""Reads pickles of strangers: only data comes out, nothing runs."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.compressed import maybe_gzip
from osmabench_ros.base.limits.meter import Meter
from osmabench_ros.errors import MapError, UnsafePickleError
from osmabench_ros.maps.pickle_machine import PickleMachine
from osmabench_ros.maps.pickle_names import DropArray
from osmabench_ros.maps.torch_files import names_of_torch

_BUFFER_BYTES = 1 << 20


def load_pickle(path: Path, *, drop: DropArray | None = None) -> Any:
    """Read a pickle, plain or gzip, without running anything it asks for.

    Parameters
    ----------
    path : Path
        A .pkl or .pkl.gz file.
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
        If the file is missing, cut off or malformed.
    LimitError
        If it takes more memory or time than a file of its size may. What `drop` leaves out takes
        time only.
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
