"""The point layout of sensor_msgs/PointCloud2, encoded and decoded without ROS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import ContractError
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.semantics.labels import UNLABELLED

DATATYPES = {1: 'i1', 2: 'u1', 3: 'i2', 4: 'u2', 5: 'i4', 6: 'u4', 7: 'f4', 8: 'f8'}
"""Constants of sensor_msgs/PointField (INT8 = 1 ... FLOAT64 = 8) to NumPy types."""
_CODES = {kind: code for code, kind in DATATYPES.items()}


@dataclass(frozen=True)
class PointFieldLayout:
    """A field of a point, as in sensor_msgs/PointField."""

    name: str
    offset: int
    datatype: int
    count: int = 1


def records_of(dense: DenseMap) -> NDArray[Any]:
    """Return one record per point: x, y, z, and rgb, label, instance if the map has them.

    Records (N,) are little-endian and packed. `rgb` is a float whose bits are 0x00RRGGBB, as PCL
    has it; `label` is a class id, 65535 for none; `instance` a node id, 0 for none.
    """
    kinds = [('x', '<f4'), ('y', '<f4'), ('z', '<f4')]
    kinds += [('rgb', '<f4')] if dense.colors is not None else []
    kinds += [('label', '<u4')] if dense.labels is not None else []
    kinds += [('instance', '<i4')] if dense.instances is not None else []
    records = np.zeros(len(dense.points), np.dtype(kinds))
    for i, name in enumerate('xyz'):
        records[name] = dense.points[:, i]
    if dense.colors is not None:
        red, green, blue = dense.colors.astype('<u4').T
        records['rgb'] = (red << 16 | green << 8 | blue).astype('<u4').view('<f4')
    if dense.labels is not None:
        records['label'] = dense.labels
    if dense.instances is not None:
        records['instance'] = dense.instances
    return records


def fields_of(records: NDArray[Any]) -> tuple[PointFieldLayout, ...]:
    """Return the fields of records for the message."""
    fields: Mapping[str, Any] = records.dtype.fields or {}
    return tuple(
        PointFieldLayout(name, int(entry[1]), _CODES[entry[0].str[1:]])
        for name, entry in fields.items()
    )


def records_of_buffer(
    data: bytes | bytearray | memoryview | NDArray[np.uint8],
    fields: Sequence[PointFieldLayout],
    *,
    width: int,
    height: int,
    point_step: int,
    row_step: int,
    big_endian: bool = False,
) -> NDArray[Any]:
    """Return the records (height * width,) of a PointCloud2; may raise ContractError."""
    order = '>' if big_endian else '<'
    names, formats, offsets = [], [], []
    for field in fields:
        if field.datatype not in DATATYPES:
            raise ContractError(f'PointCloud2: field "{field.name}" has type {field.datatype}')
        kind = f'{order}{DATATYPES[field.datatype]}'
        end = field.offset + np.dtype(kind).itemsize * max(field.count, 1)
        if field.offset < 0 or end > point_step or field.name in names:
            raise ContractError(
                f'PointCloud2: field "{field.name}" ends at byte {end} of {point_step}, or repeats'
            )
        if field.count in (0, 1):
            names.append(field.name)
            formats.append(kind)
            offsets.append(field.offset)
    raw = np.frombuffer(data, np.uint8)
    if point_step < 1 or row_step < width * point_step or raw.size < height * row_step:
        raise ContractError(
            f'PointCloud2: {height} rows of {row_step} bytes, {width} points of {point_step} '
            f'bytes a row, but data has {raw.size} bytes'
        )
    layout = np.dtype(
        {'names': names, 'formats': formats, 'offsets': offsets, 'itemsize': point_step}
    )
    rows = raw[: height * row_step].reshape(height, row_step)[:, : width * point_step]
    return np.ascontiguousarray(rows).reshape(-1).view(layout)


def dense_of_records(records: NDArray[Any]) -> tuple[DenseMap, int]:
    """Return the finite points of records, and the number of dropped ones."""
    names = records.dtype.names or ()
    if not {'x', 'y', 'z'} <= set(names):
        raise ContractError(f'PointCloud2: fields x, y, z are needed, there are {list(names)}')
    points = np.stack([records[name].astype(np.float32) for name in 'xyz'], axis=1)
    keep = np.isfinite(points).all(axis=1)
    color = next((name for name in ('rgb', 'rgba') if name in names), None)
    labels = _ids(records['label'][keep], 'label') if 'label' in names else None
    if labels is not None:
        labels[labels < 0] = UNLABELLED
    instances = _ids(records['instance'][keep], 'instance') if 'instance' in names else None
    dense = DenseMap(
        points[keep],
        None if color is None else _colors(records[color][keep]),
        labels,
        None if instances is None else np.maximum(instances, 0),
    )
    return dense, int((~keep).sum())


def _ids(values: NDArray[Any], name: str) -> NDArray[np.int32]:
    limits = np.iinfo(np.int32)
    if len(values) and not (
        np.isfinite(values).all() and limits.min <= values.min() and values.max() <= limits.max
    ):
        raise ContractError(f'PointCloud2: a value of "{name}" is no 32-bit id')
    return values.astype(np.int32)


def _colors(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return colours of packed values, floats or integers of 32 bits."""
    if values.dtype.itemsize != 4:
        raise ContractError(f'PointCloud2: rgb is {values.dtype}, not 32 bits wide')
    kind = values.dtype.newbyteorder('=')
    packed = np.ascontiguousarray(values.astype(kind)).view(np.uint32)
    channels = [(packed >> shift) & 0xFF for shift in (16, 8, 0)]
    return np.stack(channels, axis=1).astype(np.uint8)
