"""Files and folders of results: whole or not at all, in folders that are ours.

**The rule.** A folder is ours if it holds the file `MARKER`. We write the marker before anything
else into every folder of results that we make, and into the folders that we make below one.
A folder that holds something, but no marker, is refused and stays untouched. In a folder of ours
a result replaces a file or folder of the same name; everything else there stays. ``--fresh`` and
``--overwrite`` move the old content into ``previous/<time>``. We delete our own drafts, which are
folders called `DRAFT_PREFIX` and 16 digits, and single results that `discard` names. Neither a
folder of results nor anything in one is reached through a link.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

from osmabench_ros.errors import RunError, describe_error, warn

MARKER = '.osmabench-results'
PREVIOUS = 'previous'
DRAFT_PREFIX = '.osmabench-draft-'

_MARKER_TEXT = 'osmabench_ros made this folder, and replaces its own results in it.\n'
_DRAFT_NAME = re.compile(re.escape(DRAFT_PREFIX) + '[0-9a-f]{16}')
_BLOCK_BYTES = 2**20


class Existing(Enum):
    """What happens to a folder of ours that has to be written again."""

    REFUSE = 'refuse'
    MOVE_ASIDE = 'move aside'
    MERGE = 'merge'


def is_ours(folder: Path) -> bool:
    """Return whether a folder holds our marker."""
    marker = folder / MARKER
    return marker.is_file() and not marker.is_symlink()


def is_blank(folder: Path) -> bool:
    """Return whether a folder is empty but for our marker and drafts."""
    names = set(os.listdir(folder)) - ({MARKER} if is_ours(folder) else set())
    return all(map(_DRAFT_NAME.fullmatch, names))


def find_root(path: Path) -> Path | None:
    """Return the outermost folder of the results that a path belongs to, None if there is none."""
    path = absolute(path)
    with wrap_os_errors(path, 'cannot read'):
        root = next((item for item in (path, *path.parents) if is_ours(item)), None)
        while root is not None and is_ours(root.parent):
            root = root.parent
    return root


def check_folder(path: Path, existing: Existing = Existing.REFUSE) -> None:
    """Raise RunError if a folder is not ours or may not be written again; touches nothing."""
    path = absolute(path)
    with wrap_os_errors(path):
        _refuse_links(path)
        if not path.exists() or (path.is_dir() and is_blank(path)):
            return
        if not path.is_dir():
            raise RunError(f'{path} is a file; move it away, or choose another --out')
        if not is_ours(path):
            problem = f'is not empty, and has no {MARKER} by which it is ours'
            whose = 'it is yours, or of an earlier version'
            raise RunError(f'{path} {problem} ({whose}); choose another --out, or move it away')
        if existing is Existing.REFUSE:
            remedy = 'choose another folder, or give --overwrite if the command has it'
            raise RunError(f'{path} exists; {remedy}')


def check_file(path: Path, *, overwrite: bool = False) -> None:
    """Raise RunError for a link, or for a file outside of our folders unless `overwrite`."""
    path = absolute(path)
    with wrap_os_errors(path):
        _refuse_links(path)
        if path.exists() and not path.is_file():
            raise RunError(f'{path} is not a file; move it away, or choose another --out')
        if path.exists() and not overwrite and not is_ours(path.parent):
            problem = f'{path} exists and is not ours to replace; move it away'
            remedy = 'choose another --out, or give --overwrite if the command takes it'
            raise RunError(f'{problem}, {remedy}')


def claim_folder(path: Path) -> None:
    """Make a folder of results, or make sure that it is ours or empty; else RunError.

    Every command that writes a folder calls this before it spends any time.
    """
    check_folder(path, Existing.MERGE)
    with wrap_os_errors(path):
        make_folder(path)
        mark_folder(absolute(path))


def make_folder(path: Path) -> None:
    """Make a folder and missing ones above; below a folder of ours they are ours."""
    path = absolute(path)
    _refuse_links(path)
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        if is_ours(path.parent):
            mark_folder(path)


def mark_folder(folder: Path) -> None:
    """Write our marker into a folder, unless it is there."""
    with contextlib.suppress(FileExistsError), (folder / MARKER).open('x') as stream:
        stream.write(_MARKER_TEXT)


def move_aside(folder: Path) -> None:
    """Move all that a folder of ours holds into ``previous/<time>`` there, and say so."""
    folder = absolute(folder)
    with wrap_os_errors(folder, 'cannot move'):
        found = set(os.listdir(folder)) - {MARKER, PREVIOUS}
        names = [name for name in found if not _DRAFT_NAME.fullmatch(name)]
        if not names:
            return
        check_folder(folder / PREVIOUS, Existing.MERGE)
        target = folder / PREVIOUS / f'{datetime.now():%Y-%m-%d_%H-%M-%S.%f}'
        make_folder(target)
        # Files come last, so that a move that was cut off leaves the manifest where it was.
        for name in sorted(names, key=lambda name: ((folder / name).is_file(), name)):
            (folder / name).rename(target / name)
    warn(f'earlier results of {folder} were moved to {target}')


def discard(path: Path) -> None:
    """Delete a result, if it exists: a file in a folder of ours, or such a folder."""
    path = absolute(path)
    with wrap_os_errors(path, 'cannot delete'):
        _refuse_links(path)
        if path.exists() and is_ours(path if path.is_dir() else path.parent):
            with draft_in(path.parent) as draft:
                path.rename(draft / path.name)


@contextlib.contextmanager
def draft_in(folder: Path) -> Iterator[Path]:
    """Yield an empty folder below an existing one; it is deleted with its content afterwards.

    It is locked while it is in use, so that no other process takes it for a leftover.
    """
    draft = folder / f'{DRAFT_PREFIX}{secrets.token_hex(8)}'
    draft.mkdir()
    handle = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        with contextlib.suppress(OSError):  # where nothing can be locked, leftovers stay
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.close(handle)


def remove_drafts(folder: Path, *, below: bool = False) -> None:
    """Delete the drafts of killed processes in a folder, and in our folders `below` it."""
    for place, names, _ in os.walk(folder):
        for name in filter(_DRAFT_NAME.fullmatch, names):
            _remove_leftover(Path(place, name))
        names[:] = [name for name in names if below and is_ours(Path(place, name))]


def _remove_leftover(draft: Path) -> None:
    with contextlib.suppress(OSError):  # a link, or in use
        handle = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(draft)  # follows no link
        finally:
            os.close(handle)


def absolute(path: Path) -> Path:
    """Return an absolute path, links kept except before ".."."""
    with wrap_os_errors(path, 'cannot find'):
        path = path.absolute()
    if '..' not in path.parts:
        return path
    # The system follows a link first: that path must not lead to another folder here.
    last = len(path.parts) - path.parts[::-1].index('..')
    return Path(os.path.realpath(Path(*path.parts[:last])), *path.parts[last:])


def _refuse_links(path: Path) -> None:
    """Raise RunError if a path is a link, or goes through one in a folder of ours."""
    if path.is_symlink():
        raise RunError(f'{path} is a link; name its target, or choose another --out')
    for folder in path.parents:
        if folder.is_symlink() and is_ours(folder.parent):
            problem = 'is a link in a folder of results, where nothing is written through links'
            raise RunError(f'{folder} {problem}; replace it by a folder, or choose another --out')


@contextlib.contextmanager
def wrap_os_errors(path: Path, what: str = 'cannot write') -> Iterator[None]:
    """Turn an OSError of the block into a RunError that names path, reason and remedy."""
    try:
        yield
    except OSError as error:
        remedy = 'free disk space, make it writable, or choose another --out'
        problem = f'{what} {error.filename or path}: {describe_error(error)}'
        raise RunError(f'{problem}; {remedy}') from error


def write_json(path: Path, data: Any) -> None:
    """Write JSON with sorted keys, as `write_text` does."""
    write_text(path, json.dumps(data, indent=1, sort_keys=True, allow_nan=False) + '\n')


def write_text(path: Path, text: str) -> None:
    """Write text, as `atomic_write` does."""
    with atomic_write(path) as draft:
        draft.write_text(text, encoding='utf-8')


@contextlib.contextmanager
def atomic_write(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary path that becomes `path` on success; RunError as `check_file`."""
    path = absolute(path)
    check_file(path, overwrite=overwrite)
    with wrap_os_errors(path):
        make_folder(path.parent)
        with draft_in(path.parent) as folder:
            draft = folder / path.name
            yield draft
            check_file(path, overwrite=overwrite)
            os.replace(draft, path)


def read_json(path: Path) -> Any:
    """Read JSON; raises RunError if the file is missing or not JSON."""
    from osmabench_ros.base import documents  # which imports yaml: --help does without

    return documents.read_json(path, RunError)


@contextlib.contextmanager
def atomic_directory(path: Path, existing: Existing = Existing.REFUSE) -> Iterator[Path]:
    """Yield a temporary folder that becomes the content of `path` if the block succeeds.

    A new folder appears whole; in one that exists, files at the top come last. Raises RunError as
    `check_folder`, or if the folder cannot be written.
    """
    path = absolute(path)
    check_folder(path, existing)
    with wrap_os_errors(path):
        make_folder(path.parent)
        place = path if path.exists() else path.parent
        remove_drafts(place)
        with draft_in(place) as folder:
            draft = folder / path.name
            draft.mkdir()
            mark_folder(draft)
            yield draft
            check_folder(path, existing)
            if not path.exists():
                draft.rename(path)
                return
            (draft / MARKER).unlink(missing_ok=True)  # the one in the target may be locked
            mark_folder(path)
            if existing is Existing.MOVE_ASIDE:
                move_aside(path)
            _refuse_obstacles(path, draft)
            _merge(path, draft)


def _merge(path: Path, draft: Path) -> None:
    for item in sorted(draft.iterdir(), key=lambda item: (not item.is_dir(), item.name)):
        target = path / item.name
        if target.is_dir():
            _merge(target, item)
        else:
            os.replace(item, target)


def _refuse_obstacles(path: Path, draft: Path) -> None:
    """Raise RunError for a link where a result goes, a file for a folder or the reverse."""
    for item in draft.iterdir():
        target = path / item.name
        is_folder = item.is_dir() and not item.is_symlink()
        if target.is_symlink() or (target.exists() and target.is_dir() != is_folder):
            raise RunError(f'{target} blocks a result of that name; move it away')
        if is_folder and target.exists():
            _refuse_obstacles(target, item)


def sha256_of_data(data: Any) -> str:
    """Return the hex digest of plain data, the same for the same content."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def add_file(digest: hashlib._Hash, path: Path) -> None:
    """Feed a digest the content of a file, piece by piece."""
    with path.open('rb') as stream:
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)


def sha256_of(path: Path, pattern: str = '*') -> str:
    """Return the hex digest of a file, or of a folder's files with their names but our markers."""
    digest = hashlib.sha256()
    folder = path.parent if path.is_file() else path
    for item in [path] if path.is_file() else sorted(path.rglob(pattern)):
        if item.is_file() and item.name != MARKER:
            digest.update(item.relative_to(folder).as_posix().encode())
            add_file(digest, item)
    return digest.hexdigest()
