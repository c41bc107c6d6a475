"""Mesh files whose parsers are not bounded in time or memory, read in the fence."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.fence import read_in_fence
from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.asset_files import IMAGE_SUFFIXES, NEARBY, TextureSearch
from osmabench_ros.scenes.assets import AssetNode, load_nodes, painted_meshes
from osmabench_ros.scenes.scene import Material, Mesh

SUFFIXES = ('.dae', '.obj', '.off', '.ply', '.stl')
_LIBRARIES = ('numpy', 'PIL.Image', 'trimesh')
_TEXTURE_FOLDERS = ('.', '..', 'textures', '../textures', '../materials/textures')


def nodes_in_child(path: Path, textures: TextureSearch = NEARBY) -> tuple[AssetNode, ...]:
    """Return what `load_nodes` gives; errors as there, and a `LimitError`."""
    return tuple(
        AssetNode(tuple(item['names']), tuple(map(mesh_of_plain, item['meshes'])))
        for item in _read(
            plain_nodes,
            path,
            roots=[str(item.absolute()) for item in textures.folders],
            grey_if_missing=textures.grey_if_missing,
        )
    )


def painted_in_child(path: Path) -> list[tuple[Mesh, NDArray[np.uint8] | None]]:
    """Return what `painted_meshes` gives; errors as there, and a `LimitError`."""
    return [(mesh_of_plain(mesh), colors) for mesh, colors in _read(plain_painted, path)]


def plain_nodes(path: Path, roots: Sequence[str], grey_if_missing: bool) -> list[dict[str, Any]]:
    """Read the nodes of a mesh file, in the fence."""
    _refuse_document_type(path)
    textures = TextureSearch(tuple(map(Path, roots)), grey_if_missing)
    return [
        {'names': list(node.names), 'meshes': [plain_mesh(mesh) for mesh in node.meshes]}
        for node in load_nodes(path, textures=textures, in_child=True)
    ]


def plain_painted(path: Path) -> list[tuple[dict[str, Any], NDArray[np.uint8] | None]]:
    """Read meshes whose colours are codes, in the fence."""
    _refuse_document_type(path)
    return [(plain_mesh(mesh), colors) for mesh, colors in painted_meshes(path, in_child=True)]


def _read(function: Any, path: Path, **arguments: Any) -> Any:
    return read_in_fence(
        function, path, libraries=_LIBRARIES, more_bytes=_texture_bytes(path.parent), **arguments
    )


def _texture_bytes(folder: Path) -> int:
    """Return the size of the pictures near a mesh, which are read with it."""
    found = {
        os.path.realpath(entry.path): entry.stat().st_size
        for place in _TEXTURE_FOLDERS
        if (folder / place).is_dir()
        for entry in os.scandir(folder / place)
        if entry.name.lower().endswith(IMAGE_SUFFIXES) and entry.is_file()
    }
    return sum(found.values())


def _refuse_document_type(path: Path) -> None:
    """Refuse XML that may name other files, or texts that multiply."""
    data = path.read_bytes() if path.suffix.lower() == '.dae' else b''
    if b'<!DOCTYPE' in data or b'<!ENTITY' in data or b'\0' in data:
        raise SceneError(
            f'{path} has a document type or is no UTF-8 text; export it as plain Collada'
        )


def plain_mesh(mesh: Mesh) -> dict[str, Any]:
    """Return a mesh as the fence passes it on."""
    return vars(mesh) | {'material': vars(mesh.material)}


def mesh_of_plain(found: Mapping[str, Any]) -> Mesh:
    """Undo `plain_mesh`."""
    plain = found['material']
    material = Material(**{**plain, 'base_color': tuple(plain['base_color'])})
    return Mesh(**(dict(found) | {'material': material}))
