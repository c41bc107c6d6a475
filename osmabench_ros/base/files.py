"""Atomic writing of files and folders, and hashes of their content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO

from osmabench_ros.base.ledger import LEDGER, Entry, Kind, Ledger, has_ledger, kind_at
from osmabench_ros.base.limits import documents
from osmabench_ros.base.owned_folder import (
    entries_in,
    is_blank,
    is_ours,
    list_files,
    make_folder,
    naming,
    owner_of,
    refuse_foreign,
    remove_ours,
)
from osmabench_ros.base.scratch import in_scratch, remove_leftovers, scratch_in
from osmabench_ros.errors import RunError

_BLOCK_BYTES = 2**20


class Existing(Enum):
    """What happens to a folder of ours that has to be written again."""

    REFUSE = 'refuse'
    REPLACE = 'replace'
    MERGE = 'merge'


def write_json(path: Path, data: Any) -> None:
    """Write JSON with sorted keys, as `write_text` does."""
    write_text(path, json.dumps(data, indent=1, sort_keys=True, allow_nan=False) + '\n')


def write_text(path: Path, text: str) -> None:
    """Write text, as `written_file` does."""
    with written_file(path) as draft:
        draft.write_text(text, encoding='utf-8')


@contextmanager
def written_file(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary path that becomes `path`, if that is not foreign, on success."""
    check_file(path, overwrite=overwrite)
    with naming(path):
        make_folder(path.parent)
        with scratch_in(path.parent) as scratch:
            draft = scratch / path.name
            yield draft
            check_file(path, overwrite=overwrite)
            if not (overwrite and os.path.lexists(path)):
                list_files([path])
            os.replace(draft, path)


def check_file(path: Path, *, overwrite: bool = False) -> None:
    """Raise RunError for a link, or for a file that is not ours unless `overwrite`."""
    if overwrite and os.path.lexists(path) and kind_at(path) is Kind.FILE:
        return
    refuse_foreign([path])


def create_file(path: Path) -> BinaryIO:
    """Open a new file for writing bit by bit; raises RunError if there is one that is not ours."""
    with naming(path):
        make_folder(path.parent)
        refuse_foreign([path])
        list_files([path])
        path.unlink(missing_ok=True)
        return path.open('xb')


def read_json(path: Path) -> Any:
    """Read JSON; raises RunError if the file is missing or not JSON."""
    return documents.read_json(path, RunError)


@contextmanager
def filled_folder(
    path: Path, existing: Existing = Existing.REFUSE, document: str = ''
) -> Iterator[Path]:
    """Yield a temporary folder whose content becomes that of `path` if the block succeeds.

    A new folder appears whole; outside of any folder of results it is one itself, and its files
    are listed in it. `document` is a file that every folder of this kind has, so that none of
    another kind is replaced. Raises RunError if the folder is not ours, or may not or cannot be
    written.
    """
    check_folder(path, existing, document)
    with naming(path):
        make_folder(path.parent)
        place = path if path.exists() else path.parent
        remove_leftovers([place])
        with scratch_in(place) as scratch:
            draft = scratch / path.name
            draft.mkdir()
            yield draft
            check_folder(path, existing, document)
            if path.exists():
                _move_into(path, draft, existing)
            else:
                _appear(path, draft)


def check_folder(path: Path, existing: Existing = Existing.REFUSE, document: str = '') -> None:
    """Raise RunError if a folder is not ours or may not be written again; touches nothing."""
    refuse_foreign([path], folders=True)
    if not path.exists() or is_blank(path):
        return
    if existing is Existing.REFUSE:
        raise RunError(f'{path} exists; choose another folder or remove it')
    if document and not (os.path.lexists(path / document) and is_ours(path / document)):
        raise RunError(
            f'{path} holds something else (no {document} of ours); choose another --out'
        )


def _appear(path: Path, draft: Path) -> None:
    ledger, entries = owner_of(path), _made(draft)
    if ledger is not None:
        top = ledger.entry(path, Kind.FOLDER)
        ledger.add([top, *(Entry(f'{top.path}/{item.path}', item.kind) for item in entries)])
    elif not in_scratch(path):
        Ledger.create(draft, entries)
    draft.rename(path)


def _move_into(path: Path, draft: Path, existing: Existing) -> None:
    """Move files one by one, top-level files last; other files in the target folder stay."""
    made = _made(draft)
    for kind in (Kind.FOLDER, Kind.FILE):
        refuse_foreign(
            (path / item.path for item in made if item.kind is kind), folders=kind is Kind.FOLDER
        )
    if owner_of(path) is None and not in_scratch(path):
        Ledger.create(path)
    if existing is Existing.REPLACE:
        remove_ours(path)
    for item in sorted(
        made, key=lambda item: (item.kind is not Kind.FOLDER, '/' not in item.path)
    ):
        place = path / item.path
        if item.kind is Kind.FOLDER:
            make_folder(place)
        else:
            list_files([place], item.kind)
            os.replace(draft / item.path, place)
    if has_ledger(path):
        Ledger(path).settle()


def _made(draft: Path) -> list[Entry]:
    kinds = ((item.relative_to(draft).as_posix(), kind_at(item)) for item in entries_in(draft))
    return [Entry(name, kind) for name, kind in kinds if kind is not None]


def sha256_of_data(data: Any) -> str:
    """Return the hex digest of plain data, the same for the same content."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def add_file(digest: hashlib._Hash, path: Path) -> None:
    """Feed a digest the content of a file, piece by piece."""
    with path.open('rb') as stream:
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)


def sha256_of(path: Path, *, without: Collection[Path] = ()) -> str:
    """Return the hex digest of a file, or of a folder's files with their names, save `without`."""
    digest = hashlib.sha256()
    files = (
        [path]
        if path.is_file()
        else sorted(
            item
            for item in path.rglob('*')
            if item.is_file()
            and item.name != LEDGER
            and not any(item.is_relative_to(other) for other in without)
        )
    )
    for item in files:
        digest.update(
            item.relative_to(path.parent if path.is_file() else path).as_posix().encode()
        )
        add_file(digest, item)
    return digest.hexdigest()
