"""The exact scene graph of a scene."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Light, LightKind, Room, Scene, SceneObject
from osmabench_ros.scenes.visibility import label_points, sample_object
from osmabench_ros.semantics.cloud import LabelledCloud, joined
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.relations import derive_relations
from osmabench_ros.semantics.scene_graph import (
    AttributeValue,
    NodeKind,
    SceneGraph,
    SceneNode,
    ScoredLabel,
)

# Densities of the surface points that the relations are derived from.
THING_POINTS_PER_M2 = 4000.0
STRUCTURE_POINTS_PER_M2 = 1500.0


# World points and normals, both (N, 3), of objects by instance id.
Surfaces = Mapping[int, tuple[NDArray[np.float32], NDArray[np.float32]]]


def sample_object_surfaces(scene: Scene) -> Surfaces:
    """Draw the points on all objects that relations are derived from."""
    return {
        item.instance_id: sample_object(
            item, _compute_density(scene, item), np.random.default_rng([0, item.instance_id])
        )
        for item in scene.objects
    }


def build_ground_truth_graph(scene: Scene, surfaces: Surfaces | None = None) -> SceneGraph:
    """Build the scene graph of a scene from its meshes, one node per object, id = instance id."""
    nodes = [make_object_node(scene, item) for item in scene.objects]
    for room in scene.rooms:
        label = (ScoredLabel(room.label, 1.0),)
        nodes.append(SceneNode(room.id, NodeKind.ROOM, label, box=room.box, source_id=room.name))
    known = sample_object_surfaces(scene) if surfaces is None else surfaces
    points = {key: points for key, (points, _) in known.items()}
    return SceneGraph(tuple(nodes), derive_relations(nodes, surfaces=points))


# Points of an object that are enough to find which part of it is visible.
PROBES = 4000


def sample_visibility_probes(
    scene: Scene, surfaces: Surfaces, points_per_m2: float
) -> LabelledCloud:
    """Return surfaces thinned to PROBES points per object, or `points_per_m2` where that is more.

    The points of an object come in random order, so that the first of them are spread evenly.
    """
    parts = []
    for item in scene.objects:
        points, normals = surfaces[item.instance_id]
        least = round(len(points) * min(1.0, points_per_m2 / _compute_density(scene, item)))
        count = min(len(points), max(PROBES, least))
        parts.append(label_points(item, points[:count], normals[:count]))
    return joined(parts)


def build_graph_of_visible_parts(
    graph: SceneGraph, visible: LabelledCloud, instances: Iterable[int], colors: Mapping[int, str]
) -> SceneGraph:
    """Return the graph that a perfect mapper would make of all that the cameras saw.

    Boxes and relations of the `instances`, and of no others, come from their `visible` points, and
    colours from `colors` where they are known; sizes of whole objects among the attributes are
    left out.
    """
    wanted = frozenset(instances)
    surfaces = {key: visible.points[visible.instances == key] for key in sorted(wanted)}
    nodes = [
        replace(
            node,
            box=AxisAlignedBox.around(surfaces[node.id]),
            oriented_box=None,
            attributes={
                key: colors.get(node.id, value) if key == 'color' else value
                for key, value in node.attributes.items()
                if not key.endswith('_m')
            },
        )
        if node.id in wanted
        else node
        for node in graph.nodes
        if node.id in wanted or node.kind is NodeKind.ROOM
    ]
    edges = derive_relations(nodes, surfaces=surfaces, occluded=True)
    return SceneGraph(tuple(nodes), edges, graph.frame_id)


def make_object_node(scene: Scene, item: SceneObject) -> SceneNode:
    """Return the node of an object: its class, attributes and boxes."""
    label = ScoredLabel(scene.class_name(item), 1.0, item.class_id)
    return SceneNode(
        id=item.instance_id,
        kind=NodeKind.BACKGROUND if is_structure(scene, item) else NodeKind.OBJECT,
        labels=() if item.class_id == UNLABELLED else (label,),
        attributes=dict(item.attributes),
        box=item.box,
        oriented_box=_make_oriented_box(item),
        parent=item.room_id,
        source_id=item.name,
    )


def is_structure(scene: Scene, item: SceneObject) -> bool:
    """Return whether an object is a part of the building, by its class."""
    found = scene.label_set.by_id.get(item.class_id)
    return found is not None and found.structure


def _compute_density(scene: Scene, item: SceneObject) -> float:
    return STRUCTURE_POINTS_PER_M2 if is_structure(scene, item) else THING_POINTS_PER_M2


def _make_oriented_box(item: SceneObject) -> OrientedBox:
    """Return the box along the axes of the object's own frame."""
    local = _find_local_box(item)
    return OrientedBox(Pose(item.pose.rotation, item.pose.transform(local.center)), local.size)


def find_room_of(item: SceneObject, rooms: Sequence[Room]) -> int | None:
    """Return the id of the smallest room that holds the centre of an object, if any."""
    return find_room_at(item.box.center, rooms)


def find_room_at(point_m: NDArray[np.float64], rooms: Sequence[Room]) -> int | None:
    """Return the id of the smallest room that holds a point (3,) of the world, if any."""
    holding = [room for room in rooms if room.box.contains(point_m, margin_m=0.05)]
    return min(holding, key=lambda room: (room.box.volume, room.id)).id if holding else None


def assign_rooms_to_lights(lights: Sequence[Light], rooms: Sequence[Room]) -> tuple[Light, ...]:
    """Return lights with the rooms they hang in; those without a place are in none."""
    return tuple(
        light
        if light.attached_to_camera or light.kind is LightKind.DIRECTIONAL
        else replace(light, room_id=find_room_at(np.array(light.position), rooms))
        for light in lights
    )


def measure_sizes(item: SceneObject) -> dict[str, AttributeValue]:
    """Return the extents of an object in its own frame as attributes, metres."""
    sizes = zip(('width_m', 'depth_m', 'height_m'), _find_local_box(item).size, strict=True)
    return {name: round(float(size), 3) for name, size in sizes}


def _find_local_box(item: SceneObject) -> AxisAlignedBox:
    return AxisAlignedBox.around(np.concatenate([mesh.vertices for mesh in item.meshes]))
