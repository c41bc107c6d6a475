"""Main program of the limited child: it forks one limited process for each file."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any, NoReturn

from osmabench_ros.base.limits.allowance import Allowance, limited_to
from osmabench_ros.base.limits.child_result import ResultWriter
from osmabench_ros.base.limits.landlock import hold_to
from osmabench_ros.errors import OsmabenchError, OsmabenchWarning

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
            status = _served(request, answers)
            os.write(answers, json.dumps(status).encode() + b'\n')


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
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
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
