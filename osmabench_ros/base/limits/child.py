"""Reads files in a child process, started when first needed, of bounded memory, time and reach."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import json
import math
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.base.limits.child_main import FAULT, MAX_FAULT_CHARACTERS, read_result
from osmabench_ros.errors import LimitError, OsmabenchError, OsmabenchWarning

_START = (
    'import sys; sys.path.remove(""); '
    'from osmabench_ros.base.limits.child_main import main; main()'
)
_KEPT = ('PATH', 'HOME', 'LANG', 'LC_ALL', 'LD_LIBRARY_PATH', 'TZ', 'VIRTUAL_ENV',
         'OSMABENCH_LINKED_FOLDERS')  # fmt: skip
"""Of the environment; it holds keys, too."""
_THREADS = {'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1', 'MKL_NUM_THREADS': '1'}
_WALL_RATIO, _WALL_S = 4.0, 30.0
"""Time on the clock for each second of the processor's, and so much besides."""
_MAX_ANSWER_BYTES = 100


def read_limited(
    function: Callable[..., Any],
    path: Path,
    *,
    folders: Sequence[Path] = (),
    libraries: Sequence[str] = (),
    seconds: float | None = None,
    more_bytes: int = 0,
    **arguments: Any,
) -> Any:
    """Call a function on a file or folder in the limited child, and return its result.

    `function` stands at the top of a module; it gets the path and plain values, and returns what
    JSON can hold, with arrays of numbers anywhere in it. It may read `folders` too, such as
    textures; the child imports its `libraries` once for all files. The limits grow with the size
    of the path and `more_bytes`; `seconds` of processor time may tighten them. Raises the
    function's OsmabenchError, or a LimitError if it takes too much, crashes, or fails in another
    way; it names the file.
    """
    path = path.absolute()
    size = _size_of(path) + more_bytes
    limits = allowance()
    time_s = min(limits.time_s(size), math.inf if seconds is None else seconds)
    made = tempfile.mkdtemp(prefix='osmabench_child_')
    try:
        request = {
            'module': function.__module__,
            'function': function.__name__,
            'libraries': list(libraries),
            'path': str(path),
            'arguments': arguments,
            'readable': [str(item) for item in (path, *folders)],
            'folder': made,
            'allowance': dataclasses.asdict(limits),
            'memory_bytes': limits.memory_bytes(size),
            'seconds': math.ceil(time_s),
        }
        status = _CHILD.status_of(request, path, _WALL_S + _WALL_RATIO * time_s)
        return _result(request, Path(made), path, status)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def parse_limited(function: Callable[..., Any], data: bytes, what: str, **options: Any) -> Any:
    """As `read_limited`, for a file with this content; errors call it `what`."""
    with tempfile.TemporaryDirectory(prefix='osmabench_child_') as folder:
        file = Path(folder) / 'data'
        file.write_bytes(data)
        try:
            return read_limited(function, file, **options)
        except OsmabenchError as error:
            raise type(error)(str(error).replace(str(file), what)) from error


def _size_of(path: Path) -> int:
    try:
        found = path.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, 'strerror', None) or error
        raise LimitError(f'{str(path)[:200]!r} cannot be read: {reason}') from error
    if stat.S_ISDIR(found.st_mode):
        return sum(item.stat().st_size for item in path.rglob('*') if item.is_file())
    if not stat.S_ISREG(found.st_mode):
        raise LimitError(f'{path} is no regular file; name a file')
    return found.st_size


def _result(request: dict[str, Any], made: Path, path: Path, status: int) -> Any:
    if os.WIFSIGNALED(status):
        raise _killed(path, os.WTERMSIG(status), request)
    if (made / FAULT).exists():
        raise _fault(made / FAULT, path, request)
    try:
        found = read_result(made, request['memory_bytes'])
        texts, result = found['warnings'], found['result']
    except (OSError, ValueError, LookupError, TypeError, MemoryError, RecursionError) as error:
        raise _broken(path, f'its reader gave no result ({error})') from error
    for text in texts:
        warnings.warn(str(text), OsmabenchWarning, stacklevel=3)
    return result


def _killed(path: Path, number: int, request: dict[str, Any]) -> LimitError:
    if number == signal.SIGXCPU:
        return exceeded(path, f'reading it takes over {request["seconds"]} s', 'seconds')
    with contextlib.suppress(ValueError):
        return _broken(path, f'its reader ended with {signal.Signals(number).name}')
    return _broken(path, f'its reader ended with signal {number}')


def _broken(path: Path, what: str) -> LimitError:
    return LimitError(
        f'{path}: {what}; the file is damaged or hostile, or takes more memory than the limits '
        'memory_mib and memory_ratio allow'
    )


def _fault(file: Path, path: Path, request: dict[str, Any]) -> OsmabenchError:
    try:
        fault = json.loads(file.read_bytes()[: 10 * MAX_FAULT_CHARACTERS])
        if fault['memory']:
            mib = request['memory_bytes'] >> 20
            return exceeded(path, f'reading it takes over {mib} MiB', 'memory_ratio')
        if not fault['kind']:
            return _broken(path, f'its reader failed ({fault["text"]})')
        kind = getattr(sys.modules[str(fault['module'])], str(fault['kind']))
        text = str(fault['text'])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return _broken(path, 'its reader failed')
    if isinstance(kind, type) and issubclass(kind, OsmabenchError):
        return kind(text)
    return _broken(path, 'its reader failed')


class _Child:
    """The one child of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def status_of(self, request: dict[str, Any], path: Path, wall_s: float) -> int:
        """Return the status with which the process that read the file ended."""
        line = json.dumps(request).encode() + b'\n'
        with self._lock:
            try:
                process = self._running()
                assert process.stdin is not None
                process.stdin.write(line)
                return int(_answer(process, wall_s))
            except TimeoutError as error:
                self.stop()
                raise exceeded(path, f'reading it takes over {wall_s:g} s', 'seconds') from error
            except (OSError, ValueError) as error:
                self.stop()
                raise _broken(path, 'the process that reads files ended') from error
            except BaseException:
                # An interrupt leaves an answer that belongs to no request.
                self.stop()
                raise

    def _running(self) -> subprocess.Popen[bytes]:
        # A fork of this process must not share the pipes.
        if self._owner != os.getpid():
            self._process, self._owner = None, os.getpid()
            atexit.register(self.stop)
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self._process = self._started()
        return self._process

    def _started(self) -> subprocess.Popen[bytes]:
        paths = [place for place in sys.path if os.path.isabs(place)]
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= {**_THREADS, 'PYTHONPATH': os.pathsep.join(paths)}
        return subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, '-c', _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd='/',
            env=environment,
            start_new_session=True,
        )

    def stop(self) -> None:
        """End the child, and the process that reads for it."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def _answer(process: subprocess.Popen[bytes], wall_s: float) -> bytes:
    assert process.stdout is not None
    answer, end = b'', time.monotonic() + wall_s
    while not answer.endswith(b'\n'):
        if not select.select([process.stdout], [], [], max(end - time.monotonic(), 0))[0]:
            raise TimeoutError
        block = os.read(process.stdout.fileno(), _MAX_ANSWER_BYTES)
        answer += block
        if not block or len(answer) > _MAX_ANSWER_BYTES:
            raise OSError('no answer')
    return answer


_CHILD = _Child()
