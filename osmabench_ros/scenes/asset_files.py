"""Finds the textures and other files that a mesh file names."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

IMAGE_SUFFIXES = ('.png', '.jpg', '.jpeg', '.bmp', '.tga', '.tif', '.tiff', '.gif', '.webp')
"""Of files that are textures."""


def files_near(mesh: Path) -> Any:
    """Return a trimesh resolver for the files a mesh file refers to.

    Models keep textures beside the folder of their meshes (`../materials/textures`), which
    trimesh's own resolver refuses. This one reads below the folder above the mesh's, and nowhere
    else. A name that leads nowhere is looked for in the usual texture folders.

    Parameters
    ----------
    mesh : Path
        The mesh file.

    Returns
    -------
    trimesh.resolvers.Resolver
        Its `missing` collects the names that led nowhere, its `images` the content of images by
        name.
    """
    from trimesh.resolvers import Resolver

    class NearbyFiles(Resolver):  # type: ignore[misc]
        def __init__(self, folder: Path, missing: list[str], images: dict[str, bytes]) -> None:
            self.folder, self.missing, self.images = folder, missing, images

        def get(self, key: str) -> bytes:
            root = self.folder.resolve().parent
            name = unquote(str(key)).replace('\\', '/').removeprefix('file://')
            last = name.rpartition('/')[2]
            places = (name, last, f'../materials/textures/{last}', f'../textures/{last}')
            for place in places:
                path = (self.folder / place).resolve()
                if path.is_relative_to(root) and path.is_file():
                    data = path.read_bytes()
                    if path.name.lower().endswith(IMAGE_SUFFIXES):
                        self.images[name] = data
                    return data
            self.missing.append(name)
            raise FileNotFoundError(f'{key} is not near {mesh}')

        def namespaced(self, namespace: str) -> NearbyFiles:
            return NearbyFiles(self.folder / namespace, self.missing, self.images)

        def keys(self) -> list[str]:
            return [path.name for path in self.folder.iterdir()]

        def write(self, name: str, data: bytes) -> None:  # noqa: ARG002
            raise PermissionError(f'{name}: the files of a scene are only read')

    return NearbyFiles(mesh.parent, [], {})
