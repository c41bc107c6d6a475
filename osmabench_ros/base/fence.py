"""Reads files from outside in a child process of bounded memory and time.

A server process, started at first use, imports the libraries of a format once and forks for every
file, so that limits count for one file. The result comes back as a pickle in shared memory, which
is read with an allow-list of names: even a library that a file took over cannot run code here.
"""

import contextlib
import importlib
import io
import math
import os
import pickle
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from osmabench_ros import errors
from osmabench_ros.errors import (
    ConfigError,
    LimitError,
    OsmabenchError,
    OsmabenchWarning,
    errors_as,
)

# Environment variable with the factor by which a user raises all limits.
VARIABLE = 'OSMABENCH_LIMITS'

_MIB = 2**20
_START = 'import sys; sys.path.remove(""); from osmabench_ros.base.fence import serve; serve()'
# Of the environment; it holds keys, too.
_KEPT = ('PATH', 'HOME', 'LANG', 'LC_ALL', 'LD_LIBRARY_PATH', 'TZ', 'VIRTUAL_ENV',
         'OSMABENCH_LINKED_FOLDERS')  # fmt: skip
_THREADS = {'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1', 'MKL_NUM_THREADS': '1'}
# Seconds on the clock for each second of processor time, and in addition.
_WALL_RATIO, _WALL_S = 4.0, 30.0
_MESSAGE_BYTES = 64
_MAX_ERROR_CHARACTERS = 2000
_RESULT_PACKAGES = ('builtins', 'numpy', 'uuid')
_RESULT_NAMES = (
    '_frombuffer', '_reconstruct', 'complex', 'dtype', 'ndarray', 'scalar', 'UUID',
)  # fmt: skip


def limit_factor() -> float:
    """Return the factor of all limits, from the environment; raises ConfigError."""
    text = os.environ.get(VARIABLE) or '1'
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise ConfigError(f'{VARIABLE}={text[:40]} is not a positive number, such as 4')


def memory_limit(size_bytes: int) -> int:
    """Return the memory (bytes) that reading a file of this size may take."""
    return int(limit_factor() * (512 * _MIB + 32 * size_bytes))


def time_limit_s(size_bytes: int) -> float:
    """Return the processor time that reading a file of this size may take."""
    return limit_factor() * (15 + size_bytes / _MIB)


def limit_error(path: Path | str, what: str) -> LimitError:
    """Return the error of a file that passes a limit, as `what` says, with the remedy."""
    return LimitError(
        f'{path} {what}; the file is damaged or hostile. If you trust it, raise all limits, for '
        f'example with {VARIABLE}={4 * limit_factor():g}'
    )


def read_in_fence(
    function: Callable[..., Any],
    path: Path,
    *,
    libraries: Sequence[str] = (),
    more_bytes: int = 0,
    max_seconds: float = math.inf,
    **arguments: Any,
) -> Any:
    """Call a function on a file or folder in a limited child process, and return its result.

    Parameters
    ----------
    function : callable
        A function at the top of a module; it gets the absolute path and `arguments`, and returns
        plain values and NumPy arrays in any nesting.
    path : Path
        File or folder that is read.
    libraries : sequence of str
        Modules that the server imports once for all files; a missing one is left to `function`.
    more_bytes : int
        Size of other files that are read with it, such as textures.
    max_seconds : float
        Processor time where a file of any size takes less than usual, before the user's factor.
    **arguments
        Values that JSON can hold.

    Returns
    -------
    Any
        The result of the function; the arrays can be written to.

    Raises
    ------
    OsmabenchError
        The error of the function; LimitError, which names the file, if reading takes too much
        memory or time, crashes, or fails otherwise.
    """
    path = path.absolute()
    size = _size_of(path) + more_bytes
    seconds = math.ceil(min(time_limit_s(size), limit_factor() * max_seconds))
    call = partial(function, path, **arguments)
    with open(os.memfd_create('osmabench_fence'), 'w+b') as shared:
        request = (libraries, call, os.environ.get(VARIABLE), memory_limit(size), seconds)
        pickle.dump(request, shared)
        shared.flush()
        status = _SERVER.status_of(shared.fileno(), path, _WALL_S + _WALL_RATIO * seconds)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
            raise limit_error(path, f'takes more than {seconds} s to read')
        if os.WIFSIGNALED(status):
            raise limit_error(path, f'ended its reader with signal {os.WTERMSIG(status)}')
        return _load_result(shared, path)


def parse_in_fence(function: Callable[..., Any], data: bytes, what: str, **options: Any) -> Any:
    """As `read_in_fence`, for a file with this content; errors call it `what`."""
    with tempfile.NamedTemporaryFile(prefix='osmabench_fence_') as file:
        file.write(data)
        file.flush()
        try:
            return read_in_fence(function, Path(file.name), **options)
        except OsmabenchError as error:
            raise type(error)(str(error).replace(file.name, what)) from error


def _size_of(path: Path) -> int:
    with errors_as(
        LimitError, f'{path} cannot be read', OSError, ValueError, remedy='name a file'
    ):  # fmt: skip
        kind = path.stat()
    if stat.S_ISDIR(kind.st_mode):
        return sum(item.stat().st_size for item in path.rglob('*') if item.is_file())
    if not stat.S_ISREG(kind.st_mode):
        raise LimitError(f'{path} is not a regular file; name a file')
    return kind.st_size


class _Server:
    """The one server of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._owner = 0

    def status_of(self, shared: int, path: Path, wall_s: float) -> int:
        """Return the status with which the process that read the file ended."""
        with self._lock:
            try:
                channel = self._connect()
                channel.settimeout(wall_s)
                socket.send_fds(channel, [b'read'], [shared])
                return int(channel.recv(_MESSAGE_BYTES))
            except BaseException as error:
                self._stop()  # an interrupt leaves an answer that belongs to no request
                if isinstance(error, TimeoutError):
                    raise limit_error(path, f'takes more than {wall_s:g} s to read') from error
                if isinstance(error, (OSError, ValueError)):
                    raise limit_error(path, 'ended the process that reads files') from error
                raise

    def _connect(self) -> socket.socket:
        if self._owner != os.getpid():  # a fork of this process must not share the channel
            self._process, self._owner = None, os.getpid()
        if self._channel is None or self._process is None or self._process.poll() is not None:
            self._channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with other:
                self._process = _start_server(other)
        return self._channel

    def _stop(self) -> None:
        """End the server, and the process that reads for it."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


_SERVER = _Server()


def _start_server(channel: socket.socket) -> subprocess.Popen[bytes]:
    paths = [place for place in sys.path if os.path.isabs(place)]
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, '-c', _START],
        stdin=channel.fileno(),
        stdout=subprocess.DEVNULL,
        cwd='/',
        env={**environment, **_THREADS, 'PYTHONPATH': os.pathsep.join(paths)},
        start_new_session=True,
    )


def serve() -> None:
    """Serve requests from standard input, a socket, until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = socket.socket(fileno=0)
    while descriptors := socket.recv_fds(channel, _MESSAGE_BYTES, 1)[1]:
        with open(descriptors[0], 'r+b') as shared:
            shared.seek(0)
            libraries, *request = pickle.load(shared)  # noqa: S301 - our own request
            for name in libraries:
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
            reader = os.fork()
            if reader == 0:
                channel.close()
                _read(shared, *request)
        ended = os.pidfd_open(reader)
        ready, _, _ = select.select([ended, channel.fileno()], [], [])
        os.close(ended)
        if ended not in ready:  # the other end was closed
            os.killpg(0, signal.SIGKILL)
        channel.send(str(os.waitpid(reader, 0)[1]).encode())


def _read(
    shared: io.BufferedRandom, call: partial[Any], factor: str | None, memory: int, seconds: int
) -> NoReturn:
    """Read the file, in the process that was forked for it."""
    try:
        os.environ[VARIABLE] = factor or ''
        _limit(memory, seconds)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always', OsmabenchWarning)
            result = call()
        texts = [str(item.message) for item in caught if item.category is OsmabenchWarning]
        _write((result, texts, None, ''), shared)
        _Result(shared).load()  # what fits into the limits here does so there
    except BaseException as error:
        kind = type(error).__name__ if isinstance(error, OsmabenchError) else ''
        text = str(error) if kind else ''.join(traceback.format_exception_only(error)).strip()
        if isinstance(error, MemoryError):
            text = f'takes more than {memory // _MIB} MiB of memory'
        with contextlib.suppress(BaseException):
            _write((None, (), kind, text[:_MAX_ERROR_CHARACTERS]), shared)
    os._exit(0)


def _limit(memory_bytes: int, seconds: int) -> None:
    taken = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()
    for kind, most in (
        (resource.RLIMIT_AS, taken + memory_bytes),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, memory_bytes),
    ):
        _, top = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if top == resource.RLIM_INFINITY else min(most, top), top))


def _write(answer: tuple[Any, ...], shared: io.BufferedRandom) -> None:
    shared.seek(0)
    shared.truncate()
    pickler = pickle.Pickler(shared, 5)
    # Without a memo, a shared value is counted at each use, and a value that
    # contains itself is an error.
    pickler.fast = True
    pickler.dump(answer)
    shared.seek(0)


class _Result(pickle.Unpickler):
    """Reads plain values and arrays; refuses every other name."""

    def find_class(self, module: str, name: str) -> Any:
        """Return an allowed class or function."""
        if module.partition('.')[0] not in _RESULT_PACKAGES or name not in _RESULT_NAMES:
            raise pickle.UnpicklingError(f'a result holds {module}.{name}')
        return super().find_class(module, name)


def _load_result(shared: io.BufferedRandom, path: Path) -> Any:
    shared.seek(0)
    try:
        result, texts, kind, text = _Result(shared).load()
    except Exception as error:
        raise limit_error(path, f'gave no result ({error})') from error
    if kind is not None:
        raise getattr(errors, kind)(text) if kind else limit_error(path, f'cannot be read: {text}')
    for item in texts:
        warnings.warn(item, OsmabenchWarning, stacklevel=3)
    return result
