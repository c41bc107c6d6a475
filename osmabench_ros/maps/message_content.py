"""Points and boxes of a map as PointCloud2 and Detection3D hold them, and back, without ROS."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.boxes import OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.importers.pointcloud import INSTANCE_COLUMNS, LABEL_COLUMNS, find_column
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet, normalised_name
from osmabench_ros.semantics.scene_graph import SceneNode, ScoredLabel

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


def records_of_message(message: Any) -> NDArray[Any]:
    """Return the records of a sensor_msgs/PointCloud2, or of an object with its fields."""
    return records_of_buffer(
        message.data,
        [
            PointFieldLayout(item.name, item.offset, item.datatype, item.count)
            for item in message.fields
        ],
        width=message.width,
        height=message.height,
        point_step=message.point_step,
        row_step=message.row_step,
        big_endian=bool(message.is_bigendian),
    )


def dense_of_records(records: NDArray[Any]) -> tuple[DenseMap, int]:
    """Return the finite points of records, and the number of dropped ones."""
    columns = {name: records[name] for name in records.dtype.names or ()}
    if not {'x', 'y', 'z'} <= columns.keys():
        raise ContractError(f'PointCloud2: fields x, y, z are needed, there are {list(columns)}')
    points = np.stack([columns[name].astype(np.float32) for name in 'xyz'], axis=1)
    keep = np.isfinite(points).all(axis=1)
    color, labels, instances = (
        None if (column := find_column(columns, names)) is None else column[keep]
        for names in (('rgb', 'rgba'), LABEL_COLUMNS, INSTANCE_COLUMNS)
    )
    if labels is not None:
        labels = _check_ids(labels, 'label')
        labels[labels < 0] = UNLABELLED
    dense = DenseMap(
        points[keep],
        None if color is None else _unpack_colors(color),
        labels,
        None if instances is None else np.maximum(_check_ids(instances, 'instance'), 0),
    )
    return dense, int((~keep).sum())


def _check_ids(values: NDArray[Any], name: str) -> NDArray[np.int32]:
    limits = np.iinfo(np.int32)
    if len(values) and not (
        np.isfinite(values).all() and limits.min <= values.min() and values.max() <= limits.max
    ):
        raise ContractError(f'PointCloud2: a value of "{name}" is not a 32-bit id')
    return values.astype(np.int32)


def _unpack_colors(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return colours of packed values, floats or integers of 32 bits."""
    if values.dtype.itemsize != 4:
        raise ContractError(f'PointCloud2: rgb is {values.dtype}, not 32 bits wide')
    kind = values.dtype.newbyteorder('=')
    packed = np.ascontiguousarray(values.astype(kind)).view(np.uint32)
    channels = [(packed >> shift) & 0xFF for shift in (16, 8, 0)]
    return np.stack(channels, axis=1).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class Detection:
    """A box (pose, size (3,) in metres) and what may be in it: (class name or id, score)."""

    pose: Pose
    size: NDArray[np.float64]
    hypotheses: tuple[tuple[str, float], ...] = ()
    id: str = ''


def nodes_of_detections(
    detections: Sequence[Detection], label_set: LabelSet | None = None
) -> tuple[SceneNode, ...]:
    """Return one node a detection, labels best first; ValueError names a bad size.

    Classes by number are looked up in the label set, else called "class <number>"; ids are kept as
    node ids if all are different whole numbers from 1 up, else as source ids.
    """
    nodes, ids = [], choose_node_ids([item.id for item in detections])
    for node_id, item in zip(ids, detections, strict=True):
        try:
            box = OrientedBox(item.pose, item.size)
            flat = box.axis_aligned()
        except ValueError as error:
            raise ValueError(f'detection {item.id or node_id}: {error}') from error
        nodes.append(
            SceneNode(
                node_id,
                labels=_read_labels(item.hypotheses, label_set),
                box=flat,
                oriented_box=box,
                source_id=item.id,
            )
        )
    return tuple(nodes)


def detection_of_node(node: SceneNode) -> Detection | None:
    """Return a node as a box with hypotheses by class name, None if it has no box."""
    hypotheses = tuple((label.name, label.score) for label in node.labels)
    if node.oriented_box is not None:
        box = node.oriented_box
        return Detection(box.pose, box.size, hypotheses, str(node.id))
    if node.box is not None:
        return Detection(Pose(np.eye(3), node.box.center), node.box.size, hypotheses, str(node.id))
    return None


def choose_node_ids(names: Sequence[str]) -> list[int]:
    """Return node ids: the names if all are different whole numbers from 1 up, else new ones."""
    ids = [int(name) if name.isascii() and name.isdigit() else 0 for name in names]
    if len(set(ids)) == len(ids) and all(1 <= node < 2**31 for node in ids):
        return ids
    return list(range(1, len(names) + 1))


def _read_labels(
    hypotheses: Sequence[tuple[str, float]], label_set: LabelSet | None
) -> tuple[ScoredLabel, ...]:
    made = []
    for given, score in hypotheses:
        name, class_id = normalised_name(given), UNLABELLED
        if given.isascii() and given.isdigit():
            found = label_set.by_id.get(int(given)) if label_set else None
            name, class_id = (
                (found.name, found.id) if found else (f'class {int(given)}', UNLABELLED)
            )
        elif label_set is not None:
            class_id = label_set.id_of(name)
        if name:
            made.append(ScoredLabel(name, float(score), class_id))
    return tuple(
        sorted(made, key=lambda item: math.inf if math.isnan(item.score) else -item.score)
    )
