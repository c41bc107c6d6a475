"""The two passes over a frame: geometry into surface images, then light on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.lights import Lighting
from osmabench_ros.simulation.opengl.context import shader_source
from osmabench_ros.simulation.opengl.geometry import SceneGeometry
from osmabench_ros.simulation.opengl.light_block import (
    LIGHT,
    MAX_LIGHTS,
    MAX_SHADOWED_DIRECTIONAL,
    SortedLights,
    light_block,
    sorted_lights,
)
from osmabench_ros.simulation.opengl.projection import (
    boxes_in_frustum,
    camera_projection,
    distance_to_boxes,
    frustum_planes,
)
from osmabench_ros.simulation.opengl.shadows import ShadowAtlas
from osmabench_ros.simulation.opengl.textures import Targets

FRAMEBUFFER_SRGB = 0x8DB9
SHADOW_UNIT = 3


class GeometryPass:
    """Draws what the camera sees into the surface images."""

    def __init__(
        self,
        context: Any,
        geometry: SceneGeometry,
        intrinsics: Intrinsics,
        range_m: tuple[float, float],
    ) -> None:
        self._context = context
        self._geometry = geometry
        self._program = context.program(
            vertex_shader=shader_source('geometry_vertex.glsl'),
            fragment_shader=shader_source('geometry_fragment.glsl'),
        )
        self._vertex_array = geometry.vertex_array(self._program)
        self._projection = camera_projection(intrinsics, *range_m)

    def render(self, targets: Targets, camera_pose: Pose) -> None:
        """Fill the surface images of `targets`."""
        camera_from_world = camera_pose.inverse().matrix
        self._program['camera_from_world'].write(_columns(camera_from_world))
        self._program['clip_from_camera'].write(_columns(self._projection))
        self._program['camera_position'] = tuple(camera_pose.translation)
        targets.surface.use()
        targets.surface.clear()
        self._context.enable_only(self._context.DEPTH_TEST)
        self._context.enable_direct(FRAMEBUFFER_SRGB)
        visible = self._nearest_first(self._projection @ camera_from_world, camera_pose)
        self._geometry.draw_textured(self._vertex_array, visible)

    def release(self) -> None:
        """Free the program."""
        self._vertex_array.release()
        self._program.release()

    def _nearest_first(
        self, clip_from_world: NDArray[np.float64], camera_pose: Pose
    ) -> NDArray[np.int64]:
        boxes = self._geometry.boxes
        visible = np.flatnonzero(boxes_in_frustum(*boxes, frustum_planes(clip_from_world)))
        distance = distance_to_boxes(boxes[0][visible], boxes[1][visible], camera_pose.translation)
        return visible[np.argsort(distance, kind='stable')]


class LightingPass:
    """Lights the surface images."""

    def __init__(self, context: Any, intrinsics: Intrinsics, shadows: ShadowAtlas) -> None:
        self._context = context
        self._intrinsics = intrinsics
        self._shadows = shadows
        self._programs = [self._build(shadowed) for shadowed in (0, 1)]
        self._vertex_arrays = [context.vertex_array(program, []) for program in self._programs]
        self._block = context.buffer(reserve=MAX_LIGHTS * LIGHT.itemsize)

    def render(self, targets: Targets, camera_pose: Pose, lighting: Lighting) -> None:
        """Fill the colour image of `targets` from its surface images."""
        lights = sorted_lights(lighting, camera_pose)
        casting = lights.shadowed + lights.shadowed_directional
        self._context.enable_only(self._context.DEPTH_TEST)
        rows = self._shadows.rows(casting) if casting else []
        self._block.write(light_block(lights.all, rows).tobytes())
        program = self._programs[bool(casting)]
        self._set_camera(program, camera_pose)
        self._set_lights(program, lights, lighting)
        if casting:
            self._set_shadows(program, lights)
        for unit, texture in enumerate((targets.albedo, targets.depth_and_id, targets.normal)):
            texture.use(unit)
        self._block.bind_to_uniform_block(0)
        targets.image.use()
        self._context.enable_only(self._context.NOTHING)
        self._context.enable_direct(FRAMEBUFFER_SRGB)
        self._vertex_arrays[bool(casting)].render(self._context.TRIANGLES, 3)

    def release(self) -> None:
        """Free programs and buffers."""
        for item in (*self._vertex_arrays, *self._programs, self._block):
            item.release()

    def _build(self, shadowed: int) -> Any:
        program = self._context.program(
            vertex_shader=shader_source('fullscreen_vertex.glsl'),
            fragment_shader=shader_source(
                'lighting_fragment.glsl',
                SHADOWED=shadowed,
                MAX_LIGHTS=MAX_LIGHTS,
                MAX_DIRECTIONAL=MAX_SHADOWED_DIRECTIONAL,
            ),
        )
        for unit, name in enumerate(('albedo', 'depth_and_id', 'normal', 'shadow_atlas')):
            _set(program, name, unit)
        camera = self._intrinsics
        _set(program, 'principal_and_focal', (camera.cx, camera.cy, camera.fx, camera.fy))
        return program

    def _set_camera(self, program: Any, camera_pose: Pose) -> None:
        program['world_from_camera'].write(_columns(camera_pose.rotation))
        program['camera_position'] = tuple(camera_pose.translation)

    def _set_lights(self, program: Any, lights: SortedLights, lighting: Lighting) -> None:
        _set(program, 'shadowed_count', len(lights.shadowed))
        _set(program, 'directional_count', len(lights.shadowed_directional))
        _set(program, 'light_count', len(lights.all))
        _set(program, 'ambient', lighting.ambient)
        _set(program, 'exposure', lighting.exposure)

    def _set_shadows(self, program: Any, lights: SortedLights) -> None:
        atlas = self._shadows
        atlas.texture.use(SHADOW_UNIT)
        _set(program, 'tile_in_atlas', (1 / 6, 1 / atlas.row_count))
        _set(program, 'tile_texels', atlas.tile_texels)
        _set(program, 'shadow_depth', atlas.depth_coefficients)
        matrices = np.zeros((MAX_SHADOWED_DIRECTIONAL, 4, 4), 'f4')
        for i, light in enumerate(lights.shadowed_directional):
            matrices[i] = atlas.directional_matrix(light).T
        program['directional_uvz'].write(matrices.tobytes())


def _columns(matrix: NDArray[np.float64]) -> bytes:
    """Return a matrix as OpenGL stores it, column by column in single precision."""
    return bytes(matrix.T.astype('f4').tobytes())


def _set(program: Any, name: str, value: Any) -> None:
    """Set a uniform unless the compiler found it unused in this variant of the shader."""
    if name in program:
        program[name] = value
