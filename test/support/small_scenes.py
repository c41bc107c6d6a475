"""Small scenes with surfaces at known places, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.axes import optical_pose_in_link
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.lights import Light
from osmabench_ros.scenes.scene import Material, Mesh, Scene, SceneObject
from osmabench_ros.semantics.labels import LabelSet

LABELS = LabelSet.from_names('test', ['ball', 'box', 'floor', 'wall'], structure=['floor', 'wall'])

CAMERA = Intrinsics.from_hfov(160, 120, 1.4)


def box_mesh(size: Sequence[float], material: Material | None = None) -> Mesh:
    """Return a box about the origin whose faces show the whole texture, upright on the sides."""
    vertices, normals, uv, faces = [], [], [], []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            normal = np.eye(3)[axis] * sign
            up = np.eye(3)[1 if axis == 2 else 2]
            right = np.cross(up, normal)
            start = len(vertices)
            for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
                vertices.append((normal + a * right + b * up) / 2 * size)
                normals.append(normal)
                uv.append(((a + 1) / 2, (1 - b) / 2))
            faces += [(start, start + 1, start + 2), (start, start + 2, start + 3)]
    return Mesh(
        np.array(vertices, np.float32),
        np.array(faces, np.int32),
        np.array(normals, np.float32),
        np.array(uv, np.float32),
        material or Material(),
    )


def box_object(
    instance_id: int,
    label: str,
    minimum: Sequence[float],
    maximum: Sequence[float],
    material: Material | None = None,
) -> SceneObject:
    """Return an object that is a box between two corners in the world."""
    low, high = np.array(minimum, float), np.array(maximum, float)
    pose = Pose(np.eye(3), (low + high) / 2)
    mesh = box_mesh((high - low).tolist(), material)
    return SceneObject(instance_id, f'{label}_{instance_id}', LABELS.id_of(label), (mesh,), pose)


def room_scene(
    lights: tuple[Light, ...] = (Light('ceiling', position=(0.0, 0.0, 2.3), intensity=3.0),),
    extra: tuple[SceneObject, ...] = (),
    wall: Material | None = None,
) -> Scene:
    """Return a room of 6 m x 4 m x 2.5 m about the origin with a table and a box on it.

    The inner faces of the walls are at x = -3 and 3, y = -2 and 2; the floor is at z = 0.
    """
    objects = (
        box_object(1, 'floor', (-3, -2, -0.1), (3, 2, 0), Material((0.6, 0.5, 0.4))),
        box_object(2, 'wall', (3, -2.1, 0), (3.1, 2.1, 2.5), wall),
        box_object(3, 'wall', (-3.1, -2.1, 0), (-3, 2.1, 2.5)),
        box_object(4, 'wall', (-3, 2, 0), (3, 2.1, 2.5)),
        box_object(5, 'wall', (-3, -2.1, 0), (3, -2, 2.5)),
        box_object(6, 'box', (0.6, -0.5, 0.0), (1.4, 0.5, 0.7), Material((0.3, 0.5, 0.8))),
        box_object(7, 'box', (0.9, -0.1, 0.7), (1.1, 0.1, 0.9), Material((0.9, 0.2, 0.2))),
        *extra,
    )
    return Scene('test', 'room', LABELS, objects, lights=lights, ambient=0.1)


def camera_at(x: float, y: float, z: float, yaw_rad: float = 0.0) -> Pose:
    """Return the optical pose of a level camera that looks along the heading."""
    return Pose.from_yaw(yaw_rad, (x, y, z)) @ optical_pose_in_link()


def stripes(colors: NDArray[np.uint8], height: int = 4) -> NDArray[np.uint8]:
    """Return a texture whose columns have the given colours (N, 3)."""
    return np.repeat(colors[None], height, axis=0)


STOREY_M, RAMP_RUN_M = 2.8, 8.0
"""Height and length in plan of the ramp of `ramp_house`, which begins at x = 1."""

STEPS = 16


def ramp_house() -> Scene:
    """Return two floors of 10 m x 6 m, z = 0 and STOREY_M, and a ramp where y > 4.7.

    The ramp rises from x = 1 to x = 9; the upper floor is open above it, and a wall on each floor
    stands in the way.
    """
    ramp = Mesh(
        np.array([(1, 4.7, 0), (9, 4.7, STOREY_M), (9, 6, STOREY_M), (1, 6, 0)], np.float32),
        np.array([(0, 1, 2), (0, 2, 3)], np.int32),
        np.tile(
            np.array([-STOREY_M, 0, RAMP_RUN_M]) / np.hypot(STOREY_M, RAMP_RUN_M), (4, 1)
        ).astype(np.float32),
        np.array([(0, 0), (1, 0), (1, 1), (0, 1)], np.float32),
    )
    low, high = STOREY_M - 0.1, STOREY_M
    objects = (
        box_object(1, 'floor', (0, 0, -0.1), (10, 6, 0)),
        box_object(2, 'floor', (0, 0, low), (10, 4.7, high)),
        box_object(3, 'floor', (9, 4.7, low), (10, 6, high)),
        SceneObject(4, 'ramp', LABELS.id_of('floor'), (ramp,)),
        box_object(5, 'wall', (4, 1.5, 0), (4.1, 4.7, low)),
        box_object(6, 'wall', (6, 0, high), (6.1, 3.0, high + 2.5)),
        box_object(7, 'floor', (0, 0, high + 2.5), (10, 6, high + 2.6)),
    )
    return Scene('test', 'ramp_house', LABELS, objects, lights=())


def stair_house() -> Scene:
    """Return `ramp_house` with sixteen steps in place of its ramp."""
    house, rise_m, run_m = ramp_house(), STOREY_M / STEPS, RAMP_RUN_M / STEPS
    steps = [
        box_object(
            10 + i, 'floor', (1 + i * run_m, 4.7, 0), (1 + (i + 1) * run_m, 6, (i + 1) * rise_m)
        )
        for i in range(STEPS)
    ]
    rest = [item for item in house.objects if item.name != 'ramp']
    return replace(house, name='stair_house', objects=(*rest, *steps))


def ramp_house_grounds_m(x: float, y: float) -> tuple[float, float]:
    """Return the heights of both surfaces of `ramp_house` at a place, the lower one first."""
    if y > 4.7:
        return 0.0, float(np.clip((x - 1) / RAMP_RUN_M, 0, 1)) * STOREY_M
    return 0.0, STOREY_M
