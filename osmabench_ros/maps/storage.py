"""Semantic maps as a folder with map.json, cloud.ply, .npy arrays and extras, or packed in bytes.

Neither holds pickles.
"""

from __future__ import annotations

import io
import json
import re
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from osmabench_ros.base.documents import document_limit, read_json
from osmabench_ros.base.fence import limit_error, memory_limit
from osmabench_ros.base.files import (
    atomic_directory,
    claim_folder,
    discard,
    wrap_os_errors,
)
from osmabench_ros.base.reading import naming_errors, read_bytes, read_npy
from osmabench_ros.base.strict import fault_text
from osmabench_ros.errors import MapError, OsmabenchError, errors_as
from osmabench_ros.geometry.point_files import read_ply, write_ply
from osmabench_ros.geometry.stamped_trajectory import read_tum, tum_text
from osmabench_ros.maps.map_document import (
    CLOUD,
    Column,
    MapDocument,
    RawMap,
    list_columns,
    make_raw_map,
    make_semantic_map,
)
from osmabench_ros.maps.map_faults import Fault, faults_of_content
from osmabench_ros.maps.semantic_map import SemanticMap

DOCUMENT, EXTRAS = 'map.json', 'extras/extras.json'
TRAJECTORY = 'trajectory.tum'
# Most errors in the form of map.json that are listed.
MAX_ERRORS = 1000
_UNWRITABLE = 'the map cannot be written'


def faults_of_directory(directory: Path) -> list[Fault]:
    """Return the errors of a map directory; an empty list means that `read_map` accepts it."""
    return _load_raw(directory)[1]


def _load_raw(directory: Path) -> tuple[RawMap | None, list[Fault]]:
    """Read an untrusted map directory; return the map (None if unreadable) and its errors."""
    faults: list[Fault] = []
    document = None
    with _collect_errors(DOCUMENT, faults):
        if not (directory / DOCUMENT).is_file():
            raise MapError(f'does not exist in {directory}; give the folder of a map')
        text = read_bytes(directory / DOCUMENT, MapError, document_limit())
        document, faults = _parse(text)
    if document is None:
        return None, faults

    def read(name: str, reader: Callable[[Path], Any], *, is_needed: bool = True) -> Any:
        with _collect_errors(name, faults):
            return reader(directory / name) if is_needed or (directory / name).is_file() else None

    arrays: dict[Column, NDArray[Any]] = {}
    for file in dict.fromkeys(column.file for column in list_columns(document)):
        if file == CLOUD:
            columns = read(file, read_ply) or {}
            arrays |= {Column(file, name): values for name, values in columns.items()}
        else:
            arrays[Column(file)] = read(file, partial(read_npy, error=MapError))
    raw = RawMap(
        document,
        arrays,
        read(EXTRAS, _read_extras, is_needed=False) or {},
        read(TRAJECTORY, read_tum, is_needed=False),
    )
    return raw, faults or list(faults_of_content(raw))


@contextmanager
def _collect_errors(name: str, faults: list[Fault]) -> Iterator[None]:
    """Add the error of a file to the errors, and go on."""
    try:
        with naming_errors(name, MapError):
            yield
    except OsmabenchError as error:
        faults.append(Fault(name, '', str(error)))


def _parse(text: bytes) -> tuple[MapDocument | None, list[Fault]]:
    try:
        return MapDocument.model_validate_json(text), []
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

    A map that was read or unpacked `is_checked`. Raises MapError, which lists the first faults, if
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
        return make_semantic_map(raw)


def make_files(
    semantic_map: SemanticMap, *, is_checked: bool = False
) -> Iterator[tuple[str, bytes | memoryview]]:
    """Yield name and content of every file, always in the same order; MapError if it is wrong."""
    raw = make_raw_map(semantic_map)
    text = _write_json(DOCUMENT, raw.document.to_json())
    if not is_checked:
        document, faults = _parse(text)
        _refuse(faults, _UNWRITABLE)
        assert document is not None
        _refuse(list(faults_of_content(replace(raw, document=document))), _UNWRITABLE)
    yield DOCUMENT, text
    cloud = {column.name: raw.arrays[column] for column in raw.arrays if column.name}
    if cloud:
        yield CLOUD, _write_to_memory(partial(write_ply, columns=cloud))
    for column in sorted(column for column in raw.arrays if not column.name):
        yield column.file, _write_to_memory(partial(write_npy, array=raw.arrays[column]))
    if raw.extras:
        yield EXTRAS, _write_json(EXTRAS, raw.extras)
    if raw.trajectory is not None:
        yield TRAJECTORY, tum_text(raw.trajectory).encode()


def _write_to_memory(write: Callable[[IO[bytes]], None]) -> memoryview:
    stream = io.BytesIO()
    write(stream)
    return stream.getbuffer()


def _write_json(name: str, data: dict[str, Any]) -> bytes:
    try:
        return json.dumps(
            data,
            default=_convert_scalar,
            indent=1,
            sort_keys=True,
            allow_nan=False,
            ensure_ascii=False,
        ).encode()
    except (TypeError, ValueError) as error:
        raise MapError(f'{name} of the map cannot be written as JSON: {error}') from error


def _convert_scalar(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f'it holds a {type(value).__name__}')


def _refuse(faults: list[Fault], what: str) -> None:
    if faults:
        shown = '\n'.join(f'  {fault}' for fault in faults[:10])
        more = f'\n  and {len(faults) - 10} more' if len(faults) > 10 else ''
        raise MapError(f'{what}: {len(faults)} error(s)\n{shown}{more}')


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


def snapshots_in(directory: Path) -> list[Path]:
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
