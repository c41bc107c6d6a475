"""Pickles and torch files from outside, read in the fence as plain values and arrays.

No name in a pickle is imported: it becomes a text, and only the functions of a table are called.
"""

import gzip
import io
import pickle
import re
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from osmabench_ros import errors
from osmabench_ros.base.configuration import extra
from osmabench_ros.base.fence import read_in_fence

# Key of the class name in the dictionaries that replace objects.
CLASS = '__class__'

_DTYPE = re.compile(r'[<>=|]?([biuf][1248]|f16|c8|c16|\?|[SU]\d{1,6})|O8?|object')
_UNSUPPORTED = re.compile(r'[Uu]nsupported (global|GLOBAL|operand)[^\n]*')
_LARGE_BYTES = 1 << 16
_BUFFER_BYTES = 1 << 20
_GZIP_MAGIC = b'\x1f\x8b'
# By this name OmegaConf's nodes refer to the node that contains them: a cycle.
_PARENT = '_parent'
# Their objects become dictionaries.
_ALLOWED_CLASSES = re.compile(
    r'omegaconf\..+|(utils|dualmap)\.object\.(LocalObject|GlobalObject|BaseObject|LocalObjStatus)'
)
# They are only passed on, as texts.
_ALLOWED_ARGUMENTS = re.compile(
    r'numpy\.ndarray|typing\.Any|'
    r'torch\.(Double|Float|Half|BFloat16|Long|Int|Short|Char|Byte|Bool)Storage'
)


def load_pickle(path: Path, *, drop_masks: bool = False) -> Any:
    """Read a pickle, plain or gzip, without running any code.

    Parameters
    ----------
    path : Path
        The file.
    drop_masks : bool
        Give None for Boolean images, which take gigabytes in some maps.

    Returns
    -------
    Any
        Numbers, texts, containers and arrays; a known object of another package is a dictionary
        of its state, with the name of its class under `CLASS`.

    Raises
    ------
    MapError
        If the file is missing or malformed; UnsafePickleError if it asks for a name outside of
        the allow-list.
    LimitError
        If reading it takes too much memory or time.
    """
    _check_there(path)
    try:
        return read_in_fence(read_pickle, path, drop_masks=drop_masks)
    except errors.MissingDependencyError:  # it holds tensors; torch takes seconds to import
        return read_in_fence(read_pickle, path, libraries=('torch',), drop_masks=drop_masks)


def load_torch(path: Path) -> Any:
    """Read a file of torch.save without running any code; tensors come as arrays.

    Parameters and errors are as in `load_pickle`; bfloat16 comes as float32.
    """
    _check_there(path)
    return read_in_fence(read_torch, path, libraries=('torch',))


def _check_there(path: Path) -> None:
    if not path.is_file():
        raise errors.MapError(f'{path} does not exist')


def read_pickle(path: Path, drop_masks: bool) -> Any:
    """Read a pickle, in the fence."""
    with _name_errors(path), path.open('rb') as file:
        packed = file.read(2) == _GZIP_MAGIC
        file.seek(0)
        raw: Any = gzip.GzipFile(fileobj=file) if packed else file
        return _Unpickler(io.BufferedReader(raw, _BUFFER_BYTES), drop_masks).load()


@contextmanager
def _name_errors(path: Path) -> Iterator[None]:
    unsafe = errors.UnsafePickleError
    problem = f'{path} is not a pickle, or is cut off or malformed'
    with (
        errors.errors_as(unsafe, str(path), unsafe, remedy='nothing was run'),
        errors.errors_as(errors.MapError, problem, Exception, remedy='copy it again'),
    ):  # hostile bytes provoke every kind
        yield


class _Memo(dict[int, Any]):
    """Memo of a pickle that forgets large blocks of bytes, as each is used for one array."""

    def __setitem__(self, key: int, value: Any) -> None:
        parts = value if type(value) is tuple else (value,)
        large = any(isinstance(part, bytes | str) and len(part) > _LARGE_BYTES for part in parts)
        super().__setitem__(key, _Memo if large else value)

    def __getitem__(self, key: int) -> Any:
        value = super().__getitem__(key)
        if value is _Memo:
            raise ValueError('it refers twice to one large block of bytes or text')
        return value


_PythonUnpickler: Any = pickle._Unpickler


class _Unpickler(_PythonUnpickler):  # type: ignore[misc]
    """Calls functions of the table only, and sets the state of arrays and stubs only."""

    dispatch: ClassVar[dict[int, Any]] = dict(_PythonUnpickler.dispatch)

    def __init__(self, file: Any, drop_masks: bool) -> None:
        super().__init__(file, encoding='latin1')
        self.memo = _Memo()
        self._drop_masks = drop_masks

    def find_class(self, module: str, name: str) -> str:
        """Return an allowed name as a text; it is never imported."""
        found = f'{module}.{name}'.replace('numpy.core.', 'numpy._core.')
        found = found.replace('__builtin__.', 'builtins.')
        if not (
            found in _ALLOWED_FUNCTIONS
            or _ALLOWED_CLASSES.fullmatch(found)
            or _ALLOWED_ARGUMENTS.fullmatch(found)
        ):
            raise errors.UnsafePickleError(f'asks for {found:.80}, which is not allowed')
        return found

    def _make(self, name: Any, arguments: Any) -> Any:
        if isinstance(name, str) and name in _ALLOWED_FUNCTIONS:
            return _ALLOWED_FUNCTIONS[name](*arguments)
        if isinstance(name, str) and _ALLOWED_CLASSES.fullmatch(name):
            return {CLASS: name}
        raise errors.UnsafePickleError(f'calls {name!r:.80}, which is not allowed')

    def _instantiate(self, name: Any, arguments: Any) -> None:
        self.stack.append(self._make(name, arguments))

    def load_reduce(self) -> None:
        """Call a function of the table."""
        arguments = self.stack.pop()
        self.stack[-1] = self._make(self.stack[-1], arguments)

    def load_newobj_ex(self) -> None:
        """Refuse keywords."""
        raise errors.UnsafePickleError('calls a name with keywords, which is not allowed')

    def load_build(self) -> None:
        """Set the state of an array, its type, an id or a stub."""
        state = self.stack.pop()
        value = self.stack[-1]
        if isinstance(value, np.ndarray):
            shape, dtype, fortran, data = state[-4:]
            if self._drop_masks and dtype.value.kind == 'b' and len(shape) == 2:
                self.stack[-1] = None
            else:
                value.__setstate__((1, shape, dtype.value, fortran, data))
        elif isinstance(value, _Dtype):
            value.set_state(state)
        elif isinstance(value, uuid.UUID):
            # The constructor checks the range.
            value.__setstate__({'int': uuid.UUID(int=state['int']).int})  # type: ignore[attr-defined]
        elif isinstance(value, dict) and CLASS in value:
            if isinstance(state, dict):
                value.update((key, item) for key, item in state.items() if key != _PARENT)
        else:
            raise errors.UnsafePickleError(f'sets the state of a {type(value).__name__}')

    for _code, _load in (
        (pickle.REDUCE, load_reduce),
        (pickle.NEWOBJ, load_reduce),
        (pickle.NEWOBJ_EX, load_newobj_ex),
        (pickle.BUILD, load_build),
    ):
        dispatch[_code[0]] = _load


class _Dtype:
    """The type of an array's elements, from NumPy's code for it."""

    def __init__(self, code: str, *_: Any) -> None:
        if not _DTYPE.fullmatch(code):
            raise errors.UnsafePickleError(
                f'holds an array of type {code!r:.80}; only numbers are read'
            )
        self.value = np.dtype(code)

    def set_state(self, state: Any) -> None:
        """Apply the byte order; NumPy trusts flags that make it crash."""
        order, subtype, names, fields = state[1:5]
        if (subtype, names, fields) != (None, None, None):
            raise errors.UnsafePickleError('holds a structured array; only numbers are read')
        if order in ('<', '>'):
            self.value = self.value.newbyteorder(order)

    def __reduce__(self) -> Any:
        return np.dtype, (self.value.str,)


def _make_scalar(dtype: _Dtype, data: Any) -> Any:
    data = data.encode('latin1') if isinstance(data, str) else data
    return np.frombuffer(data, dtype.value, count=1)[0].item()


def _encode(text: str, code: str) -> bytes:
    if code not in ('latin1', 'latin-1'):
        raise errors.UnsafePickleError(f'encodes with {code!r:.80}; only latin1 is allowed')
    return text.encode('latin1')


def _load_tensors(source: Any) -> Any:
    try:
        return _torch().load(source, map_location='cpu', weights_only=True)
    except pickle.UnpicklingError as error:
        if found := _UNSUPPORTED.search(str(error)):
            raise errors.UnsafePickleError(f'has an {found[0].lower()}') from error
        raise


def _make_tensor(*arguments: Any) -> NDArray[Any]:
    return _to_array(_torch()._utils._rebuild_tensor_v2(*arguments[:4], False, {}))


_ALLOWED_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    'numpy._core.multiarray._reconstruct': lambda *_: np.empty(0),
    'numpy._core.multiarray.scalar': _make_scalar,
    'numpy.dtype': _Dtype,
    'collections.OrderedDict': dict,
    # A default factory is never kept.
    'collections.defaultdict': lambda _=None, *items: dict(*items),
    'uuid.UUID': lambda: uuid.UUID.__new__(uuid.UUID),
    'builtins.dict': dict,
    'builtins.list': list,
    'builtins.int': int,
    'builtins.bytes': bytes,
    '_codecs.encode': _encode,
    **{
        f'pathlib.{kind}': lambda *parts: '/'.join(map(str, parts)).replace('//', '/')
        for kind in ('PosixPath', 'PurePosixPath', 'WindowsPath', 'PureWindowsPath')
    },
    'torch._utils._rebuild_tensor_v2': _make_tensor,
    'torch._utils._rebuild_tensor': _make_tensor,
    'torch._utils._rebuild_parameter': lambda value, *_: value,
    'torch.storage._load_from_bytes': lambda payload: _load_tensors(io.BytesIO(payload)),
}


def _torch() -> Any:
    """Return torch if the fence has imported it, with tensors that stay within their storage."""
    torch = sys.modules.get('torch')
    if torch is None:
        raise errors.MissingDependencyError(f'a tensor needs torch; {extra("metrics")}')
    torch._utils._rebuild_tensor = _make_checked_tensor
    return torch


def _make_checked_tensor(storage: Any, offset: int, size: Any, strides: Any) -> Any:
    # torch lengthens a storage of the older form by uninitialised memory.
    reach = offset + sum((count - 1) * step for count, step in zip(size, strides, strict=True))
    if 0 not in size and reach >= storage.size():
        raise ValueError('a tensor reaches beyond its storage')
    tensor = sys.modules['torch'].empty(0, dtype=storage.dtype)
    return tensor.set_(storage._untyped_storage, offset, size, strides)


def _to_array(tensor: Any) -> NDArray[Any]:
    torch = _torch()
    tensor = tensor.detach()
    values: NDArray[Any] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    return values


def read_torch(path: Path) -> Any:
    """Read a file of torch.save, in the fence."""
    torch, multiarray = _torch(), np._core.multiarray  # type: ignore[attr-defined]
    names = [
        (getattr(multiarray, name), f'numpy.{core}.multiarray.{name}')
        for name in ('_reconstruct', 'scalar')
        for core in ('core', '_core')
    ]
    types = {type(np.dtype(code)) for code in '?bBhHiIlLqQefdFD'}
    allowed = torch.serialization.safe_globals([*names, np.ndarray, np.dtype, *types])
    with _name_errors(path), allowed:
        return _convert_tensors(_load_tensors(path))


def _convert_tensors(value: Any) -> Any:
    """Return containers with arrays in place of tensors."""
    if isinstance(value, dict):
        return {key: _convert_tensors(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_convert_tensors(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_convert_tensors(item) for item in value)
    return _to_array(value) if isinstance(value, _torch().Tensor) else value
