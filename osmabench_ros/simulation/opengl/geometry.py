"""Triangles of a scene on the graphics device, and which boxes cameras and lights see."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.images import decode_srgb
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Mesh, Scene
from osmabench_ros.simulation.opengl.textures import TextureStore

# OpenGL's DrawElementsIndirectCommand.
DRAW_COMMAND = np.dtype(
    [
        ('index_count', 'u4'),
        ('instance_count', 'u4'),
        ('first_index', 'u4'),
        ('base_vertex', 'i4'),
        ('base_instance', 'u4'),
    ]
)

# Values that one draw gives to every vertex of a mesh.
MESH_CONSTANTS = np.dtype(
    [('pose', 'f4', (3, 4)), ('color', 'f4', (3,)), ('object_number', 'f4'), ('mesh', 'f4')]
)


class SceneGeometry:
    """Vertex data, textures, draw commands and bounds of every mesh, in the current context."""

    def __init__(self, context: Any, scene: Scene, *, flat_without_normals: bool = False) -> None:
        self._context = context
        self._textures = TextureStore(context)
        rows = [
            (self._textures.add(mesh.material.texture), row, mesh)
            for row, item in enumerate(scene.objects)
            for mesh in item.meshes
            if len(mesh.faces)
        ]
        textures, objects, parts = zip(*sorted(rows, key=itemgetter(0)), strict=True)
        meshes = [with_flat_normals(mesh) if flat_without_normals else mesh for mesh in parts]
        self._texture_of = np.array(textures, np.int64)
        self._object_row = np.array(objects, np.int64)
        self._local_boxes = [AxisAlignedBox.around(mesh.vertices) for mesh in meshes]
        self._commands = draw_commands(meshes)
        self._constants = pack_constants(meshes, self._object_row)
        self._minimum = np.zeros((len(meshes), 3))
        self._maximum = np.zeros((len(meshes), 3))
        self.triangles_drawn = 0
        self._upload(meshes)
        self.place({row: item.pose for row, item in enumerate(scene.objects)})

    @property
    def boxes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper corners of every mesh in the world, each (N, 3)."""
        return self._minimum, self._maximum

    def get_boxes_of(
        self, object_rows: Iterable[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the corners of the meshes of some objects, each (N, 3)."""
        chosen = np.isin(self._object_row, list(object_rows))
        return self._minimum[chosen], self._maximum[chosen]

    def vertex_array(self, program: Any) -> Any:
        """Return a `moderngl.VertexArray` with the attributes that a program declares."""
        layouts = (
            (self._vertices, (('in_position', 3), ('in_normal', 3), ('in_uv', 2)), ''),
            (
                self._instances,
                (
                    ('in_pose_x', 4),
                    ('in_pose_y', 4),
                    ('in_pose_z', 4),
                    ('in_color_and_id', 4),
                    ('in_mesh', 1),
                ),
                ' /i',
            ),
        )
        content = []
        for buffer, fields, step in layouts:
            used = [name for name, _ in fields if name in program]
            form = ' '.join(f'{n}f' if name in program else f'{n * 4}x' for name, n in fields)
            content.append((buffer, form + step, *used))
        return self._context.vertex_array(program, content, self._indices, 4)

    def place(self, poses: Mapping[int, Pose]) -> None:
        """Move objects, given by their row in `Scene.objects`, to new poses in the world."""
        for i in np.flatnonzero(np.isin(self._object_row, list(poses))):
            pose = poses[int(self._object_row[i])]
            self._constants['pose'][i, :, :3] = pose.rotation
            self._constants['pose'][i, :, 3] = pose.translation
            box = self._local_boxes[i]
            turned = np.abs(pose.rotation)
            center = pose.transform(box.center)
            extent = turned @ (box.size / 2)
            self._minimum[i], self._maximum[i] = center - extent, center + extent
        self._instances.write(self._constants.tobytes())

    def draw_textured(self, vertex_array: Any, chosen: NDArray[np.int64]) -> None:
        """Draw the chosen meshes, nearest first saves shading, one indirect call a texture."""
        chosen = chosen[np.argsort(self._texture_of[chosen], kind='stable')]
        if not len(chosen):  # the camera sees nothing
            self.triangles_drawn = 0
            return
        self.triangles_drawn = int(self._commands['index_count'][chosen].sum()) // 3
        self._draw_buffer.write(self._commands[chosen].tobytes())
        textures = self._texture_of[chosen]
        starts = np.flatnonzero(np.diff(textures, prepend=-1))
        for first, end in zip(starts, [*starts[1:], len(chosen)], strict=True):
            self._textures[int(textures[first])].use(0)
            vertex_array.render_indirect(
                self._draw_buffer, count=int(end - first), first=int(first)
            )

    def draw(self, vertex_array: Any, chosen: NDArray[np.int64]) -> None:
        """Draw the chosen meshes without textures, in one call."""
        if len(chosen):
            self._draw_buffer.write(self._commands[chosen].tobytes())
            vertex_array.render_indirect(self._draw_buffer, count=len(chosen))

    def release(self) -> None:
        """Free buffers and textures."""
        for buffer in (self._vertices, self._indices, self._instances, self._draw_buffer):
            buffer.release()
        self._textures.release()

    def _upload(self, meshes: Sequence[Mesh]) -> None:
        context = self._context
        parts = [
            np.column_stack([mesh.vertices, mesh.normals, mesh.uv]).astype('f4') for mesh in meshes
        ]
        indices = [mesh.faces.astype('u4').ravel() for mesh in meshes]
        self._vertices = context.buffer(np.concatenate(parts).tobytes())
        self._indices = context.buffer(np.concatenate(indices).tobytes())
        self._instances = context.buffer(reserve=self._constants.nbytes)
        self._draw_buffer = context.buffer(reserve=self._commands.nbytes)


def with_flat_normals(mesh: Mesh) -> Mesh:
    """Return a mesh without normals with the normals of its faces, as glTF asks for."""
    if mesh.has_normals:
        return mesh
    corners = mesh.faces.ravel()
    vertices = mesh.vertices[corners]
    edges = np.diff(vertices.reshape(-1, 3, 3).astype(np.float64), axis=1)
    across = np.cross(edges[:, 0], edges[:, 1])
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
    return replace(
        mesh,
        vertices=vertices,
        faces=np.arange(len(corners), dtype=np.int32).reshape(-1, 3),
        normals=np.repeat(across, 3, axis=0).astype(np.float32),
        uv=mesh.uv[corners],
    )


def draw_commands(meshes: Sequence[Mesh]) -> NDArray[np.void]:
    """Return one DrawElementsIndirectCommand a mesh, for buffers that hold them one by one."""
    commands = np.zeros(len(meshes), DRAW_COMMAND)
    commands['index_count'] = [mesh.faces.size for mesh in meshes]
    commands['instance_count'] = 1
    commands['first_index'] = np.cumsum([0, *(mesh.faces.size for mesh in meshes[:-1])])
    commands['base_vertex'] = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes[:-1])])
    commands['base_instance'] = np.arange(len(meshes))
    return commands


def pack_constants(meshes: Sequence[Mesh], object_rows: NDArray[np.int64]) -> NDArray[np.void]:
    """Return the constants of every mesh; object numbers are rows plus one, 0: no surface."""
    constants = np.zeros(len(meshes), MESH_CONSTANTS)
    colors = np.reshape([mesh.material.base_color for mesh in meshes], (-1, 3))
    constants['color'] = decode_srgb(colors.astype(np.float64))
    constants['object_number'] = object_rows + 1
    constants['mesh'] = np.arange(len(meshes))
    return constants


def find_planes(clip_from_world: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the six planes (a, b, c, d) of a frustum; inside is ``a x + b y + c z + d >= 0``.

    They follow from -w <= x, y, z <= w in clip coordinates (Gribb and Hartmann 2001).
    """
    x, y, z, w = clip_from_world
    return np.stack([w + x, w - x, w + y, w - y, w + z, w - z])


def select_boxes(
    minimum: NDArray[np.float64], maximum: NDArray[np.float64], planes: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which of N boxes, by corners in the world, may reach into a frustum.

    `planes` come from `find_planes`; no box that reaches into it is ever left out.
    """
    center = (minimum + maximum) / 2
    extent = (maximum - minimum) / 2
    reach = center @ planes[:, :3].T + planes[:, 3] + extent @ np.abs(planes[:, :3]).T
    return np.asarray((reach >= 0).all(axis=1))


def measure_distances(
    minimum: NDArray[np.float64], maximum: NDArray[np.float64], point: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the distance in metres from a point to each of N boxes, 0 inside."""
    gap = np.maximum(np.maximum(minimum - point, point - maximum), 0.0)
    return np.asarray(np.sqrt((gap**2).sum(axis=1)))


CUBE_FACES = 6


def project_camera(intrinsics: Intrinsics, near_m: float, far_m: float) -> NDArray[np.float64]:
    """Return the matrix (4, 4) from optical to clip coordinates; image row 0 is texture row 0."""
    width, height = intrinsics.width, intrinsics.height
    span = far_m - near_m
    return np.array(
        [
            [2 * intrinsics.fx / width, 0, 2 * (intrinsics.cx + 0.5) / width - 1, 0],
            [0, 2 * intrinsics.fy / height, 2 * (intrinsics.cy + 0.5) / height - 1, 0],
            [0, 0, (far_m + near_m) / span, -2 * far_m * near_m / span],
            [0, 0, 1, 0],
        ]
    )


def project_cube(
    face: int, position: NDArray[np.float64], near_m: float, far_m: float
) -> NDArray[np.float64]:
    """Return the matrix from the world to clip coordinates of face +x, -x, +y, -y, +z, -z."""
    axis, sign = face // 2, 1.0 - 2.0 * (face % 2)
    span = far_m - near_m
    matrix = np.zeros((4, 4))
    matrix[0, (axis + 1) % 3] = matrix[1, (axis + 2) % 3] = 1.0
    matrix[2, axis], matrix[2, 3] = sign * (far_m + near_m) / span, -2 * far_m * near_m / span
    matrix[3, axis] = sign
    to_position = np.eye(4)
    to_position[:3, 3] = -position
    return np.asarray(matrix @ to_position)


def project_parallel(direction: NDArray[np.float64], box: AxisAlignedBox) -> NDArray[np.float64]:
    """Return the orthographic matrix along a direction that just holds a box."""
    forward = direction / np.linalg.norm(direction)
    helper = np.eye(3)[int(np.abs(forward).argmin())]
    across = np.cross(helper, forward)
    across /= np.linalg.norm(across)
    axes = np.stack([across, np.cross(forward, across), forward])
    center, extent = axes @ box.center, np.abs(axes) @ (box.size / 2) + 0.01
    order = [0, 1, 2] if extent[0] >= extent[1] else [1, 0, 2]
    matrix = np.eye(4)
    matrix[:3, :3] = (axes / extent[:, None])[order]
    matrix[:3, 3] = (-center / extent)[order]
    return matrix
