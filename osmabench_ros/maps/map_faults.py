"""Checks of the content of a map: references, ranges, features, points."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.map_document import (
    COLUMNS,
    Column,
    DenseDocument,
    MapDocument,
    RawMap,
    list_columns,
)
from osmabench_ros.semantics.labels import UNLABELLED

_MAX_ROWS = 3
_UNIT_TOLERANCE = 1e-2
_JSON = 'map.json'


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
    classes = [] if document.label_set is None else document.label_set.classes
    known = _Known(
        {node.id for node in document.nodes},
        {item.id for item in classes},
        {space.name: space.rows for space in document.feature_spaces},
    )
    yield from _check_document(document, known)
    malformed = list(_check_forms(raw))
    yield from malformed
    if not malformed:
        yield from _check_features(raw)
        if document.dense is not None:
            yield from _check_points(raw, document.dense, known)
        if 'membership' in document.parts:
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


def _check_document(document: MapDocument, known: _Known) -> Iterator[Fault]:
    nodes, edges, spaces = document.nodes, document.edges, document.feature_spaces
    classes = [] if document.label_set is None else document.label_set.classes
    lists: dict[str, Sequence[Any]] = {
        'label_set.classes': classes,
        'feature_spaces': spaces,
        'nodes': nodes,
        'edges': edges,
    }
    is_no_node = partial(_find_unknown, known=known.nodes)
    is_no_parent = partial(_find_unknown, known=known.nodes | {None})
    is_no_space = partial(_find_unknown, known={*known.rows, ''})
    for name, key, find_wrong, why in (
        ('label_set.classes', 'id', _find_repeated, 'is taken already'),
        ('label_set.classes', 'name', _find_repeated, 'is taken already'),
        ('feature_spaces', 'name', _find_repeated, 'is taken already'),
        ('feature_spaces', 'file', _find_repeated, 'is taken already'),
        ('nodes', 'id', _find_repeated, 'is taken already'),
        ('nodes', 'parent', is_no_parent, 'not among the nodes'),
        ('nodes', 'feature_space', is_no_space, 'not among the feature spaces'),
        ('edges', 'source', is_no_node, 'not among the nodes'),
        ('edges', 'target', is_no_node, 'not among the nodes'),
    ):
        values = [getattr(item, key) for item in lists[name]]
        yield from _report(_JSON, f'{name}[].{key}', values, find_wrong(values), why)
    cycles = _find_cycles({node.id: node.parent for node in nodes})
    named = known.classes | {UNLABELLED}
    strange = [{label.class_id for label in node.labels} - named for node in nodes]
    counts = [known.rows.get(node.feature_space, 0) for node in nodes]
    ids, rows = [node.id for node in nodes], [node.feature_row for node in nodes]
    beyond = [row is not None and row >= n for row, n in zip(rows, counts, strict=True)]
    for key, values, wrong, why in (
        ('parent', ids, [node in cycles for node in ids], 'this node is its own ancestor'),
        ('labels', strange, list(map(bool, strange)), 'not in the label set'),
        ('feature_row', rows, beyond, 'the feature space of the node does not have this row'),
    ):
        yield from _report(_JSON, f'nodes[].{key}', values, wrong, why)
    space = '' if document.dense is None else document.dense.feature_space
    if (space or 'feature_rows' in document.parts) and space not in known.rows:
        yield Fault(_JSON, 'dense.feature_space', f'"{space}": not among the feature spaces')
    if 'labels' in document.parts and document.label_set is None:
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


def _check_forms(raw: RawMap) -> Iterator[Fault]:
    """Yield the errors of arrays that have another type or shape than map.json says."""
    for column, (dtype, shape) in list_columns(raw.document).items():
        array = raw.arrays.get(column)
        if array is None:
            yield Fault(*column, 'is missing')
        elif array.dtype != dtype or (array.shape != shape if shape else array.ndim != 1):
            wish = f'{np.dtype(dtype)} of {shape or "(N,)"}'
            yield Fault(*column, f'{array.dtype} of shape {array.shape}, not {wish}')


def _check_features(raw: RawMap) -> Iterator[Fault]:
    for space in raw.document.feature_spaces:
        vectors = raw.arrays[Column(space.file)]
        with np.errstate(over='ignore'):
            lengths = np.linalg.norm(vectors, axis=1)
        wrong = ~np.isfinite(vectors).all(axis=1)
        yield from _report(space.file, '', lengths, wrong, 'a feature is NaN or infinite')
        if space.normalised and not wrong.any():
            wrong = np.abs(lengths - 1) > _UNIT_TOLERANCE
            why = 'not of unit length, though declared normalised'
            yield from _report(space.file, '', lengths, wrong, why)


def _check_points(raw: RawMap, dense: DenseDocument, known: _Known) -> Iterator[Fault]:
    classes, nodes = known.classes | {UNLABELLED}, known.nodes | {0}
    count = known.rows.get(dense.feature_space, 0)
    checks: dict[str, tuple[Callable[[NDArray[Any]], Any], str]] = {
        'points': (lambda values: ~np.isfinite(values), 'must be finite'),
        'scores': (np.isinf, 'must not be infinite'),
        'labels': (partial(_find_unknown, known=classes), 'not in the label set'),
        'instances': (partial(_find_unknown, known=nodes), 'not among the nodes'),
        'feature_rows': (
            lambda values: (values < -1) | (values >= count),
            f'the feature space has {count} rows',
        ),
    }
    for part, (find_wrong, why) in checks.items():
        for column in COLUMNS[part] if part in ('points', *dense.parts) else ():
            values, place = raw.arrays[column], column.name and f'{column.name}, '
            yield from _report(column.file, place, values, find_wrong(values), why)


def _check_membership(raw: RawMap, known: _Known) -> Iterator[Fault]:
    nodes_column, starts_column, points_column = COLUMNS['membership']
    ids, starts, points = (raw.arrays[column] for column in COLUMNS['membership'])
    assert raw.document.dense is not None
    count = raw.document.dense.points
    for column, values, wrong, why in (
        (nodes_column, ids, _find_unknown(ids, known.nodes), 'not among the nodes'),
        (nodes_column, ids, _find_repeated(ids.tolist()), 'has a row already'),
        (points_column, points, (points < 0) | (points >= count), f'there are {count} points'),
    ):
        yield from _report(column.file, '', values, wrong, why)
    if len(starts) != len(ids) + 1:
        why = f'has {len(starts)} entries, not {len(ids) + 1}'
        yield Fault(starts_column.file, '', why)
        return
    wrong = np.diff(starts, prepend=0) < 0
    wrong[0], wrong[-1] = starts[0] != 0, wrong[-1] or starts[-1] != len(points)
    yield from _report(starts_column.file, '', starts, wrong, f'must grow from 0 to {len(points)}')
