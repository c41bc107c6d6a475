"""Triangles of a scene on the graphics device, drawn mesh by mesh."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.color import decoded
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Mesh, Scene
from osmabench_ros.simulation.opengl.textures import TextureStore

DRAW_COMMAND = np.dtype(
    [
        ('index_count', 'u4'),
        ('instance_count', 'u4'),
        ('first_index', 'u4'),
        ('base_vertex', 'i4'),
        ('base_instance', 'u4'),
    ]
)
"""OpenGL's DrawElementsIndirectCommand."""

MESH_CONSTANTS = np.dtype(
    [
        ('pose', 'f4', (3, 4)),
        ('color', 'f4', (3,)),
        ('object_number', 'f4'),
        ('mesh', 'f4'),
    ],
    align=False,
)
"""What one draw gives to every vertex of a mesh."""


@dataclass(frozen=True, eq=False)
class _Placed:
    """A mesh and the row of `Scene.objects` it belongs to."""

    mesh: Mesh
    object_row: int


class SceneGeometry:
    """Vertex data, textures, draw commands and bounds of every mesh, in the current context."""

    def __init__(self, context: Any, scene: Scene, *, flat_without_normals: bool = False) -> None:
        self._context = context
        self._textures = TextureStore(context)
        placed = [
            _Placed(with_flat_normals(mesh) if flat_without_normals else mesh, row)
            for row, item in enumerate(scene.objects)
            for mesh in item.meshes
            if len(mesh.faces)
        ]
        textures = self._textures.add(item.mesh.material.texture for item in placed)
        order = np.argsort(textures, kind='stable')
        self._placed = [placed[i] for i in order]
        self._texture_of = np.array(textures, np.int64)[order]
        self._object_row = np.array([item.object_row for item in self._placed], np.int64)
        self._local_boxes = [AxisAlignedBox.around(item.mesh.vertices) for item in self._placed]
        self._commands = draw_commands([item.mesh for item in self._placed])
        self._constants = mesh_constants(self._placed)
        self._minimum = np.zeros((len(self._placed), 3))
        self._maximum = np.zeros((len(self._placed), 3))
        self.triangles_drawn = 0
        self._upload()
        self.place({row: item.pose for row, item in enumerate(scene.objects)})

    @property
    def boxes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper corners of every mesh in the world, each (N, 3)."""
        return self._minimum, self._maximum

    def boxes_of(
        self, object_rows: Iterable[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the corners of the meshes of some objects, each (N, 3)."""
        chosen = np.isin(self._object_row, list(object_rows))
        return self._minimum[chosen], self._maximum[chosen]

    def vertex_array(self, program: Any) -> Any:
        """Return a `moderngl.VertexArray` that feeds a program with what it declares."""
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
            box, turned = self._local_boxes[i], np.abs(pose.rotation)
            center, extent = pose.transform(box.center), turned @ (box.size / 2)
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

    def _upload(self) -> None:
        context, meshes = self._context, [item.mesh for item in self._placed]
        parts = [
            np.column_stack([mesh.vertices, mesh.normals, mesh.uv]).astype('f4') for mesh in meshes
        ]
        indices = [mesh.faces.astype('u4').ravel() for mesh in meshes]
        self._vertices = context.buffer(np.concatenate(parts).tobytes())
        self._indices = context.buffer(np.concatenate(indices).tobytes())
        self._instances = context.buffer(reserve=self._constants.nbytes)
        self._draw_buffer = context.buffer(reserve=self._commands.nbytes)


def with_flat_normals(mesh: Mesh) -> Mesh:
    """Return a mesh whose source gave no normals with those of its faces, as glTF asks for."""
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


def mesh_constants(placed: Sequence[_Placed]) -> NDArray[np.void]:
    """Return what every mesh has of its own; object numbers are rows plus one, 0: no surface."""
    constants = np.zeros(len(placed), MESH_CONSTANTS)
    colors = np.reshape([item.mesh.material.base_color for item in placed], (-1, 3))
    constants['color'] = decoded(colors.astype(np.float64))
    constants['object_number'] = [item.object_row + 1 for item in placed]
    constants['mesh'] = np.arange(len(placed))
    return constants
