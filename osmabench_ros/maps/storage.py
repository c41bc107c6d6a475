"""Semantic maps as a folder with map.json, cloud.ply, .npy arrays and extras, or packed in bytes.

Neither holds pickles.
"""

import io
import json
import re
import stat
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from osmabench_ros.base.documents import check_characters, document_limit, read_json
from osmabench_ros.base.fence import limit_error, memory_limit
from osmabench_ros.base.files import atomic_directory, claim_folder, discard, wrap_os_errors
from osmabench_ros.base.reading import naming_errors, read_bytes, read_npy
from osmabench_ros.base.strict import fault_text
from osmabench_ros.errors import MapError, OsmabenchError, errors_as
from osmabench_ros.geometry.point_files import read_ply, write_ply
from osmabench_ros.geometry.stamped_trajectory import format_tum, read_tum
from osmabench_ros.maps import map_document
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED

_MAX_ROWS = 3
_UNIT_TOLERANCE = 1e-2
DOCUMENT, EXTRAS = 'map.json', 'extras/extras.json'
TRAJECTORY = 'trajectory.tum'


@dataclass(frozen=True)
class Fault:
    """An error in a map: the file, the key or row in it ('' for the whole file), and the text."""

    file: str
    place: str
    message: str

    def __str__(self) -> str:
        return ': '.join(part for part in (self.file, self.place, self.message) if part)


def check_content(raw: map_document.RawMap) -> Iterator[Fault]:
    """Yield the errors of a map if map.json has the right form.

    Arrays are compared with other files only if all of them are there and have the right form.
    """
    document = raw.document
    classes = [] if document.label_set is None else document.label_set.classes
    known = _Targets(
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
class _Targets:
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


def _check_document(document: map_document.MapDocument, known: _Targets) -> Iterator[Fault]:
    nodes = document.nodes
    lists: dict[str, Sequence[Any]] = {
        'label_set.classes': [] if document.label_set is None else document.label_set.classes,
        'feature_spaces': document.feature_spaces,
        'nodes': nodes,
        'edges': document.edges,
    }
    for name, key in (
        ('label_set.classes', 'id'),
        ('label_set.classes', 'name'),
        ('feature_spaces', 'name'),
        ('feature_spaces', 'file'),
        ('nodes', 'id'),
    ):
        values = [getattr(item, key) for item in lists[name]]
        wrong = _find_repeated(values)
        yield from _report(DOCUMENT, f'{name}[].{key}', values, wrong, 'is taken already')
    for name, key, among, targets in (
        ('nodes', 'parent', 'nodes', known.nodes | {None}),
        ('nodes', 'feature_space', 'feature spaces', {*known.rows, ''}),
        ('edges', 'source', 'nodes', known.nodes),
        ('edges', 'target', 'nodes', known.nodes),
    ):
        values = [getattr(item, key) for item in lists[name]]
        wrong, why = _find_unknown(values, targets), f'not among the {among}'
        yield from _report(DOCUMENT, f'{name}[].{key}', values, wrong, why)
    cycles = _find_cycles({node.id: node.parent for node in nodes})
    named = known.classes | {UNLABELLED}
    strange = [{label.class_id for label in node.labels} - named for node in nodes]
    counts = [known.rows.get(node.feature_space, 0) for node in nodes]
    ids = [node.id for node in nodes]
    rows = [node.feature_row for node in nodes]
    beyond = [row is not None and row >= n for row, n in zip(rows, counts, strict=True)]
    for key, values, wrong, why in (
        ('parent', ids, [node in cycles for node in ids], 'this node is its own ancestor'),
        ('labels', strange, list(map(bool, strange)), 'not in the label set'),
        ('feature_row', rows, beyond, 'the feature space of the node does not have this row'),
    ):
        yield from _report(DOCUMENT, f'nodes[].{key}', values, wrong, why)
    space = '' if document.dense is None else document.dense.feature_space
    if (space or 'feature_rows' in document.parts) and space not in known.rows:
        yield Fault(DOCUMENT, 'dense.feature_space', f'"{space}": not among the feature spaces')
    if 'labels' in document.parts and document.label_set is None:
        yield Fault(DOCUMENT, 'label_set', 'is missing, though points have labels')


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


def _check_forms(raw: map_document.RawMap) -> Iterator[Fault]:
    """Yield the errors of arrays that have another type or shape than map.json says."""
    for column, (dtype, shape) in map_document.list_columns(raw.document).items():
        array = raw.arrays.get(column)
        if array is None:
            yield Fault(*column, 'is missing')
        elif array.dtype != dtype or (array.shape != shape if shape else array.ndim != 1):
            wish = f'{np.dtype(dtype)} of {shape or "(N,)"}'
            yield Fault(*column, f'{array.dtype} of shape {array.shape}, not {wish}')


def _check_features(raw: map_document.RawMap) -> Iterator[Fault]:
    for space in raw.document.feature_spaces:
        vectors = raw.arrays[map_document.Column(space.file)]
        with np.errstate(over='ignore'):
            lengths = np.linalg.norm(vectors, axis=1)
        wrong = ~np.isfinite(vectors).all(axis=1)
        yield from _report(space.file, '', lengths, wrong, 'a feature is NaN or infinite')
        if space.normalised and not wrong.any():
            wrong = np.abs(lengths - 1) > _UNIT_TOLERANCE
            why = 'not of unit length, though declared normalised'
            yield from _report(space.file, '', lengths, wrong, why)


def _check_points(
    raw: map_document.RawMap, dense: map_document.DenseDocument, known: _Targets
) -> Iterator[Fault]:
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
        for column in map_document.COLUMNS[part] if part in ('points', *dense.parts) else ():
            values, place = raw.arrays[column], column.name and f'{column.name}, '
            yield from _report(column.file, place, values, find_wrong(values), why)


def _check_membership(raw: map_document.RawMap, known: _Targets) -> Iterator[Fault]:
    nodes_column, starts_column, points_column = map_document.COLUMNS['membership']
    ids, starts, points = (raw.arrays[column] for column in map_document.COLUMNS['membership'])
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


# Most errors in the form of map.json that are listed.
MAX_ERRORS = 1000
MAX_SHOWN = 10
_UNWRITABLE = 'the map cannot be written'


def check_directory(directory: Path) -> list[Fault]:
    """Return the errors of a map directory; an empty list means that `read_map` accepts it."""
    return _load_raw(directory)[1]


def _load_raw(directory: Path) -> tuple[map_document.RawMap | None, list[Fault]]:
    """Read an untrusted map directory; return the map (None if unreadable) and its errors."""
    faults: list[Fault] = []
    document = None
    with _collect_errors(DOCUMENT, faults):
        if not (directory / DOCUMENT).is_file():
            raise MapError(f'does not exist in {directory}; give the folder of a map')
        text = read_bytes(directory / DOCUMENT, MapError, document_limit())
        check_characters(text, DOCUMENT, MapError)
        document, faults = _parse(text)
    if document is None:
        return None, faults

    def read(name: str, reader: Callable[[Path], Any], *, is_needed: bool = True) -> Any:
        with _collect_errors(name, faults):
            return reader(directory / name) if is_needed or (directory / name).is_file() else None

    arrays: dict[map_document.Column, NDArray[Any]] = {}
    for file in dict.fromkeys(column.file for column in map_document.list_columns(document)):
        if file == map_document.CLOUD:
            columns = read(file, read_ply) or {}
            arrays |= {map_document.Column(file, name): values for name, values in columns.items()}
        else:
            arrays[map_document.Column(file)] = read(file, partial(read_npy, error=MapError))
    raw = map_document.RawMap(
        document,
        arrays,
        read(EXTRAS, _read_extras, is_needed=False) or {},
        read(TRAJECTORY, read_tum, is_needed=False),
    )
    return raw, faults or list(check_content(raw))


@contextmanager
def _collect_errors(name: str, faults: list[Fault]) -> Iterator[None]:
    """Add the error of a file to the errors, and go on."""
    try:
        with naming_errors(name, MapError):
            yield
    except OsmabenchError as error:
        faults.append(Fault(name, '', str(error)))


def _parse(text: bytes) -> tuple[map_document.MapDocument | None, list[Fault]]:
    try:
        return map_document.MapDocument.model_validate_json(text), []
    except ValidationError as error:
        if error.error_count() > MAX_ERRORS:
            count = f'has {error.error_count()} errors; is it a map?'
            return None, [Fault(DOCUMENT, '', count)]
        return None, [
            Fault(DOCUMENT, _format_place(item['loc']), fault_text(item))
            for item in error.errors()
        ]


def _format_place(location: tuple[int | str, ...]) -> str:
    keys = (f'[{key}]' if isinstance(key, int) else f'.{key}' for key in location)
    return ''.join(keys).removeprefix('.')


def _read_extras(path: Path) -> dict[str, Any]:
    extras = read_json(path, MapError)
    if not isinstance(extras, dict):
        raise MapError(f'must hold an object, not a {type(extras).__name__}')
    return extras


def write_npy(stream: IO[bytes], array: NDArray[Any]) -> None:
    """Write an array as .npy version 1.0, little-endian, C order; equal arrays, equal bytes."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder('<'))
    np.lib.format.write_array(stream, little, version=(1, 0), allow_pickle=False)


def write_map(semantic_map: SemanticMap, directory: Path, *, is_checked: bool = False) -> None:
    """Write a map to a new or empty folder, which appears whole; equal maps give equal bytes.

    `is_checked`: the map was read or unpacked. Raises MapError, which lists the first faults, if
    the map has any, RunError if there is something in the folder.
    """
    with atomic_directory(directory) as folder:
        for name, content in make_files(semantic_map, is_checked=is_checked):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def read_map(directory: Path) -> SemanticMap:
    """Read a map from its folder, fully checked; MapError lists the first faults."""
    raw, faults = _load_raw(directory)
    _refuse(faults, str(directory))
    assert raw is not None
    with naming_errors(directory / DOCUMENT, MapError):
        return map_document.make_semantic_map(raw)


def make_files(
    semantic_map: SemanticMap, *, is_checked: bool = False
) -> Iterator[tuple[str, bytes | memoryview]]:
    """Yield name and content of every file, always in the same order; MapError if it is wrong."""
    raw = map_document.make_raw_map(semantic_map)
    text = _write_json(DOCUMENT, raw.document.to_json())
    if not is_checked:
        document, faults = _parse(text)
        _refuse(faults, _UNWRITABLE)
        assert document is not None
        _refuse(list(check_content(replace(raw, document=document))), _UNWRITABLE)
    yield DOCUMENT, text
    cloud = {column.name: raw.arrays[column] for column in raw.arrays if column.name}
    if cloud:
        yield map_document.CLOUD, _write_to_memory(partial(write_ply, columns=cloud))
    for column in sorted(column for column in raw.arrays if not column.name):
        yield column.file, _write_to_memory(partial(write_npy, array=raw.arrays[column]))
    if raw.extras:
        yield EXTRAS, _write_json(EXTRAS, raw.extras)
    if raw.trajectory is not None:
        yield TRAJECTORY, format_tum(raw.trajectory).encode()


def _write_to_memory(write: Callable[[IO[bytes]], None]) -> memoryview:
    stream = io.BytesIO()
    write(stream)
    return stream.getbuffer()


def _write_json(name: str, data: dict[str, Any]) -> bytes:
    form: dict[str, Any] = {'indent': 1, 'sort_keys': True, 'allow_nan': False}
    what = f'{name} of the map cannot be written as JSON'
    with errors_as(MapError, what, TypeError, ValueError):
        return json.dumps(data, default=_convert_scalar, ensure_ascii=False, **form).encode()


def _convert_scalar(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f'it holds a {type(value).__name__}')


def _refuse(faults: list[Fault], what: str) -> None:
    if faults:
        shown = '; '.join(map(str, faults[:MAX_SHOWN]))
        more = f'; and {len(faults) - MAX_SHOWN} more' if len(faults) > MAX_SHOWN else ''
        count = f'{len(faults)} errors' if len(faults) > 1 else '1 error'
        raise MapError(f'{what}: {count}: {shown}{more}')


# Digits of a stamp in nanoseconds, so that names are in the order of time.
NAME_DIGITS = 19


class SnapshotFolder:
    """Keeps `limit` (2 or more) intermediate maps by stamp in ns, spread evenly over the run."""

    def __init__(self, directory: Path, limit: int) -> None:
        self.directory = directory
        self._limit = max(limit, 2)
        self._stride = 1
        self._taken = 0
        self._kept: dict[int, Path] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, semantic_map: SemanticMap, *, is_checked: bool = False) -> bool:
        """Write a map here if it is due; return whether it was."""
        number = self._taken
        path = self.directory / f'{semantic_map.header.stamp_ns:0{NAME_DIGITS}d}'
        if path.exists():
            return False
        self._taken += 1
        if number % self._stride:
            return False
        claim_folder(self.directory)
        write_map(semantic_map, path, is_checked=is_checked)
        self._kept[number] = path
        if len(self._kept) > self._limit:
            self._stride *= 2
            for dropped in [kept for kept in self._kept if kept % self._stride]:
                discard(self._kept.pop(dropped))
        return True


def list_snapshots(directory: Path) -> list[Path]:
    """Return the folders of intermediate maps in the order of time; empty if there are none."""
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if path.name.isdigit())


MAX_FILES = 1000

_DATE = (1980, 1, 1, 0, 0, 0)
_NAME = re.compile(
    r'map\.json|cloud\.ply|(dense|features)/[A-Za-z0-9_-]+\.npy|extras/extras\.json|'
    r'trajectory\.tum'
)
_WHAT = 'the packed map'


def pack_map(semantic_map: SemanticMap) -> bytes:
    """Pack a map into a zip archive; equal maps give equal bytes; raises MapError for faults."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_STORED) as archive:
        for name, content in make_files(semantic_map):
            info = zipfile.ZipInfo(name, _DATE)
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            info.create_system = 3
            with archive.open(info, 'w', force_zip64=True) as stream:
                stream.write(content)
    return packed.getvalue()


def unpack_map(packed: bytes) -> SemanticMap:
    """Unpack and check an untrusted archive; deflated files are accepted too.

    Raises MapError if it is not a zip archive, holds anything but files of a map, or the map has
    faults; LimitError if it takes more memory or time than its size allows; RunError if the disk
    is full.
    """
    with tempfile.TemporaryDirectory(prefix='osmabench_map_') as temporary:
        folder = Path(temporary)
        # zipfile has many ways to dislike hostile bytes.
        with (
            errors_as(MapError, f'{_WHAT} is not a readable zip archive', Exception),
            zipfile.ZipFile(io.BytesIO(packed)) as archive,
            wrap_os_errors(folder),
        ):
            _check(archive.infolist(), memory_limit(len(packed)))
            archive.extractall(folder)
        return read_map(folder)


def _check(infos: list[zipfile.ZipInfo], max_memory: int) -> None:
    if len(infos) > MAX_FILES:
        raise MapError(f'{_WHAT} has {len(infos)} files; at most {MAX_FILES} are unpacked')
    if len({info.filename for info in infos}) < len(infos):
        raise MapError(f'{_WHAT} is malformed: it holds a file twice')
    # No member gives more than the directory says: zipfile stops there, and checks its CRC.
    total = sum(info.file_size for info in infos)
    if total > max_memory:
        raise limit_error(_WHAT, f'unpacks to {total} bytes')
    for info in infos:
        if not _NAME.fullmatch(info.filename):
            raise MapError(f'{_WHAT} holds "{info.filename[:80]}", which is not a file of a map')
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # zipfile unpacks the others in pieces of any size.
            raise MapError(f'{_WHAT} holds "{info.filename}" in a compression other than deflate')
