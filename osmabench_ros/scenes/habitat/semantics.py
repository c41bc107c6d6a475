"""Semantic scene descriptors, and what our own export adds to data sets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError, SceneError, errors_as
from osmabench_ros.geometry.axes import points_from_habitat
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.scenes.scene import Room
from osmabench_ros.scenes.scene_files import number, read_object, vector
from osmabench_ros.semantics.labels import (
    UNLABELLED,
    LabelClass,
    LabelSet,
    is_structure,
    is_unnamed,
    normalised_name,
)

ADDED = 'osmabench'
"""Key below `user_defined`, which Habitat leaves alone, of what its format has no place for."""


class Added(Strict):
    """What our export adds to an object instance, a region or a scene instance."""

    instance_id: int | None = Field(None, ge=1)
    room_id: int | None = Field(None, ge=1)
    attributes: dict[str, str | float | bool] = Field(default_factory=dict)
    ambient: float = Field(0.1, ge=0)
    left_out: tuple[str, ...] = ()


def added_to(entry: Mapping[str, Any], where: str) -> Added:
    """Return what our export has added to an entry, the defaults for those of others."""
    own = entry.get('user_defined')
    found = own.get(ADDED, {}) if isinstance(own, dict) else {}
    return validated(Added, found, f'{where}: user_defined.{ADDED}', SceneError)


def read_label_set(path: Path | None, name: str) -> LabelSet:
    """Read the classes of a semantic scene descriptor, names made unique, without 'unknown'."""
    if path is None:
        return LabelSet(name, ())
    classes, seen = [], set()
    for class_id, (raw, said) in sorted(_entries(read_object(path), path).items()):
        if is_unnamed(raw) and (class_id == 0 or raw):
            continue
        label = normalised_name(raw)
        unique = label if label not in seen else f'{label} {class_id}'
        seen.add(unique)
        with errors_as(SceneError, str(path), ConfigError):
            structure = is_structure(label) if said is None else said
            classes.append(LabelClass(class_id, unique, structure))
    return LabelSet(name, tuple(classes))


def _entries(data: Mapping[str, Any], path: Path) -> dict[int, tuple[str, bool | None]]:
    """Return by id names and, where our export says it, whether the class is structure.

    The file holds a list of classes, or a plain name -> id mapping.
    """
    listed = data.get('classes', data.get('categories'))
    if listed is None and 'region_annotations' in data:
        return {}  # regions alone
    if listed is None and all(isinstance(value, int) for value in data.values()):
        listed = [{'id': value, 'name': key} for key, value in data.items()]
    if not isinstance(listed, list):
        raise SceneError(f'{path}: "classes" must be a list of {{"id", "name"}}')
    entries: dict[int, tuple[str, bool | None]] = {}
    for i, item in enumerate(listed):
        if not isinstance(item, dict) or not isinstance(item.get('id'), int):
            raise SceneError(f'{path}: classes[{i}] has no integer "id"')
        if item['id'] in entries:
            raise SceneError(f'{path}: class id {item["id"]} occurs more than once')
        name = item.get('name')
        if not isinstance(name, str) or not name.strip():
            raise SceneError(f'{path}: class id {item["id"]} has no name; add "name"')
        said = item.get('structure')
        entries[item['id']] = name, said if isinstance(said, bool) else None
    return entries


def class_id_of(semantic_id: int, labels: LabelSet, what: str, source: str) -> int:
    """Return an object's class id, UNLABELLED for 0 unless that is one; else SceneError."""
    if semantic_id == 0 and 0 not in labels.by_id:
        return UNLABELLED
    if not 0 <= semantic_id < UNLABELLED:
        raise SceneError(
            f'{source}: {what} has semantic id {semantic_id}; ids must lie in 0 to '
            f'{UNLABELLED - 1} to fit into 16-bit semantic images'
        )
    if semantic_id not in labels.by_id:
        raise SceneError(
            f'{source}: {what} has semantic id {semantic_id}, which has no name; '
            'add it to the semantic scene descriptor'
        )
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
        room_id = added_to(item, where).room_id or first_id + i
        rooms.append(Room(room_id, name, label, _region_box(item, where)))
    return tuple(rooms)


def _region_box(item: Mapping[str, Any], where: str) -> AxisAlignedBox:
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
    return AxisAlignedBox.around(points_from_habitat(np.array(corners)))
