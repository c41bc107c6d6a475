"""The exact scene graph of a scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.lights import Light, LightKind
from osmabench_ros.scenes.scene import Room, Scene, SceneObject
from osmabench_ros.scenes.visibility import sample_object
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.relations import derive_relations
from osmabench_ros.semantics.scene_graph import (
    AttributeValue,
    NodeKind,
    SceneGraph,
    SceneNode,
    ScoredLabel,
)

THING_POINTS_PER_M2 = 4000.0
STRUCTURE_POINTS_PER_M2 = 1500.0
"""Densities of the surface points that the relations are derived from."""


def ground_truth_graph(scene: Scene) -> SceneGraph:
    """Build the scene graph of a scene from its meshes, one node an object, id = instance id."""
    nodes = [object_node(scene, item) for item in scene.objects]
    nodes += [room_node(room) for room in scene.rooms]
    surfaces = {
        item.instance_id: sample_object(item, _density(scene, item), _rng(item))[0]
        for item in scene.objects
    }
    return SceneGraph(tuple(nodes), derive_relations(nodes, surfaces=surfaces))


def object_node(scene: Scene, item: SceneObject) -> SceneNode:
    """Return the node of an object: its class, attributes and boxes."""
    known = item.class_id != UNLABELLED
    label = ScoredLabel(scene.class_name(item), 1.0, item.class_id)
    return SceneNode(
        id=item.instance_id,
        kind=NodeKind.BACKGROUND if _is_structure(scene, item) else NodeKind.OBJECT,
        labels=(label,) if known else (),
        attributes=dict(item.attributes),
        box=item.box,
        oriented_box=_oriented_box(item),
        parent=item.room_id,
        source_id=item.name,
    )


def room_node(room: Room) -> SceneNode:
    """Return the node of a room."""
    label = (ScoredLabel(room.label, 1.0),)
    return SceneNode(room.id, NodeKind.ROOM, label, box=room.box, source_id=room.name)


def _is_structure(scene: Scene, item: SceneObject) -> bool:
    found = scene.label_set.by_id.get(item.class_id)
    return found is not None and found.structure


def _density(scene: Scene, item: SceneObject) -> float:
    return STRUCTURE_POINTS_PER_M2 if _is_structure(scene, item) else THING_POINTS_PER_M2


def _rng(item: SceneObject) -> np.random.Generator:
    return np.random.default_rng([0, item.instance_id])


def _oriented_box(item: SceneObject) -> OrientedBox:
    """Return the box along the axes of the object's own frame."""
    low = np.min([mesh.vertices.min(axis=0) for mesh in item.meshes], axis=0).astype(float)
    high = np.max([mesh.vertices.max(axis=0) for mesh in item.meshes], axis=0).astype(float)
    center = item.pose.transform((low + high) / 2)
    return OrientedBox(Pose(item.pose.rotation, center), high - low)


def room_of(item: SceneObject, rooms: Sequence[Room]) -> int | None:
    """Return the id of the smallest room that holds the centre of an object, if any."""
    return room_at(item.box.center, rooms)


def room_at(point_m: NDArray[np.float64], rooms: Sequence[Room]) -> int | None:
    """Return the id of the smallest room that holds a point (3,) of the world, if any."""
    holding = [room for room in rooms if room.box.contains(point_m, margin_m=0.05)]
    return min(holding, key=lambda room: (room.box.volume, room.id)).id if holding else None


def lights_in_rooms(lights: Sequence[Light], rooms: Sequence[Room]) -> tuple[Light, ...]:
    """Return lights with the rooms they hang in; those without a place are in none."""
    return tuple(
        light
        if light.attached_to_camera or light.kind is LightKind.DIRECTIONAL
        else replace(light, room_id=room_at(np.array(light.position), rooms))
        for light in lights
    )


def sizes_of(item: SceneObject) -> dict[str, AttributeValue]:
    """Return the extents of an object in its own frame as attributes, metres."""
    low = [float(min(mesh.vertices[:, axis].min() for mesh in item.meshes)) for axis in range(3)]
    high = [float(max(mesh.vertices[:, axis].max() for mesh in item.meshes)) for axis in range(3)]
    names = ('width_m', 'depth_m', 'height_m')
    return {name: round(b - a, 3) for name, a, b in zip(names, low, high, strict=True)}
