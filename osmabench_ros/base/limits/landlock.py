"""Restricts this process to some files by Landlock, where the kernel has it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

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
