"""PLY and PCD files of points with any scalar properties."""

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.fence import read_in_fence
from osmabench_ros.base.reading import opened
from osmabench_ros.errors import PointFileError, errors_as

_PCD_TYPES = {'i': 'I', 'u': 'U', 'f': 'F'}


def write_pcd(stream: IO[bytes], columns: Mapping[str, NDArray[Any]]) -> None:
    """Write one point per row as binary PCD 0.7; equal columns give equal bytes.

    Columns (N,) are integers or floats. Red, green and blue of 8 bits become the packed field
    `rgb` that PCL and Open3D read.
    """
    columns = _with_packed_colors(columns)
    kinds = [values.dtype for values in columns.values()]
    rows = make_rows(columns)
    count = len(rows)
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
    packed = pack_colors(*(columns[name] for name in ('red', 'green', 'blue')))
    named = [('rgb', packed) if name == 'red' else (name, columns[name]) for name in columns]
    return {name: values for name, values in named if name not in ('green', 'blue')}


def pack_colors(red: NDArray[Any], green: NDArray[Any], blue: NDArray[Any]) -> NDArray[np.uint32]:
    """Return colours of 8 bits as PCL has them, 0x00RRGGBB."""
    wide = [channel.astype(np.uint32) for channel in (red, green, blue)]
    return np.asarray(wide[0] << 16 | wide[1] << 8 | wide[2], np.uint32)


_NAMES = {
    'i1': 'char', 'u1': 'uchar', 'i2': 'short', 'u2': 'ushort',
    'i4': 'int', 'u4': 'uint', 'f4': 'float', 'f8': 'double',
}  # fmt: skip
_TYPES = {name: f'<{kind}' for kind, name in _NAMES.items()}
_MAX_HEADER_BYTES = 65536
_MAX_DIGITS = 18


def write_ply(stream: IO[bytes], columns: Mapping[str, NDArray[Any]]) -> None:
    """Write one vertex a row as binary little-endian PLY; equal columns give equal bytes.

    Columns (N,) are 8 to 32-bit integers and 32 or 64-bit floats. Open3D and other viewers take
    x, y, z, red, green, blue and pass over the rest.
    """
    rows = make_rows(columns)
    lines = ['ply', 'format binary_little_endian 1.0', f'element vertex {len(rows)}']
    lines += [f'property {_NAMES[part.dtype.str[1:]]} {name}' for name, part in columns.items()]
    stream.write(('\n'.join([*lines, 'end_header']) + '\n').encode('ascii'))
    stream.write(rows.tobytes())


def make_rows(columns: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return packed little-endian rows (N,) of columns of one length."""
    kinds = [(name, values.dtype.newbyteorder('<')) for name, values in columns.items()]
    rows = np.empty(len(next(iter(columns.values()))), kinds)
    for name, values in columns.items():
        rows[name] = values
    return rows


def read_ply(path: Path) -> dict[str, NDArray[Any]]:
    """Read the vertices of a PLY file as columns (N,) in native byte order.

    A file as `write_ply` writes it is read here, any other in the fence. Raises PointFileError if
    it is not a PLY file, is cut off, or has no vertices; LimitError if it takes too much.
    """
    with opened(path, PointFileError) as (stream, size):
        dtype, count = _read_plain_header(stream)
        if dtype is not None:
            needed = count * dtype.itemsize
            left = size - stream.tell()
            if left < needed:
                text = f'{count} vertices need {needed} bytes, {left} are there'
                raise PointFileError(f'{path} is cut off: {text}')
            rows = np.frombuffer(stream.read(needed), dtype, count)
            return {name: np.ascontiguousarray(rows[name]) for name in dtype.names or ()}
    elements = read_ply_elements(path)
    if not elements.get('vertex'):
        raise PointFileError(f'{path} has no vertices')
    return elements['vertex']


def _read_plain_header(stream: IO[bytes]) -> tuple[np.dtype[Any] | None, int]:
    """Return the type and number of vertices, None if there is more or it is not plain binary."""
    count, kinds = -1, list[tuple[str, str]]()
    header, end, _ = stream.read(_MAX_HEADER_BYTES).partition(b'end_header\n')
    stream.seek(len(header) + len(end))
    magic, *lines = header.decode('ascii', 'replace').splitlines() or ['']
    if not end or magic != 'ply' or lines[:1] != ['format binary_little_endian 1.0']:
        return None, 0
    for line in lines[1:]:
        match line.split():
            case ['comment', *_]:
                pass
            case ['element', 'vertex', number] if count < 0 and number.isdecimal():
                count = int(number[:_MAX_DIGITS])
            case ['property', kind, name] if count >= 0 and kind in _TYPES:
                kinds.append((name, _TYPES[kind]))
            case _:
                return None, 0
    distinct = len(dict(kinds)) == len(kinds) > 0
    return (np.dtype(kinds), count) if distinct else (None, 0)


def read_ply_elements(path: Path) -> dict[str, dict[str, NDArray[Any]]]:
    """Read a PLY file of any origin in the fence.

    Returns
    -------
    dict of str to dict of str to ndarray
        For each element its properties: scalars (N,), lists of one length (N, K), in native byte
        order. Lists of different lengths are left out.

    Raises
    ------
    PointFileError
        If it is not a PLY file, or is cut off.
    LimitError
        If reading it takes too much memory or time.
    """
    with opened(path, PointFileError):  # names a missing file
        pass
    found: dict[str, dict[str, NDArray[Any]]] = read_in_fence(
        parse_ply, path, libraries=('trimesh.exchange.ply',)
    )
    return found


def parse_ply(path: Path) -> dict[str, dict[str, NDArray[Any]]]:
    """Return the elements of a PLY file, in the fence."""
    from trimesh.exchange.ply import load_ply

    what, remedy = f'{path} cannot be read as PLY', 'check that it is complete, or export it again'
    # trimesh raises whatever it meets in damaged data.
    with errors_as(PointFileError, what, Exception, remedy=remedy), path.open('rb') as stream:
        loaded = load_ply(stream, fix_texture=False, skip_materials=True)
        elements = loaded['metadata']['_ply_raw']
        return {name: read_element_columns(name, item) for name, item in elements.items()}


def read_element_columns(name: str, element: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the properties of an element as trimesh reads it; ValueError if rows are missing."""
    count = element['length']
    data = element.get('data', {})
    fields = getattr(data, 'dtype', None)
    columns = {}
    for key, kind in element['properties'].items() if count else ():
        if key not in (data if fields is None else fields.names):
            raise ValueError(f'rows of element "{name}" have no {key}')
        column = data[key]
        if len(column) != count:
            raise ValueError(f'{len(column)} of {count} rows of element "{name}" are there')
        if ',' not in kind:
            column = column.reshape(count)
        elif fields is not None:
            column = column['f1'] if (column['f0'] == column['f1'].shape[1]).all() else None
        if column is None or column.dtype == object:
            if ',' not in kind:
                raise ValueError(f'a row of element "{name}" is incomplete')
            continue
        columns[key] = np.ascontiguousarray(column, column.dtype.newbyteorder('='))
    return columns
