"""Which room an object or light of a loaded scene is in, and how large objects are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.scenes.lights import Light, LightKind
from osmabench_ros.scenes.scene import Room, SceneObject
from osmabench_ros.semantics.scene_graph import AttributeValue


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
