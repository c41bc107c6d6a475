"""PLY and PCD files of points with any scalar properties, with NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.limits.reading import opened
from osmabench_ros.errors import OsmabenchError

_PCD_TYPES = {'i': 'I', 'u': 'U', 'f': 'F'}


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
        if values.dtype.kind not in _PCD_TYPES or values.shape != (count,):
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
        f'TYPE {" ".join(_PCD_TYPES[kind.kind] for kind in kinds)}',
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


_TYPES = {
    'char': 'i1', 'int8': 'i1', 'uchar': 'u1', 'uint8': 'u1',
    'short': 'i2', 'int16': 'i2', 'ushort': 'u2', 'uint16': 'u2',
    'int': 'i4', 'int32': 'i4', 'uint': 'u4', 'uint32': 'u4',
    'float': 'f4', 'float32': 'f4', 'double': 'f8', 'float64': 'f8',
}  # fmt: skip
_NAMES = {
    'i1': 'char', 'u1': 'uchar', 'i2': 'short', 'u2': 'ushort',
    'i4': 'int', 'u4': 'uint', 'f4': 'float', 'f8': 'double',
}  # fmt: skip
_ORDERS = {'ascii': '<', 'binary_little_endian': '<', 'binary_big_endian': '>'}
_MAX_HEADER_BYTES = 65536
_MAX_SHOWN = 100


class PlyError(OsmabenchError):
    """A file is no PLY file, is cut off, or has vertices of a kind that cannot be read."""


def write_ply(stream: IO[bytes], columns: Mapping[str, NDArray[Any]]) -> None:
    """Write one vertex a row as binary little-endian PLY; equal columns give equal bytes.

    Columns (N,) are 8 to 32-bit integers and 32 or 64-bit floats. Open3D and other viewers take
    x, y, z, red, green, blue and pass over the rest. Raises PlyError if the columns differ in
    length or PLY has no type for one.
    """
    count = len(next(iter(columns.values())))
    kinds: list[tuple[str, str]] = []
    lines = ['ply', 'format binary_little_endian 1.0', f'element vertex {count}']
    for name, values in columns.items():
        kind = values.dtype.str[1:]
        if kind not in _NAMES or values.shape != (count,):
            raise PlyError(
                f'PLY property "{name}" is {values.dtype} of shape {values.shape}; '
                f'give {count} integers of at most 32 bits or floats'
            )
        kinds.append((name, f'<{kind}'))
        lines.append(f'property {_NAMES[kind]} {name}')
    rows = np.empty(count, np.dtype(kinds))
    for name, values in columns.items():
        rows[name] = values
    stream.write(('\n'.join([*lines, 'end_header']) + '\n').encode('ascii'))
    stream.write(rows.tobytes())


def read_ply(path: Path) -> dict[str, NDArray[Any]]:
    """Read the vertices of an ASCII or binary PLY file as columns (N,) in native byte order.

    Faces and other elements behind them are passed over. Raises PlyError if the file is no PLY
    file, is cut off, or its vertices hold lists.
    """
    with opened(path, PlyError) as (stream, size):
        form, elements = read_ply_header(stream, path)
        count, dtype = _vertices(form, elements, path)
        if form == 'ascii':
            rows = _read_ascii(stream, path, count, dtype)
        else:
            left = size - stream.tell()
            if left < count * dtype.itemsize:
                raise PlyError(
                    f'{path} is cut off: {count} vertices need {count * dtype.itemsize} bytes, '
                    f'{left} are there'
                )
            rows = np.frombuffer(stream.read(count * dtype.itemsize), dtype, count)
    return {
        name: np.ascontiguousarray(rows[name], rows.dtype[name].newbyteorder('='))
        for name in rows.dtype.names or ()
    }


@dataclass(frozen=True)
class PlyElement:
    """An element of a PLY file; of each property the words of its line, as in the header."""

    name: str
    count: int
    properties: list[list[str]]


def read_ply_header(stream: IO[bytes], path: Path) -> tuple[str, list[PlyElement]]:
    """Return format and elements of a PLY file, whose data follow; PlyError if malformed."""
    if stream.readline(16).strip() != b'ply':
        raise PlyError(f'{path} is no PLY file: its first line is not "ply"')
    form, elements = '', list[PlyElement]()
    while True:
        line = stream.readline(_MAX_HEADER_BYTES)
        parts = line.decode('ascii', 'replace').split()
        if not line or stream.tell() > _MAX_HEADER_BYTES:
            raise PlyError(f'{path}: the PLY header has no end')
        if parts[:1] == ['end_header']:
            return form, elements
        try:
            if parts[:1] == ['format']:
                form = parts[1]
                _ORDERS[form]
            elif parts[:1] == ['element']:
                elements.append(PlyElement(parts[1], int(parts[2]), []))
                if elements[-1].count > 0 and 'vertex' not in {item.name for item in elements}:
                    raise PlyError(f'{path}: element "{parts[1]}" stands before the vertices')
            elif parts[:1] == ['property'] and elements:
                elements[-1].properties.append(parts)
        except (IndexError, KeyError, ValueError) as error:
            raise _unreadable(path, parts) from error


def ply_types(form: str, words: list[str], path: Path) -> tuple[str, tuple[str, ...]]:
    """Return name and NumPy type of a property; of a list, the types of its length and items."""
    try:
        kinds, name = (words[2:4], words[4]) if words[1] == 'list' else (words[1:2], words[2])
        return name, tuple(_ORDERS[form] + _TYPES[kind] for kind in kinds)
    except (IndexError, KeyError) as error:
        raise _unreadable(path, words) from error


def _unreadable(path: Path, words: list[str]) -> PlyError:
    return PlyError(f'{path}: cannot read PLY header line "{" ".join(words)[:_MAX_SHOWN]}"')


def _vertices(form: str, elements: list[PlyElement], path: Path) -> tuple[int, np.dtype[Any]]:
    """Return how many vertices there are, and what each one holds."""
    kinds: list[tuple[str, str]] = []
    none = PlyElement('vertex', -1, [])
    vertex = next((item for item in elements if item.name == 'vertex'), none)
    for words in vertex.properties:
        name, types = ply_types(form, words, path)
        if len(types) > 1:
            raise _unreadable(path, words)
        kinds.append((name, types[0]))
    if vertex.count < 0 or not kinds or len({name for name, _ in kinds}) != len(kinds):
        raise PlyError(f'{path}: the PLY header must declare vertices with distinct properties')
    return vertex.count, np.dtype(kinds)


def _read_ascii(stream: IO[bytes], path: Path, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    lines: list[tuple[bytes, ...]] = []
    for line in stream:
        if len(lines) == count:
            break
        lines.append(tuple(line.split()))
    if len(lines) < count:
        raise PlyError(f'{path} is cut off: {len(lines)} of {count} vertices are there')
    width = len(dtype.names or ())
    if any(len(line) != width for line in lines):
        raise PlyError(f'{path}: a vertex line does not have {width} values')
    try:
        table = np.array(lines, np.float64).reshape(count, width)
    except ValueError as error:
        raise PlyError(
            f'{path}: a vertex value is no number: {str(error)[:_MAX_SHOWN]}'
        ) from error
    rows = np.empty(count, dtype)
    for i, name in enumerate(dtype.names or ()):
        rows[name] = table[:, i]
    return rows
