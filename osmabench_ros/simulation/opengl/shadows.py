"""Shadow maps: one row of an atlas for every light, rendered when needed and kept."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.scenes.scene import Light, LightKind
from osmabench_ros.simulation.opengl import geometry as scene_geometry
from osmabench_ros.simulation.opengl.textures import read_shader

# Edge of a face: under 1 cm a texel in a room.
LARGEST_TILE_TEXELS = 512

# Range of a lamp's shadows; its own bulb and shade, closer than that, do not block it.
NEAR_M, FAR_M = 0.1, 100.0

# a and b such that a perspective tile holds a - b / z.
DEPTH_COEFFICIENTS = FAR_M / (FAR_M - NEAR_M), FAR_M * NEAR_M / (FAR_M - NEAR_M)

_Key = tuple[LightKind, tuple[float, ...], tuple[float, ...]]


@dataclass
class _Row:
    """Where a light's faces lie and which of them are up to date."""

    index: int
    views: dict[int, NDArray[np.float64]]
    stale: set[int] = field(default_factory=set)
    last_used: int = 0


class ShadowAtlas:
    """Depth of the scene as each light sees it, a row a light, rendered when it is out of date."""

    def __init__(self, context: Any, geometry: scene_geometry.SceneGeometry) -> None:
        self._context = context
        self._geometry = geometry
        self._program = context.program(
            vertex_shader=read_shader('shadow_vertex.glsl'),
            fragment_shader=read_shader('shadow_fragment.glsl'),
        )
        self._vertex_array = geometry.vertex_array(self._program)
        self._rows: dict[_Key, _Row] = {}
        self._clock = 0
        # With comparison on.
        self.texture: Any = None
        self._framebuffer: Any = None
        self.tile_texels = 0
        self.row_count = 0
        self.faces_rendered = 0

    def rows(self, lights: Sequence[Light]) -> list[int]:
        """Bring the shadows of lights in world coordinates up to date and return their rows."""
        if len(lights) > self.row_count:
            self._grow(len(lights))
        self._clock += 1
        rows = [self._find_row(light) for light in lights]
        for row in rows:
            self._refresh(row)
        return [row.index for row in rows]

    def make_directional_matrix(self, light: Light) -> NDArray[np.float64]:
        """Return the matrix from the world to (u, v, depth) of a directional light's tile."""
        row = self._rows[_make_key(light)]
        to_texture = np.diag([0.5, 0.5 / self.row_count, 0.5, 1.0])
        to_texture[:3, 3] = 0.5, (row.index + 0.5) / self.row_count, 0.5 - 0.0005
        return np.asarray(to_texture @ row.views[0])

    def forget(self, minimum: NDArray[np.float64], maximum: NDArray[np.float64]) -> None:
        """Invalidate the shadow maps that see any of N boxes, old and new, of moved objects."""
        for row in self._rows.values():
            for face, view in row.views.items():
                if scene_geometry.select_boxes(
                    minimum, maximum, scene_geometry.find_planes(view)
                ).any():
                    row.stale.add(face)

    def release(self) -> None:
        """Free everything."""
        self._release_atlas()
        self._vertex_array.release()
        self._program.release()

    def _find_row(self, light: Light) -> _Row:
        key = _make_key(light)
        row = self._rows.get(key)
        if row is None:
            minimum, maximum = self._geometry.boxes
            views = make_views(light, AxisAlignedBox(minimum.min(axis=0), maximum.max(axis=0)))
            row = _Row(self._take_index(), views, set(views))
            self._rows[key] = row
        row.last_used = self._clock
        return row

    def _take_index(self) -> int:
        used = {row.index for row in self._rows.values()}
        free = set(range(self.row_count)) - used
        if free:
            return min(free)
        oldest = min(self._rows, key=lambda key: self._rows[key].last_used)
        return self._rows.pop(oldest).index

    def _refresh(self, row: _Row) -> None:
        for face in sorted(row.stale):
            width = self.tile_texels * (scene_geometry.CUBE_FACES if len(row.views) == 1 else 1)
            corner = (face * self.tile_texels, row.index * self.tile_texels)
            self._render((*corner, width, self.tile_texels), row.views[face])
        row.stale.clear()

    def _render(self, viewport: tuple[int, ...], view: NDArray[np.float64]) -> None:
        self._framebuffer.use()
        self._framebuffer.viewport = viewport
        self._framebuffer.clear(depth=1.0, viewport=viewport)
        self._program['clip_from_world'].write(view.T.astype('f4').tobytes())
        chosen = np.flatnonzero(
            scene_geometry.select_boxes(*self._geometry.boxes, scene_geometry.find_planes(view))
        )
        self._geometry.draw(self._vertex_array, chosen)
        self.faces_rendered += 1

    def _grow(self, rows: int) -> None:
        self._release_atlas()
        largest = self._context.info['GL_MAX_TEXTURE_SIZE']
        self.tile_texels = min(LARGEST_TILE_TEXELS, 2 ** int(math.log2(largest / rows)))
        self.row_count = rows
        size = (scene_geometry.CUBE_FACES * self.tile_texels, rows * self.tile_texels)
        self.texture = self._context.depth_texture(size)
        self.texture.compare_func = '<='
        self.texture.filter = (self._context.LINEAR, self._context.LINEAR)
        self.texture.repeat_x = self.texture.repeat_y = False
        self._framebuffer = self._context.framebuffer(depth_attachment=self.texture)

    def _release_atlas(self) -> None:
        self._rows.clear()
        if self.texture is not None:
            self._framebuffer.release()
            self.texture.release()
            self.texture = None


def _make_key(light: Light) -> _Key:
    if light.kind is LightKind.DIRECTIONAL:
        return light.kind, (), light.direction
    if light.kind is LightKind.SPOT:
        return light.kind, light.position, (*light.direction, light.spot_half_angle_rad)
    return light.kind, light.position, ()


def make_views(light: Light, scene_box: AxisAlignedBox) -> dict[int, NDArray[np.float64]]:
    """Return the projections a light needs, by tile: one, or the faces its cone reaches."""
    if light.kind is LightKind.DIRECTIONAL:
        return {0: scene_geometry.project_parallel(np.array(light.direction), scene_box)}
    position = np.array(light.position)
    faces = list(range(scene_geometry.CUBE_FACES))
    if light.kind is LightKind.SPOT:
        faces = [face for face in faces if _is_reached(light, face)]
    return {face: scene_geometry.project_cube(face, position, NEAR_M, FAR_M) for face in faces}


def _is_reached(light: Light, face: int) -> bool:
    """Return whether a spot's cone may touch a cube face; its corners are 54.7 deg off axis."""
    axis = np.eye(3)[face // 2] * (1 - 2 * (face % 2))
    cosine = float(axis @ light.direction) / float(np.linalg.norm(light.direction))
    corner_rad = math.acos(1 / math.sqrt(3))
    return math.acos(max(-1.0, min(1.0, cosine))) < light.spot_half_angle_rad + corner_rad
