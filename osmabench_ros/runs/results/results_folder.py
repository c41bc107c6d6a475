"""Folders of results, each for one process at a time."""

from __future__ import annotations

import errno
import fcntl
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from osmabench_ros.base import files
from osmabench_ros.errors import OsmabenchWarning, RunError

MANIFEST = 'manifest.json'
PAGES = 'report_pages'
"""Folder with the pages of a report of many runs."""


@contextmanager
def held(root: Path) -> Iterator[None]:
    """Claim a folder and keep it from other processes until the block, or this process, ends."""
    files.claim_folder(root)
    with undisturbed(root):
        yield


@contextmanager
def undisturbed(path: Path) -> Iterator[None]:
    """Lock the folder of results that contains a path, if there is one."""
    root = files.find_root(path)
    if root is None:
        yield
        return
    with ExitStack() as resources:
        with files.wrap_os_errors(root):
            marker = resources.enter_context((root / files.MARKER).open('r+'))
        _lock(marker, root)
        files.remove_drafts(root, below=True)
        yield


def _lock(marker: TextIO, root: Path) -> None:
    try:
        fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise RunError(
                f'{root} is in use by another osmabench; wait for it to end, or choose another '
                '--out'
            ) from error
        warnings.warn(
            f'{root} cannot be locked ({error.strerror}), as on some network file systems; see to '
            'it that no other osmabench works there',
            OsmabenchWarning,
            stacklevel=2,
        )


def is_held(root: Path) -> bool:
    """Return whether another process works in a folder of results."""
    if not files.is_ours(root):
        return False
    with files.wrap_os_errors(root, 'cannot read'), (root / files.MARKER).open() as marker:
        try:
            fcntl.flock(marker, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    return False
