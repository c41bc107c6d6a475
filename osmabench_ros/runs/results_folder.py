"""A folder of results belongs to one configuration, its inputs, and one process at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from osmabench_ros.base.files import read_json, write_json
from osmabench_ros.errors import RunError
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.inputs import without_home
from osmabench_ros.runs.plan import config_digest

MANIFEST = 'manifest.json'
_TOLD = 3


@contextmanager
def held(root: Path) -> Iterator[None]:
    """Keep a folder from other processes; the system lets it go when this one ends, however.

    Raises
    ------
    RunError
        If another process holds it, or it cannot be made.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        handle = os.open(root, os.O_RDONLY)
    except OSError as error:
        raise RunError(f'cannot write {root}: {error.strerror}; choose another --out') from error
    try:
        _lock(handle, root)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, root: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise RunError(
                f'{root} is in use by another osmabench; wait for it to end, or choose another '
                '--out'
            ) from error
        # Some network file systems lock no folders; a run there goes on without.


def claim(
    root: Path, config: MatrixConfig, inputs: Mapping[str, str], *, fresh: bool = False
) -> None:
    """Make sure that a held folder has results of this configuration and these inputs only.

    What an earlier process left half-written is removed.

    Parameters
    ----------
    root : Path
        Folder of the matrix.
    config : MatrixConfig
        What is run.
    inputs : mapping of str to str
        Digests as `inputs.input_digests` gives them.
    fresh : bool
        Delete what is there.

    Raises
    ------
    RunError
        If there are results of another configuration, or an input changed since; names what.
    """
    manifest = root / MANIFEST
    if fresh:
        _empty(root)
    if manifest.exists():
        _compare(root, config, inputs)
    else:
        write_manifest(root, config, inputs)
    _remove_leftovers(root)


def write_manifest(root: Path, config: MatrixConfig, inputs: Mapping[str, str]) -> None:
    """Write what the results in a folder come from."""
    data = {
        'config_sha256': config_digest(config),
        'config': without_home(config.model_dump(mode='json', exclude={'sweep'})),
        'inputs': dict(inputs),
    }
    write_json(root / MANIFEST, data)


def _empty(root: Path) -> None:
    """Delete what is in a folder of results, but not the folder, on which the lock is."""
    entries = list(root.iterdir())
    if entries and not (root / MANIFEST).exists():
        raise RunError(f'{root} has no {MANIFEST}; it is not ours to delete, choose --out')
    try:
        # The manifest goes last, so that a deletion that is cut off can be repeated.
        for entry in sorted(entries, key=lambda item: item.name == MANIFEST):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
    except OSError as error:
        raise RunError(f'cannot delete {error.filename}: {error.strerror}') from error


def _compare(root: Path, config: MatrixConfig, inputs: Mapping[str, str]) -> None:
    before = read_json(root / MANIFEST)
    if before.get('config_sha256') != config_digest(config):
        raise RunError(
            f'{root} holds results of another configuration of that name; '
            'start over with --fresh, or choose another --out'
        )
    told = before.get('inputs')
    if told is None:
        raise RunError(
            f'{root} holds results of an earlier version, which did not note what they come '
            'from; start over with --fresh, or choose another --out'
        )
    changed = [name for name in sorted({*told, *inputs}) if told.get(name) != inputs.get(name)]
    if changed:
        rest = len(changed) - _TOLD
        more = f' and {rest} more' if rest > 0 else ''
        raise RunError(
            f'{root} holds results of other inputs; changed since: '
            f'{"; ".join(changed[:_TOLD])}{more}. '
            'Start over with --fresh, or choose another --out'
        )


def _remove_leftovers(root: Path) -> None:
    """Remove temporary files and folders of a process that was killed; nobody else writes here."""
    for folder in (root, root / 'shared', *(item for item in root.iterdir() if item.is_dir())):
        if not folder.is_dir():
            continue
        for entry in folder.glob('.*'):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
