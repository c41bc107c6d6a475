"""The list of files that this package made in a folder of results; it deletes no others.

``.osmabench-files`` at the root of the folder is text. Its first line is `HEADER`; each further
line is ``+`` (made) or ``-`` (gone again), a kind (``f`` file, ``d`` folder, ``l`` link) and the
path below the root as a JSON string, such as ``+f"shared/path.json"``. A line is appended before
what it names is made, by any of the processes of a run. A copy of the folder carries its list.

A list may come from an untrusted source: one that names anything but a path below its own
folder is refused, and nothing is reached through a link or in something mounted.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from osmabench_ros.base.scratch import mount_points_in, scratch_in
from osmabench_ros.errors import RunError

LEDGER = '.osmabench-files'
HEADER = b'osmabench_ros made the files listed here, version 1\n'
MAX_BYTES = 2**28


class Kind(str, Enum):
    """What an entry is."""

    FILE = 'f'
    FOLDER = 'd'
    LINK = 'l'


@dataclass(frozen=True, order=True)
class Entry:
    """A file or folder that this package made; its path is below the root, with slashes."""

    path: str
    kind: Kind = Kind.FILE

    def line(self, sign: str) -> bytes:
        """Return it as a line of the ledger."""
        return f'{sign}{self.kind.value}{json.dumps(self.path)}\n'.encode()


def kind_at(path: Path) -> Kind | None:
    """Return the kind of file at a path, following no link; None if it is another kind."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return Kind.LINK
    if stat.S_ISDIR(mode):
        return Kind.FOLDER
    return Kind.FILE if stat.S_ISREG(mode) else None


def absolute(path: Path) -> Path:
    """Return an absolute path, links kept except before ".."; raises RunError for a NUL."""
    if '\0' in str(path):
        raise RunError(f'{str(path)!r:.100} holds a NUL character, which no path may have')
    try:
        path = path.absolute()
    except OSError as error:
        raise RunError(
            f'{path} starts at the current folder, which no longer exists; '
            'change to another, or name the whole path'
        ) from error
    if '..' not in path.parts:
        return path
    last = len(path.parts) - path.parts[::-1].index('..')
    return Path(os.path.realpath(Path(*path.parts[:last])), *path.parts[last:])


class Ledger:
    """The ledger of a folder of results that has one."""

    def __init__(self, root: Path) -> None:
        self.root = absolute(root)

    @classmethod
    def create(cls, root: Path, entries: Iterable[Entry] = ()) -> Ledger:
        """Create the ledger of a folder atomically; an existing ledger stays."""
        with _drafted(root, entries) as draft:
            try:
                os.link(draft, root / LEDGER)
            except OSError:  # it is there, or the file system has no links
                if not os.path.lexists(root / LEDGER):
                    os.replace(draft, root / LEDGER)
        return cls(root)

    def settle(self) -> None:
        """Rewrite the ledger in sorted order: equal folders have equal ledgers."""
        with self._locked():
            there = (item for item in self.entries() if os.path.lexists(self.root / item.path))
            with _drafted(self.root, there) as draft:
                os.replace(draft, self.root / LEDGER)

    def entry(self, path: Path, kind: Kind) -> Entry:
        """Return the entry of a path below the root; RunError if a ledger cannot hold its name."""
        text = absolute(path).relative_to(self.root).as_posix()
        if not _is_below(text):
            raise RunError(f'{path} has a name that no result may have; choose another --out')
        return Entry(text, kind)

    def entries(self) -> set[Entry]:
        """Return the entries; raises RunError if one cannot be in the folder."""
        listed: set[Entry] = set()
        for line in self._read()[len(HEADER) :].splitlines():
            # A line that was cut off in the middle lists nothing: it came before what it names.
            if line[2:3] != b'"' or line[-1:] != b'"':
                continue
            with contextlib.suppress(ValueError):
                entry = Entry(json.loads(line[2:]), Kind(line[1:2].decode()))
                if not _is_below(entry.path):
                    raise RunError(
                        f'{self.root / LEDGER} lists {entry.path!r:.100}, which is not in its '
                        'folder, so it is not of this package; choose another --out'
                    )
                (listed.add if line[:1] == b'+' else listed.discard)(entry)
        return listed

    def has(self, entry: Entry) -> bool:
        """Return whether a path is listed."""
        text = self._read()
        return text.rfind(b'\n' + entry.line('+')) > text.rfind(b'\n' + entry.line('-'))

    def add(self, entries: Sequence[Entry]) -> None:
        """Add entries for files or folders that are about to be made."""
        self._append('+', entries)

    def forget(self, entries: Sequence[Entry]) -> None:
        """Remove entries whose files are gone."""
        self._append('-', entries)

    def remove(self, below: str = '') -> None:
        """Delete what is listed at a path below the root, or all; touch nothing else."""
        chosen = [
            entry
            for entry in self.entries()
            if not below or entry.path == below or entry.path.startswith(f'{below}/')
        ]
        self._remove([entry for entry in chosen if entry.kind is not Kind.FOLDER])
        folders = [entry for entry in chosen if entry.kind is Kind.FOLDER]
        deepest = max((entry.path.count('/') for entry in folders), default=-1)
        for depth in range(deepest, -1, -1):
            self._remove([entry for entry in folders if entry.path.count('/') == depth])
        self.forget([entry for entry in chosen if not os.path.lexists(self.root / entry.path)])

    def _remove(self, entries: Iterable[Entry]) -> None:
        by_folder: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            by_folder[entry.path.rpartition('/')[0]].append(entry)
        mounted, real = mount_points_in(self.root), os.path.realpath(self.root).rstrip('/')
        for folder, inside in sorted(by_folder.items()):
            with _opened(self.root, folder, mounted) as handle:
                for entry in inside if handle is not None else ():
                    if f'{real}/{entry.path}' not in mounted:
                        _remove_entry(entry, handle)

    def _read(self) -> bytes:
        text = _text_of(self.root / LEDGER, MAX_BYTES + 1)
        if text is None or len(text) > MAX_BYTES:
            raise RunError(f'{self.root / LEDGER} is no list of results; choose another --out')
        return text

    def _append(self, sign: str, entries: Sequence[Entry]) -> None:
        """Append lines; several processes may do so at once."""
        if not entries:
            return
        if (self.root / LEDGER).lstat().st_nlink > 1:
            self.settle()  # a backup by hard links must not change with it
        with self._locked() as handle:
            # The line end comes first, for a line before it that was cut off.
            text = b'\n' + b''.join(entry.line(sign) for entry in entries)
            while text:
                text = text[os.write(handle, text) :]

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Yield a descriptor of the ledger, locked against other processes."""
        file, current = self.root / LEDGER, False
        while not current:
            handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
            try:
                with contextlib.suppress(OSError):  # some file systems lock nothing
                    fcntl.flock(handle, fcntl.LOCK_EX)
                current = os.fstat(handle).st_ino == file.lstat().st_ino
                if current:
                    yield handle
            finally:
                os.close(handle)


@contextmanager
def _drafted(root: Path, entries: Iterable[Entry]) -> Iterator[Path]:
    """Yield a temporary file with a ledger."""
    with scratch_in(root) as scratch:
        draft = scratch / LEDGER
        draft.write_bytes(HEADER + b''.join(entry.line('+') for entry in sorted(entries)))
        yield draft


def has_ledger(folder: Path) -> bool:
    """Return whether a folder is one of results, by its ledger."""
    return _text_of(folder / LEDGER, len(HEADER)) is not None


def _text_of(file: Path, limit: int) -> bytes | None:
    """Return the beginning of a ledger; None if it is no ledger or a link."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        text = os.read(handle, min(limit, found.st_size)) if stat.S_ISREG(found.st_mode) else b''
    finally:
        os.close(handle)
    return text if text.startswith(HEADER) else None


def _is_below(path: str) -> bool:
    """Return whether a path is below a folder, judged by its text alone."""
    try:
        plain = b'\0' not in os.fsencode(path) and '\\' not in path
    except UnicodeEncodeError:
        return False
    parts = path.split('/')
    return plain and LEDGER not in parts and not {'', '.', '..'} & set(parts)


@contextmanager
def _opened(root: Path, folder: str, mounted: frozenset[str]) -> Iterator[int | None]:
    """Yield a descriptor of a folder below a root; None if it is not ours, or linked."""
    with contextlib.ExitStack() as stack:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        try:
            handle = os.open(root, flags)
            stack.callback(os.close, handle)
            place = os.path.realpath(root).rstrip('/')
            for part in folder.split('/') if folder else ():
                handle = os.open(part, flags, dir_fd=handle)
                stack.callback(os.close, handle)
                place = f'{place}/{part}'
                if place in mounted or has_ledger(Path(place)):
                    raise NotADirectoryError(place)
        except OSError:
            yield None
            return
        yield handle


def _remove_entry(entry: Entry, folder: int | None) -> None:
    """Remove a file, a link or an empty folder if it is what is listed."""
    name = entry.path.rpartition('/')[2]
    checks = {Kind.FILE: stat.S_ISREG, Kind.FOLDER: stat.S_ISDIR, Kind.LINK: stat.S_ISLNK}
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return  # it is gone, or never was
    if not checks[entry.kind](mode):
        return
    if entry.kind is not Kind.FOLDER:
        os.unlink(name, dir_fd=folder)
        return
    with contextlib.suppress(OSError):  # it holds something that is not ours
        os.rmdir(name, dir_fd=folder)
