"""Closed surfaces with outward normals and texture coordinates in metres, and scene meshes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.scenes.scene import NEUTRAL, Material, Mesh

# Neighbouring profile segments are shaded smoothly if the cosine between them exceeds this.
SMOOTH_COS = 0.6

# Of round shapes that scenes name.
SEGMENTS = 24


@dataclass(frozen=True, eq=False)
class Solid:
    """A triangle surface before it gets a finish: (V, 3) metres and outward normals, (F, 3) faces.

    Faces are counter-clockwise seen from outside; `uv_m` (V, 2) are metres along the surface.
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int64]
    normals: NDArray[np.float64]
    uv_m: NDArray[np.float64]

    def moved(self, offset: ArrayLike, rotation: NDArray[np.float64] | None = None) -> Solid:
        """Return a copy that is rotated (3, 3), then shifted (3,)."""
        # Where nothing turns, the sum makes -0.0 to 0.0, as a product would.
        vertices, normals = (
            part + 0.0 if rotation is None else part @ rotation.T
            for part in (self.vertices, self.normals)
        )
        return Solid(vertices + np.asarray(offset, float), self.faces, normals, self.uv_m)


_QUAD = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) / 2
_SIDES = [(axis, sign) for axis in range(3) for sign in (-1.0, 1.0)]
# Of the unit box: corners, their normals, triangles, and the axes that texture runs along.
_CORNERS = np.concatenate(
    [np.roll(np.insert(_QUAD, 0, sign / 2, axis=1), axis, axis=1) for axis, sign in _SIDES]
)
_NORMALS = np.repeat([np.roll([sign, 0.0, 0.0], axis) for axis, sign in _SIDES], 4, axis=0)
_TRIANGLES = {1.0: [(0, 1, 2), (0, 2, 3)], -1.0: [(0, 2, 1), (0, 3, 2)]}
_FACES = np.concatenate([4 * i + np.array(_TRIANGLES[sign]) for i, (_, sign) in enumerate(_SIDES)])
_UV_AXES = np.repeat([[1, 2], [0, 2], [0, 1]], 8, axis=0)


def box(size: ArrayLike, fitted: bool = False) -> Solid:
    """Return a cuboid around the origin; uv in metres, or 0 to 1 over each face if `fitted`."""
    vertices = _CORNERS * np.asarray(size, float)
    uv = np.take_along_axis(_CORNERS + 0.5 if fitted else vertices, _UV_AXES, axis=1)
    return Solid(vertices, _FACES, _NORMALS, uv)


def lathe(profile: ArrayLike, segments: int = 16) -> Solid:
    """Turn a profile of (radius, z), from outside bottom to top, about the z axis."""
    way = np.asarray(profile, float)
    ends = np.stack([way[:-1], way[1:]], axis=1)
    length = np.linalg.norm(np.diff(way, axis=0), axis=1)
    angle = np.linspace(0, 2 * np.pi, segments + 1)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    shape = (len(ends), 2, segments + 1)
    vertices = np.empty((*shape, 3))
    normals = np.empty((*shape, 3))
    for target, source in ((vertices, ends), (normals, _compute_profile_normals(ends, length))):
        target[..., :2] = source[:, :, None, :1] * circle
        target[..., 2] = source[:, :, 1:]
    uv = np.empty((*shape, 2))
    uv[..., 0] = angle * way[:, 0].max()
    distance = np.concatenate([[0.0], np.cumsum(length)])
    uv[..., 1] = np.stack([distance[:-1], distance[1:]], axis=1)[..., None]
    bands = [
        2 * i * (segments + 1) + _make_band(segments, bool(low > 0), bool(high > 0))
        for i, (low, high) in enumerate(ends[:, :, 0])
    ]
    faces = np.concatenate(bands)
    return Solid(vertices.reshape(-1, 3), faces, normals.reshape(-1, 3), uv.reshape(-1, 2))


def _compute_profile_normals(
    ends: NDArray[np.float64], length: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return (radius, z) normals at both ends of every segment, averaged over soft bends."""
    delta = ends[:, 1] - ends[:, 0]
    flat = np.stack([delta[:, 1], -delta[:, 0]], axis=1) / length[:, None]
    bend = flat[:-1] + flat[1:]
    size = np.linalg.norm(bend, axis=1, keepdims=True)
    # The length of the sum of two unit vectors gives the cosine between them.
    soft = size > np.sqrt(2 + 2 * SMOOTH_COS)
    bend = bend / np.maximum(size, 1e-12)
    normals = np.stack([flat, flat], axis=1)
    normals[1:, 0] = np.where(soft, bend, flat[1:])
    normals[:-1, 1] = np.where(soft, bend, flat[:-1])
    return normals


@cache
def _make_band(segments: int, bottom: bool, top: bool) -> NDArray[np.int64]:
    low = np.arange(segments)
    high = low + segments + 1
    triangles = []
    if bottom:
        triangles.append(np.stack([low, low + 1, high + 1], axis=1))
    if top:
        triangles.append(np.stack([low, high + 1, high], axis=1))
    return np.concatenate(triangles)


def cylinder(radius: float, height: float, top: float | None = None, segments: int = 16) -> Solid:
    """Return a cylinder or a cone's frustum with its foot on z = 0; `top` is its upper radius."""
    upper = radius if top is None else top
    profile = [(0.0, 0.0), (radius, 0.0), (upper, height)]
    return lathe([*profile, (0.0, height)] if upper > 0 else profile, segments)


def ellipsoid(size: ArrayLike, segments: int = 14, exponent: float = 1.0) -> Solid:
    """Return a superellipsoid of full extents `size` in metres; 1 an ellipsoid, 0 a box."""
    extent = np.asarray(size, float) / 2
    rows = max(segments // 2, 4)
    latitude = np.linspace(-np.pi / 2, np.pi / 2, rows + 1)[:, None]
    longitude = np.linspace(-np.pi, np.pi, segments + 1)[None, :]

    def surface(power: float) -> NDArray[np.float64]:
        def bent(value: NDArray[np.float64]) -> NDArray[np.float64]:
            value = np.where(np.abs(value) < 1e-12, 0.0, value)
            return np.sign(value) * np.abs(value) ** power

        x = bent(np.cos(latitude)) * bent(np.cos(longitude))
        y = bent(np.cos(latitude)) * bent(np.sin(longitude))
        return np.stack([x, y, bent(np.sin(latitude)) * np.ones_like(longitude)], axis=-1)

    vertices = (surface(exponent) * extent).reshape(-1, 3)
    normals = (surface(2.0 - exponent) / extent).reshape(-1, 3)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    uv = np.stack(np.broadcast_arrays(longitude * extent[0], latitude * extent[2]), axis=-1)
    bands = [i * (segments + 1) + _make_band(segments, i > 0, i < rows - 1) for i in range(rows)]
    return Solid(vertices, np.concatenate(bands), normals, uv.reshape(-1, 2))


def rod(start: ArrayLike, end: ArrayLike, radius: float, segments: int = 8) -> Solid:
    """Return a cylinder from one point to another."""
    origin = np.asarray(start, float)
    axis = np.asarray(end, float) - origin
    length = float(np.linalg.norm(axis))
    z = axis / length
    x = np.cross(_choose_side(z), z)
    x /= np.linalg.norm(x)
    rotation = np.stack([x, np.cross(z, x), z], axis=1)
    return cylinder(radius, length, segments=segments).moved(origin, rotation)


def _choose_side(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an axis that is not nearly parallel to a unit vector."""
    return np.array([1.0, 0, 0] if abs(z[0]) < 0.9 else [0, 1.0, 0])


def ribbon(path: ArrayLike, height: float, thickness: float) -> Solid:
    """Return an upright sheet along a path of (x, y) points, standing on z = 0."""
    line = np.asarray(path, float)
    tangent = np.gradient(line, axis=0)
    side = np.column_stack([tangent[:, 1], -tangent[:, 0]])
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    right = line + side * thickness / 2
    left = line - side * thickness / 2
    outline = np.concatenate([right, left[::-1], right[:1]])
    n = len(line)
    low = np.concatenate([right, left])
    quad = np.arange(n - 1)
    halves = ((quad, quad + 1, quad + n + 1), (quad, quad + n + 1, quad + n))
    up = np.concatenate([np.column_stack(half) for half in halves])
    caps = []
    for z, faces, normal in ((height, up, 1.0), (0.0, up[:, ::-1], -1.0)):
        vertices = np.column_stack([low, np.full(2 * n, z)])
        caps.append(Solid(vertices, faces, np.tile([0, 0, normal], (2 * n, 1)), low))
    return join_solids([_set_upright(outline, height), *caps])


def _set_upright(outline: NDArray[np.float64], height: float) -> Solid:
    first = outline[:-1]
    second = outline[1:]
    keep = np.linalg.norm(second - first, axis=1) > 1e-9
    first = first[keep]
    second = second[keep]
    delta = second - first
    length = np.linalg.norm(delta, axis=1)
    normal = np.column_stack([delta[:, 1], -delta[:, 0], np.zeros(len(delta))]) / length[:, None]
    along = np.concatenate([[0.0], np.cumsum(length)])
    # Each wall from its lower left corner around.
    corners = np.stack([first, second, second, first], axis=1)
    reach = np.stack([along[:-1], along[1:], along[1:], along[:-1]], axis=1)
    rise = np.tile([0.0, 0.0, height, height], (len(first), 1))
    start = 4 * np.arange(len(first))[:, None, None]
    return Solid(
        np.dstack([corners, rise]).reshape(-1, 3),
        (start + np.array([[0, 1, 2], [0, 2, 3]])).reshape(-1, 3),
        np.repeat(normal, 4, axis=0),
        np.dstack([reach, rise]).reshape(-1, 2),
    )


def join_solids(solids: Sequence[Solid]) -> Solid:
    """Return one surface made of several."""
    starts = np.cumsum([0, *(len(item.vertices) for item in solids[:-1])])
    return Solid(
        np.concatenate([item.vertices for item in solids]),
        np.concatenate([item.faces + s for item, s in zip(solids, starts, strict=True)]),
        np.concatenate([item.normals for item in solids]),
        np.concatenate([item.uv_m for item in solids]),
    )


def make_mesh(solid: Solid, material: Material = NEUTRAL, tile_m: float = 1.0) -> Mesh:
    """Return a solid as a mesh; textures of its material repeat every `tile_m` metres."""
    return Mesh(
        solid.vertices.astype(np.float32),
        solid.faces.astype(np.int32),
        solid.normals.astype(np.float32),
        (solid.uv_m / tile_m).astype(np.float32),
        material,
    )


def make_shape(kind: str, read: Callable[[str, tuple[float, ...]], ArrayLike]) -> Mesh | None:
    """Return a box, or a sphere, cylinder or capsule along z, around the origin; None for others.

    `read` gives lengths by name, with defaults. The length of a capsule is without its ends.
    """

    def length(name: str, default: float) -> float:
        return float(np.ravel(read(name, (default,)))[0])

    match kind:
        case 'box':
            return make_mesh(box(read('size', (1.0, 1.0, 1.0))))
        case 'sphere':
            return make_mesh(ellipsoid(np.full(3, 2 * length('radius', 1.0)), SEGMENTS))
        case 'cylinder':
            radius, height = length('radius', 0.5), length('length', 1.0)
            upright = cylinder(radius, height, segments=SEGMENTS)
            return make_mesh(upright.moved((0, 0, -height / 2)))
        case 'capsule':
            radius, height = length('radius', 0.5), length('length', 1.0)
            angle = np.linspace(0, np.pi / 2, SEGMENTS // 4 + 1)
            low = np.column_stack(
                [radius * np.sin(angle), radius * (1 - np.cos(angle)) - height / 2 - radius]
            )
            return make_mesh(lathe(np.concatenate([low, low[::-1] * [1, -1]]), SEGMENTS))
    return None


def plane(size: ArrayLike, normal: ArrayLike = (0.0, 0.0, 1.0)) -> Mesh:
    """Return a rectangle that faces along its normal; texture coordinates in metres."""
    width, depth = np.asarray(size, float)
    z = np.asarray(normal, float) / max(float(np.linalg.norm(normal)), 1e-12)
    y = np.cross(z, _choose_side(z))
    y /= np.linalg.norm(y)
    corners = _QUAD * [width, depth]
    return Mesh(
        (corners @ np.stack([np.cross(y, z), y])).astype(np.float32),
        np.array(_TRIANGLES[1.0], np.int32),
        np.tile(z, (4, 1)).astype(np.float32),
        corners.astype(np.float32),
    )
