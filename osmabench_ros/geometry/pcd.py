"""Writes points with any scalar properties as PCD, with NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import OsmabenchError

_TYPES = {'i': 'I', 'u': 'U', 'f': 'F'}


class PcdError(OsmabenchError):
    """PCD has no type for a property, or properties differ in length."""


def write_pcd(stream: IO[bytes], columns: Mapping[str, NDArray[Any]]) -> None:
    """Write one point a row as binary PCD 0.7; equal columns give equal bytes.

    Columns (N,) are little-endian integers or floats. Red, green and blue of 8 bits become the
    packed field `rgb` that PCL and Open3D read. Raises PcdError if the columns differ in length
    or PCD has no type for one.
    """
    columns = _with_packed_colors(columns)
    count = len(next(iter(columns.values())))
    for name, values in columns.items():
        if values.dtype.kind not in _TYPES or values.shape != (count,):
            raise PcdError(
                f'PCD field "{name}" is {values.dtype} of shape {values.shape}; '
                f'give {count} integers or floats'
            )
    rows = np.empty(count, [(name, values.dtype.str) for name, values in columns.items()])
    for name, values in columns.items():
        rows[name] = values
    kinds = [values.dtype for values in columns.values()]
    lines = (
        'VERSION 0.7',
        f'FIELDS {" ".join(columns)}',
        f'SIZE {" ".join(str(kind.itemsize) for kind in kinds)}',
        f'TYPE {" ".join(_TYPES[kind.kind] for kind in kinds)}',
        f'COUNT {" ".join("1" for _ in kinds)}',
        f'WIDTH {count}',
        'HEIGHT 1',
        'VIEWPOINT 0 0 0 1 0 0 0',
        f'POINTS {count}',
        'DATA binary',
    )
    stream.write(('\n'.join(lines) + '\n').encode('ascii'))
    stream.write(rows.tobytes())


def _with_packed_colors(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    if not {'red', 'green', 'blue'} <= columns.keys():
        return dict(columns)
    red, green, blue = (columns[name].astype(np.uint32) for name in ('red', 'green', 'blue'))
    made: dict[str, NDArray[Any]] = {}
    for name, values in columns.items():
        if name == 'red':
            made['rgb'] = red << 16 | green << 8 | blue
        elif name not in ('green', 'blue'):
            made[name] = values
    return made
