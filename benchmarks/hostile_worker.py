"""Reads damaged files, one after another, and reports on each; `hostile_input.py` starts it.

It runs in a process of its own, which may hang, fall or take too much memory. An audit hook notes
every file that Python code opens, makes or removes while a file is read.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import sysconfig
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from hostile_files import READERS
from hostile_mutations import mutate

from osmabench_ros.base.configuration import share_directories
from osmabench_ros.errors import OsmabenchError

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = (
    'os.remove', 'os.rename', 'os.mkdir', 'os.rmdir', 'os.symlink', 'os.link', 'os.truncate',
    'os.chmod', 'os.chown', 'os.utime', 'shutil.rmtree', 'shutil.move', 'shutil.copyfile',
)  # fmt: skip
ELSEWHERE = ('os.system', 'os.exec', 'os.posix_spawn', 'socket.connect', 'ctypes.dlopen')
FRAMES_SHOWN = 4


class Watch:
    """Notes what is touched outside the folders that reading may touch."""

    def __init__(self) -> None:
        self.active = False
        self.touched: list[str] = []
        self._input = ''
        self._temporary = os.path.realpath(tempfile.gettempdir())
        places = {*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, *sys.path}
        places |= {str(place / 'config') for place in share_directories()}
        places |= {'/usr', '/lib', '/lib64', '/etc/ld.so.cache', '/sys', '/etc/localtime'}
        places |= {'/proc/self', f'/proc/{os.getpid()}', '/proc/meminfo', '/proc/cpuinfo', '/dev'}
        places |= {'/proc/stat', '/proc/filesystems', '/proc/sys', '/etc/mime.types', '/opt'}
        self._readable = tuple(os.path.realpath(place) for place in places if place)
        sys.addaudithook(self._note)

    @contextlib.contextmanager
    def on(self, folder: Path) -> Any:
        """Watch the reading of a folder."""
        self._input, self.touched, self.active = os.path.realpath(folder), [], True
        try:
            yield
        finally:
            self.active = False

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event == 'open':
            path, mode, flags = arguments
            writes = bool(flags & WRITING) if isinstance(flags, int) else 'r' not in str(mode)
            self._check('writes' if writes else 'opens', path, writes)
        elif event in CHANGES:
            for path in arguments[: 2 if event in ('os.rename', 'os.link') else 1]:
                self._check(event, path, True)
        elif event in ELSEWHERE and event != 'ctypes.dlopen':
            self.touched.append(f'{event} {str(arguments)[:100]}')

    def _check(self, what: str, path: Any, writes: bool) -> None:
        if isinstance(path, int) or path is None:
            return
        self.active = False
        try:
            text = os.path.realpath(os.fsdecode(path))
        except (OSError, ValueError):
            return  # no path at all
        finally:
            self.active = True
        inside = [self._temporary] if writes else [self._temporary, self._input, *self._readable]
        if writes and (text.endswith('.pyc') or '__pycache__' in text or text == '/dev/null'):
            return
        if not any(text == place or text.startswith(f'{place}{os.sep}') for place in inside):
            self.touched.append(f'{what} {text[:200]}')


def reset_peak() -> None:
    """Let the peak of memory be that of now."""
    Path('/proc/self/clear_refs').write_text('5')


def peak_bytes() -> int:
    """Return the peak of the memory that this process has had since `reset_peak`."""
    line = next(
        line for line in Path('/proc/self/status').read_text().splitlines() if 'VmHWM' in line
    )
    return int(line.split()[1]) * 1024


def fingerprint(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of every file below a folder."""
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in sorted(folder.rglob('*'))
    }


def outcome(read: Any, folder: Path) -> tuple[str, str]:
    """Read once; return how it ended and with what words."""
    try:
        read(folder)
    except OsmabenchError as error:
        return 'refused', str(error)[:300]
    except Exception as error:  # what is looked for
        frames = traceback.extract_tb(error.__traceback__)[-FRAMES_SHOWN:]
        where = ' < '.join(f'{Path(item.filename).name}:{item.lineno}' for item in frames[::-1])
        return 'traceback', f'{type(error).__name__}: {str(error)[:200]} at {where}'
    return 'accepted', ''


def work(watch: Watch, task: dict[str, Any]) -> dict[str, Any]:
    """Damage and read the folder of a task."""
    folder = Path(task['folder'])
    number = task['number']
    done = 'nothing' if number < 0 else mutate(folder, task['reader'], task['seed'], number)
    tree = folder.parent
    before = fingerprint(tree)
    reset_peak()
    start_bytes, start = peak_bytes(), time.process_time()
    with watch.on(folder):
        ended, words = outcome(READERS[task['reader']].read, folder)
    report = {
        'outcome': ended,
        'words': words,
        'damage': done,
        'seconds': time.process_time() - start,
        'bytes': peak_bytes() - start_bytes,
    }
    changed = [path for path, seen in fingerprint(tree).items() if before.get(path) != seen]
    return {**report, 'touched': [*watch.touched, *(f'changes {path}' for path in changed)]}


def main() -> None:
    """Answer each line of the input with one of output."""
    channel = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)  # libraries print
    warnings.simplefilter('ignore')
    logging.disable()
    watch = Watch()
    for line in sys.stdin:
        channel.write(f'{json.dumps(work(watch, json.loads(line)))}\n')
        channel.flush()


if __name__ == '__main__':
    for path in filter(None, os.environ.get('HOSTILE_PLUGINS', '').split(os.pathsep)):
        exec(Path(path).read_text())  # of the test of the benchmark itself
    main()
