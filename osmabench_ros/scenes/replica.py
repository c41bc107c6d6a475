"""Scenes of the Replica dataset: a mesh with colours, and one with an object id for each face.

A scene folder holds `mesh.ply`, `habitat/mesh_semantic.ply` and `habitat/info_semantic.json`, all
in one z-up world in metres (Straub et al., arXiv 1906.05797). Its textures, light fields of 16-bit
floats, are not read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.files import sha256_of
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import ConfigError, PointFileError, SceneError, errors_as
from osmabench_ros.geometry.point_files import read_ply_elements
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.assets import scale_normals, select_faces, split_by_color, sum_normals
from osmabench_ros.scenes.ground_truth import measure_sizes
from osmabench_ros.scenes.loading import REPLICA_INFO
from osmabench_ros.scenes.scene import Mesh, Scene, SceneObject
from osmabench_ros.semantics import labels as semantic_labels

COLORS, SEMANTIC, INFO = 'mesh.ply', 'habitat/mesh_semantic.ply', REPLICA_INFO

_MAX_CORNERS = 64
CHANNELS = ('red', 'green', 'blue')
_INDICES = ('vertex_indices', 'vertex_index')


class _NameRow(BaseModel):
    id: int
    name: str


class _Object(BaseModel):
    id: int
    class_id: int


class _Info(BaseModel):
    classes: tuple[_NameRow, ...]
    objects: tuple[_Object, ...]


def load_replica_scene(folder: Path) -> Scene:
    """Load a scene of Replica.

    Instance ids are one more than the published object ids, which begin at 0. Faces of an object
    that has no class, and faces of no object, are unlabelled. Colours come from the nearest
    vertices of `mesh.ply`; they include the light of the recording. SceneError names the missing
    or malformed file.
    """
    info = validated(_Info, read_json(folder / INFO, SceneError), str(folder / INFO), SceneError)
    labels, class_of = _read_classes(info, folder / INFO)
    points, faces, owners = _read_semantic_mesh(folder / SEMANTIC)
    colors = _find_colors(folder / COLORS, points)
    normals = scale_normals(sum_normals(points, faces))
    whole = Mesh(points, faces, normals, np.zeros((len(points), 2), np.float32))
    objects = []
    for owner in np.unique(owners).tolist():
        chosen = owners == owner
        part = select_faces(whole, chosen)
        painted = colors[faces[chosen]].mean(axis=1)
        low = part.vertices.min(axis=0)
        high = part.vertices.max(axis=0)
        origin = np.array([*(low + high)[:2] / 2, low[2]], np.float64)
        local = replace(part, vertices=(part.vertices - origin).astype(np.float32))
        class_id = class_of.get(owner, semantic_labels.UNLABELLED)
        name = 'unlabelled' if class_id == semantic_labels.UNLABELLED else labels.name_of(class_id)
        item = SceneObject(
            owner + 1,
            f'{name.replace(" ", "_")}_{owner}',
            class_id,
            split_by_color(local, painted.round().astype(np.uint8)),
            Pose(np.eye(3), origin),
        )
        objects.append(replace(item, attributes=measure_sizes(item)))
    name = folder.resolve().name
    digest = sha256_of(folder / SEMANTIC)
    return Scene('replica', name, labels, tuple(objects), source_sha256=digest)


def _read_classes(info: _Info, path: Path) -> tuple[semantic_labels.LabelSet, dict[int, int]]:
    named = [item for item in info.classes if not semantic_labels.is_unnamed(item.name)]
    names = [semantic_labels.normalised_name(item.name) for item in named]
    with errors_as(SceneError, f'{path}: classes', ConfigError):
        classes = tuple(
            semantic_labels.LabelClass(item.id, name, semantic_labels.is_structure(name))
            for item, name in zip(named, names, strict=True)
        )
        labels = semantic_labels.LabelSet('replica', classes)
    if len({item.id for item in info.objects}) < len(info.objects):
        raise SceneError(f'{path}: objects: an id is there twice')
    known = {item.id for item in named}
    class_of = {item.id: item.class_id for item in info.objects if item.class_id in known}
    return labels, class_of


def _read_semantic_mesh(
    path: Path,
) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]]:
    """Return vertices, triangles and the object of each triangle; polygons become fans."""
    elements = _read_elements(path)
    points = _read_columns(elements, 'xyz', path).astype(np.float32)
    faces = elements.get('face', {})
    polygons = next((faces[name] for name in _INDICES if name in faces), None)
    if polygons is None or 'object_id' not in faces:
        keys = 'a list vertex_indices, all of one length, and an object_id'
        raise SceneError(f'{path}: faces must have {keys}, as in habitat/mesh_semantic.ply')
    owners = faces['object_id'].astype(np.int64)
    corners = polygons.shape[1]
    if not np.isfinite(points).all():
        raise SceneError(f'{path}: coordinates must be finite')
    if not 3 <= corners <= _MAX_CORNERS:
        raise SceneError(f'{path}: its faces have {corners} corners')
    if not ((polygons >= 0) & (polygons < len(points))).all() or (owners < 0).any():
        raise SceneError(f'{path}: a face names a vertex that is not there, or an id below 0')
    fans = [polygons[:, [0, i + 1, i + 2]] for i in range(corners - 2)]
    return points, np.concatenate(fans).astype(np.int32), np.tile(owners, corners - 2)


def _read_elements(path: Path) -> dict[str, dict[str, NDArray[Any]]]:
    with errors_as(SceneError, 'a scene of Replica', PointFileError):
        return read_ply_elements(path)


def _read_columns(
    elements: Mapping[str, Mapping[str, NDArray[Any]]], names: Sequence[str], path: Path
) -> NDArray[Any]:
    vertices = elements.get('vertex', {})
    if missing := [name for name in names if name not in vertices]:
        raise SceneError(f'{path}: vertices have no {missing[0]}')
    return np.column_stack([vertices[name] for name in names])


def _find_colors(path: Path, points: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the colour (N, 3), 0 to 255, of the vertex of the coloured mesh nearest to each."""
    from scipy.spatial import cKDTree

    elements = _read_elements(path)
    places = _read_columns(elements, 'xyz', path)
    colors = _read_columns(elements, CHANNELS, path)
    with errors_as(SceneError, str(path), ValueError):
        _, nearest = cKDTree(places).query(points)
    return np.asarray(colors[nearest], np.float64)
