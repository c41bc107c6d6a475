"""Writing that leaves nothing half-written, and hashes of what was written."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from osmabench_ros.errors import RunError


def write_json(path: Path, data: Any) -> None:
    """Write JSON with sorted keys under a temporary name, then rename."""
    write_text(path, json.dumps(data, indent=1, sort_keys=True, allow_nan=False) + '\n')


def write_text(path: Path, text: str) -> None:
    """Write text under a temporary name, then rename.

    Raises
    ------
    RunError
        If the folder cannot be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f'.{path.name}.', dir=path.parent)
        try:
            with os.fdopen(handle, 'w', encoding='utf-8') as file:
                file.write(text)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise RunError(f'cannot write {path}: {error.strerror}; choose another --out') from error


def read_json(path: Path) -> Any:
    """Read JSON.

    Raises
    ------
    RunError
        If the file is missing or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError) as error:
        raise RunError(f'cannot read {path}: {error}') from error


@contextmanager
def replaced_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that takes the place of `path` if the block succeeds."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f'.{path.name}.', dir=path.parent))
    except OSError as error:
        raise RunError(f'cannot write {path}: {error.strerror}; choose another --out') from error
    try:
        yield temporary
        temporary.chmod(0o755)
        if path.exists():
            shutil.rmtree(path)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_leftovers(path: Path) -> None:
    """Remove what a process that was killed in `replaced_directory(path)` left of it.

    Only whoever holds the folder above may do that: others may be at work there.
    """
    for leftover in path.parent.glob(f'.{glob.escape(path.name)}.*'):
        shutil.rmtree(leftover, ignore_errors=True)


@contextmanager
def merged_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary folder whose files go to `path`, over old ones, if the block succeeds."""
    temporary = path.with_name(f'.{path.name}.partial')
    # One that was killed may have left its own.
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
    except OSError as error:
        raise RunError(f'cannot write {path}: {error.strerror}; choose another --out') from error
    try:
        yield temporary
        _move_files(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _move_files(source: Path, target: Path) -> None:
    try:
        target.mkdir(exist_ok=True)
        for file in sorted(item for item in source.rglob('*') if item.is_file()):
            place = target / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)
    except OSError as error:
        raise RunError(f'cannot write {target}: {error.strerror}; choose another --out') from error


def sha256_of(path: Path) -> str:
    """Return the hex digest of a file, or of a folder's files with their names."""
    digest = hashlib.sha256()
    files = (
        [path] if path.is_file() else sorted(item for item in path.rglob('*') if item.is_file())
    )
    for item in files:
        digest.update(
            item.relative_to(path.parent if path.is_file() else path).as_posix().encode()
        )
        digest.update(item.read_bytes())
    return digest.hexdigest()
