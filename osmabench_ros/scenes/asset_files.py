"""Finds the textures and other files that a mesh file names."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import OsmabenchError, SceneError

IMAGE_SUFFIXES = ('.png', '.jpg', '.jpeg', '.bmp', '.tga', '.tif', '.tiff', '.gif', '.webp')
"""Of files that are textures."""

_BESIDE = ('materials', 'textures')
"""Folders beside that of the mesh, where models keep textures."""

LINKED_FOLDERS = 'OSMABENCH_LINKED_FOLDERS'
"""Environment variable: folders, parted by colons, that links within scenes may lead to."""

_SNAPSHOTS, _BLOBS = 'snapshots', 'blobs'
"""What is downloaded from Hugging Face is `snapshots/<commit>/...`, links to files of `blobs`."""


@dataclass(frozen=True)
class TextureSearch:
    """What to do about textures that are not near their mesh.

    They are looked for by name anywhere below `folders`; those found nowhere are errors, or grey.
    """

    folders: tuple[Path, ...] = ()
    grey_if_missing: bool = False


NEARBY = TextureSearch()


def files_near(
    mesh: Path, check: Callable[[str, bytes], None], textures: TextureSearch = NEARBY
) -> Any:
    """Return a trimesh resolver for files below a mesh file's folder, or its textures, checked.

    `textures` says what is done about those that are not near.
    """
    from trimesh.resolvers import Resolver

    folder = mesh.parent.resolve()
    roots = [folder, *(folder.parent / name for name in _BESIDE)]

    class NearbyFiles(Resolver):  # type: ignore[misc]
        def __init__(self) -> None:
            self.missing: list[str] = []
            self.faults: list[OsmabenchError] = []
            self._contents: dict[str, bytes] = {}

        def get(self, key: str) -> bytes:
            name = unquote(str(key)).replace('\\', '/').removeprefix('file://')
            if name not in self._contents:
                path = _place(name, roots) or picture_below(name, textures.folders)
                if path is None and textures.grey_if_missing and is_picture_name(name):
                    self._contents[name] = _grey()
                elif path is None:
                    self.missing.append(name)
                    raise FileNotFoundError(f'{key} is not near {mesh}')
                else:
                    self._contents[name] = self._checked(name, path)
            return self._contents[name]

        def _checked(self, name: str, path: Path) -> bytes:
            try:
                data = read_bytes(path, SceneError)
                check(name, data)
            except OsmabenchError as error:
                self.faults.append(error)
                raise
            return data

        def namespaced(self, namespace: str) -> NearbyFiles:
            raise PermissionError(f'{namespace}: archives of scenes are not read')

        def keys(self) -> list[str]:
            return [path.name for path in folder.iterdir()]

        def write(self, name: str, data: bytes) -> None:  # noqa: ARG002
            raise PermissionError(f'{name}: the files of a scene are only read')

    return NearbyFiles()


def _place(name: str, roots: list[Path]) -> Path | None:
    """Return the file that a name means, None if it is not in one of the roots."""
    last = name.rpartition('/')[2]
    for place in (name, last, f'../materials/textures/{last}', f'../textures/{last}'):
        path = roots[0] / place
        if leads_into(roots, path) and path.is_file():
            return path
    return None


def is_picture_name(name: str) -> bool:
    """Return whether a file of this name is a texture."""
    return name.lower().endswith(IMAGE_SUFFIXES)


def _grey() -> bytes:
    """Return a picture that stands for a missing one, as bright as a neutral material."""
    from PIL import Image

    written = io.BytesIO()
    Image.new('RGB', (1, 1), (204, 204, 204)).save(written, 'PNG')
    return written.getvalue()


def picture_below(name: str, folders: tuple[Path, ...]) -> Path | None:
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
    """Return where links in folders may lead besides: the rest of a download, `LINKED_FOLDERS`."""
    named = filter(None, os.environ.get(LINKED_FOLDERS, '').split(os.pathsep))
    places = [place for place in map(resolved, map(Path, named)) if place]
    return places + [blobs for root in roots if (blobs := _blobs_of(root.resolve()))]


def _blobs_of(folder: Path) -> Path | None:
    """Return where the files lie that a folder downloaded from Hugging Face links to."""
    for snapshot in (folder, *folder.parents):
        if snapshot.parent.name == _SNAPSHOTS:
            blobs = snapshot.parent.parent / _BLOBS
            # As a link it would be a way out that the download itself has laid.
            return blobs if blobs.is_dir() and not blobs.is_symlink() else None
    return None


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
