"""Reads what torch.save wrote, both forms, without torch: only data comes out, nothing runs."""

from __future__ import annotations

import io
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError, UnsafePickleError
from osmabench_ros.maps.pickle_machine import Constructor, Lookup, Name, PickleMachine
from osmabench_ros.maps.pickle_names import DropArray, names_of_numpy

MAX_BYTES = 16 << 30
"""Largest size of all tensors of a file together."""
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_VERSION = 1001
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


def load_torch(path: Path, *, max_bytes: int = MAX_BYTES) -> Any:
    """Read a file of torch.save, zip or legacy form, as NumPy arrays.

    Parameters
    ----------
    path : Path
        A .pt, .pth or .ckpt file.
    max_bytes : int
        Largest size of all tensors together.

    Returns
    -------
    object
        What was saved, tensors as ndarray; bfloat16 comes as float32.

    Raises
    ------
    UnsafePickleError
        If it asks for anything outside the allow-list; names it.
    MapError
        If the file is missing, cut off, malformed or too large.
    """
    if not path.is_file():
        raise MapError(f'{path} does not exist')
    try:
        with path.open('rb') as stream:
            packed = stream.read(4) == _ZIP_MAGIC
            stream.seek(0)
            if packed:
                return _load_zip(stream, max_bytes)
            if path.stat().st_size > max_bytes:
                raise MapError(f'is larger than {max_bytes} bytes')
            return load_legacy(stream, max_bytes)
    except UnsafePickleError as error:
        raise UnsafePickleError(f'{path} {error}') from error
    except MapError as error:
        raise MapError(f'{path} {error}') from error
    except Exception as error:  # zipfile has many ways to dislike hostile bytes
        raise MapError(f'{path} is damaged: {type(error).__name__}: {error}') from error


def load_legacy(
    stream: IO[bytes], max_bytes: int = MAX_BYTES, lookup: Lookup | None = None
) -> Any:
    """Read the legacy form: five pickles and then raw storages.

    The tensors' numbers stand behind the pickle that refers to them. So the pickle is read
    twice: first to find where it ends, then with the numbers at hand.
    """
    try:
        begins_well = PickleMachine(stream, _no_names).load() == _LEGACY_MAGIC
    except UnsafePickleError:
        raise
    except MapError as error:
        raise MapError(
            f'is no file of torch.save, or damaged at its beginning: {error}'
        ) from error
    if not begins_well:
        raise MapError('is no file of torch.save: it does not begin with its magic number')
    if PickleMachine(stream, _no_names).load() != _LEGACY_VERSION:
        raise MapError('was written by an unknown version of torch.save')
    system = PickleMachine(stream, _no_names).load()
    if not isinstance(system, dict) or not system.get('little_endian', True):
        raise MapError('holds big-endian tensors, which are not read')
    lookup = lookup or names_of_torch()
    start = stream.tell()
    found: dict[Any, tuple[str, int]] = {}

    def note(reference: Any) -> _Storage:
        key, kind, count = _storage_reference(reference)
        found[key] = kind, count
        return _Storage(kind, None)

    PickleMachine(stream, lookup, note).load()
    keys = PickleMachine(stream, _no_names).load()
    storages = _read_storages(stream, keys, found, max_bytes)
    stream.seek(start)
    return PickleMachine(
        stream, lookup, lambda reference: storages[_storage_reference(reference)[0]]
    ).load()


def _read_storages(
    stream: IO[bytes], keys: Any, found: dict[Any, tuple[str, int]], max_bytes: int
) -> dict[Any, _Storage]:
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise MapError('is malformed: its storages have no list of keys')
    storages: dict[Any, _Storage] = {}
    left = max_bytes
    for key in keys:
        kind, count = found[key]
        there = int.from_bytes(stream.read(8), 'little', signed=True)
        size = _size(kind, count)
        left -= size
        if there != count or left < 0:
            raise MapError(f'is malformed: storage {key} claims {there} numbers, not {count}')
        storages[key] = _storage(key, kind, count, stream.read(size))
    return storages


def _size(kind: str, count: int) -> int:
    return np.dtype(_STORAGE_TYPES[kind]).itemsize * count


def _storage(key: str, kind: str, count: int, data: bytes) -> _Storage:
    if len(data) != _size(kind, count):
        raise MapError(f'is cut off: storage {key} has {len(data)} of {_size(kind, count)} bytes')
    return _Storage(kind, np.frombuffer(data, np.dtype(_STORAGE_TYPES[kind]).newbyteorder('<')))


def _load_zip(stream: IO[bytes], max_bytes: int) -> Any:
    with zipfile.ZipFile(stream) as archive:
        names = archive.namelist()
        _check_members(archive.infolist(), max_bytes)
        pickles = [name for name in names if name.endswith('/data.pkl')]
        if len(pickles) != 1:
            raise MapError('is a zip archive without the data.pkl of torch.save')
        root = pickles[0].removesuffix('data.pkl')
        if f'{root}byteorder' in names and _member(archive, f'{root}byteorder') != b'little':
            raise MapError('holds big-endian tensors, which are not read')
        storages: dict[str, _Storage] = {}

        def load(reference: Any) -> _Storage:
            key, kind, count = _storage_reference(reference)
            if key not in storages:
                data = _member(archive, f'{root}data/{key}')
                storages[key] = _storage(key, kind, count, data)
            return storages[key]

        return PickleMachine(
            io.BytesIO(_member(archive, pickles[0])), names_of_torch(), load
        ).load()


def _check_members(infos: list[zipfile.ZipInfo], max_bytes: int) -> None:
    if sum(info.file_size for info in infos) > max_bytes:
        raise MapError(f'unpacks to more than {max_bytes} bytes')
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED:
            raise MapError(f'holds {info.filename} compressed, which torch.save never does')


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as stream:
        return stream.read()


def _storage_reference(reference: Any) -> tuple[str, str, int]:
    """Return key, storage type and number of elements of a persistent id."""
    if not isinstance(reference, tuple) or len(reference) < 5 or reference[0] != 'storage':
        raise UnsafePickleError('refers to something that is no tensor storage')
    kind, key, _device, count = reference[1:5]
    name = kind.name if isinstance(kind, Name) else ''
    view = reference[5] if len(reference) > 5 else None
    if name not in _STORAGE_TYPES or view is not None or not isinstance(key, str):
        raise UnsafePickleError(f'refers to a storage of kind {kind}, which is not read')
    if not isinstance(count, int) or count < 0:
        raise MapError(f'is malformed: a storage of {count} numbers')
    return key, name, count


def _no_names(_name: Name) -> Constructor | None:
    return None


def _tensor(arguments: tuple[Any, ...]) -> NDArray[Any] | None:
    """Make an array of a storage, offset, size and strides, all checked against the storage."""
    storage, offset, size, strides = arguments[:4]
    if not isinstance(storage, _Storage):
        raise UnsafePickleError('makes a tensor of something that is no storage')
    numbers = [offset, *size, *strides]
    if not all(isinstance(item, int) and item >= 0 for item in numbers):
        raise MapError('is malformed: a tensor with a negative size')
    if storage.values is None:
        return None
    reach = offset + sum((n - 1) * step for n, step in zip(size, strides, strict=True)) + 1
    empty = math.prod(size) == 0
    if not empty and (reach > len(storage.values) or math.prod(size) > len(storage.values)):
        raise MapError('is malformed: a tensor reaches beyond its storage')
    return _strided(storage, offset, size, strides, empty)


def _strided(
    storage: _Storage, offset: int, size: tuple[int, ...], strides: tuple[int, ...], empty: bool
) -> NDArray[Any]:
    values = storage.values
    assert values is not None
    if empty:
        array = np.empty(size, values.dtype)
    else:
        steps = tuple(step * values.dtype.itemsize for step in strides)
        array = np.lib.stride_tricks.as_strided(values[offset:], size, steps, writeable=False)
    if storage.kind == 'BFloat16Storage':
        return np.array(array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return np.array(array, values.dtype.newbyteorder('='))


def _nested(arguments: tuple[Any, ...]) -> _Storage:
    """Parse the payload that torch would hand to a full torch.load: a legacy file of a storage."""
    payload = arguments[0] if arguments else None
    if not isinstance(payload, bytes | bytearray):
        raise UnsafePickleError('nests a storage that is no bytes')
    storage = load_legacy(io.BytesIO(payload), lookup=_storage_names)
    if not isinstance(storage, _Storage):
        raise UnsafePickleError('nests something that is no storage')
    return storage


def _refuse_call(_arguments: tuple[Any, ...]) -> Any:
    raise UnsafePickleError('calls a storage type, which is not allowed')


def _storage_names(name: Name) -> Constructor | None:
    """Allow the names of storage types, as values that cannot be called."""
    return _refuse_call if name.module == 'torch' and name.name in _STORAGE_TYPES else None


_TENSOR_NAMES: dict[Name, Constructor] = {
    Name('torch._utils', '_rebuild_tensor_v2'): _tensor,
    Name('torch._utils', '_rebuild_tensor'): _tensor,
    Name('torch._utils', '_rebuild_parameter'): lambda arguments: arguments[0],
    Name('torch.storage', '_load_from_bytes'): _nested,
}


def names_of_torch(drop: DropArray | None = None) -> Lookup:
    """Return the table for tensors, and for everything in `names_of_numpy`."""
    numpy_names = names_of_numpy(drop)

    def lookup(name: Name) -> Constructor | None:
        return _TENSOR_NAMES.get(name) or _storage_names(name) or numpy_names(name)

    return lookup
