"""Objects of a stage: one without class, or those that HM3D's annotation distinguishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.scenes.assets import submesh
from osmabench_ros.scenes.ground_truth import sizes_of
from osmabench_ros.scenes.habitat.hm3d import (
    UNASSIGNED,
    Annotation,
    annotation_labels,
    face_instances,
    read_annotations,
)
from osmabench_ros.scenes.habitat.semantics import class_id_of
from osmabench_ros.scenes.habitat.templates import Template, Templates, placed
from osmabench_ros.scenes.scene import Mesh, Room, SceneObject
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

ASSET_ORIGIN = 'asset_local'


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
    parts = {
        item.id: found for item in annotations if (found := _faces_of(item.id, meshes, owners))
    }
    by_id = {item.id: item for item in annotations}
    objects = [
        SceneObject(i, f'{by_id[i].name}.{i}', labels.id_of(by_id[i].name), found, pose)
        for i, found in parts.items()
    ]
    last = max(by_id)
    rest = _faces_of(UNASSIGNED, meshes, owners)
    if rest:
        objects.append(SceneObject(last + 1, 'unannotated', UNLABELLED, rest, pose))
    rooms = _regions(objects, by_id, last + 2)
    return Stage(
        tuple(_with_sizes(item, _room_id(item, by_id, rooms)) for item in objects),
        labels,
        tuple(rooms.values()),
    )


def _faces_of(instance: int, meshes: Sequence[Mesh], owners: Sequence[Any]) -> tuple[Mesh, ...]:
    chosen = ((mesh, owner == instance) for mesh, owner in zip(meshes, owners, strict=True))
    return tuple(submesh(mesh, faces) for mesh, faces in chosen if faces.any())


def _regions(
    objects: Sequence[SceneObject], by_id: Mapping[int, Annotation], first_id: int
) -> dict[int, Room]:
    """Return a room a region; its box holds what the region holds."""
    boxes: dict[int, list[AxisAlignedBox]] = {}
    for item in objects:
        if item.instance_id in by_id and by_id[item.instance_id].region >= 0:
            boxes.setdefault(by_id[item.instance_id].region, []).append(item.box)
    return {
        region: Room(first_id + i, f'room {region}', 'room', AxisAlignedBox.holding(found))
        for i, (region, found) in enumerate(sorted(boxes.items()))
    }


def _room_id(
    item: SceneObject, by_id: Mapping[int, Annotation], rooms: Mapping[int, Room]
) -> int | None:
    found = by_id.get(item.instance_id)
    return rooms[found.region].id if found is not None and found.region in rooms else None


def _with_sizes(item: SceneObject, room_id: int | None = None) -> SceneObject:
    return replace(item, attributes=sizes_of(item), room_id=room_id)
