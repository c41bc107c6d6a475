"""Checks of the content of a map: references, ranges, features, points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.disk.document import (
    CHANNELS,
    CLOUD_SCALARS,
    COORDINATES,
    MEMBERSHIP_ARRAYS,
    PART_TYPES,
    RawMap,
)
from osmabench_ros.semantics.labels import UNLABELLED


@dataclass(frozen=True)
class Fault:
    """A fault of a map: the file, the key or row in it ('' for the whole file), the fault."""

    file: str
    place: str
    message: str

    def __str__(self) -> str:
        return ': '.join(part for part in (self.file, self.place, self.message) if part)


def json_fault(place: str, message: str) -> Fault:
    """Return a fault of map.json."""
    return Fault('map.json', place, message)


def rows_of(mask: NDArray[np.bool_]) -> str:
    """Return the first rows that a mask marks, and how many more there are."""
    rows = np.flatnonzero(mask)
    first = ', '.join(str(row) for row in rows[:3])
    return f'row {first}' + (f' and {len(rows) - 3} more' if len(rows) > 3 else '')


def repeated(values: list[Any]) -> Iterator[tuple[int, int, Any]]:
    """Yield (position, first position, value) of every repeated value."""
    seen: dict[Any, int] = {}
    for i, value in enumerate(values):
        if value in seen:
            yield i, seen[value], value
        else:
            seen[value] = i


def class_ids(document: Mapping[str, Any]) -> set[int] | None:
    """Return the class ids of map.json, None without a label set."""
    label_set = document.get('label_set')
    return {item['id'] for item in label_set['classes']} if label_set else None


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
    file: str, node_ids: NDArray[Any], offsets: NDArray[Any], point_indices: NDArray[Any]
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


_UNIT_TOLERANCE = 1e-2


def faults_of_content(raw: RawMap) -> Iterator[Fault]:
    """Yield every fault of a map whose map.json has the right form and whose files were read."""
    yield from _label_set_faults(raw.document)
    yield from _node_faults(raw.document)
    yield from _edge_faults(raw.document)
    yield from _feature_space_faults(raw)
    if raw.document.get('dense'):
        yield from cloud_faults(raw)
        yield from dense_array_faults(raw)
        yield from membership_faults(raw)


def _label_set_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    classes = (document.get('label_set') or {}).get('classes', [])
    for key in ('id', 'name'):
        for i, first, value in repeated([item[key] for item in classes]):
            yield json_fault(
                f'label_set.classes[{i}].{key}', f'{value!r} is taken by classes[{first}]'
            )


def _node_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    nodes = document.get('nodes', [])
    classes = class_ids(document)
    rows = {space['name']: space['rows'] for space in document.get('feature_spaces', [])}
    parents = {node['id']: node.get('parent') for node in nodes}
    circular = _own_ancestors(parents)
    for i, first, value in repeated([node['id'] for node in nodes]):
        yield json_fault(f'nodes[{i}].id', f'node id {value} is taken by nodes[{first}]')
    for i, node in enumerate(nodes):
        place = f'nodes[{i}]'
        if node.get('parent') is not None and node['parent'] not in parents:
            yield json_fault(f'{place}.parent', f'node {node["parent"]} does not exist')
        elif node['id'] in circular:
            yield json_fault(f'{place}.parent', f'node {node["id"]} is its own ancestor')
        for k, label in enumerate(node.get('labels', [])):
            class_id = label.get('class_id')
            if class_id is not None and (classes is None or class_id not in classes):
                where = 'map has no label set' if classes is None else 'label set does not have it'
                yield json_fault(f'{place}.labels[{k}].class_id', f'{class_id}: the {where}')
        yield from _feature_row_faults(place, node, rows)
        yield from _rotation_faults(place, node.get('oriented_box'))


def _own_ancestors(parents: Mapping[int, int | None]) -> set[int]:
    """Return the nodes of all parent cycles; visits each node once."""
    circular: set[int] = set()
    done: set[int] = set()
    for start in parents:
        path: dict[int, int] = {}
        at: int | None = start
        while at is not None and at not in done and at not in path:
            path[at] = len(path)
            at = parents.get(at)
        if at in path:
            circular |= {node for node, place in path.items() if place >= path[at]}
        done.update(path)
    return circular


def _feature_row_faults(
    place: str, node: Mapping[str, Any], rows: Mapping[str, int]
) -> Iterator[Fault]:
    space, row = node.get('feature_space', ''), node.get('feature_row')
    if space and space not in rows:
        yield json_fault(f'{place}.feature_space', f'"{space}" is not among the feature spaces')
    elif row is not None and not space:
        yield json_fault(f'{place}.feature_row', f'{row}, but the node names no feature space')
    elif row is not None and row >= rows[space]:
        yield json_fault(
            f'{place}.feature_row', f'{row} is out of range: "{space}" has {rows[space]} rows'
        )


def _rotation_faults(place: str, box: Mapping[str, Any] | None) -> Iterator[Fault]:
    if box:
        try:
            Pose(box['rotation'], box['center'])
        except ValueError as error:
            yield json_fault(f'{place}.oriented_box.rotation', str(error))


def _edge_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    ids = {node['id'] for node in document.get('nodes', [])}
    for i, edge in enumerate(document.get('edges', [])):
        for end in ('source', 'target'):
            if edge[end] not in ids:
                yield json_fault(f'edges[{i}].{end}', f'node {edge[end]} does not exist')


def _feature_space_faults(raw: RawMap) -> Iterator[Fault]:
    spaces = raw.document.get('feature_spaces', [])
    for key in ('name', 'file'):
        for i, first, value in repeated([space[key] for space in spaces]):
            yield json_fault(
                f'feature_spaces[{i}].{key}', f'"{value}" is taken by feature_spaces[{first}]'
            )
    for space in spaces:
        file, shape = space['file'], (space['rows'], space['dimension'])
        vectors = raw.arrays.get(file)
        if vectors is None:
            continue
        if vectors.shape != shape or vectors.dtype != np.float32:
            yield Fault(
                file, '', f'{vectors.dtype} of shape {vectors.shape}, not float32 of {shape}'
            )
            continue
        unfinite = ~np.isfinite(vectors).all(axis=1)
        if unfinite.any():
            yield Fault(file, rows_of(unfinite), 'a feature is NaN or infinite')
        elif space.get('normalised'):
            with np.errstate(over='ignore'):
                off = np.abs(np.linalg.norm(vectors, axis=1) - 1) > _UNIT_TOLERANCE
            if off.any():
                yield Fault(file, rows_of(off), 'not of unit length, though declared normalised')
