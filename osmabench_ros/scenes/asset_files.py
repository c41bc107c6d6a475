"""Finds the files that the files of a scene name, within the folders that these may read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from osmabench_ros.errors import SceneError

IMAGE_SUFFIXES = ('.png', '.jpg', '.jpeg', '.bmp', '.tga', '.tif', '.tiff', '.gif', '.webp')
"""Of files that are textures."""

LINKED_FOLDERS = 'OSMABENCH_LINKED_FOLDERS'
"""Environment variable: folders, parted by colons, that links within scenes may lead to."""

_SNAPSHOTS, _BLOBS = 'snapshots', 'blobs'
"""A download from Hugging Face is `snapshots/<commit>/...`, links to files of `blobs`."""


@dataclass(frozen=True)
class TextureSearch:
    """How textures are found that are not near their mesh.

    They are looked for by name anywhere below `folders`; those found nowhere are errors, or grey.
    """

    folders: tuple[Path, ...] = ()
    grey_if_missing: bool = False


NEARBY = TextureSearch()


def is_picture_name(name: str) -> bool:
    """Return whether a file of this name is a texture."""
    return name.lower().endswith(IMAGE_SUFFIXES)


def find_picture(name: str, folders: tuple[Path, ...]) -> Path | None:
    """Return the first picture below the folders that is called like the last part of a name."""
    last = name.rpartition('/')[2].lower()
    return _pictures(folders).get(last) if is_picture_name(last) else None


@lru_cache(maxsize=8)
def _pictures(folders: tuple[Path, ...]) -> dict[str, Path]:
    """Return the pictures below folders by name in lower case, in the order of their paths."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob('*')):
            if is_picture_name(path.name) and leads_into([folder], path):
                found.setdefault(path.name.lower(), path)
    return found


def resolved(path: Path) -> Path | None:
    """Return where a path leads, None if the system knows no such path."""
    try:
        return path.resolve() if path.exists() else None
    except (OSError, ValueError, RuntimeError):  # too long, with NUL, links in a loop
        return None


def leads_into(roots: Iterable[Path], path: Path) -> bool:
    """Return whether a path, after links, is in one of the folders or their `linked_places`."""
    target = resolved(path)
    places = [place for place in map(resolved, roots) if place]
    return target is not None and any(
        target.is_relative_to(place) for place in (*places, *linked_places(places))
    )


def linked_places(roots: Iterable[Path]) -> list[Path]:
    """Return where links in folders may also lead: the rest of a download, `LINKED_FOLDERS`."""
    named = filter(None, os.environ.get(LINKED_FOLDERS, '').split(os.pathsep))
    places = [place for place in map(resolved, map(Path, named)) if place]
    for root in roots:
        folders = (root.resolve(), *root.resolve().parents)
        if snapshot := next((item for item in folders if item.parent.name == _SNAPSHOTS), None):
            blobs = snapshot.parent.parent / _BLOBS
            # As a link it would be a way out that the download itself has laid.
            places += [blobs] if blobs.is_dir() and not blobs.is_symlink() else []
    return places


def file_within(root: Path, name: str, base: Path, where: str) -> Path:
    """Return the path of a file within `root` that another names; may raise SceneError."""
    path = base / name
    if resolved(path) is None:
        raise SceneError(f'{where}: {path} does not exist; check the path that names it')
    if Path(name).is_absolute() or not leads_into([root], path):
        raise SceneError(
            f'{where} names {name}, which is outside of {root}; put the file there and '
            'name it by a relative path, or name the folder that a link leads to in '
            f'{LINKED_FOLDERS}'
        )
    return path
