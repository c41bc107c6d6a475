"""Folders of results, each for one configuration, its inputs, and one process at a time."""

from __future__ import annotations

import errno
import fcntl
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from osmabench_ros.base.files import read_json, write_json
from osmabench_ros.base.owned_folder import (
    MARKER,
    Existing,
    check_file,
    check_folder,
    claim_folder,
    find_root,
    is_ours,
    move_aside,
    remove_drafts,
    wrap_os_errors,
)
from osmabench_ros.errors import OsmabenchWarning, RunError
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.inputs import without_home
from osmabench_ros.runs.plan import RunPlan, config_digest

MANIFEST = 'manifest.json'
PAGES = 'report_pages'
"""Folder with the pages of a report of many runs."""
_MAX_LISTED = 3


@contextmanager
def held(root: Path) -> Iterator[None]:
    """Claim a folder and keep it from other processes until the block, or this process, ends."""
    claim_folder(root)
    with undisturbed(root):
        yield


@contextmanager
def undisturbed(path: Path) -> Iterator[None]:
    """Lock the folder of results that contains a path, if there is one."""
    root = find_root(path)
    if root is None:
        yield
        return
    with ExitStack() as resources:
        with wrap_os_errors(root):
            marker = resources.enter_context((root / MARKER).open('r+'))
        _lock(marker, root)
        remove_drafts(root, below=True)
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
    if not is_ours(root):
        return False
    with wrap_os_errors(root, 'cannot read'), (root / MARKER).open() as marker:
        try:
            fcntl.flock(marker, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    return False


def claim(
    root: Path,
    config: MatrixConfig,
    inputs: Mapping[str, str],
    *,
    fresh: bool = False,
) -> None:
    """Check that a locked folder has only results of this configuration, and inputs."""
    claim_folder(root)
    manifest = root / MANIFEST
    if fresh:
        move_aside(root)
    check_file(manifest)
    if manifest.exists():
        _compare(root, config, inputs)
    else:
        write_manifest(root, config, inputs)


def check_results(root: Path, plans: Sequence[RunPlan]) -> None:
    """Raise RunError if a folder that is not ours is where one with results goes."""
    folders = [root / PAGES]
    for plan in plans:
        folders += [plan.shared_directory.parent, plan.shared_directory]
        folders += [plan.directory, plan.map_directory]
    for folder in folders:
        check_folder(folder, Existing.MERGE)


def write_manifest(root: Path, config: MatrixConfig, inputs: Mapping[str, str]) -> None:
    """Write the manifest with the whole configuration and its inputs."""
    data = {
        'config_sha256': config_digest(config),
        'config': without_home(config.model_dump(mode='json', exclude={'sweep'})),
        'inputs': dict(inputs),
    }
    write_json(root / MANIFEST, data)


def _compare(root: Path, config: MatrixConfig, inputs: Mapping[str, str]) -> None:
    before = read_json(root / MANIFEST)
    if before.get('config_sha256') != config_digest(config):
        raise RunError(
            f'{root} holds results of another configuration of that name; '
            'start over with --fresh, or choose another --out'
        )
    earlier = before.get('inputs')
    if earlier is None:
        raise RunError(
            f'{root} holds results of an earlier version, which did not note what they come '
            'from; start over with --fresh, or choose another --out'
        )
    changed = [
        name for name in sorted({*earlier, *inputs}) if earlier.get(name) != inputs.get(name)
    ]
    if changed:
        rest = len(changed) - _MAX_LISTED
        more = f' and {rest} more' if rest > 0 else ''
        raise RunError(
            f'{root} holds results of other inputs; changed since: '
            f'{"; ".join(changed[:_MAX_LISTED])}{more}. '
            'Start over with --fresh, or choose another --out'
        )
