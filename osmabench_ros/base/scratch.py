"""Temporary folders with a mark by which this package recognises that it may delete them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = '.osmabench-partial-'
MARK = 'osmabench-partial.json'
CONTENT = 'content'

_NAME = re.compile(re.escape(PREFIX) + '[0-9a-f]{16}')
_MARK_BYTES = 4096
_MOUNTS = Path('/proc/self/mountinfo')


@contextmanager
def scratch_in(folder: Path) -> Iterator[Path]:
    """Yield an empty folder below an existing one; it is removed with its content afterwards.

    The scratch folder holds a mark that names the package, the scratch folder and its inode, so
    that a copy of it, or a folder of the user's with such a name, is not taken for ours. The mark
    is locked while the scratch folder is in use. Raises OSError if it cannot be made.
    """
    scratch = folder / f'{PREFIX}{secrets.token_hex(8)}'
    scratch.mkdir()
    lock = -1
    try:
        lock = os.open(scratch / MARK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        with contextlib.suppress(OSError):  # where nothing can be locked, leftovers stay
            fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, _mark(scratch))
        content = scratch / CONTENT
        content.mkdir()
        yield content
    finally:
        _remove(scratch)
        if lock >= 0:
            os.close(lock)


def in_scratch(path: Path) -> bool:
    """Return whether a path lies in a scratch folder, where everything is temporary."""
    return any(parent.name.startswith(PREFIX) and _proven(parent) for parent in path.parents)


def remove_leftovers(folders: Iterable[Path]) -> list[Path]:
    """Remove the scratch folders of killed processes; return those that stay, as not ours."""
    staying = []
    for folder in folders:
        with contextlib.suppress(OSError):
            names = sorted(name for name in os.listdir(folder) if name.startswith(PREFIX))
            staying += [folder / name for name in names if not _removed_if_left(folder / name)]
    return staying


def is_unfinished(scratch: Path) -> bool:
    """Return whether a process was killed before it wrote a byte of the mark."""
    if scratch.is_symlink() or not _NAME.fullmatch(scratch.name) or not scratch.is_dir():
        return False
    found = {item.name: item.lstat() for item in scratch.iterdir()}
    empty = all(stat.S_ISREG(item.st_mode) and not item.st_size for item in found.values())
    return empty and found.keys() <= {MARK}


def mount_points_in(folder: Path) -> frozenset[str]:
    """Return the mount points on or below a folder, from which nothing may be deleted."""
    real = os.path.realpath(folder).rstrip('/')
    try:
        lines = _MOUNTS.read_text('utf-8', 'surrogateescape').splitlines()
    except OSError:
        return frozenset()
    points = (_unescaped(line.split(' ')[4]) for line in lines)
    return frozenset(item for item in points if item == real or item.startswith(f'{real}/'))


def _unescaped(text: str) -> str:
    return re.sub(r'\\([0-7]{3})', lambda match: chr(int(match[1], 8)), text)


def _mark(scratch: Path) -> bytes:
    inode = scratch.lstat().st_ino
    data = {'package': 'osmabench_ros', 'folder': scratch.name, 'inode': inode}
    return json.dumps(data).encode()


def _proven(scratch: Path) -> bool:
    try:
        handle = _opened_mark(scratch)
    except OSError:
        return False
    try:
        return _is_marked(scratch, handle)
    finally:
        os.close(handle)


def _opened_mark(scratch: Path) -> int:
    return os.open(scratch / MARK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)


def _is_marked(scratch: Path, handle: int) -> bool:
    regular = stat.S_ISREG(os.fstat(handle).st_mode) and not scratch.is_symlink()
    return regular and os.pread(handle, _MARK_BYTES, 0) == _mark(scratch)


def _removed_if_left(scratch: Path) -> bool:
    """Remove a scratch folder that no process uses; return whether it was removed."""
    try:
        handle = _opened_mark(scratch)
    except OSError:
        return False
    try:
        if not _is_marked(scratch, handle):
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True  # somebody is at work in it, and will remove it
        return _remove(scratch)
    except OSError:
        return False
    finally:
        os.close(handle)


def _remove(scratch: Path) -> bool:
    """Remove a scratch folder, the mark last; not if something is mounted in it."""
    if mount_points_in(scratch) or set(os.listdir(scratch)) - {MARK, CONTENT}:
        return False
    try:
        if (scratch / CONTENT).exists():
            shutil.rmtree(scratch / CONTENT)  # follows no link
        (scratch / MARK).unlink(missing_ok=True)
        scratch.rmdir()
    except OSError:
        return False
    return True
