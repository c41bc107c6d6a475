"""Scene folders: a mesh file, and a manifest, `scene.json`, that describes its nodes.

`up` and `unit_m` describe the mesh file. Everything else in the manifest is in the z-up world,
metres and radians.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError, SceneError, choose, errors_as, suggestion
from osmabench_ros.geometry.axes import WORLD_FROM_HABITAT
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.scenes import assets
from osmabench_ros.scenes.asset_files import locate_file_within
from osmabench_ros.scenes.ground_truth import find_room_of, measure_sizes
from osmabench_ros.scenes.scene import Light, LightKind, Mesh, Room, Scene, SceneObject, Triple
from osmabench_ros.semantics.labels import (
    UNLABELLED,
    LabelClass,
    LabelSet,
    is_structure,
    normalised_name,
)

FORMAT = 'osmabench.scene/1'
MANIFEST = 'scene.json'

# Largest id that instance images hold.
MAX_INSTANCE = 2**31 - 1


class ManifestClass(Strict):
    """A class of the label set."""

    id: int
    name: str
    structure: bool | None = None


class ManifestNode(Strict):
    """The class and attributes of a node of the mesh file, with all nodes below it.

    Without `class` it is unlabelled, without `instance` it gets the next free id. Nodes with one
    `instance` are one object, with the class, the room and the attributes that some of them have.
    """

    class_name: str = Field('', alias='class')
    instance: int | None = Field(None, ge=1, le=MAX_INSTANCE)
    attributes: dict[str, str | float | bool] = Field(default_factory=dict)
    room: str = ''


class ManifestRoom(Strict):
    """A room and its box."""

    name: str
    label: str = ''
    id: int | None = Field(None, ge=1)
    min: Triple
    max: Triple


class ManifestLight(Strict):
    """A light of the scene; its fields are the fields of `Light`, but for the name of its room."""

    name: str
    kind: LightKind = LightKind.POINT
    position: Triple = (0.0, 0.0, 0.0)
    direction: Triple = (0.0, 0.0, -1.0)
    color: Triple = (1.0, 1.0, 1.0)
    intensity: float = 1.0
    spot_half_angle_rad: float = math.pi / 4
    lamp: bool = True
    room: str = ''


class Manifest(Strict):
    """Content of `scene.json`; without `classes`, names of nodes are numbered by alphabet."""

    format: Literal['osmabench.scene/1'] = 'osmabench.scene/1'
    dataset: str = 'folder'
    name: str
    file: str
    up: Literal['y', 'z'] = 'y'
    unit_m: float = Field(1.0, gt=0)
    classes: tuple[ManifestClass, ...] = ()
    nodes: dict[str, ManifestNode]
    rooms: tuple[ManifestRoom, ...] = ()
    lights: tuple[ManifestLight, ...] = ()
    ambient: float = Field(0.1, ge=0)
    left_out: tuple[str, ...] = ()


def load_scene_folder(path: Path) -> Scene:
    """Load a scene folder by its path or its manifest's; SceneError names a wrong key or node."""
    manifest_path = path / MANIFEST if path.is_dir() else path
    data = read_json(manifest_path, SceneError)
    manifest = validated(Manifest, data, str(manifest_path), SceneError)
    folder = manifest_path.parent
    mesh_path = locate_file_within(folder, manifest.file, folder, str(manifest_path))
    nodes = assets.load_nodes(mesh_path)
    labels = _label_set(manifest, manifest_path)
    rooms = _read_rooms(manifest, manifest_path)
    contents = (read_bytes(file, SceneError) for file in (manifest_path, mesh_path))
    digest = hashlib.sha256(b''.join(contents))
    groups = _group_objects(nodes, manifest, manifest_path, mesh_path)
    return Scene(
        manifest.dataset,
        manifest.name,
        labels,
        _make_objects(groups, manifest, labels, rooms, manifest_path),
        tuple(rooms.values()),
        tuple(_make_light(item, rooms, manifest_path) for item in manifest.lights),
        manifest.ambient,
        digest.hexdigest(),
        left_out=manifest.left_out,
    )


def _label_set(manifest: Manifest, path: Path) -> LabelSet:
    with errors_as(SceneError, f'{path}: classes', ConfigError):
        if not manifest.classes:
            names = {normalised_name(node.class_name) for node in manifest.nodes.values()} - {''}
            return LabelSet.from_names(manifest.dataset, names, filter(is_structure, names))
        classes = []
        for item in manifest.classes:
            name = normalised_name(item.name)
            structure = is_structure(name) if item.structure is None else item.structure
            classes.append(LabelClass(item.id, name, structure))
        return LabelSet(manifest.dataset, tuple(classes))


def _read_rooms(manifest: Manifest, path: Path) -> dict[str, Room]:
    taken = {node.instance for node in manifest.nodes.values()} | {r.id for r in manifest.rooms}
    next_id = max((value for value in taken if value), default=0) + len(manifest.nodes) + 1
    rooms: dict[str, Room] = {}
    for i, item in enumerate(manifest.rooms):
        if item.name in rooms:
            raise SceneError(f'{path}: room "{item.name}" occurs more than once')
        with errors_as(SceneError, f'{path}: rooms.{i}', ValueError):
            box = AxisAlignedBox(np.array(item.min), np.array(item.max))
        room_id = next_id + i if item.id is None else item.id
        rooms[item.name] = Room(room_id, item.name, item.label or item.name, box)
    return rooms


@dataclass
class _Group:
    """The meshes of an object, its entry in the manifest, and the node above it."""

    entry: ManifestNode
    meshes: list[Mesh] = field(default_factory=list)
    parent: str = ''


def _group_objects(
    nodes: tuple[assets.AssetNode, ...], manifest: Manifest, path: Path, mesh_path: Path
) -> dict[str, _Group]:
    """Return the objects by manifest node; other nodes are objects under their own names."""
    groups = {name: _Group(entry) for name, entry in manifest.nodes.items()}
    unsaid = ManifestNode.model_validate({})
    parents = assets.find_parents(nodes, list(manifest.nodes))
    for node, parent in zip(nodes, parents, strict=True):
        name = next((item for item in node.names if item in manifest.nodes), node.names[0])
        group = groups.setdefault(name, _Group(unsaid))
        group.meshes += node.meshes
        group.parent = parent
    empty = [name for name, group in groups.items() if not group.meshes]
    if empty:
        # Meshes of a node are numbered below it: "Mug/0".
        choices = {name for node in nodes for name in node.names if '/' not in name} or {
            name for node in nodes for name in node.names
        }
        problem = f'{mesh_path.name} has no triangles below a node "{empty[0]}"'
        raise SceneError(f'{path}: nodes: {problem}. {suggestion(empty[0], choices)}')
    return _with_shared_instances(groups, path)


def _with_shared_instances(groups: dict[str, _Group], path: Path) -> dict[str, _Group]:
    """Return one object for the nodes that share an instance, under the name of the first."""
    first: dict[int, str] = {}
    found: dict[str, _Group] = {}
    for name, group in groups.items():
        own = first.setdefault(group.entry.instance, name) if group.entry.instance else name
        if own == name:
            found[name] = group
            continue
        one, other = found[own].entry, group.entry
        said = {item.class_name for item in (one, other)} - {''}
        if len(said) > 1:
            nodes = f'"{own}" and "{name}" have instance {one.instance} and are one object'
            classes = f'their classes are {" and ".join(sorted(said))}'
            raise SceneError(f'{path}: nodes: {nodes}, but {classes}')
        entry = one.model_copy(
            update={
                'class_name': ''.join(said),
                'room': one.room or other.room,
                'attributes': {**other.attributes, **one.attributes},
            }
        )
        found[own] = _Group(entry, found[own].meshes + group.meshes, found[own].parent)
    return found


def _make_objects(
    groups: Mapping[str, _Group],
    manifest: Manifest,
    labels: LabelSet,
    rooms: Mapping[str, Room],
    path: Path,
) -> tuple[SceneObject, ...]:
    axes = WORLD_FROM_HABITAT if manifest.up == 'y' else np.eye(3)
    taken = {node.instance for node in manifest.nodes.values()} | {r.id for r in rooms.values()}
    free = (i for i in range(1, len(groups) + len(taken) + 2) if i not in taken)
    objects = []
    for name, group in groups.items():
        entry = group.entry
        where = f'{path}: nodes: "{name}"'
        if entry.room:
            choose(entry.room, rooms, SceneError, f'{where}: no room "{entry.room}"')
        class_id = labels.id_of(entry.class_name) if entry.class_name else UNLABELLED
        if entry.class_name and class_id == UNLABELLED:
            hint = suggestion(entry.class_name, [item.name for item in labels.classes])
            raise SceneError(f'{where}: class "{entry.class_name}" is not in "classes". {hint}')
        placed = [assets.map_linearly(mesh, axes * manifest.unit_m) for mesh in group.meshes]
        local, pose = assets.center_meshes(placed)
        item = SceneObject(entry.instance or next(free), name, class_id, local, pose)
        room_id = rooms[entry.room].id if entry.room else find_room_of(item, list(rooms.values()))
        attributes = {**measure_sizes(item), **entry.attributes}
        objects.append(replace(item, attributes=attributes, room_id=room_id, parent=group.parent))
    return tuple(sorted(objects, key=lambda item: item.instance_id))


def _make_light(item: ManifestLight, rooms: Mapping[str, Room], path: Path) -> Light:
    if item.room:
        problem = f'{path}: lights: "{item.name}": no room "{item.room}"'
        choose(item.room, rooms, SceneError, problem)
    room_id = rooms[item.room].id if item.room else None
    return Light(**item.model_dump(exclude={'room'}), room_id=room_id)
