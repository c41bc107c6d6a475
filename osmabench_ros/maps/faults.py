"""What can be wrong with the content of a map: references, ranges, features, points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.dense_faults import cloud_faults, dense_array_faults, membership_faults
from osmabench_ros.maps.fault import Fault, class_ids, json_fault, repeated, rows_of
from osmabench_ros.maps.raw_map import RawMap

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
    """Return the nodes of all cycles; each node is visited once, however long the chains."""
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
