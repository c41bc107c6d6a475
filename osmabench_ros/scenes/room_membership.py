"""Which room an object of a loaded scene is in, and how large it is."""

from __future__ import annotations

from collections.abc import Sequence

from osmabench_ros.scenes.scene import Room, SceneObject
from osmabench_ros.semantics.scene_graph import AttributeValue


def room_of(item: SceneObject, rooms: Sequence[Room]) -> int | None:
    """Return the id of the smallest room that holds the centre of an object, if any."""
    holding = [room for room in rooms if room.box.contains(item.box.center, margin_m=0.05)]
    return min(holding, key=lambda room: (room.box.volume, room.id)).id if holding else None


def sizes_of(item: SceneObject) -> dict[str, AttributeValue]:
    """Return the extents of an object in its own frame as attributes, metres."""
    low = [float(min(mesh.vertices[:, axis].min() for mesh in item.meshes)) for axis in range(3)]
    high = [float(max(mesh.vertices[:, axis].max() for mesh in item.meshes)) for axis in range(3)]
    names = ('width_m', 'depth_m', 'height_m')
    return {name: round(b - a, 3) for name, a, b in zip(names, low, high, strict=True)}
