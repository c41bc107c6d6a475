"""Folders of results: which belong to this package, and what it may write and delete there."""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path

from osmabench_ros.base.ledger import LEDGER, Entry, Kind, Ledger, absolute, has_ledger, kind_at
from osmabench_ros.base.limits.reading import shown
from osmabench_ros.base.scratch import PREFIX, in_scratch, is_unfinished, remove_leftovers
from osmabench_ros.errors import OsmabenchWarning, RunError

_NAMED = 3
_REMEDIES: dict[int | None, str] = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), 'free disk space, or '),
    # NumPy's error says how much was written, not why writing stopped.
    None: 'free disk space if that is why, or ',
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), 'make it writable, or '),
}


def claim_folder(path: Path) -> None:
    """Make a folder of results, or make sure that it is ours or empty; else RunError.

    Every command that writes a folder calls this before it spends any time.
    """
    path = absolute(path)
    refuse_foreign([path], folders=True)
    if has_ledger(path):
        return
    with naming(path):
        make_folder(path)
        if not in_scratch(path) and owner_of(path) is None:
            Ledger.create(path)


def refuse_foreign(paths: Iterable[Path], *, folders: bool = False) -> None:
    """Raise RunError if anything at the paths, or in `folders`, is not ours; touches nothing."""
    for path in map(absolute, paths):
        with naming(path):
            _refuse_foreign(path, folders=folders)


def _refuse_foreign(path: Path, *, folders: bool) -> None:
    _refuse_reached_by_link(path)
    try:
        kind = kind_at(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    if in_scratch(path):
        return
    if kind is Kind.LINK:
        raise RunError(f'{path} is a link; name what it leads to, or choose another --out')
    if kind is not (Kind.FOLDER if folders else Kind.FILE):
        is_what = 'folder' if kind is Kind.FOLDER else 'file'
        raise RunError(f'{path} is a {is_what}; move it away, or choose another --out')
    if not is_ours(path) and not (folders and is_blank(path)):
        raise RunError(_is_not_ours(path, folders=folders))
    if has_ledger(path):
        _refuse_links(Ledger(path))


def refuse_remains(paths: Iterable[Path]) -> None:
    """Raise RunError for a folder made in one step that holds only foreign files by now."""
    for path in map(absolute, paths):
        ledger = owner_of(path)
        if ledger is None or not path.is_dir():
            continue
        place = ledger.entry(path, Kind.FOLDER).path
        files = [item for item in ledger.entries() if item.kind is Kind.FILE]
        if not any(item.path.startswith(f'{place}/') for item in files):
            raise RunError(
                f'{path} holds {_names(foreign_in(path))}, which is not ours; move it elsewhere'
            )


def is_ours(path: Path) -> bool:
    """Return whether a path is listed as made by this package, or is a scratch folder."""
    path = absolute(path)
    if in_scratch(path):
        return True
    kind, ledger = kind_at(path), owner_of(path)
    if kind is Kind.FOLDER and has_ledger(path):
        return True
    return kind is not None and ledger is not None and ledger.has(ledger.entry(path, kind))


def owner_of(path: Path) -> Ledger | None:
    """Return the ledger of the nearest owned folder, None in scratch folders or without one."""
    path = absolute(path)
    if has_ledger(path):
        return Ledger(path)
    if in_scratch(path):
        return None
    return next((Ledger(folder) for folder in path.parents if has_ledger(folder)), None)


def make_folder(path: Path) -> None:
    """Make a folder and missing ones above, listed where a folder is ours; may raise RunError."""
    path = absolute(path)
    ledger = owner_of(path)
    if ledger is None or ledger.root == path:
        path.mkdir(parents=True, exist_ok=True)
        return
    below = path.relative_to(ledger.root)
    for folder in [ledger.root / item for item in (*reversed(below.parents), below)][1:]:
        refuse_foreign([folder], folders=True)
        entry = ledger.entry(folder, Kind.FOLDER)
        if not ledger.has(entry):
            ledger.add([entry])
        folder.mkdir(exist_ok=True)


def list_files(paths: Iterable[Path], kind: Kind = Kind.FILE) -> None:
    """List files about to be made where their folder is ours; RunError if one is not ours."""
    chosen = list(paths)
    ledger = owner_of(chosen[0].parent) if chosen else None
    if ledger is not None:
        refuse_foreign(chosen)
        entries = [ledger.entry(path, kind) for path in chosen]
        ledger.add([entry for entry in entries if not ledger.has(entry)])


def remove_ours(path: Path) -> None:
    """Delete our files at a path, and warn about those that stay."""
    path = absolute(path)
    ledger = owner_of(path)
    if ledger is None or not os.path.lexists(path):
        return
    _refuse_reached_by_link(path)
    with naming(path, 'cannot delete'):
        ledger.remove('' if ledger.root == path else ledger.entry(path, Kind.FOLDER).path)
        ledger.settle()
        _warn_of(foreign_in(path))


def foreign_in(path: Path) -> list[Path]:
    """Return the topmost foreign paths in a folder of ours; follows no link."""
    ledger, found = owner_of(path), []
    listed = set() if ledger is None else ledger.entries()
    for place, folders, files in os.walk(absolute(path)):
        here = [Path(place, name) for name in sorted((*folders, *files))]
        foreign = [item for item in here if not _is_among(listed, ledger, item)]
        found += foreign
        folders[:] = [name for name in folders if Path(place, name) not in foreign]
    return found


def _is_among(listed: set[Entry], ledger: Ledger | None, path: Path) -> bool:
    """Return whether a path is listed, or is a ledger or a scratch folder."""
    if path.name == LEDGER or in_scratch(path / path.name):
        return True
    kind = kind_at(path)
    return kind is not None and ledger is not None and ledger.entry(path, kind) in listed


def remove_what_was_left(root: Path) -> None:
    """Remove the scratch folders of killed processes in a locked folder of results."""
    root = absolute(root)
    ledger, folders = owner_of(root), [root]
    if ledger is not None:
        listed = (ledger.root / item.path for item in ledger.entries() if item.kind is Kind.FOLDER)
        folders += [item for item in listed if root in item.parents and not item.is_symlink()]
    _warn_of(remove_leftovers(folders))


def settle(path: Path) -> None:
    """Sort the ledger of a folder, so that it depends only on the folder's content."""
    ledger = owner_of(path)
    if ledger is not None:
        ledger.settle()


def move_ours(source: Path, target: Path) -> None:
    """Rename a folder of results; RunError if it or the target holds foreign files."""
    source, target = absolute(source), absolute(target)
    ledger = owner_of(source)
    assert ledger is not None
    refuse_foreign([source], folders=True)
    foreign = foreign_in(source)
    if foreign:
        raise RunError(f'{_names(foreign)} is not ours and blocks the target; move it elsewhere')
    inside = [source, *entries_in(source)]
    old = [ledger.entry(item, kind_at(item) or Kind.FILE) for item in inside]
    refuse_foreign([target], folders=True)
    place = ledger.entry(target, Kind.FOLDER).path
    ledger.add([Entry(place + item.path[len(old[0].path) :], item.kind) for item in old])
    source.rename(target)
    ledger.forget(old)


def entries_in(folder: Path) -> list[Path]:
    """Return the content of a folder and its subfolders, following no link."""
    walk = os.walk(folder)
    return sorted(Path(place, name) for place, *names in walk for name in chain(*names))


def _refuse_reached_by_link(path: Path) -> None:
    """Refuse a path that goes through a link inside a folder of results."""
    ledger = owner_of(path.parent)
    if ledger is None:
        return
    _check_once(ledger.root, (ledger.root / LEDGER).stat().st_ino)
    # A link may lead to other results, so those that it lies in count, not those that it leads to.
    for folder in path.parents:
        if folder.is_symlink() and owner_of(folder.parent) is not None:
            raise RunError(
                f'{folder} is a link in a folder of results, where nothing is written or deleted '
                'through links; replace it by a folder, or choose another --out'
            )


@lru_cache(maxsize=64)
def _check_once(root: Path, _inode: int) -> None:
    """Refuse a ledger that is not of this package, before anything is added to it."""
    Ledger(root).entries()


def _refuse_links(ledger: Ledger) -> None:
    for entry in sorted(ledger.entries()):
        path = ledger.root / entry.path
        if entry.kind is not Kind.LINK and path.is_symlink():
            raise RunError(
                f'{path} is a link where a result was written; remove the link, or choose '
                'another --out'
            )


def is_blank(folder: Path) -> bool:
    """Return whether a folder holds only a ledger and scratch folders of ours."""
    with naming(folder):
        names = set(os.listdir(folder)) - ({LEDGER} if has_ledger(folder) else set())
        return all(name.startswith(PREFIX) for name in names) and all(
            is_unfinished(item) for item in remove_leftovers([folder])
        )


def _is_not_ours(path: Path, *, folders: bool) -> str:
    if not folders:
        return (
            f'{path} is there and not ours to replace; move it away, choose another --out, or '
            'give --overwrite if the command takes it'
        )
    return (
        f'{path} is not empty, and has no {LEDGER} by which it is ours (it is of somebody else, '
        'or of an earlier version); choose another --out, or move it away'
    )


def _warn_of(staying: list[Path]) -> None:
    if staying:
        warnings.warn(f'{_names(staying)} is not ours and stays', OsmabenchWarning, stacklevel=3)


def _names(paths: list[Path]) -> str:
    more = f' and {len(paths) - _NAMED} more' if len(paths) > _NAMED else ''
    return ', '.join(str(path) for path in paths[:_NAMED]) + more


@contextlib.contextmanager
def naming(path: Path, what: str = 'cannot write') -> Iterator[None]:
    """Turn an OSError of the block into a RunError that names the path."""
    try:
        yield
    except OSError as error:
        raise refused(error, path, what) from error


def refused(error: OSError, path: Path, what: str = 'cannot write') -> RunError:
    """Return an OSError as an error that names path, reason and remedy."""
    remedy = _REMEDIES.get(error.errno, '')
    place = shown(error.filename or path)
    return RunError(f'{what} {place}: {error.strerror or error}; {remedy}choose another --out')
