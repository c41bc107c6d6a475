"""Objects of a stage: one without class, or those that HM3D's annotation distinguishes.

The annotation is a text of instances and a mesh painted with their colours. Every line of
`*.semantic.txt` after the title is `id,RRGGBB,"name",region`. The colour marks the instance in the
texture, or the vertex colours, of `*.semantic.glb`.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.documents import read_text
from osmabench_ros.base.reading import naming_errors
from osmabench_ros.errors import ConfigError, SceneError, errors_as
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.scenes.assets import painted_meshes, submesh
from osmabench_ros.scenes.ground_truth import sizes_of
from osmabench_ros.scenes.habitat.dataset import Template, Templates, placed
from osmabench_ros.scenes.habitat.semantics import class_id_of
from osmabench_ros.scenes.scene import Mesh, Room, SceneObject
from osmabench_ros.semantics.labels import (
    UNLABELLED,
    LabelSet,
    is_structure,
    is_unnamed,
    normalised_name,
)

ASSET_ORIGIN = 'asset_local'

TITLE = 'HM3D Semantic Annotations'
UNASSIGNED = 0
"""Instance of a face that no annotation claims."""

TRANSFER_M = 0.1
"""A face of the render mesh takes the instance of the nearest painted face up to this far."""

_BARYCENTRIC = np.array([[1, 1, 1], [4, 1, 1], [1, 4, 1], [1, 1, 4]]) / [[3], [6], [6], [6]]


@dataclass(frozen=True, eq=False)
class Stage:
    """What a stage brings into the scene; labels and rooms are those of its annotation, if any."""

    objects: tuple[SceneObject, ...]
    labels: LabelSet | None = None
    rooms: tuple[Room, ...] = ()


def read_stage(
    templates: Templates, name: str, entry: Mapping[str, Any], labels: LabelSet, where: str
) -> Stage:
    """Read a stage; `labels` are those of the scene, for a stage with a semantic id."""
    # Habitat-Sim scales a stage, but leaves it where its file has it.
    entry = {key: value for key, value in entry.items() if key not in ('translation', 'rotation')}
    template = templates.read(name, where, is_stage=True)
    text, painted = template.path('semantic_descriptor_filename'), template.path('semantic_asset')
    if text is None or painted is None or not text.name.endswith('.semantic.txt'):
        return _plain(template, entry, labels, where)
    for path in (text, painted):
        templates.count(path, text)
    return _annotated(template, entry, text, painted, templates.dataset.name, where)


def _plain(template: Template, entry: Mapping[str, Any], labels: LabelSet, where: str) -> Stage:
    meshes, pose = placed(template, entry, ASSET_ORIGIN, where)
    semantic_id = int(entry.get('semantic_id', template.config.get('semantic_id', 0)))
    item = SceneObject(1, 'stage', class_id_of(semantic_id, labels, 'stage', where), meshes, pose)
    return Stage((_with_sizes(item),))


def _annotated(
    template: Template,
    entry: Mapping[str, Any],
    text: Path,
    painted: Path,
    dataset: str,
    where: str,
) -> Stage:
    annotations = read_annotations(text)
    labels = annotation_labels(annotations, dataset, str(text))
    owners = face_instances(template.meshes, painted, annotations)
    meshes, pose = placed(template, entry, ASSET_ORIGIN, where)
    parts = []
    for item in annotations:
        if found := _faces_of(item.id, meshes, owners):
            name, class_id = f'{item.name}.{item.id}', labels.id_of(item.name)
            parts.append((SceneObject(item.id, name, class_id, found, pose), item.region))
    last = max(item.id for item in annotations)
    if rest := _faces_of(UNASSIGNED, meshes, owners):
        parts.append((SceneObject(last + 1, 'unannotated', UNLABELLED, rest, pose), -1))
    boxes: dict[int, list[AxisAlignedBox]] = {}
    for part, region in parts:
        if region >= 0:
            boxes.setdefault(region, []).append(part.box)
    rooms = {
        region: Room(i, f'room {region}', 'room', AxisAlignedBox.holding(boxes[region]))
        for i, region in enumerate(sorted(boxes), start=last + 2)
    }
    objects = [
        _with_sizes(part, rooms[region].id if region in rooms else None) for part, region in parts
    ]
    return Stage(tuple(objects), labels, tuple(rooms.values()))


def _faces_of(instance: int, meshes: Sequence[Mesh], owners: Sequence[Any]) -> tuple[Mesh, ...]:
    chosen = ((mesh, owner == instance) for mesh, owner in zip(meshes, owners, strict=True))
    return tuple(submesh(mesh, faces) for mesh, faces in chosen if faces.any())


def _with_sizes(item: SceneObject, room_id: int | None = None) -> SceneObject:
    return replace(item, attributes=sizes_of(item), room_id=room_id)


@dataclass(frozen=True)
class Annotation:
    """A line: instance >= 1, 0xRRGGBB, normalised class name, and region, below 0 for none."""

    id: int
    color: int
    name: str
    region: int


def read_annotations(path: Path) -> tuple[Annotation, ...]:
    """Read a `*.semantic.txt`; SceneError, which names the line, if it is missing or malformed."""
    lines = read_text(path, SceneError).splitlines()
    if not lines or TITLE not in lines[0]:
        raise SceneError(f'{path} does not begin with "{TITLE}"')
    with naming_errors(path, SceneError):
        found = [
            _annotation(row, f'{path}:{i + 2}')
            for i, row in enumerate(csv.reader(lines[1:], skipinitialspace=True))
            if row
        ]
    for what in ('id', 'color'):
        counts = Counter(getattr(item, what) for item in found)
        if len(counts) < len(found):
            twice = counts.most_common(1)[0][0]
            raise SceneError(f'{path}: {what} {twice} occurs more than once')
    return tuple(found)


def _annotation(row: Sequence[str], where: str) -> Annotation:
    try:
        instance, color, name, region = (part.strip() for part in row)
        found = Annotation(int(instance), int(color, 16), normalised_name(name), int(region))
    except ValueError:
        line = ','.join(row)
        raise SceneError(f'{where}: "{line}" is not id,RRGGBB,"name",region') from None
    if found.id < 1 or not 0 <= found.color <= 0xFFFFFF:
        raise SceneError(f'{where}: ids begin at 1, colours are six hexadecimal digits')
    if not found.name:
        raise SceneError(f'{where}: instance {found.id} has no name')
    return found


def annotation_labels(annotations: Sequence[Annotation], name: str, source: str) -> LabelSet:
    """Return the classes, numbered alphabetically from 1 as OSMa-Bench does; 0 is no class."""
    names = {item.name for item in annotations if not is_unnamed(item.name)}
    with errors_as(SceneError, str(source), ConfigError):
        return LabelSet.from_names(name, names, filter(is_structure, names))


def face_instances(
    meshes: Sequence[Mesh], path: Path, annotations: Sequence[Annotation]
) -> list[NDArray[np.int64]]:
    """Return the instance of each face, an array a mesh, UNASSIGNED where no annotation has it."""
    from scipy.spatial import cKDTree

    centers, owners = _painted_faces(path, annotations)
    tree = cKDTree(centers)
    found = []
    for mesh in meshes:
        distance, nearest = tree.query(mesh.vertices[mesh.faces].mean(axis=1))
        found.append(np.where(distance <= TRANSFER_M, owners[nearest], UNASSIGNED))
    return found


def _painted_faces(
    path: Path, annotations: Sequence[Annotation]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    colors = np.array(sorted((item.color, item.id) for item in annotations)).reshape(-1, 2)
    centers, owners = [], []
    for mesh, vertex_colors in painted_meshes(path):
        paint = _samples(mesh, vertex_colors)
        codes = (paint.astype(np.int64) * [0x10000, 0x100, 1]).sum(axis=-1)
        index = np.minimum(np.searchsorted(colors[:, 0], codes), len(colors) - 1)
        known = colors[index, 0] == codes
        votes = np.where(known, colors[index, 1], UNASSIGNED)
        centers.append(mesh.vertices[mesh.faces].mean(axis=1))
        owners.append(_majority(votes))
    if not any((part != UNASSIGNED).any() for part in owners):
        raise SceneError(f'{path} has none of the colours of its semantic text')
    return np.concatenate(centers), np.concatenate(owners)


def _samples(mesh: Mesh, vertex_colors: NDArray[np.uint8] | None) -> NDArray[np.uint8]:
    """Return the paint at four places of every face, shape (F, 4, 3), without interpolation."""
    if vertex_colors is not None:
        corners = vertex_colors[mesh.faces]
        return np.concatenate([corners[:, :1], corners], axis=1)
    texture = mesh.material.texture
    if texture is None:
        flat = np.round(np.array(mesh.material.base_color) * 255).astype(np.uint8)
        return np.broadcast_to(flat, (len(mesh.faces), 4, 3))
    uv = np.einsum('kc,fcd->fkd', _BARYCENTRIC, mesh.uv[mesh.faces])
    height, width = texture.shape[:2]
    row, column = (np.floor(uv[..., 1] * height), np.floor(uv[..., 0] * width))
    return np.asarray(texture[row.astype(int) % height, column.astype(int) % width])


def _majority(votes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the most frequent instance of every row; a claim beats none."""
    count = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
    count = np.where(votes == UNASSIGNED, 0, count)
    return np.asarray(votes[np.arange(len(votes)), count.argmax(axis=1)])
