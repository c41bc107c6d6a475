"""Reads untrusted pickles and files of torch.save as plain data, without running any code."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.limits.meter import Meter, checked_zip, maybe_gzip, read_member
from osmabench_ros.errors import LimitError, MapError, UnsafePickleError
from osmabench_ros.maps.untrusted.pickle_machine import (
    Constructor,
    Lookup,
    Name,
    PickleMachine,
    shown,
)
from osmabench_ros.maps.untrusted.pickle_names import DropArray, names_of_numpy, take_array

_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_VERSION = 1001
_MAX_REACH = 1 << 62
_ZIP_MAGIC = b'PK\x03\x04'
_STORAGE_TYPES = {
    'DoubleStorage': 'f8', 'FloatStorage': 'f4', 'HalfStorage': 'f2', 'BFloat16Storage': 'u2',
    'LongStorage': 'i8', 'IntStorage': 'i4', 'ShortStorage': 'i2', 'CharStorage': 'i1',
    'ByteStorage': 'u1', 'BoolStorage': '?',
}  # fmt: skip


@dataclass(frozen=True)
class _Storage:
    """The numbers of a tensor, one after another; `values` is None while only counting."""

    kind: str
    values: NDArray[Any] | None


def load_torch(path: Path) -> Any:
    """Read a file of torch.save, zip or legacy form, as NumPy arrays; bfloat16 comes as float32.

    Raises UnsafePickleError, which names it, if it asks for anything outside the allow-list,
    MapError if the file is missing, cut off or malformed, LimitError beyond the memory or time
    that a file of its size may take.
    """
    with _reading(path) as (stream, meter):
        packed = stream.read(4) == _ZIP_MAGIC
        stream.seek(0)
        return _load_zip(stream, meter) if packed else load_legacy(stream, meter)


@contextmanager
def _reading(path: Path) -> Iterator[tuple[IO[bytes], Meter]]:
    """Open a file, and name it in what goes wrong."""
    if not path.is_file():
        raise MapError(f'{path} does not exist')
    try:
        with path.open('rb') as stream:
            yield stream, Meter(path, path.stat().st_size)
    except MapError as error:
        raise type(error)(f'{path} {error}') from error
    except LimitError:
        raise
    except Exception as error:  # zipfile and zlib have many ways to dislike hostile bytes
        raise MapError(f'{path} is damaged: {type(error).__name__}: {error}') from error


def load_legacy(stream: IO[bytes], meter: Meter, lookup: Lookup | None = None) -> Any:
    """Read the legacy form: five pickles, read twice because the tensors' numbers stand behind."""
    try:
        begins_well = PickleMachine(stream, _no_names, meter).load() == _LEGACY_MAGIC
    except UnsafePickleError:
        raise
    except MapError as error:
        raise MapError(
            f'is no file of torch.save, or damaged at its beginning: {error}'
        ) from error
    if not begins_well:
        raise MapError('is no file of torch.save: it does not begin with its magic number')
    if PickleMachine(stream, _no_names, meter).load() != _LEGACY_VERSION:
        raise MapError('was written by an unknown version of torch.save')
    system = PickleMachine(stream, _no_names, meter).load()
    if not isinstance(system, dict) or not system.get('little_endian', True):
        raise MapError('holds big-endian tensors, which are not read')
    lookup = lookup or names_of_torch(meter)
    start = stream.tell()
    found: dict[Any, tuple[str, int]] = {}

    def note(reference: Any) -> _Storage:
        key, kind, count = _storage_reference(reference)
        found[key] = kind, count
        return _Storage(kind, None)

    PickleMachine(stream, lookup, meter, note).load()
    keys = PickleMachine(stream, _no_names, meter).load()
    storages = _read_storages(stream, keys, found, meter)
    stream.seek(start)
    return PickleMachine(
        stream, lookup, meter, lambda reference: storages[_storage_reference(reference)[0]]
    ).load()


def _read_storages(
    stream: IO[bytes], keys: Any, found: dict[Any, tuple[str, int]], meter: Meter
) -> dict[Any, _Storage]:
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise MapError('is malformed: its storages have no list of keys')
    storages: dict[Any, _Storage] = {}
    for key in keys:
        if key not in found:
            raise MapError(f'is malformed: nothing refers to storage {shown(key)}')
        kind, count = found[key]
        there = int.from_bytes(stream.read(8), 'little', signed=True)
        size = _size(kind, count)
        if there != count or key in storages:
            raise MapError(
                f'is malformed: storage {shown(key)} claims {there} numbers, not {count}'
            )
        meter.take(size)
        storages[key] = _storage(key, kind, count, stream.read(size))
    return storages


def _size(kind: str, count: int) -> int:
    return np.dtype(_STORAGE_TYPES[kind]).itemsize * count


def _storage(key: str, kind: str, count: int, data: bytes) -> _Storage:
    if len(data) != _size(kind, count):
        raise MapError(
            f'is cut off: storage {shown(key)} has {len(data)} of {_size(kind, count)} bytes'
        )
    return _Storage(kind, np.frombuffer(data, np.dtype(_STORAGE_TYPES[kind]).newbyteorder('<')))


def _load_zip(stream: IO[bytes], meter: Meter) -> Any:
    with checked_zip(stream, meter) as archive:
        names = set(archive.namelist())
        _refuse_compressed(archive)
        pickles = [name for name in names if name.endswith('/data.pkl')]
        if len(pickles) != 1:
            raise MapError('is a zip archive without the data.pkl of torch.save')
        root = pickles[0].removesuffix('data.pkl')
        if f'{root}byteorder' in names and (
            read_member(archive, f'{root}byteorder', meter) != b'little'
        ):
            raise MapError('holds big-endian tensors, which are not read')
        storages: dict[str, _Storage] = {}

        def load(reference: Any) -> _Storage:
            key, kind, count = _storage_reference(reference)
            if key not in storages:
                data = read_member(archive, f'{root}data/{key}', meter)
                storages[key] = _storage(key, kind, count, data)
            return storages[key]

        data = io.BytesIO(read_member(archive, pickles[0], meter))
        return PickleMachine(data, names_of_torch(meter), meter, load).load()


def _refuse_compressed(archive: zipfile.ZipFile) -> None:
    for info in archive.infolist():
        if info.compress_type != zipfile.ZIP_STORED:
            raise MapError(f'holds {info.filename[:80]} compressed, which torch.save never does')


def _storage_reference(reference: Any) -> tuple[str, str, int]:
    """Return key, storage type and number of elements of a persistent id."""
    if not isinstance(reference, tuple) or len(reference) < 5 or reference[0] != 'storage':
        raise UnsafePickleError('refers to something that is no tensor storage')
    kind, key, _device, count = reference[1:5]
    name = kind.name if isinstance(kind, Name) else ''
    view = reference[5] if len(reference) > 5 else None
    if name not in _STORAGE_TYPES or view is not None or not isinstance(key, str):
        raise UnsafePickleError(f'refers to a storage of kind {shown(kind)}, which is not read')
    if type(count) is not int or count < 0:
        raise MapError(f'is malformed: a storage of {shown(count)} numbers')
    return key, name, count


def _no_names(_name: Name) -> Constructor | None:
    return None


def _tensor(meter: Meter, arguments: tuple[Any, ...]) -> NDArray[Any] | None:
    """Make an array from storage, offset, size and strides, checked against the storage."""
    storage, offset, size, strides = arguments[:4]
    if not isinstance(storage, _Storage):
        raise UnsafePickleError('makes a tensor of something that is no storage')
    kind = np.dtype('f4' if storage.kind == 'BFloat16Storage' else _STORAGE_TYPES[storage.kind])
    # Each tensor is a copy, however many there are of one storage.
    take_array(size, kind.itemsize, meter)
    steps = strides if type(strides) is tuple and len(strides) == len(size) else (None,)
    if not all(type(item) is int and 0 <= item < _MAX_REACH for item in (offset, *steps)):
        raise MapError('is malformed: a tensor with a negative offset or stride')
    if storage.values is None:
        return None
    if 0 in size:
        return np.empty(size, kind)
    reach = offset + sum((n - 1) * step for n, step in zip(size, strides, strict=True)) + 1
    if reach > len(storage.values) or math.prod(size) > len(storage.values):
        raise MapError('is malformed: a tensor reaches beyond its storage')
    return _strided(storage, storage.values[offset:], size, strides)


def _strided(
    storage: _Storage, values: NDArray[Any], size: tuple[int, ...], strides: tuple[int, ...]
) -> NDArray[Any]:
    steps = tuple(step * values.dtype.itemsize for step in strides)
    array = np.lib.stride_tricks.as_strided(values, size, steps, writeable=False)
    if storage.kind == 'BFloat16Storage':
        return np.array(array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return np.array(array, values.dtype.newbyteorder('='))


def _nested(meter: Meter, arguments: tuple[Any, ...]) -> _Storage:
    """Parse the payload that torch would hand to a full torch.load: a legacy file of a storage."""
    payload = arguments[0] if arguments else None
    if not isinstance(payload, bytes | bytearray):
        raise UnsafePickleError('nests a storage that is no bytes')
    meter.take(len(payload))
    storage = load_legacy(io.BytesIO(payload), meter, _storage_names)
    if not isinstance(storage, _Storage):
        raise UnsafePickleError('nests something that is no storage')
    return storage


def _parameter(arguments: tuple[Any, ...]) -> Any:
    return arguments[0]


def _refuse_call(_arguments: tuple[Any, ...]) -> Any:
    raise UnsafePickleError('calls a storage type, which is not allowed')


def _storage_names(name: Name) -> Constructor | None:
    """Allow the names of storage types, as values that cannot be called."""
    return _refuse_call if name.module == 'torch' and name.name in _STORAGE_TYPES else None


def names_of_torch(meter: Meter, drop: DropArray | None = None) -> Lookup:
    """Return the table for tensors, and for everything in `names_of_numpy`."""
    numpy_names = names_of_numpy(meter, drop)
    tensor = partial(_tensor, meter)
    table: dict[Name, Constructor] = {
        Name('torch._utils', '_rebuild_tensor_v2'): tensor,
        Name('torch._utils', '_rebuild_tensor'): tensor,
        Name('torch._utils', '_rebuild_parameter'): _parameter,
        Name('torch.storage', '_load_from_bytes'): partial(_nested, meter),
    }

    def lookup(name: Name) -> Constructor | None:
        return table.get(name) or _storage_names(name) or numpy_names(name)

    return lookup


_BUFFER_BYTES = 1 << 20


def load_pickle(path: Path, *, drop: DropArray | None = None) -> Any:
    """Read a pickle, plain or gzip, without running any code.

    Returns numbers, texts, containers, arrays, and `Inert` for objects of known foreign classes;
    arrays that `drop` selects become None. Raises UnsafePickleError, which names it, if it asks
    for anything outside the allow-list, MapError if the file is missing, cut off or malformed,
    LimitError beyond the memory or time that a file of its size may take.
    """
    with _reading(path) as (plain, meter):
        unpacked = io.BufferedReader(maybe_gzip(plain, meter), _BUFFER_BYTES)
        return PickleMachine(unpacked, names_of_torch(meter, drop), meter).load()
