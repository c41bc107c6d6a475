"""What can be wrong with the points of a map and the arrays beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.fault import Fault, class_ids, json_fault, repeated, rows_of
from osmabench_ros.maps.raw_map import (
    CHANNELS,
    CLOUD_SCALARS,
    COORDINATES,
    MEMBERSHIP_ARRAYS,
    PART_TYPES,
    RawMap,
)
from osmabench_ros.semantics.labels import UNLABELLED


def cloud_faults(raw: RawMap) -> Iterator[Fault]:
    """Yield the faults of cloud.ply: properties, types, coordinates, ids."""
    dense, cloud = raw.document['dense'], raw.cloud
    if cloud is None:
        return
    count = len(next(iter(cloud.values())))
    if count != dense['points']:
        yield Fault('cloud.ply', 'vertex', f'{count} points; map.json says {dense["points"]}')
    wanted: dict[str, Any] = dict.fromkeys(COORDINATES, np.float32)
    if 'colors' in dense.get('parts', ()):
        wanted |= dict.fromkeys(CHANNELS, np.uint8)
    for part, name in CLOUD_SCALARS.items():
        if part in dense.get('parts', ()):
            wanted[name] = PART_TYPES[part]
    for name, dtype in wanted.items():
        if name not in cloud:
            yield Fault('cloud.ply', name, 'this property is missing')
        elif cloud[name].dtype != dtype:
            yield Fault('cloud.ply', name, f'is {cloud[name].dtype}, not {np.dtype(dtype)}')
    yield from _cloud_value_faults(raw, {k: v for k, v in cloud.items() if k in wanted})


def _cloud_value_faults(raw: RawMap, cloud: Mapping[str, NDArray[Any]]) -> Iterator[Fault]:
    for name in COORDINATES:
        if name in cloud and not np.isfinite(cloud[name]).all():
            bad = ~np.isfinite(cloud[name])
            yield Fault('cloud.ply', f'{name}, {rows_of(bad)}', 'a coordinate is NaN or infinite')
    if 'score' in cloud and np.isinf(cloud['score']).any():
        bad = np.isinf(cloud['score'])
        yield Fault('cloud.ply', f'score, {rows_of(bad)}', 'a score is infinite')
    if 'label' in cloud:
        classes = class_ids(raw.document)
        if classes is None:
            yield Fault('cloud.ply', 'label', 'points have labels, but the map has no label set')
        else:
            yield from _unknown_faults(
                'cloud.ply', 'label', cloud['label'], classes | {UNLABELLED}, 'label set'
            )
    if 'instance' in cloud:
        ids = {node['id'] for node in raw.document.get('nodes', [])}
        yield from _unknown_faults('cloud.ply', 'instance', cloud['instance'], ids | {0}, 'nodes')


def _unknown_faults(
    file: str, place: str, values: NDArray[Any], known: set[int], where: str
) -> Iterator[Fault]:
    unknown = np.setdiff1d(values, np.array(sorted(known), np.int64))
    if unknown.size:
        bad = np.isin(values, unknown)
        some = ', '.join(str(value) for value in unknown[:5])
        yield Fault(file, f'{place}, {rows_of(bad)}', f'{some}: not among the {where}')


def _range_fault(file: str, values: NDArray[Any], low: int, high: int, of: str) -> Iterator[Fault]:
    bad = (values < low) | (values >= high)
    if bad.any():
        value = values[np.flatnonzero(bad)[0]]
        yield Fault(file, rows_of(bad), f'{value} is out of range: {of}')


def _typed(
    raw: RawMap, file: str, dtype: Any, shape: tuple[int, ...] | None
) -> tuple[NDArray[Any] | None, list[Fault]]:
    """Return the array if it has the right type and shape (None: any length), and its faults."""
    array = raw.arrays.get(file)
    if array is None:
        return None, []
    wanted = shape or (array.shape[:1] if array.ndim else (0,))
    if array.dtype != dtype or array.shape != wanted:
        name = np.dtype(dtype).name
        text = f'{array.dtype} of shape {array.shape}, not {name} of {wanted}'
        return None, [Fault(file, '', text)]
    return array, []


def dense_array_faults(raw: RawMap) -> Iterator[Fault]:
    """Yield the faults of the feature rows and the validity of points."""
    dense = raw.document['dense']
    rows = {space['name']: space['rows'] for space in raw.document.get('feature_spaces', [])}
    space = dense.get('feature_space', '')
    if space and space not in rows:
        yield json_fault('dense.feature_space', f'"{space}" is not among the feature spaces')
    elif 'feature_rows' in dense.get('parts', ()) and not space:
        yield json_fault('dense.feature_space', 'is empty, though points have feature rows')
    shape = (dense['points'],)
    _, faults = _typed(raw, 'dense/valid.npy', np.bool_, shape)
    yield from faults
    file = 'dense/feature_rows.npy'
    values, faults = _typed(raw, file, np.int32, shape)
    yield from faults
    if values is not None and space in rows:
        yield from _range_fault(file, values, -1, rows[space], f'"{space}" has {rows[space]} rows')


def membership_faults(raw: RawMap) -> Iterator[Fault]:
    """Yield the faults of the membership of points in nodes."""
    files = {name: f'dense/membership_{name}.npy' for name in MEMBERSHIP_ARRAYS}
    arrays: dict[str, NDArray[Any]] = {}
    for name, file in files.items():
        array, faults = _typed(raw, file, PART_TYPES[name], None)
        yield from faults
        if array is not None:
            arrays[name] = array
    if 'node_ids' in arrays:
        ids = {node['id'] for node in raw.document.get('nodes', [])}
        yield from _unknown_faults(files['node_ids'], 'node', arrays['node_ids'], ids, 'nodes')
        for i, first, value in repeated(arrays['node_ids'].tolist()):
            yield Fault(files['node_ids'], f'row {i}', f'node {value} has row {first} already')
    if 'point_indices' in arrays:
        count = raw.document['dense']['points']
        yield from _range_fault(
            files['point_indices'], arrays['point_indices'], 0, count, f'there are {count} points'
        )
    if len(arrays) == len(files):
        yield from _offset_faults(files['offsets'], **arrays)


def _offset_faults(
    file: str,
    node_ids: NDArray[Any],
    offsets: NDArray[Any],
    point_indices: NDArray[Any],
) -> Iterator[Fault]:
    checks: list[tuple[str, Callable[[], bool], str]] = [
        ('', lambda: len(offsets) == len(node_ids) + 1, f'needs {len(node_ids) + 1} entries'),
        ('row 0', lambda: offsets[0] == 0, 'must be 0'),
        ('last row', lambda: offsets[-1] == len(point_indices), f'must be {len(point_indices)}'),
        ('', lambda: bool((np.diff(offsets) >= 0).all()), 'must not decrease'),
    ]
    for place, holds, message in checks:
        if not holds():
            yield Fault(file, place, message)
            return
