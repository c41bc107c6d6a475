"""What carries a thing in a scene, and what it runs into."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.scenes.ground_truth import is_structure, object_node, object_surfaces
from osmabench_ros.scenes.scene import Scene, SceneObject
from osmabench_ros.scenes.visibility import RayCaster
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.relations import derive_relations
from osmabench_ros.semantics.scene_graph import RelationType

TOUCH_M = 0.01
"""Surfaces may reach this far into each other: things that stand on a rug, or lie on a cushion."""

_FIRMNESS = {RelationType.ON.value: 2, RelationType.IN.value: 2, RelationType.ATTACHED_TO.value: 1}


def holders(scene: Scene, places: Iterable[AxisAlignedBox]) -> dict[int, tuple[int, int]]:
    """Return for things near some places how firmly they are held, 1 or 2, and by what.

    2 stands for on or in another thing, 1 for attached to one; the relations are those of the
    scene graph. Things that nothing holds are left out, as are parts of the building.
    """
    boxes = list(places)
    near = tuple(
        item for item in scene.objects if any(item.box.distance_to(box) < 0.1 for box in boxes)
    )
    if not near:
        return {}
    part = replace(scene, objects=near)
    surfaces = {key: points for key, (points, _) in object_surfaces(part).items()}
    nodes = [object_node(part, item) for item in near]
    held: dict[int, tuple[int, int]] = {}
    for edge in derive_relations(nodes, surfaces=surfaces):
        firmness = _FIRMNESS.get(edge.type, 0)
        if firmness > held.get(edge.source, (0, 0))[0]:
            held[edge.source] = (firmness, edge.target)
    return held


def doubtful_things(scene: Scene) -> dict[str, tuple[SceneObject, ...]]:
    """Return things by what is doubtful about them: no class, no room, nothing that holds them."""
    things = [item for item in scene.objects if not is_structure(scene, item)]
    held = holders(scene, (scene.box,))
    found = {
        'without a class': [item for item in things if item.class_id == UNLABELLED],
        'in no room': [item for item in things if item.room_id is None] if scene.rooms else [],
        'held by nothing, as if they floated': [
            item for item in things if item.instance_id not in held
        ],
    }
    return {what: tuple(items) for what, items in found.items() if items}


def carried_by(scene: Scene, item: SceneObject) -> tuple[SceneObject, ...]:
    """Return what stands on, lies in or hangs at a thing, directly or over others."""
    found: dict[int, SceneObject] = {item.instance_id: item}
    held = holders(scene, (item.box,))
    grown = True
    while grown:
        taken = [key for key, (_, by) in held.items() if by in found and key not in found]
        found |= {key: scene.by_instance[key] for key in taken}
        grown = bool(taken)
        if grown:
            held |= holders(scene, (scene.by_instance[key].box for key in taken))
    return tuple(found.values())[1:]


def collision(scene: Scene, item: SceneObject, without: Collection[int]) -> SceneObject | None:
    """Return a thing that one runs into, None if it is free; `without` are no obstacles.

    Two things collide if an edge of one passes a face of the other after the first was shrunk by
    TOUCH_M on every side, or if one lies within the other, unless that is part of the building.
    """
    probe = _shrunk(item)
    single = RayCaster(replace(scene, objects=(probe,)))
    for other in scene.objects:
        skipped = other.instance_id == item.instance_id or other.instance_id in without
        if skipped or not probe.box.intersection_volume(other.box) > 0:
            continue
        caster = RayCaster(replace(scene, objects=(other,)))
        if _passes(probe, caster, other.box) or _passes(other, single, probe.box):
            return other
        solid = other.class_id != UNLABELLED and not is_structure(scene, other)
        if (solid and _within(probe, other, caster)) or _within(other, probe, single):
            return other
    return None


def _shrunk(item: SceneObject) -> SceneObject:
    box = item.box
    factor = np.maximum(1.0 - 2 * TOUCH_M / np.maximum(box.size, 1e-6), 0.2)
    points = (item.world_vertices - box.center) * factor + box.center
    local = item.pose.inverse().transform(points)
    counts = np.cumsum([len(mesh.vertices) for mesh in item.meshes])[:-1]
    parts = np.split(local.astype(np.float32), counts)
    meshes = tuple(
        replace(mesh, vertices=part) for mesh, part in zip(item.meshes, parts, strict=True)
    )
    return replace(item, meshes=meshes)


def _passes(item: SceneObject, caster: RayCaster, where: AxisAlignedBox) -> bool:
    """Return whether an edge of a thing near a box passes a face of another."""
    start, along = _edges(item)
    low, high = np.minimum(start, start + along), np.maximum(start, start + along)
    near = ((low <= where.maximum) & (high >= where.minimum)).all(axis=1)
    if not near.any():
        return False
    return bool((caster.distances(start[near], along[near]) < 1.0).any())


def _edges(item: SceneObject) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return starts and directions (N, 3) of the edges of all triangles, once each."""
    faces = item.world_faces
    pairs = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    ends = item.world_vertices[np.unique(np.sort(pairs, axis=1), axis=0)]
    along = ends[:, 1] - ends[:, 0]
    real = np.linalg.norm(along, axis=1) > 1e-7
    return ends[real, 0], along[real]


def _within(inner: SceneObject, outer: SceneObject, caster: RayCaster) -> bool:
    """Return whether a thing that passes no face of another lies within its closed surface."""
    boxed = outer.box.contains(np.stack([inner.box.minimum, inner.box.maximum])).all()
    return bool(boxed) and bool(caster.encloses(inner.world_vertices[:1])[0])
