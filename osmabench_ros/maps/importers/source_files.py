"""Finds and reads the files of a method, with errors that say what was expected."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.limits import documents
from osmabench_ros.errors import MapError
from osmabench_ros.geometry.ply import read_ply

_BLOCK = 1 << 20


def the_file(
    folder: Path, patterns: Sequence[str], what: str, besides: Sequence[str] = ()
) -> Path:
    """Return the one file that the first matching pattern finds.

    Parameters
    ----------
    folder : Path
        Where to look.
    patterns : sequence of str
        Glob patterns, best first.
    what : str
        What the file is, for the error.
    besides : sequence of str
        Names of files that are something else.

    Raises
    ------
    MapError
        If no pattern or more than one file of a pattern matches.
    """
    found = a_file(folder, patterns, what, besides)
    if found is None:
        raise MapError(f'{folder} has no {what}; expected {" or ".join(patterns)}')
    return found


def a_file(
    folder: Path, patterns: Sequence[str], what: str, besides: Sequence[str] = ()
) -> Path | None:
    """Return the file that `the_file` would, None if there is none."""
    for pattern in patterns:
        found = sorted(
            path for path in folder.glob(pattern) if path.is_file() and path.name not in besides
        )
        if len(found) > 1:
            names = ', '.join(path.name for path in found[:5])
            raise MapError(
                f'{folder} has more than one {what} ({names}); give the folder of one run, '
                'or the file itself'
            )
        if found:
            return found[0]
    return None


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises
    ------
    MapError
        If it is missing or malformed.
    """
    return documents.read_json(path, MapError)


def read_points(path: Path) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None]:
    """Read points (N, 3) and, if there are any, colours (N, 3) of a PLY file."""
    columns = read_ply(path)
    if not {'x', 'y', 'z'} <= set(columns):
        raise MapError(f'{path} has no properties x, y, z')
    points = np.stack([columns[name] for name in 'xyz'], axis=1).astype(np.float64)
    if not {'red', 'green', 'blue'} <= set(columns):
        return points, None
    channels = np.stack([columns[name] for name in ('red', 'green', 'blue')], axis=1)
    return points, colors_of(channels, channels.dtype.kind == 'f')


def numbers_of(value: Any, what: str) -> NDArray[Any]:
    """Return an array that a method saved.

    Raises
    ------
    MapError
        If it is none, or holds no numbers; an array made of a list of texts might take any memory.
    """
    if not isinstance(value, np.ndarray) or value.dtype.kind not in 'biuf':
        raise MapError(f'{what} holds no array of numbers, but a {type(value).__name__}')
    return value


def colors_of(values: NDArray[Any], unit_range: bool) -> NDArray[np.uint8]:
    """Return 8-bit colours of values in [0, 1] (`unit_range`) or [0, 255]."""
    scaled = np.asarray(values, np.float64) * (255.0 if unit_range else 1.0)
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)


def digest_of(paths: Iterable[Path], root: Path) -> str:
    """Return the sha256 of names (relative to `root`) and contents of files, in name order."""
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in set(paths)):
        digest.update(f'{name}\0{path.stat().st_size}\0'.encode())
        with path.open('rb') as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()
