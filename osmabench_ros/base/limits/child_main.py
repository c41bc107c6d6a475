"""Main program of the limited child: it forks one process for each file, held to it by Landlock.

A result is plain values as JSON, and arrays in one file that the parent maps into its memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import math
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from osmabench_ros.base.limits.allowance import Allowance, limited_to
from osmabench_ros.errors import OsmabenchError, OsmabenchWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
"""Numbers of the system calls, the same on x86_64 and aarch64."""

_ASK_VERSION = 1
_PATH_BENEATH = 1
_SET_NO_NEW_PRIVILEGES = 38

_WRITE_FILE, _READ_FILE, _READ_DIR, _MAKE_REGULAR, _TRUNCATE = (
    1 << 1, 1 << 2, 1 << 3, 1 << 8, 1 << 14
)  # fmt: skip
_RIGHTS_BY_VERSION = ((1, 13), (2, 14), (3, 15), (5, 16))
"""From which version on how many rights on files there are."""


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ('files', ctypes.c_uint64),
        ('network', ctypes.c_uint64),
        ('scoped', ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = 'ms'
    _fields_ = (('allowed', ctypes.c_uint64), ('parent', ctypes.c_int32))


def landlock_version() -> int:
    """Return the version of Landlock in this kernel, 0 if it is missing or disabled."""
    return max(int(_libc().syscall(_CREATE, None, 0, _ASK_VERSION)), 0)


def hold_to(readable: Iterable[Path], writable: Path) -> None:
    """Allow this process to read only some paths and to write only in one folder.

    It cannot be undone. TCP is refused from version 4 of Landlock on, signals to other processes
    from version 6 on; without Landlock nothing happens. What is missing of `readable` is passed
    over; `writable` exists, and is readable too. Raises OSError if the kernel refuses.
    """
    version = landlock_version()
    if not version:
        return
    known = (1 << max(count for since, count in _RIGHTS_BY_VERSION if since <= version)) - 1
    # Without its newest fields the structure is that of the older versions.
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _Ruleset(known, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    ruleset = _checked(_CREATE, ctypes.byref(rules), size, 0)
    try:
        for path in readable:
            _allow(ruleset, path, _READ_FILE | _READ_DIR)
        _allow(ruleset, Path(os.devnull), _READ_FILE | _WRITE_FILE)
        made = _READ_FILE | _READ_DIR | _WRITE_FILE | _MAKE_REGULAR | _TRUNCATE
        _allow(ruleset, writable, made & known)
        if _libc().prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), 'no_new_privs')
        _checked(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not path.is_dir():
            rights &= _READ_FILE | _WRITE_FILE | _TRUNCATE
        rule = _Beneath(rights, place)
        _checked(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(place)


def _checked(number: int, *arguments: object) -> int:
    result = int(_libc().syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f'Landlock: {os.strerror(code)}')
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


VALUES, ARRAYS = 'values.json', 'arrays.bin'
_MARK = '$array'
_KINDS = 'biufc'
_ALIGNMENT = 64


class ResultWriter:
    """Writes a result to `VALUES` and `ARRAYS` in a folder; MemoryError beyond `max_bytes`."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder, self._left = folder, max_bytes

    def write(self, result: Any) -> None:
        """Write lists, dicts with names as keys, plain values, and arrays of numbers in them."""
        with (self._folder / ARRAYS).open('wb') as self._arrays:
            text = json.dumps(self._plain(result)).encode()
        self._take(len(text))
        (self._folder / VALUES).write_bytes(text)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            if not all(isinstance(key, str) and key != _MARK for key in value):
                raise TypeError('keys of a result are names')
            return {key: self._plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._plain(item) for item in value]
        if value is None or isinstance(value, (str, bool, int, float)):
            return value
        return {_MARK: self._stored(value)}

    def _stored(self, value: Any) -> list[Any]:
        import numpy as np

        array = np.ascontiguousarray(value)
        if not isinstance(value, np.ndarray) or array.dtype.kind not in _KINDS:
            raise TypeError(f'a result holds {type(value).__name__}')
        padding = -self._arrays.tell() % _ALIGNMENT
        self._take(padding + array.nbytes)
        self._arrays.write(b'\0' * padding)
        place = self._arrays.tell()
        array.tofile(self._arrays)
        return [array.dtype.str, list(value.shape), place]

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise MemoryError('the result is too large')


def read_result(folder: Path, max_bytes: int) -> Any:
    """Return what `ResultWriter` wrote, arrays mapped; ValueError if it is anything else."""
    values = folder / VALUES
    if values.stat().st_size > max_bytes:
        raise ValueError('the result is too large')
    return _decoded(json.loads(values.read_bytes()), _Arrays(folder / ARRAYS))


class _Arrays:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._bytes: NDArray[Any] | None = None

    def at(self, kind: str, shape: list[int], place: int) -> NDArray[Any]:
        """Return an array of a type and shape that begins at a byte of the file."""
        import numpy as np

        if self._bytes is None:
            size = self._path.stat().st_size
            # Copy on write: for those who use it, it is an array like any other.
            self._bytes = (
                np.memmap(self._path, np.uint8, 'c') if size else np.zeros(0, np.uint8)
            ).view(np.ndarray)
        dtype = np.dtype(kind)
        size = math.prod(shape) * dtype.itemsize
        end = place + size
        if dtype.kind not in _KINDS or min([place, *shape]) < 0 or end > len(self._bytes):
            raise ValueError('an array of the result lies outside of its file')
        return self._bytes[place:end].view(dtype).reshape(shape)


def _decoded(value: Any, arrays: _Arrays) -> Any:
    if isinstance(value, dict):
        if _MARK in value:
            kind, shape, place = value[_MARK]
            return arrays.at(str(kind), [int(size) for size in shape], int(place))
        return {key: _decoded(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_decoded(item, arrays) for item in value]
    return value


FAULT = 'fault.json'
"""In the folder of the result: what was wrong with the file."""

MAX_FAULT_CHARACTERS = 2000
_OPEN_FILES = 256
_SET_DEATH_SIGNAL = 1
_SYSTEM_PLACES = ('/usr', '/lib', '/lib64', '/etc/ld.so.cache', '/etc/localtime',
                  '/dev/urandom', '/proc/self', '/proc/meminfo', '/proc/cpuinfo',
                  '/sys/devices/system/cpu')  # fmt: skip


def main() -> None:
    """Serve requests until standard input is closed."""
    # Nothing that a library prints may get between the answers.
    answers = os.dup(1)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(0, 'rb', buffering=0, closefd=False) as requests:
        while line := requests.readline():
            request = json.loads(line)
            for name in (request['module'], *request['libraries']):
                # One that is missing is for the reader to name.
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
            os.write(answers, json.dumps(_served(request, answers)).encode() + b'\n')


def _served(request: dict[str, Any], answers: int) -> int:
    """Return the status of the process that reads the file, as `os.waitpid` gives it."""
    done, held = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(answers)
        os.close(done)
        _read(request)
    os.close(held)
    # Its end of the pipe is closed when it ends; ours of the requests, when the parent does.
    ready, _, _ = select.select([0, done], [], [])
    os.close(done)
    if done not in ready:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        shutil.rmtree(request['folder'], ignore_errors=True)
        os._exit(1)
    return os.waitpid(process, 0)[1]


def _read(request: dict[str, Any]) -> NoReturn:
    folder = Path(request['folder'])
    try:
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        function = getattr(importlib.import_module(request['module']), request['function'])
        tempfile.tempdir = str(folder)
        _limit(request)
        hold_to([*_installation(), *map(Path, request['readable'])], folder)
        _answer(function, request, folder)
    except BaseException as error:
        _report(error, folder)
    os._exit(0)


def _answer(function: Any, request: dict[str, Any], folder: Path) -> None:
    with (
        limited_to(Allowance(**request['allowance'])),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter('always', OsmabenchWarning)
        result = function(Path(request['path']), **request['arguments'])
    texts = [str(item.message) for item in caught if issubclass(item.category, OsmabenchWarning)]
    ResultWriter(folder, request['memory_bytes']).write({'result': result, 'warnings': texts})


def _limit(request: dict[str, Any]) -> None:
    taken = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()
    seconds = request['seconds']
    for kind, limit in (
        (resource.RLIMIT_AS, taken + request['memory_bytes']),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, request['memory_bytes']),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        bound = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        # The signal of the soft limit says more than that of the hard one.
        top = (
            bound + 1 if kind == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else bound
        )
        resource.setrlimit(kind, (bound, top))


def _installation() -> set[Path]:
    """Return the folders of the installed libraries; never a folder of the user."""
    places = {Path(place) for place in (sys.prefix, sys.base_prefix, *_SYSTEM_PLACES)}
    places |= {Path(place) for place in sys.path if place.endswith('-packages')}
    files = {Path(getattr(module, '__file__', None) or '/usr') for module in
             list(sys.modules.values()) if '.' not in module.__name__}  # fmt: skip
    loaded = {file.parent if file.name == '__init__.py' else file for file in files}
    own = Path(__file__).parents[2]
    return {own, *places, *(item for item in loaded if not places & set(item.parents))}


def _report(error: BaseException, folder: Path) -> None:
    """Write the error for the parent; if even that fails, the parent finds no result."""
    known = isinstance(error, OsmabenchError)
    text = str(error) if known else ''.join(traceback.format_exception_only(error)).strip()
    fault = {
        'kind': type(error).__name__ if known else '',
        'module': type(error).__module__ if known else '',
        'memory': isinstance(error, MemoryError),
        'text': text[:MAX_FAULT_CHARACTERS],
    }
    with contextlib.suppress(BaseException):
        (folder / FAULT).write_text(json.dumps(fault))
