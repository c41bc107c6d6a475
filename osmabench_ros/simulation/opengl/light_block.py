"""Lights in the layout and order the lighting shader wants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.lights import SPOT_INNER_SHARE, Light, Lighting, LightKind
from osmabench_ros.simulation.simulator import MAX_LIGHTS

MAX_SHADOWED_DIRECTIONAL = 4

KIND_CODE = {LightKind.POINT: 0.0, LightKind.DIRECTIONAL: 1.0, LightKind.SPOT: 2.0}

AT_CAMERA_M = 0.05
"""A light this close to the camera sees what the camera sees, so no shadow of it is visible."""

LIGHT = np.dtype(
    [
        ('position', 'f4', 3),
        ('kind', 'f4'),
        ('direction', 'f4', 3),
        ('row', 'f4'),
        ('radiance', 'f4', 3),
        ('unused', 'f4'),
        ('cone', 'f4', 4),
    ]
)
"""One element of the shader's std140 array."""


@dataclass(frozen=True)
class SortedLights:
    """Lights in world coordinates, by how the shader treats them."""

    shadowed: tuple[Light, ...]
    shadowed_directional: tuple[Light, ...]
    unshadowed: tuple[Light, ...]

    @property
    def all(self) -> tuple[Light, ...]:
        """In the order of the shader's loops."""
        return self.shadowed + self.shadowed_directional + self.unshadowed


def sorted_lights(lighting: Lighting, camera_pose: Pose) -> SortedLights:
    """Resolve lights on the camera and sort them by whether they cast visible shadows."""
    shadowed: list[Light] = []
    directional: list[Light] = []
    unshadowed: list[Light] = []
    for light in lighting.lights:
        if light.intensity == 0 or not any(light.color):
            continue
        resolved = in_world(light, camera_pose)
        if not lighting.shadows or _shadows_are_hidden(light):
            unshadowed.append(resolved)
        elif light.kind is not LightKind.DIRECTIONAL:
            shadowed.append(resolved)
        elif len(directional) < MAX_SHADOWED_DIRECTIONAL:
            directional.append(resolved)
        else:
            raise SimulationError(
                f'more than {MAX_SHADOWED_DIRECTIONAL} directional lights cast shadows; '
                'take some away or switch shadows off'
            )
    return SortedLights(tuple(shadowed), tuple(directional), tuple(unshadowed))


def in_world(light: Light, camera_pose: Pose) -> Light:
    """Return the light in world coordinates, its direction a unit vector."""
    position, direction = np.array(light.position), np.array(light.direction)
    if light.attached_to_camera:
        position, direction = camera_pose.transform(position), camera_pose.rotation @ direction
    direction = direction / max(float(np.linalg.norm(direction)), 1e-12)
    return replace(
        light,
        position=tuple(position.tolist()),
        direction=tuple(direction.tolist()),
        attached_to_camera=False,
    )


def light_block(lights: Sequence[Light], rows: Sequence[int]) -> NDArray[np.void]:
    """Return the uniform block: MAX_LIGHTS records, the first ones filled, in the world."""
    block = np.zeros(MAX_LIGHTS, LIGHT)
    block['row'] = -1
    block['row'][: len(rows)] = rows
    for record, light in zip(block, lights, strict=False):
        record['position'], record['kind'] = light.position, KIND_CODE[light.kind]
        record['direction'] = light.direction
        record['radiance'] = np.array(light.color) * light.intensity
        edge = light.spot_half_angle_rad
        record['cone'][:2] = math.cos(edge), math.cos(SPOT_INNER_SHARE * edge)
    return block


def _shadows_are_hidden(light: Light) -> bool:
    if not light.attached_to_camera:
        return False
    return (
        light.kind is LightKind.DIRECTIONAL or math.dist(light.position, (0, 0, 0)) < AT_CAMERA_M
    )
