"""Checks of the content of a map: references, ranges, features, points."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.disk.document import (
    MEMBERSHIP_FILES,
    RawMap,
    list_array_forms,
    list_cloud_types,
)
from osmabench_ros.maps.semantic_map import COORDINATES
from osmabench_ros.semantics.labels import UNLABELLED

_MAX_ROWS = 3
_UNIT_TOLERANCE = 1e-2
_JSON, _CLOUD = 'map.json', 'cloud.ply'


@dataclass(frozen=True)
class Fault:
    """An error in a map: the file, the key or row in it ('' for the whole file), and the text."""

    file: str
    place: str
    message: str

    def __str__(self) -> str:
        return ': '.join(part for part in (self.file, self.place, self.message) if part)


def faults_of_content(raw: RawMap) -> Iterator[Fault]:
    """Yield the errors of a map if map.json has the right form.

    Arrays are compared with other files only if all of them are there and have the right form.
    """
    document = raw.document
    known = _Known(
        {node['id'] for node in document.get('nodes', ())},
        {item['id'] for item in (document.get('label_set') or {}).get('classes', ())},
        {space['name']: space['rows'] for space in document.get('feature_spaces', ())},
    )
    yield from _check_document(document, known)
    malformed = list(_check_forms(raw))
    yield from malformed
    if not malformed:
        yield from _check_features(raw)
        if document.get('dense'):
            yield from _check_points(raw, known)
            yield from _check_membership(raw, known)


@dataclass(frozen=True)
class _Known:
    """What references may lead to: ids of nodes and classes, and rows by feature space."""

    nodes: set[int]
    classes: set[int]
    rows: Mapping[str, int]


def _report(
    file: str, place: str, values: Sequence[Any] | NDArray[Any], wrong: Any, why: str
) -> Iterator[Fault]:
    """Yield one error that names the first rows that `wrong` marks, and the first wrong value."""
    rows = np.flatnonzero(wrong)
    if rows.size:
        shown = ', '.join(str(row) for row in rows[:_MAX_ROWS])
        more = f' and {rows.size - _MAX_ROWS} more' if rows.size > _MAX_ROWS else ''
        place = place.replace('[]', f'[{shown}]') if '[]' in place else f'{place}row {shown}'
        yield Fault(file, place + more, f'{values[rows[0]]!s:.100}: {why}')


def _find_unknown(values: Sequence[Any] | NDArray[Any], known: Collection[Any]) -> Any:
    if isinstance(values, np.ndarray):
        return ~np.isin(values, list(known))
    return [value not in known for value in values]


def _find_repeated(values: Sequence[Any]) -> list[bool]:
    first = {value: i for i, value in reversed(list(enumerate(values)))}
    return [first[value] != i for i, value in enumerate(values)]


def _check_document(document: Mapping[str, Any], known: _Known) -> Iterator[Fault]:
    nodes, edges, spaces = (document.get(key, []) for key in ('nodes', 'edges', 'feature_spaces'))
    classes = (document.get('label_set') or {}).get('classes', [])
    for name, items, key in (
        ('label_set.classes', classes, 'id'),
        ('label_set.classes', classes, 'name'),
        ('feature_spaces', spaces, 'name'),
        ('feature_spaces', spaces, 'file'),
        ('nodes', nodes, 'id'),
    ):
        values = [item[key] for item in items]
        wrong = _find_repeated(values)
        yield from _report(_JSON, f'{name}[].{key}', values, wrong, 'is taken already')
    for name, items, key, there, among in (
        ('nodes', nodes, 'parent', known.nodes, 'nodes'),
        ('nodes', nodes, 'feature_space', {*known.rows, ''}, 'feature spaces'),
        ('edges', edges, 'source', known.nodes, 'nodes'),
        ('edges', edges, 'target', known.nodes, 'nodes'),
    ):
        values = [item.get(key) for item in items]
        wrong = _find_unknown(values, there | {None})
        yield from _report(_JSON, f'{name}[].{key}', values, wrong, f'not among the {among}')
    ids = [node['id'] for node in nodes]
    cycles = _find_cycles({node['id']: node.get('parent') for node in nodes})
    used = [{label.get('class_id') for label in node.get('labels', ())} for node in nodes]
    rows = [node.get('feature_row') for node in nodes]
    counts = [known.rows.get(node.get('feature_space', ''), 0) for node in nodes]
    turns = [_check_rotation(node.get('oriented_box')) for node in nodes]
    strange = [of_node - known.classes - {None} for of_node in used]
    beyond = [row is not None and row >= n for row, n in zip(rows, counts, strict=True)]
    for key, values, wrong, why in (
        ('parent', ids, [node in cycles for node in ids], 'this node is its own ancestor'),
        ('labels', strange, list(map(bool, strange)), 'not in the label set'),
        ('feature_row', rows, beyond, 'the feature space of the node does not have this row'),
        ('oriented_box.rotation', turns, list(map(bool, turns)), 'not a rotation'),
    ):
        yield from _report(_JSON, f'nodes[].{key}', values, wrong, why)
    dense = document.get('dense') or {}
    space = dense.get('feature_space', '')
    if (space or 'feature_rows' in dense.get('parts', ())) and space not in known.rows:
        yield Fault(_JSON, 'dense.feature_space', f'"{space}": not among the feature spaces')
    if 'labels' in dense.get('parts', ()) and not document.get('label_set'):
        yield Fault(_JSON, 'label_set', 'is missing, though points have labels')


def _find_cycles(parents: Mapping[int, int | None]) -> set[int]:
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


def _check_rotation(box: Mapping[str, Any] | None) -> str:
    if box:
        try:
            Pose(box['rotation'], box['center'])
        except ValueError as error:
            return str(error)
    return ''


def _check_forms(raw: RawMap) -> Iterator[Fault]:
    """Yield the errors of arrays that have another type or shape than map.json says."""
    forms = list_array_forms(raw.document)
    wanted = {(name, ''): (raw.arrays.get(name), *form) for name, form in forms.items()}
    dense = raw.document.get('dense')
    if dense and raw.cloud is not None:
        for name, dtype in list_cloud_types(raw.document).items():
            wanted[_CLOUD, name] = (raw.cloud.get(name), dtype, (dense['points'],))
    for (file, place), (array, dtype, shape) in wanted.items():
        if array is None:
            yield Fault(file, place, 'is missing')
        elif array.dtype != dtype or (array.shape != shape if shape else array.ndim != 1):
            wish = f'{np.dtype(dtype)} of {shape or "(N,)"}'
            yield Fault(file, place, f'{array.dtype} of shape {array.shape}, not {wish}')


def _check_features(raw: RawMap) -> Iterator[Fault]:
    for space in raw.document.get('feature_spaces', ()):
        file = space['file']
        with np.errstate(over='ignore'):
            lengths = np.linalg.norm(raw.arrays[file], axis=1)
        wrong = ~np.isfinite(raw.arrays[file]).all(axis=1)
        yield from _report(file, '', lengths, wrong, 'a feature is NaN or infinite')
        if space.get('normalised') and not wrong.any():
            wrong = np.abs(lengths - 1) > _UNIT_TOLERANCE
            why = 'not of unit length, though declared normalised'
            yield from _report(file, '', lengths, wrong, why)


def _check_points(raw: RawMap, known: _Known) -> Iterator[Fault]:
    assert raw.cloud is not None
    cloud = {name: raw.cloud[name] for name in list_cloud_types(raw.document)}
    for name in COORDINATES:
        wrong = ~np.isfinite(cloud[name])
        yield from _report(_CLOUD, f'{name}, ', cloud[name], wrong, 'must be finite')
    for name, is_wrong, why in (
        ('score', np.isinf, 'must not be infinite'),
        (
            'label',
            partial(_find_unknown, known=known.classes | {UNLABELLED}),
            'not in the label set',
        ),
        ('instance', partial(_find_unknown, known=known.nodes | {0}), 'not among the nodes'),
    ):
        if name in cloud:
            yield from _report(_CLOUD, f'{name}, ', cloud[name], is_wrong(cloud[name]), why)
    rows = raw.arrays.get('dense/feature_rows.npy')
    if rows is not None:
        count = known.rows.get(raw.document['dense'].get('feature_space', ''), 0)
        why = f'the feature space has {count} rows'
        yield from _report('dense/feature_rows.npy', '', rows, (rows < -1) | (rows >= count), why)


def _check_membership(raw: RawMap, known: _Known) -> Iterator[Fault]:
    if 'membership' not in raw.document['dense'].get('parts', ()):
        return
    ids, starts, points = (raw.arrays[file] for file in MEMBERSHIP_FILES)
    nodes_file, starts_file, points_file = MEMBERSHIP_FILES
    yield from _report(nodes_file, '', ids, _find_unknown(ids, known.nodes), 'not among the nodes')
    repeated = _find_repeated(ids.tolist())
    yield from _report(nodes_file, '', ids, repeated, 'has a row already')
    count = raw.document['dense']['points']
    wrong = (points < 0) | (points >= count)
    yield from _report(points_file, '', points, wrong, f'there are {count} points')
    if len(starts) != len(ids) + 1:
        yield Fault(starts_file, '', f'has {len(starts)} entries, not {len(ids) + 1}')
        return
    wrong = np.diff(starts, prepend=0) < 0
    wrong[0], wrong[-1] = starts[0] != 0, wrong[-1] or starts[-1] != len(points)
    yield from _report(starts_file, '', starts, wrong, f'must grow from 0 to {len(points)}')
