"""Which files are a bag, and in which order."""

from __future__ import annotations

import os
from pathlib import Path

from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.bag_compression import ZSTD_SUFFIX
from osmabench_ros.sequences.bag_metadata import read_metadata

SUFFIXES = ('.mcap', '.db3')
INNER_FOLDER = 'bag'
"""A folder that holds a bag beside other files keeps it in here."""


def is_bag(path: Path) -> bool:
    """Return whether a path looks like a bag or a file of one."""
    try:
        files_of(path)
    except SequenceError:
        return False
    return True


def files_of(path: Path) -> tuple[list[Path], str, list[str]]:
    """Return a bag's files in order, its distribution and faults; SequenceError if it is none."""
    try:
        exists = path.exists()
    except (OSError, ValueError) as error:
        raise SequenceError(
            f'{str(path)[:200]!r} cannot be read: {getattr(error, "strerror", error)}'
        ) from error
    if path.is_file():
        if not _is_bag_file(path):
            raise SequenceError(
                f'{path} is no bag file; name a folder of a bag, or an .mcap or .db3 file'
            )
        return [path], '', []
    folder = path
    if not _present(folder) and _present(path / INNER_FOLDER):
        folder = path / INNER_FOLDER
    present = _present(folder)
    if not exists:
        raise SequenceError(
            f'{path} does not exist; name a folder of a bag, or an .mcap or .db3 file'
        )
    if not present:
        raise SequenceError(f'{path} is no bag: there is no .mcap or .db3 file in it')
    metadata = read_metadata(folder)
    named = [folder / name for name in metadata.files]
    # A recorder that is killed has not written down its last file.
    files = [file for file in named if file in present]
    files += [file for file in present if file not in named]
    faults = [f'{file.name} is missing' for file in named if file not in present]
    if metadata.fault:
        faults.append(metadata.fault)
    faults += [f'{file.name} leads out of the folder and is not read' for file in _away(folder)]
    return files, metadata.distribution, faults


def _present(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    away = _away(folder)
    found = [
        file
        for file in folder.iterdir()
        if file.is_file() and _is_bag_file(file) and file not in away
    ]
    # name_2.mcap comes before name_10.mcap.
    return sorted(found, key=lambda file: (len(file.name), file.name))


def _away(folder: Path) -> list[Path]:
    """Return the links to bag files that are not in the folder: a bag reads none but its own."""
    inside = folder.resolve()
    links = [file for file in folder.iterdir() if file.is_symlink() and _is_bag_file(file)]
    # Unlike Path.resolve, this gives a name to links that lead in circles.
    return [file for file in links if Path(os.path.realpath(file)).parent != inside]


def _is_bag_file(path: Path) -> bool:
    return path.name.removesuffix(ZSTD_SUFFIX).endswith(SUFFIXES)
