"""The exact scene graph of a scene."""

from __future__ import annotations

import numpy as np

from osmabench_ros.geometry.boxes import OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Room, Scene, SceneObject
from osmabench_ros.scenes.surface import sample_object
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.relations import derive_relations
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode, ScoredLabel

THING_POINTS_PER_M2 = 4000.0
STRUCTURE_POINTS_PER_M2 = 1500.0
"""Densities of the surface points that the relations are derived from."""


def ground_truth_graph(scene: Scene) -> SceneGraph:
    """Build the scene graph of a scene from its meshes, one node an object, id = instance id.

    Parts of the building are of kind BACKGROUND, rooms the parents of what is in them; relations
    are those of `derive_relations`, from points on the meshes.
    """
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
