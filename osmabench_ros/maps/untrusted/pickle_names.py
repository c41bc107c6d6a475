"""The names a pickle may refer to, each with a harmless constructor of this package."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.limits.meter import Meter
from osmabench_ros.errors import MapError, UnsafePickleError
from osmabench_ros.maps.untrusted.pickle_machine import (
    MAX_STATE_PARTS,
    Constructor,
    Lookup,
    Name,
    Pending,
    fill,
    is_large,
    shown,
)
from osmabench_ros.maps.untrusted.pickle_sharing import ITEM_BYTES

DropArray = Callable[[np.dtype[Any], tuple[int, ...]], bool]
"""Says for element type and shape whether an array is not needed; it then becomes None."""

_DTYPE = re.compile(r'[<>=|]?([biuf][1248]|f16|c8|c16|\?|[SU]\d{1,6})|O8?|object')
_STUB_MODULES = ('omegaconf', 'pathlib', 'typing')
_STUB_NAMES = {
    'pathlib': {'PosixPath', 'PurePosixPath', 'WindowsPath', 'PureWindowsPath'},
    'typing': {'Any'},
}
_DUALMAP = {'LocalObject', 'GlobalObject', 'BaseObject', 'LocalObjStatus'}
_MAX_DIMENSIONS = 32
_EMPTY_ROW_BYTES = 64
"""What a row takes where it becomes a list, also if there is nothing in it."""
_PARENTS = '_parent'
"""By this name OmegaConf's nodes refer to the node above, which would never end."""
_MODULE_NAMES = {'__builtin__': 'builtins', 'numpy.core.multiarray': 'numpy._core.multiarray'}


@dataclass(eq=False, repr=False)
class Inert(Pending):
    """An object of a foreign class: name, arguments and state (None if none), no behaviour."""

    name: Name
    arguments: tuple[Any, ...]
    state: Any = field(default=None)

    def built(self, state: Any) -> Any:
        """Keep the state, without references back to the parent object."""
        if type(state) is dict:
            state = {key: value for key, value in state.items() if key != _PARENTS}
        self.state = state
        return self

    def parts(self) -> Collection[Any]:
        """Return arguments and state."""
        return (self.arguments, self.state)


class _PendingDtype(Pending):
    """The element type of an array, from NumPy's type code."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        code = arguments[0] if arguments else None
        if not isinstance(code, str) or not _DTYPE.fullmatch(code):
            raise UnsafePickleError(
                f'holds an array of type {shown(code)}; only numbers are loaded'
            )
        self.value: np.dtype[Any] = np.dtype('O' if code[0] in 'oO' else code)

    def built(self, state: Any) -> Any:
        """Apply the byte order; refuse fields and all else that a number type does not have."""
        order, subtype, names, fields = state[1:5]
        if subtype is not None or names is not None or fields is not None:
            raise UnsafePickleError('holds a structured array; only numbers are loaded')
        if order in ('<', '>'):
            self.value = self.value.newbyteorder(order)
        return self


def _dtype_of(value: Any) -> np.dtype[Any]:
    if not isinstance(value, _PendingDtype):
        raise UnsafePickleError('holds an array without a valid type')
    return value.value


class _PendingArray(Pending):
    """An array whose shape and bytes were not read yet."""

    def __init__(self, meter: Meter, drop: DropArray | None) -> None:
        self._meter, self._drop = meter, drop

    def built(self, state: Any) -> NDArray[Any] | None:
        """Return the array, or None if it is not needed."""
        if type(state) is not tuple or len(state) not in (MAX_STATE_PARTS - 1, MAX_STATE_PARTS):
            raise MapError('is malformed: the state of an array is invalid')
        shape, dtype, fortran, data = state[-4:]
        dtype = _dtype_of(dtype)
        _check_sizes(shape)
        if self._drop is not None and self._drop(dtype, shape):
            if is_large(data):  # nothing else can refer to it
                self._meter.give_back(len(data))
            return None
        take_array(shape, dtype.itemsize, self._meter)
        return array_of(data, dtype, shape, bool(fortran))


def _check_sizes(shape: Any) -> None:
    if type(shape) is not tuple or len(shape) > _MAX_DIMENSIONS:
        raise MapError(f'is malformed: {shown(shape)} is the shape of an array')
    if not all(type(size) is int and size >= 0 for size in shape):
        raise MapError('is malformed: the shape of an array is no sizes')


def take_array(shape: Any, item_bytes: int, meter: Meter) -> None:
    """Count the memory of an array, or of its rows if empty; MapError for an invalid shape."""
    _check_sizes(shape)
    if 0 in shape:
        meter.take(_EMPTY_ROW_BYTES * math.prod(max(size, 1) for size in shape))
    else:
        meter.take(item_bytes * math.prod(shape))


def array_of(
    data: Any, dtype: np.dtype[Any], shape: tuple[int, ...], fortran: bool
) -> NDArray[Any]:
    """Return an array of raw bytes, or of a list for arrays of objects, checked for size."""
    order: Any = 'F' if fortran else 'C'
    if dtype.hasobject:
        if not isinstance(data, list) or len(data) != math.prod(shape):
            raise UnsafePickleError('holds an array of objects that is not given as a list')
        objects = np.empty(len(data), object)
        for i, item in enumerate(data):
            objects[i] = item
        return objects.reshape(shape, order=order)
    if isinstance(data, str):  # pickles of Python 2
        data = data.encode('latin-1')
    if not isinstance(data, bytes | bytearray):
        raise MapError('is malformed: the data of an array are no bytes')
    if len(data) != math.prod(shape) * dtype.itemsize:
        raise MapError(f'is malformed: {len(data)} bytes for an array of shape {shape}')
    array = np.frombuffer(data, dtype).reshape(shape, order=order)
    return np.array(array, dtype.newbyteorder('='))


def _scalar(arguments: tuple[Any, ...]) -> Any:
    dtype, data = arguments
    return array_of(data, _dtype_of(dtype), (), False).item()


class _PendingUuid(Pending):
    def built(self, state: Any) -> uuid.UUID:
        return uuid.UUID(int=int(state['int']))


def _encoded(meter: Meter, arguments: tuple[Any, ...]) -> bytes:
    """Return bytes as protocol 2 writes them: a text and the code it was made with."""
    text, code = arguments
    if code not in ('latin1', 'latin-1') or not isinstance(text, str):
        raise UnsafePickleError(f'encodes with {shown(code)}; only latin1 is allowed')
    meter.take(len(text))
    return text.encode('latin-1')


def _listed(meter: Meter, arguments: tuple[Any, ...]) -> list[Any]:
    items = _only_argument(arguments, list | tuple, 'list')
    meter.take(ITEM_BYTES * len(items))
    return list(items)


def _dict(meter: Meter, arguments: tuple[Any, ...]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    items = _only_argument(arguments, list | tuple | dict, 'dict')
    if isinstance(items, dict):
        fill(made, list(items), list(items.values()), meter)
        return made
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in items):
        raise MapError('is malformed: it makes a dict of what are no pairs')
    fill(made, [pair[0] for pair in items], [pair[1] for pair in items], meter)
    return made


def _only_argument(arguments: tuple[Any, ...], kinds: Any, name: str) -> Any:
    if len(arguments) > 1 or not all(isinstance(item, kinds) for item in arguments):
        raise UnsafePickleError(f'makes a {name} of {len(arguments)} arguments')
    return arguments[0] if arguments else ()


def _integer(arguments: tuple[Any, ...]) -> int:
    if len(arguments) > 1 or not all(isinstance(item, int | float) for item in arguments):
        raise UnsafePickleError('makes an int of something that is no number')
    return int(*arguments)


def _empty_bytes(arguments: tuple[Any, ...]) -> bytes:
    if arguments:
        raise UnsafePickleError('makes bytes of something')
    return b''


def names_of_numpy(meter: Meter, drop: DropArray | None = None) -> Lookup:
    """Return the table for NumPy arrays, containers, and stubs of known foreign classes."""
    table: dict[Name, Constructor] = {
        Name('numpy._core.multiarray', '_reconstruct'): lambda _: _PendingArray(meter, drop),
        Name('numpy._core.multiarray', 'scalar'): _scalar,
        Name('numpy', 'ndarray'): lambda _: _PendingArray(meter, drop),
        Name('numpy', 'dtype'): _PendingDtype,
        Name('collections', 'OrderedDict'): partial(_dict, meter),
        # A default factory is never kept.
        Name('collections', 'defaultdict'): lambda arguments: _dict(meter, arguments[1:]),
        Name('uuid', 'UUID'): lambda _: _PendingUuid(),
        Name('builtins', 'dict'): partial(_dict, meter),
        Name('builtins', 'list'): partial(_listed, meter),
        Name('builtins', 'int'): _integer,
        Name('builtins', 'bytes'): _empty_bytes,
        Name('_codecs', 'encode'): partial(_encoded, meter),
    }

    def lookup(name: Name) -> Constructor | None:
        found = table.get(Name(_MODULE_NAMES.get(name.module, name.module), name.name))
        if found is not None or not _is_stub(name):
            return found
        return lambda arguments: Inert(name, arguments)

    return lookup


def _is_stub(name: Name) -> bool:
    root = name.module.split('.')[0]
    if root in _STUB_MODULES:
        allowed = _STUB_NAMES.get(root)
        return allowed is None or (name.module.startswith(root) and name.name in allowed)
    return name.module in ('utils.object', 'dualmap.object') and name.name in _DUALMAP
