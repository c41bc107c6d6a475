"""Simple shapes as scene meshes, about the origin, z up."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.scenes import solids
from osmabench_ros.scenes.scene import NEUTRAL, Material, Mesh

SEGMENTS = 24


def box(size: ArrayLike) -> Mesh:
    """Return a cuboid with these edge lengths, metres."""
    return make_mesh(solids.box(size))


def sphere(radius_m: float) -> Mesh:
    """Return a sphere."""
    return make_mesh(solids.ellipsoid(np.full(3, 2 * radius_m), SEGMENTS))


def cylinder(radius_m: float, length_m: float) -> Mesh:
    """Return a cylinder along z."""
    solid = solids.cylinder(radius_m, length_m, segments=SEGMENTS)
    return make_mesh(solid.moved((0, 0, -length_m / 2)))


def capsule(radius_m: float, length_m: float) -> Mesh:
    """Return a cylinder along z with hemispherical ends; `length_m` is without the ends."""
    angle = np.linspace(0, np.pi / 2, SEGMENTS // 4 + 1)
    rise = radius_m * (1 - np.cos(angle))
    reach = radius_m * np.sin(angle)
    half = length_m / 2
    low = [(float(r), float(z - half - radius_m)) for r, z in zip(reach, rise, strict=True)]
    high = [(r, -z) for r, z in reversed(low)]
    return make_mesh(solids.lathe([*low, *high], SEGMENTS))


def make_shape(kind: str, read: Callable[[str, tuple[float, ...]], ArrayLike]) -> Mesh | None:
    """Return a box, sphere, cylinder or capsule; `read` gives lengths by name, with defaults."""
    if kind == 'box':
        return box(read('size', (1.0, 1.0, 1.0)))
    if kind == 'sphere':
        return sphere(float(np.ravel(read('radius', (1.0,)))[0]))
    makers = {'cylinder': cylinder, 'capsule': capsule}
    if kind not in makers:
        return None
    lengths = (read('radius', (0.5,)), read('length', (1.0,)))
    return makers[kind](*(float(np.ravel(length)[0]) for length in lengths))


def plane(size: ArrayLike, normal: ArrayLike = (0.0, 0.0, 1.0)) -> Mesh:
    """Return a rectangle that faces along its normal; texture coordinates in metres."""
    width, depth = np.asarray(size, float)
    z = np.asarray(normal, float) / max(float(np.linalg.norm(normal)), 1e-12)
    side = np.array([1.0, 0, 0]) if abs(z[0]) < 0.9 else np.array([0, 1.0, 0])
    y = np.cross(z, side)
    y /= np.linalg.norm(y)
    x = np.cross(y, z)
    corners: NDArray[np.float64] = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2
    corners = corners * [width, depth]
    return Mesh(
        (corners @ np.stack([x, y])).astype(np.float32),
        np.array([[0, 1, 2], [0, 2, 3]], np.int32),
        np.tile(z, (4, 1)).astype(np.float32),
        corners.astype(np.float32),
    )


def make_mesh(solid: solids.Solid, material: Material = NEUTRAL, tile_m: float = 1.0) -> Mesh:
    """Return a solid as a mesh; textures of its material repeat every `tile_m` metres."""
    return Mesh(
        solid.vertices.astype(np.float32),
        solid.faces.astype(np.int32),
        solid.normals.astype(np.float32),
        (solid.uv_m / tile_m).astype(np.float32),
        material,
    )
