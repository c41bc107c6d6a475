"""Classes, rooms and instances of data sets: descriptors, annotated stages, our own additions.

HM3D annotates a stage by a text of instances and a mesh painted with their colours. Every line of
`*.semantic.txt` after the title is `id,RRGGBB,"name",region`. The colour marks the instance in the
texture, or the vertex colours, of `*.semantic.glb`.
"""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, StrictInt

from osmabench_ros.base.documents import read_text
from osmabench_ros.base.reading import naming_errors
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError, SceneError, errors_as
from osmabench_ros.geometry.axes import turn_from_habitat
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.scenes.asset_files import number, read_object, vector
from osmabench_ros.scenes.assets import load_painted_meshes, select_faces
from osmabench_ros.scenes.ground_truth import measure_sizes
from osmabench_ros.scenes.habitat.dataset import Template, Templates, place_instance
from osmabench_ros.scenes.scene import Mesh, Room, SceneObject
from osmabench_ros.semantics.labels import (
    UNLABELLED,
    LabelClass,
    LabelSet,
    is_structure,
    is_unnamed,
    normalised_name,
)

# Key below `user_defined`, which Habitat ignores, for values that its format cannot hold.
ADDED = 'osmabench'


class Extras(Strict):
    """What our export adds to an object instance, a region or a scene instance."""

    instance_id: int | None = Field(None, ge=1)
    room_id: int | None = Field(None, ge=1)
    attributes: dict[str, str | float | bool] = Field(default_factory=dict)
    ambient: float = Field(0.1, ge=0)
    left_out: tuple[str, ...] = ()


def read_added(entry: Mapping[str, Any], where: str) -> Extras:
    """Return the additions of our export to an entry, the defaults for entries of others."""
    own = entry.get('user_defined')
    found = own.get(ADDED, {}) if isinstance(own, dict) else {}
    return validated(Extras, found, f'{where}: user_defined.{ADDED}', SceneError)


def read_label_set(path: Path | None, name: str) -> LabelSet:
    """Read the classes of a semantic scene descriptor, names made unique, without 'unknown'."""
    if path is None:
        return LabelSet(name, ())
    classes = []
    seen = set()
    with errors_as(SceneError, str(path), ConfigError):
        for row in _list_classes(read_object(path), path):
            if is_unnamed(row.name):
                continue
            label = normalised_name(row.name)
            unique = label if label not in seen else f'{label} {row.id}'
            seen.add(unique)
            structure = is_structure(label) if row.structure is None else row.structure
            classes.append(LabelClass(row.id, unique, structure))
        return LabelSet(name, tuple(classes))


class _ClassRow(BaseModel):
    """A class of a descriptor; our export says whether it is structure."""

    id: StrictInt
    name: Annotated[str, Field(pattern=r'\S')]
    structure: bool | None = None


def _list_classes(data: Mapping[str, Any], path: Path) -> list[_ClassRow]:
    """Return the classes of a descriptor by id: of a list, or a plain name -> id mapping."""
    listed = data.get('classes', data.get('categories'))
    if listed is None:
        plain = {} if 'region_annotations' in data else data  # a file may hold regions only
        listed = [{'id': value, 'name': key} for key, value in plain.items()]
    rows = validated(list[_ClassRow], listed, f'{path}: classes', SceneError)
    return sorted(rows, key=lambda row: row.id)


def check_class_id(semantic_id: int, labels: LabelSet, what: str, source: str) -> int:
    """Return an object's class id, UNLABELLED for 0 unless that is one; else SceneError."""
    if semantic_id == 0 and 0 not in labels.by_id:
        return UNLABELLED
    if not 0 <= semantic_id < UNLABELLED:
        limits = f'ids must lie in 0 to {UNLABELLED - 1}'
        raise SceneError(f'{source}: {what} has semantic id {semantic_id}; {limits}')
    if semantic_id not in labels.by_id:
        raise SceneError(f'{source}: {what} has semantic id {semantic_id}, which has no name')
    return semantic_id


def read_rooms(path: Path | None, first_id: int) -> tuple[Room, ...]:
    """Read the region annotations of a semantic scene descriptor, if it has any."""
    if path is None:
        return ()
    rooms = []
    for i, item in enumerate(read_object(path).get('region_annotations', ())):
        name = normalised_name(str(item.get('name', '')) or f'room {i}')
        label = normalised_name(str(item.get('label', '')) or name)
        where = f'{path}: region "{name}"'
        room_id = read_added(item, where).room_id or first_id + i
        rooms.append(Room(room_id, name, label, _make_region_box(item, where)))
    return tuple(rooms)


def _make_region_box(item: Mapping[str, Any], where: str) -> AxisAlignedBox:
    if 'min_bounds' in item:
        corners = [vector(item, key, (0, 0, 0), where) for key in ('min_bounds', 'max_bounds')]
    else:
        points = item.get('poly_loop', ())
        loop = [vector({'poly_loop': point}, 'poly_loop', (0, 0, 0), where) for point in points]
        if len(loop) < 3:
            raise SceneError(f'{where} has neither bounds nor a "poly_loop" of 3 points')
        corners = [np.min(loop, axis=0), np.max(loop, axis=0)]
        floor = number(item, 'floor_height', float(corners[0][1]), where)
        height = number(item, 'extrusion_height', 2.5, where)
        corners[0][1], corners[1][1] = floor, floor + height
    return AxisAlignedBox.around(turn_from_habitat(np.array(corners)))


ASSET_ORIGIN = 'asset_local'

TITLE = 'HM3D Semantic Annotations'
# Instance of a face that no annotation claims.
UNASSIGNED = 0

# A face of the render mesh takes the instance of the nearest painted face up to this far.
TRANSFER_M = 0.1

_BARYCENTRIC = np.array([[1, 1, 1], [4, 1, 1], [1, 4, 1], [1, 1, 4]]) / [[3], [6], [6], [6]]


@dataclass(frozen=True, eq=False)
class Stage:
    """The objects of a stage, and the labels and rooms of its annotation, if it has one."""

    objects: tuple[SceneObject, ...]
    labels: LabelSet | None = None
    rooms: tuple[Room, ...] = ()


def read_stage(
    templates: Templates, name: str, entry: Mapping[str, Any], labels: LabelSet, where: str
) -> Stage:
    """Read a stage; one with a semantic id has a class of `labels`, the labels of the scene."""
    # Habitat-Sim scales a stage, but leaves it where its file has it.
    entry = {key: value for key, value in entry.items() if key not in ('translation', 'rotation')}
    template = templates.read(name, where, is_stage=True)
    text = template.path('semantic_descriptor_filename')
    painted = template.path('semantic_asset')
    if text is None or painted is None or not text.name.endswith('.semantic.txt'):
        meshes, pose = place_instance(template, entry, ASSET_ORIGIN, where)
        semantic_id = int(entry.get('semantic_id', template.config.get('semantic_id', 0)))
        class_id = check_class_id(semantic_id, labels, 'stage', where)
        return Stage((_with_sizes(SceneObject(1, 'stage', class_id, meshes, pose)),))
    for path in (text, painted):
        templates.count(path, text)
    return _annotate_stage(template, entry, text, painted, templates.dataset.name, where)


def _annotate_stage(
    template: Template,
    entry: Mapping[str, Any],
    text: Path,
    painted: Path,
    dataset: str,
    where: str,
) -> Stage:
    annotations = read_annotations(text)
    # Classes are numbered alphabetically from 1 as OSMa-Bench does; 0 means no class.
    names = {item.name for item in annotations if not is_unnamed(item.name)}
    with errors_as(SceneError, str(text), ConfigError):
        labels = LabelSet.from_names(dataset, names, filter(is_structure, names))
    owners = find_face_instances(template.meshes, painted, annotations)
    meshes, pose = place_instance(template, entry, ASSET_ORIGIN, where)
    parts = []
    for item in annotations:
        if found := _select_faces(item.id, meshes, owners):
            name, class_id = f'{item.name}.{item.id}', labels.id_of(item.name)
            parts.append((SceneObject(item.id, name, class_id, found, pose), item.region))
    last = max(item.id for item in annotations)
    if rest := _select_faces(UNASSIGNED, meshes, owners):
        parts.append((SceneObject(last + 1, 'unannotated', UNLABELLED, rest, pose), -1))
    boxes: dict[int, list[AxisAlignedBox]] = {}
    for part, region in parts:
        if region >= 0:
            boxes.setdefault(region, []).append(part.box)
    rooms = {
        region: Room(i, f'room {region}', 'room', AxisAlignedBox.holding(boxes[region]))
        for i, region in enumerate(sorted(boxes), start=last + 2)
    }
    ids = {region: room.id for region, room in rooms.items()}
    objects = [_with_sizes(part, ids.get(region)) for part, region in parts]
    return Stage(tuple(objects), labels, tuple(rooms.values()))


def _select_faces(instance: int, meshes: Sequence[Mesh], owners: list[Any]) -> tuple[Mesh, ...]:
    chosen = ((mesh, owner == instance) for mesh, owner in zip(meshes, owners, strict=True))
    return tuple(select_faces(mesh, faces) for mesh, faces in chosen if faces.any())


def _with_sizes(item: SceneObject, room_id: int | None = None) -> SceneObject:
    return replace(item, attributes=measure_sizes(item), room_id=room_id)


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
            _make_annotation(row, f'{path}:{i + 2}')
            for i, row in enumerate(csv.reader(lines[1:], skipinitialspace=True))
            if row
        ]
    for what in ('id', 'color'):
        counts = Counter(getattr(item, what) for item in found)
        if len(counts) < len(found):
            twice = counts.most_common(1)[0][0]
            raise SceneError(f'{path}: {what} {twice} occurs more than once')
    return tuple(found)


def _make_annotation(row: Sequence[str], where: str) -> Annotation:
    line = ','.join(row)
    with errors_as(SceneError, f'{where}: "{line}" is not id,RRGGBB,"name",region', ValueError):
        instance, color, name, region = (part.strip() for part in row)
        found = Annotation(int(instance), int(color, 16), normalised_name(name), int(region))
    if found.id < 1 or not 0 <= found.color <= 0xFFFFFF:
        raise SceneError(f'{where}: ids begin at 1, colours are six hexadecimal digits')
    if not found.name:
        raise SceneError(f'{where}: instance {found.id} has no name')
    return found


def find_face_instances(
    meshes: Sequence[Mesh], path: Path, annotations: Sequence[Annotation]
) -> list[NDArray[np.int64]]:
    """Return the instance of each face, an array a mesh, UNASSIGNED where no annotation has it."""
    from scipy.spatial import cKDTree

    centers, owners = _read_paint(path, annotations)
    tree = cKDTree(centers)
    found = []
    for mesh in meshes:
        distance, nearest = tree.query(mesh.vertices[mesh.faces].mean(axis=1))
        found.append(np.where(distance <= TRANSFER_M, owners[nearest], UNASSIGNED))
    return found


def _read_paint(
    path: Path, annotations: Sequence[Annotation]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    colors = np.array(sorted((item.color, item.id) for item in annotations)).reshape(-1, 2)
    centers = []
    owners = []
    for mesh, vertex_colors in load_painted_meshes(path):
        paint = _sample_paint(mesh, vertex_colors)
        codes = (paint.astype(np.int64) * [0x10000, 0x100, 1]).sum(axis=-1)
        index = np.minimum(np.searchsorted(colors[:, 0], codes), len(colors) - 1)
        known = colors[index, 0] == codes
        votes = np.where(known, colors[index, 1], UNASSIGNED)
        centers.append(mesh.vertices[mesh.faces].mean(axis=1))
        owners.append(_find_majority(votes))
    if not any((part != UNASSIGNED).any() for part in owners):
        raise SceneError(f'{path} has none of the colours of its semantic text')
    return np.concatenate(centers), np.concatenate(owners)


def _sample_paint(mesh: Mesh, vertex_colors: NDArray[np.uint8] | None) -> NDArray[np.uint8]:
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
    row = np.floor(uv[..., 1] * height)
    column = np.floor(uv[..., 0] * width)
    return np.asarray(texture[row.astype(int) % height, column.astype(int) % width])


def _find_majority(votes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the most frequent instance of every row; a claim beats none."""
    count = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
    count = np.where(votes == UNASSIGNED, 0, count)
    return np.asarray(votes[np.arange(len(votes)), count.argmax(axis=1)])
