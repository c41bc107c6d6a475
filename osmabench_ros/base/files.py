"""Writing of files and folders that appear whole or not at all, and hashes of their content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from osmabench_ros.base import documents
from osmabench_ros.base.owned_folder import (
    MARKER,
    Existing,
    absolute,
    check_file,
    check_folder,
    draft_in,
    make_folder,
    mark_folder,
    move_aside,
    remove_drafts,
    wrap_os_errors,
)
from osmabench_ros.errors import RunError

_BLOCK_BYTES = 2**20


def write_json(path: Path, data: Any) -> None:
    """Write JSON with sorted keys, as `write_text` does."""
    write_text(path, json.dumps(data, indent=1, sort_keys=True, allow_nan=False) + '\n')


def write_text(path: Path, text: str) -> None:
    """Write text, as `atomic_write` does."""
    with atomic_write(path) as draft:
        draft.write_text(text, encoding='utf-8')


@contextmanager
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
    return documents.read_json(path, RunError)


@contextmanager
def atomic_directory(path: Path, existing: Existing = Existing.REFUSE) -> Iterator[Path]:
    """Yield a temporary folder whose content becomes that of `path` if the block succeeds.

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
            if path.exists():
                _move_into(path, draft, existing)
            else:
                draft.rename(path)


def _move_into(path: Path, draft: Path, existing: Existing) -> None:
    mark_folder(path)
    (draft / MARKER).unlink(missing_ok=True)  # the one in the target may be locked
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


def sha256_of(path: Path) -> str:
    """Return the hex digest of a file, or of a folder's files with their names but our markers."""
    digest = hashlib.sha256()
    files = (
        [path]
        if path.is_file()
        else sorted(item for item in path.rglob('*') if item.is_file() and item.name != MARKER)
    )
    for item in files:
        digest.update(
            item.relative_to(path.parent if path.is_file() else path).as_posix().encode()
        )
        add_file(digest, item)
    return digest.hexdigest()
