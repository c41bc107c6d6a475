"""The passes over a frame: geometry into surface images, edges in them, then light on them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import SPOT_INNER_SHARE, Light, Lighting, LightKind
from osmabench_ros.simulation.opengl.geometry import (
    SceneGeometry,
    find_planes,
    measure_distances,
    project_camera,
    select_boxes,
)
from osmabench_ros.simulation.opengl.shadows import DEPTH_COEFFICIENTS, ShadowAtlas
from osmabench_ros.simulation.opengl.textures import SurfaceImages, read_shader
from osmabench_ros.simulation.simulator import MAX_LIGHTS

MAX_SHADOWED_DIRECTIONAL = 4

KIND_CODE = {LightKind.POINT: 0.0, LightKind.DIRECTIONAL: 1.0, LightKind.SPOT: 2.0}

# A light this close to the camera casts no shadow that the camera sees.
AT_CAMERA_M = 0.05

# One element of the shader's std140 array.
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


def sort_lights(lighting: Lighting, camera_pose: Pose) -> SortedLights:
    """Resolve lights on the camera and sort them by whether they cast visible shadows."""
    shadowed: list[Light] = []
    directional: list[Light] = []
    unshadowed: list[Light] = []
    for light in lighting.lights:
        if light.intensity == 0 or not any(light.color):
            continue
        resolved = transform_light(light, camera_pose)
        if not lighting.shadows or _is_shadowless(light):
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


def transform_light(light: Light, camera_pose: Pose) -> Light:
    """Return the light in world coordinates, its direction a unit vector."""
    position = np.array(light.position)
    direction = np.array(light.direction)
    if light.attached_to_camera:
        position, direction = camera_pose.transform(position), camera_pose.rotation @ direction
    direction = direction / max(float(np.linalg.norm(direction)), 1e-12)
    return replace(
        light,
        position=tuple(position.tolist()),
        direction=tuple(direction.tolist()),
        attached_to_camera=False,
    )


def pack_lights(lights: Sequence[Light], rows: Sequence[int]) -> NDArray[np.void]:
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


def _is_shadowless(light: Light) -> bool:
    if not light.attached_to_camera:
        return False
    return (
        light.kind is LightKind.DIRECTIONAL or math.dist(light.position, (0, 0, 0)) < AT_CAMERA_M
    )


FRAMEBUFFER_SRGB = 0x8DB9
SHADOW_UNIT = 3


class GeometryPass:
    """Draws visible surfaces into surface images, or `coverage` of several places per pixel."""

    def __init__(
        self,
        context: Any,
        geometry: SceneGeometry,
        intrinsics: Intrinsics,
        range_m: tuple[float, float],
        *,
        coverage: bool = False,
    ) -> None:
        self._context = context
        self._geometry = geometry
        self._draw = geometry.draw if coverage else geometry.draw_textured
        self._program = context.program(
            vertex_shader=read_shader('geometry_vertex.glsl'),
            fragment_shader=read_shader('coverage_fragment.glsl')
            if coverage
            else read_shader('geometry_fragment.glsl'),
        )
        self._vertex_array = geometry.vertex_array(self._program)
        self._projection = project_camera(intrinsics, *range_m)

    def render(self, images: Any, camera_pose: Pose) -> None:
        """Fill the images of a framebuffer."""
        camera_from_world = camera_pose.inverse().matrix
        self._program['camera_from_world'].write(_pack_columns(camera_from_world))
        self._program['clip_from_camera'].write(_pack_columns(self._projection))
        _set(self._program, 'camera_position', tuple(camera_pose.translation))
        images.use()
        images.clear()
        self._context.enable_only(self._context.DEPTH_TEST)
        self._context.enable_direct(FRAMEBUFFER_SRGB)
        boxes, view = self._geometry.boxes, self._projection @ camera_from_world
        visible = np.flatnonzero(select_boxes(*boxes, find_planes(view)))
        distance = measure_distances(boxes[0][visible], boxes[1][visible], camera_pose.translation)
        # The nearest come first, so that those behind them need no shading.
        self._draw(self._vertex_array, visible[np.argsort(distance, kind='stable')])

    def release(self) -> None:
        """Free the program."""
        self._vertex_array.release()
        self._program.release()


class EdgesPass:
    """Gives pixels at edges the mean colour of all the surfaces that they show."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._program = context.program(
            vertex_shader=read_shader('fullscreen_vertex.glsl'),
            fragment_shader=read_shader('edges_fragment.glsl'),
        )
        for unit, name in enumerate(('covering', 'normal', 'lit')):
            self._program[name] = unit
        self._vertex_array = context.vertex_array(self._program, [])

    def render(self, covering: Any, normal: Any, lit: Any, image: Any) -> None:
        """Fill a framebuffer from the lit colours of the middles and what covers other places."""
        for unit, texture in enumerate((covering, normal, lit)):
            texture.use(unit)
        image.use()
        self._context.enable_only(self._context.NOTHING)
        self._context.enable_direct(FRAMEBUFFER_SRGB)
        self._vertex_array.render(self._context.TRIANGLES, 3)

    def release(self) -> None:
        """Free the program."""
        self._vertex_array.release()
        self._program.release()


class LightingPass:
    """Lights the surface images."""

    def __init__(self, context: Any, intrinsics: Intrinsics, shadows: ShadowAtlas) -> None:
        self._context = context
        self._intrinsics = intrinsics
        self._shadows = shadows
        self._programs: dict[tuple[bool, int, bool], tuple[Any, Any]] = {}
        self._block = context.buffer(reserve=MAX_LIGHTS * LIGHT.itemsize)

    def render(
        self,
        surfaces: SurfaceImages,
        image: Any,
        camera_pose: Pose,
        lighting: Lighting,
        *,
        tone: bool = False,
        stride: int = 1,
    ) -> None:
        """Fill a framebuffer from surface images, with a tone curve or only every so many-th."""
        lights = sort_lights(lighting, camera_pose)
        casting = lights.shadowed + lights.shadowed_directional
        self._context.enable_only(self._context.DEPTH_TEST)
        rows = self._shadows.rows(casting) if casting else []
        self._block.write(pack_lights(lights.all, rows).tobytes())
        program, vertex_array = self._program(tone, stride, bool(casting))
        self._set_camera(program, camera_pose)
        self._set_lights(program, lights, lighting)
        if casting:
            self._set_shadows(program, lights)
        for unit, texture in enumerate((surfaces.albedo, surfaces.depth_and_id, surfaces.normal)):
            texture.use(unit)
        self._block.bind_to_uniform_block(0)
        image.use()
        self._context.enable_only(self._context.NOTHING)
        self._context.enable_direct(FRAMEBUFFER_SRGB)
        vertex_array.render(self._context.TRIANGLES, 3)

    def release(self) -> None:
        """Free programs and buffers."""
        for program, vertex_array in self._programs.values():
            vertex_array.release()
            program.release()
        self._block.release()

    def _program(self, *key: Any) -> tuple[Any, Any]:
        if key not in self._programs:
            program = self._build(*key)
            self._programs[key] = program, self._context.vertex_array(program, [])
        return self._programs[key]

    def _build(self, tone: bool, stride: int, shadowed: bool) -> Any:
        program = self._context.program(
            vertex_shader=read_shader('fullscreen_vertex.glsl'),
            fragment_shader=read_shader(
                'lighting_fragment.glsl',
                SHADOWED=int(shadowed),
                TONE=int(tone),
                STRIDE=stride,
                MAX_LIGHTS=MAX_LIGHTS,
                MAX_DIRECTIONAL=MAX_SHADOWED_DIRECTIONAL,
            ),
        )
        for unit, name in enumerate(('albedo', 'depth_and_id', 'normal', 'shadow_atlas')):
            _set(program, name, unit)
        return program

    def _set_camera(self, program: Any, camera_pose: Pose) -> None:
        camera = self._intrinsics
        principal_and_focal = camera.cx, camera.cy, camera.fx, camera.fy
        _set(program, 'principal_and_focal', principal_and_focal)
        program['world_from_camera'].write(_pack_columns(camera_pose.rotation))
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
        _set(program, 'shadow_depth', DEPTH_COEFFICIENTS)
        matrices = np.zeros((MAX_SHADOWED_DIRECTIONAL, 4, 4), 'f4')
        for i, light in enumerate(lights.shadowed_directional):
            matrices[i] = atlas.make_directional_matrix(light).T
        program['directional_uvz'].write(matrices.tobytes())


def _pack_columns(matrix: NDArray[np.float64]) -> bytes:
    """Return a matrix as OpenGL stores it, column by column in single precision."""
    return bytes(matrix.T.astype('f4').tobytes())


def _set(program: Any, name: str, value: Any) -> None:
    """Set a uniform unless the compiler found it unused in this variant of the shader."""
    if name in program:
        program[name] = value
