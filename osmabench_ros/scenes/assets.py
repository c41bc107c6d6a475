"""Reads mesh files (GLB, glTF, OBJ, PLY, STL, DAE) into scene meshes, in the file's own frame."""

import importlib.util
import io
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.fence import read_in_fence
from osmabench_ros.base.images import encode_srgb
from osmabench_ros.base.reading import opened
from osmabench_ros.errors import MissingDependencyError, OsmabenchError, SceneError, errors_as
from osmabench_ros.geometry.axes import WORLD_FROM_HABITAT
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.point_files import read_element_columns
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.asset_files import IMAGE_SUFFIXES, NEARBY, TextureSearch
from osmabench_ros.scenes.mesh_files import (
    GLTF_SUFFIXES,
    MeshFiles,
    allow_known_formats_only,
    check_gltf,
)
from osmabench_ros.scenes.scene import NEUTRAL, Material, Mesh, make_triple

MESH_SUFFIXES = ('.glb', '.gltf', '.obj', '.ply', '.stl', '.dae', '.off')

# Rotation that takes Collada's X_UP (x up, -y right, z towards the viewer) to z up.
X_UP = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])

_LIBRARIES = ('numpy', 'PIL.Image', 'trimesh')
_TEXTURE_FOLDERS = ('.', '..', 'textures', '../textures', '../materials/textures')
_GROUP_BYTES = 2**25

# Vertex colours are quantised to so many levels a channel, one material a colour.
COLOR_LEVELS = 6


def load_meshes(path: Path) -> tuple[Mesh, ...]:
    """Read a mesh file, nodes' transformations applied; SceneError if it is missing or broken."""
    meshes = tuple(mesh for node in load_nodes(path) for mesh in node.meshes)
    if not meshes:
        raise SceneError(f'{path} has no triangles; export the object with its surface')
    return meshes


@dataclass(frozen=True, eq=False)
class AssetNode:
    """A node of a mesh file with triangles in the file's frame; `names` goes from it upwards."""

    names: tuple[str, ...]
    meshes: tuple[Mesh, ...]


def find_parents(nodes: Sequence[AssetNode], names: Sequence[str] = ()) -> list[str]:
    """Return the name above each node, or above its one of `names`; '' directly below the root.

    A node above all nodes, such as the root that an exporter adds, is not a parent.
    """
    above_all = set.intersection(*(set(node.names[1:]) for node in nodes)) if nodes else set()
    found = []
    for node in nodes:
        own = next((i for i, name in enumerate(node.names) if name in names), 0)
        parents = (name for name in node.names[own + 1 :] if name not in above_all)
        found.append(next(parents, ''))
    return found


def load_nodes(path: Path, *, textures: TextureSearch = NEARBY) -> tuple[AssetNode, ...]:
    """Read a mesh file node by node in the fence; SceneError if broken, or LimitError.

    `textures` says how textures are found that are not near it.
    """
    roots = [str(item.absolute()) for item in textures.folders]
    found = _read_in_fence(read_nodes, path, roots=roots, grey_if_missing=textures.grey_if_missing)
    return tuple(
        AssetNode(tuple(names), tuple(unpack_mesh(mesh) for mesh, _ in parts))
        for names, parts in found
    )


def load_many_meshes(paths: Sequence[Path]) -> dict[Path, tuple[Mesh, ...]]:
    """Read mesh files together, in a tenth of the time; files with errors are left out."""
    found: dict[Path, tuple[Mesh, ...]] = {}
    sizes = [path.stat().st_size for path in paths]
    groups = (total // _GROUP_BYTES for total in accumulate(sizes))
    for _, grouped in groupby(zip(groups, paths, sizes, strict=True), key=itemgetter(0)):
        _, group, group_sizes = zip(*grouped, strict=True)
        with suppress(OsmabenchError):
            others = [str(path.absolute()) for path in group[1:]]
            read = _read_in_fence(read_many, group[0], sum(group_sizes[1:]), others=others)
            for path, nodes in zip(group, read, strict=True):
                meshes = tuple(unpack_mesh(mesh) for _, parts in nodes for mesh, _ in parts)
                found |= {path: meshes} if meshes else {}
    return found


def load_painted_meshes(path: Path) -> list[tuple[Mesh, NDArray[np.uint8] | None]]:
    """Read meshes with colours for codes: exact vertex colours (V, 3), None with a texture."""
    found = _read_in_fence(read_nodes, path, painted=True)
    return [(unpack_mesh(mesh), colors) for _, parts in found for mesh, colors in parts]


def _read_in_fence(
    function: Callable[..., Any], path: Path, more_bytes: int = 0, **arguments: Any
) -> Any:
    with opened(path, SceneError):  # names a missing file
        pass
    if path.suffix.lower() == '.dae' and importlib.util.find_spec('collada') is None:
        raise MissingDependencyError(f'{path}: Collada files need pycollada; {extra("scenes")}')
    more_bytes += _sum_texture_bytes(path.parent)
    return read_in_fence(function, path, libraries=_LIBRARIES, more_bytes=more_bytes, **arguments)


def _sum_texture_bytes(folder: Path) -> int:
    """Return the size of the images and buffers near a mesh, which are read with it."""
    found = {
        os.path.realpath(entry.path): entry.stat().st_size
        for place in _TEXTURE_FOLDERS
        if (folder / place).is_dir()
        for entry in os.scandir(folder / place)
        if entry.name.lower().endswith((*IMAGE_SUFFIXES, '.bin')) and entry.is_file()
    }
    return sum(found.values())


def pack_mesh(mesh: Mesh) -> dict[str, Any]:
    """Return a mesh as the fence passes it on."""
    return vars(mesh) | {'material': vars(mesh.material)}


def unpack_mesh(found: Mapping[str, Any]) -> Mesh:
    """Undo `pack_mesh`."""
    plain = found['material']
    material = Material(**{**plain, 'base_color': tuple(plain['base_color'])})
    return Mesh(**(dict(found) | {'material': material}))


# Names and plain meshes of a node, each with its vertex colours where these are codes.
PlainNode = tuple[list[str], list[tuple[dict[str, Any], NDArray[np.uint8] | None]]]


def read_many(path: Path, others: Sequence[str]) -> list[list[PlainNode]]:
    """Read the nodes of mesh files, none of one with errors, in the fence."""
    found: list[list[PlainNode]] = []
    for item in (path, *map(Path, others)):
        found.append([])
        with suppress(OsmabenchError):
            found[-1] = read_nodes(item)
    return found


def read_nodes(
    path: Path, roots: Sequence[str] = (), grey_if_missing: bool = False, painted: bool = False
) -> list[PlainNode]:
    """Read the nodes of a mesh file, in the fence."""
    allow_known_formats_only()
    # Collada's colours are sRGB, and glTF's are linear; trimesh passes both on unchanged.
    linear = path.suffix.lower() != '.dae'
    found: list[PlainNode] = []
    files = MeshFiles(path, TextureSearch(tuple(map(Path, roots)), grey_if_missing))
    for names, geometry in _collect_geometries(path, path.read_bytes(), files):
        with errors_as(SceneError, f'{path}: node "{names[0]}" is malformed', Exception):
            if painted and getattr(geometry.visual, 'kind', None) == 'vertex':
                colors = np.asarray(geometry.visual.vertex_colors, np.uint8)[:, :3]
                found.append((names, [(pack_mesh(_convert_bare_mesh(geometry)), colors)]))
            else:
                meshes = convert_meshes(geometry, linear)
                found.append((names, [(pack_mesh(mesh), None) for mesh in meshes]))
    return found


def _collect_geometries(path: Path, data: bytes, files: MeshFiles) -> list[tuple[list[str], Any]]:
    """Return the names, from its own upwards, and the placed triangles of each node."""
    import trimesh

    kind = path.suffix.lower()
    if kind not in MESH_SUFFIXES:
        raise SceneError(f'{path} is not a mesh file that is read: {", ".join(MESH_SUFFIXES)}')
    logging.getLogger('trimesh').setLevel(logging.CRITICAL)
    if kind in GLTF_SUFFIXES:
        check_gltf(path, data, files)
    frame = _read_collada_frame(path, data) if kind == '.dae' else np.eye(4)
    try:
        loaded = trimesh.load(
            io.BytesIO(data), file_type=kind[1:], resolver=files, process=False, force='scene'
        )
        nodes = []
        for name in loaded.graph.nodes_geometry:
            matrix, geometry_name = loaded.graph[name]
            geometry = loaded.geometry[geometry_name]
            if isinstance(geometry, trimesh.Trimesh) and len(geometry.faces):
                _check_complete(geometry)
                names, parents = [str(name)], loaded.graph.transforms.parents
                while names[-1] in parents and parents[names[-1]] not in names:
                    names.append(parents[names[-1]])
                placement = frame @ matrix
                if not np.array_equal(placement, np.eye(4)):
                    geometry = geometry.copy()
                    geometry.apply_transform(placement)
                nodes.append((names, geometry))
    except (OsmabenchError, MemoryError):
        raise
    except Exception as error:  # trimesh raises whatever its parsers raise
        files.check()  # some broken textures only stop it
        what = f'{path} cannot be read as a mesh ({type(error).__name__}: {error})'
        raise SceneError(f'{what}; export it again') from error
    files.check()
    return nodes


def _check_complete(geometry: Any) -> None:
    """Refuse missing rows of PLY, and indices that negative numbers count from the end."""
    for name, element in geometry.metadata.get('_ply_raw', {}).items():
        read_element_columns(name, element)
    if not 0 <= geometry.faces.min() <= geometry.faces.max() < len(geometry.vertices):
        raise ValueError('a triangle has a vertex that is not there')


def _read_collada_frame(path: Path, text: bytes) -> NDArray[np.float64]:
    """Return the map from a Collada file's own units and axes, which it names, to z-up metres."""
    if b'<!DOCTYPE' in text or b'<!ENTITY' in text or b'\0' in text:
        problem = f'{path} has a document type or is not UTF-8 text'
        raise SceneError(f'{problem}; export it as plain Collada')
    frame = np.eye(4)
    unit = re.search(rb'<unit\b[^>]*\bmeter\s*=\s*["\']([0-9.eE+-]+)', text)
    frame[:3, :3] = read_collada_axes(text) * (float(unit[1]) if unit else 1.0)
    return frame


def read_collada_axes(text: bytes) -> NDArray[np.float64]:
    """Return the rotation from the axes that a Collada file names to z up."""
    up = re.search(rb'<up_axis>\s*([XYZ])_UP', text)
    return {b'X': X_UP, b'Y': WORLD_FROM_HABITAT, b'Z': np.eye(3)}[up[1] if up else b'Y']


def get_axes(path: Path) -> NDArray[np.float64]:
    """Return the rotation to z up from the axes of a mesh file, which are y up only in glTF."""
    return WORLD_FROM_HABITAT if path.suffix.lower() in GLTF_SUFFIXES else np.eye(3)


def convert_meshes(geometry: Any, linear: bool = True) -> tuple[Mesh, ...]:
    """Convert a trimesh geometry, a mesh a vertex colour; materials' factors may be `linear`."""
    mesh, visual = _convert_bare_mesh(geometry), geometry.visual
    vertices = mesh.vertices
    uv = getattr(visual, 'uv', None)
    if uv is not None and np.shape(uv) == (len(vertices), 2) and np.isfinite(uv).all():
        # trimesh counts v from the bottom of the image, a Material from row 0.
        flipped = np.column_stack([uv[:, 0], 1.0 - uv[:, 1]]).astype(np.float32)
        mesh = replace(mesh, uv=flipped)
    if getattr(visual, 'material', None) is not None:
        return (replace(mesh, material=convert_material(visual.material, linear)),)
    if getattr(visual, 'kind', None) in ('vertex', 'face'):
        return split_by_color(mesh, np.asarray(visual.face_colors, np.uint8)[:, :3])
    return (mesh,)


def _convert_bare_mesh(geometry: Any) -> Mesh:
    vertices = np.asarray(geometry.vertices, np.float32)
    if not np.isfinite(vertices).all():
        raise ValueError('a vertex is NaN or infinite')
    faces = np.asarray(geometry.faces, np.int32)
    if vertices.shape[1:] != (3,) or faces.shape[1:] != (3,):
        raise ValueError('a vertex has other than three coordinates, or a face three corners')
    if faces.size and not 0 <= faces.min() <= faces.max() < len(vertices):
        raise ValueError('a face names a vertex that is not there')
    # trimesh makes up normals that a file does not give when it is asked for them first.
    given = 'vertex_normals' in geometry._cache
    uv = np.zeros((len(vertices), 2), np.float32)
    normals = scale_normals(np.asarray(geometry.vertex_normals, np.float32))
    return Mesh(vertices, faces, normals, uv, has_normals=given)


def convert_material(material: Any, linear: bool = True) -> Material:
    """Convert a trimesh material."""
    gloss: dict[str, Any] = {}
    if hasattr(material, 'diffuse'):
        # Wavefront and Collada: the diffuse colour is sRGB already and, with a texture, unused.
        image, linear = material.image, False
        factor = material.diffuse if image is None else None
    else:
        image, factor = material.baseColorTexture, material.baseColorFactor
        gloss = _read_gloss(material)
    if factor is None:
        color = np.array(NEUTRAL.base_color if image is None else (1.0, 1.0, 1.0))
    else:
        color = np.asarray(factor, float)[:3] / 255
        color = encode_srgb(color) if linear else color
    return Material(make_triple(np.clip(color, 0, 1)), _read_pixels(image), **gloss)


def _read_gloss(material: Any) -> dict[str, Any]:
    """Return metallic, roughness and their image; a file of glTF that names none means 1."""
    given = {'metallic': material.metallicFactor, 'roughness': material.roughnessFactor}
    factors = {
        name: 1.0 if value is None else float(np.clip(value, 0, 1))
        for name, value in given.items()
    }
    return {**factors, 'surface': _read_pixels(material.metallicRoughnessTexture)}


def _read_pixels(image: Any) -> NDArray[np.uint8] | None:
    return None if image is None else np.ascontiguousarray(image.convert('RGB'), np.uint8)


def sum_normals(
    vertices: NDArray[np.float32],
    faces: NDArray[np.integer],
    points: NDArray[np.integer] | None = None,
) -> NDArray[np.float64]:
    """Return for each vertex (V, 3) the sum of the normals of its faces, as long as their areas.

    Vertices share the faces of the others with the same number in `points` (V,), if given.
    """
    corners = vertices[faces].astype(np.float64)
    of_faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    owners = np.arange(len(vertices)) if points is None else points
    sums = np.zeros((owners.max(initial=-1) + 1, 3))
    for corner in range(3):
        np.add.at(sums, owners[faces[:, corner]], of_faces)
    return np.asarray(sums[owners])


def scale_normals(normals: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return normals (V, 3) with unit length; a vertex without one gets an upward one."""
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    unit = np.where(length > 1e-12, normals / np.maximum(length, 1e-12), (0, 0, 1))
    return unit.astype(np.float32)


def split_by_color(mesh: Mesh, face_colors: NDArray[np.uint8]) -> tuple[Mesh, ...]:
    """Return a mesh in parts, each of one of COLOR_LEVELS levels of each colour (F, 3)."""
    level = face_colors.astype(int) * COLOR_LEVELS // 256
    key = (level * [COLOR_LEVELS**2, COLOR_LEVELS, 1]).sum(axis=1)
    parts = []
    for value in np.unique(key):
        chosen = key == value
        material = Material(make_triple(face_colors[chosen].mean(axis=0) / 255))
        parts.append(replace(select_faces(mesh, chosen), material=material))
    return tuple(parts)


def select_faces(mesh: Mesh, faces: NDArray[np.bool_]) -> Mesh:
    """Return the part of a mesh that consists of the marked faces."""
    used, indices = np.unique(mesh.faces[faces], return_inverse=True)
    return replace(
        mesh,
        vertices=mesh.vertices[used],
        faces=indices.reshape(-1, 3).astype(np.int32),
        normals=mesh.normals[used],
        uv=mesh.uv[used],
    )


def move_mesh(mesh: Mesh, pose: Pose) -> Mesh:
    """Return a mesh in the parent frame of a pose."""
    turned = map_linearly(mesh, pose.rotation)
    return replace(turned, vertices=(turned.vertices + pose.translation).astype(np.float32))


def center_meshes(meshes: list[Mesh]) -> tuple[tuple[Mesh, ...], Pose]:
    """Move the origin of world meshes to the middle of their bottom."""
    box = AxisAlignedBox.around(np.concatenate([mesh.vertices for mesh in meshes]))
    origin = np.array([*box.center[:2], box.minimum[2]])
    shifted = tuple(
        replace(mesh, vertices=(mesh.vertices - origin).astype(np.float32)) for mesh in meshes
    )
    return shifted, Pose(np.eye(3), origin)


def map_linearly(mesh: Mesh, matrix: NDArray[np.float64]) -> Mesh:
    """Return a mesh under a linear map (3, 3); a mirrored one keeps its faces outwards."""
    normals = mesh.normals @ np.linalg.inv(matrix)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    faces = mesh.faces if np.linalg.det(matrix) > 0 else mesh.faces[:, ::-1]
    return replace(
        mesh,
        vertices=np.ascontiguousarray(mesh.vertices @ matrix.T, np.float32),
        faces=np.ascontiguousarray(faces),
        normals=normals.astype(np.float32),
    )


# Faces that meet at a larger angle have an edge between them, not a round surface.
CREASE_RAD = np.deg2rad(30.0)


def crease_mesh(mesh: Mesh) -> Mesh:
    """Return a mesh with separate normals that keep the edges of a box sharp.

    Faces that meet at less than CREASE_RAD are smooth; each smooth part gets its own vertices.
    """
    from scipy.sparse import coo_matrix, csgraph

    corners = mesh.vertices[mesh.faces].astype(np.float64)
    areas = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    units = areas / np.maximum(np.linalg.norm(areas, axis=1, keepdims=True), 1e-12)
    # Files without normals may repeat a vertex in each face.
    _, place = np.unique(mesh.vertices.round(5), axis=0, return_inverse=True)
    welded = place.reshape(-1)[mesh.faces]
    edges = np.sort(welded[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    owners = np.repeat(np.arange(len(mesh.faces)), 3)
    order = np.lexsort(edges.T)
    same = (edges[order[1:]] == edges[order[:-1]]).all(axis=1)
    first = owners[order[:-1]][same]
    second = owners[order[1:]][same]
    smooth = (units[first] * units[second]).sum(axis=1) > np.cos(CREASE_RAD)
    size = len(mesh.faces)
    pairs = coo_matrix((np.ones(smooth.sum()), (first[smooth], second[smooth])), (size, size))
    _, part = csgraph.connected_components(pairs, directed=False)
    keys = np.column_stack([mesh.faces.ravel(), np.repeat(part, 3)])
    unique, faces = np.unique(keys, axis=0, return_inverse=True)
    vertices = mesh.vertices[unique[:, 0]]
    faces = faces.reshape(-1, 3)
    around = np.column_stack([place.reshape(-1)[unique[:, 0]], unique[:, 1]])
    _, group = np.unique(around, axis=0, return_inverse=True)
    return replace(
        mesh,
        vertices=vertices,
        faces=faces.astype(np.int32),
        normals=scale_normals(sum_normals(vertices, faces, group.reshape(-1))),
        uv=mesh.uv[unique[:, 0]],
        has_normals=True,
    )
