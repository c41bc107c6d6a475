"""Reads a MuJoCo model (MJCF) as a scene, compiled by MuJoCo; its frame is z-up metres already."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.limits.child import read_limited
from osmabench_ros.base.limits.documents import read_xml
from osmabench_ros.base.limits.reading import naming_errors, read_bytes, shown
from osmabench_ros.errors import MissingDependencyError, SceneError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.asset_files import leads_into, resolved
from osmabench_ros.scenes.assets import linearly_mapped, moved
from osmabench_ros.scenes.lights import LightKind
from osmabench_ros.scenes.limited_assets import plain_mesh
from osmabench_ros.scenes.primitives import box, capsule, cylinder, plane, sphere
from osmabench_ros.scenes.scene import Material, Mesh, Scene
from osmabench_ros.scenes.worlds.parts import (
    DEFAULT_OPTIONS,
    WorldOptions,
    bytes_beside,
    distinct,
    scene_of_plain,
)

VISIBLE_GROUPS = 3
"""MuJoCo shows groups of geoms below this; collision shapes are in higher ones."""

INFINITE_M = 100.0
"""Edge of a plane without a size."""

_PLAIN_GREY = (0.5, 0.5, 0.5, 1.0)
"""A geom of this colour shows its material's."""


def load_mujoco_model(path: Path, options: WorldOptions = DEFAULT_OPTIONS) -> Scene:
    """Read a MuJoCo XML file in its initial state; SceneError, or a LimitError, names the fault.

    What lies directly in the world is an object: a body with all that moves with or in it, or a
    geom of the world itself. A body without geoms stands for the bodies in it.
    """
    with naming_errors(path, SceneError):
        root = read_xml(path, SceneError)
        if root.tag != 'mujoco':
            raise SceneError(f'{path} is no MuJoCo model; its root is <{shown(root.tag)}>')
        if find_spec('mujoco') is None:
            raise MissingDependencyError(f'{path}: MuJoCo models need mujoco; {extra("worlds")}')
        digest = hashlib.sha256(read_bytes(path, SceneError)).hexdigest()
        found = read_limited(
            plain_model,
            path,
            folders=(path.absolute().parent,),
            libraries=('mujoco', 'PIL.Image'),
            more_bytes=bytes_beside(path),
        )
        return scene_of_plain(found, 'mujoco', path, options, digest)


def plain_model(path: Path) -> dict[str, Any]:
    """Compile a model, and return what it shows, in the limited child."""
    import mujoco

    try:
        spec = mujoco.MjSpec.from_file(str(path))
        missing = _taken_out(spec, path)
        model = spec.compile()
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise SceneError(f'{path}: MuJoCo cannot compile it: {error}') from error
    reader = _ModelReader(model, data, path)
    return {'parts': reader.parts(), 'lights': list(reader.lights()), 'missing': missing}


def _taken_out(spec: Any, path: Path) -> list[str]:
    """Remove what names files that are not there, and return a sentence for each of them."""
    missing = []
    gone = {
        item.name or Path(item.file).stem: item
        for item in spec.meshes
        if item.file and not _is_there(path, spec.meshdir, item.file)
    }
    for geom in list(spec.geoms):
        if geom.meshname in gone:
            spec.delete(geom)
    for item in gone.values():
        missing.append(f'mesh {shown(item.file)} is not there')
        spec.delete(item)
    for item in list(spec.textures):
        files = [file for file in (item.file, *item.cubefiles) if file]
        if lost := [file for file in files if not _is_there(path, spec.texturedir, file)]:
            missing.append(f'texture {shown(lost[0])} is not there')
            for material in spec.materials:
                material.textures = ['' if n == item.name else n for n in material.textures]
            spec.delete(item)
    return missing


def _is_there(model: Path, below: str, file: str) -> bool:
    folder, path = model.parent, model.parent / below / file
    if resolved(path) is None:
        return False
    if not leads_into([folder], path):
        raise SceneError(
            f'{model}: {shown(file)} is outside of {folder}; put it there and name it by a '
            'relative path'
        )
    return True


class _ModelReader:
    """Makes meshes of the geoms of a compiled model."""

    def __init__(self, model: Any, data: Any, path: Path) -> None:
        self._model, self._data, self._path = model, data, path
        self._materials: dict[int, Material] = {}

    def parts(self) -> list[dict[str, Any]]:
        """Return objects: name, place (3,), rotation (3, 3), and plain meshes in that frame."""
        meshes: dict[tuple[str, int], list[Mesh]] = {}
        for geom in range(self._model.ngeom):
            if (mesh := self._mesh(geom)) is not None:
                body = self._owner(int(self._model.geom_bodyid[geom]))
                owner = ('geom', geom) if body == 0 else ('body', body)
                meshes.setdefault(owner, []).append(moved(mesh, self._pose('geom', geom)))
        found: list[dict[str, Any]] = []
        taken: set[str] = set()
        for (kind, index), placed in meshes.items():
            pose = self._pose(kind, index)
            found.append(
                {
                    'name': distinct(self._name(kind, index), taken),
                    'place': pose.translation,
                    'rotation': pose.rotation,
                    'meshes': [plain_mesh(moved(mesh, pose.inverse())) for mesh in placed],
                }
            )
        return found

    def lights(self) -> Iterator[dict[str, Any]]:
        """Yield the arguments of `attenuated_light` for every light that is on."""
        import mujoco

        model, data = self._model, self._data
        kinds = {
            int(mujoco.mjtLightType.mjLIGHT_SPOT): LightKind.SPOT,
            int(mujoco.mjtLightType.mjLIGHT_DIRECTIONAL): LightKind.DIRECTIONAL,
            int(mujoco.mjtLightType.mjLIGHT_POINT): LightKind.POINT,
        }
        for i in range(model.nlight):
            if model.light_active[i] and int(model.light_type[i]) in kinds:
                yield {
                    'name': self._name('light', i),
                    'kind': kinds[int(model.light_type[i])].value,
                    'place': data.light_xpos[i].copy(),
                    'direction': data.light_xdir[i].copy(),
                    'diffuse': model.light_diffuse[i].astype(float),
                    'half_angle_rad': float(np.radians(model.light_cutoff[i])),
                    'attenuation': model.light_attenuation[i].astype(float).tolist(),
                }

    def _owner(self, body: int) -> int:
        """Return the outermost body that is one thing with a body; 0 is the world."""
        chain = [body]
        while chain[-1] != 0:
            chain.append(int(self._model.body_parentid[chain[-1]]))
        above = chain[-2::-1]
        for place, item in enumerate(above):
            moves = place + 1 < len(above) and self._model.body_jntnum[above[place + 1]] > 0
            if self._model.body_geomnum[item] > 0 or moves:
                return item
        return body

    def _name(self, kind: str, index: int) -> str:
        import mujoco

        objects = mujoco.mjtObj
        types = {
            'geom': objects.mjOBJ_GEOM, 'body': objects.mjOBJ_BODY, 'light': objects.mjOBJ_LIGHT
        }  # fmt: skip
        name = mujoco.mj_id2name(self._model, types[kind], index)
        if not name and kind == 'geom' and self._model.geom_dataid[index] >= 0:
            mesh = int(self._model.geom_dataid[index])
            name = mujoco.mj_id2name(self._model, objects.mjOBJ_MESH, mesh)
        return name or f'{kind}_{index}'

    def _pose(self, kind: str, index: int) -> Pose:
        if kind == 'geom':
            matrix, place = self._data.geom_xmat[index], self._data.geom_xpos[index]
        else:
            matrix, place = self._data.xmat[index], self._data.xpos[index]
        return Pose(matrix.reshape(3, 3), place)

    def _mesh(self, geom: int) -> Mesh | None:
        """Return the mesh of a geom in its own frame, None if it is not shown."""
        import mujoco

        model = self._model
        rgba = tuple(float(value) for value in model.geom_rgba[geom])
        material = int(model.geom_matid[geom])
        if material >= 0 and np.allclose(rgba, _PLAIN_GREY):
            rgba = tuple(float(value) for value in model.mat_rgba[material])
        if model.geom_group[geom] >= VISIBLE_GROUPS or rgba[3] <= 0:
            return None
        kinds, kind = mujoco.mjtGeom, int(model.geom_type[geom])
        size = model.geom_size[geom].astype(float)
        mapped = False
        if kind == kinds.mjGEOM_MESH:
            mesh, mapped = self._mesh_asset(int(model.geom_dataid[geom]))
        elif kind == kinds.mjGEOM_PLANE:
            mesh, mapped = self._plane(size, material), True
        elif kind == kinds.mjGEOM_BOX:
            mesh = box(2 * size)
        elif kind == kinds.mjGEOM_SPHERE:
            mesh = sphere(size[0])
        elif kind == kinds.mjGEOM_ELLIPSOID:
            mesh = linearly_mapped(sphere(1.0), np.diag(size))
        elif kind in (kinds.mjGEOM_CYLINDER, kinds.mjGEOM_CAPSULE):
            mesh = (cylinder if kind == kinds.mjGEOM_CYLINDER else capsule)(size[0], 2 * size[1])
        else:
            raise SceneError(
                f'{self._path}: geom "{self._name("geom", geom)}" is a height field or an SDF, '
                'which is not read; replace it by a mesh'
            )
        red, green, blue = (float(value) for value in np.clip(rgba[:3], 0, 1))
        texture = self._texture(material)
        if texture is not None and not mapped:
            # MuJoCo wraps it about the shape; from afar that is its mean colour.
            mean = texture.reshape(-1, 3).mean(axis=0) / 255
            (red, green, blue), texture = (np.array([red, green, blue]) * mean).tolist(), None
        return replace(mesh, material=Material((red, green, blue), texture))

    def _plane(self, size: NDArray[np.float64], material: int) -> Mesh:
        """Return a plane; `size` holds half its edges, 0 for one without an end."""
        edges = np.where(size[:2] > 0, 2 * size[:2], INFINITE_M)
        mesh = plane(edges)
        if material < 0:
            return mesh
        repeat = self._model.mat_texrepeat[material].astype(float)
        if not self._model.mat_texuniform[material]:
            repeat = np.where(size[:2] > 0, repeat / edges, repeat)
        return replace(mesh, uv=mesh.uv * repeat.astype(np.float32))

    def _mesh_asset(self, index: int) -> tuple[Mesh, bool]:
        """Return a mesh, and whether it has texture coordinates."""
        model = self._model

        def rows(values: Any, first: Mapping[int, int] | Any, count: Any) -> Any:
            return values[first[index] : first[index] + count[index]]

        vertices = rows(model.mesh_vert, model.mesh_vertadr, model.mesh_vertnum)
        normals = rows(model.mesh_normal, model.mesh_normaladr, model.mesh_normalnum)
        corners = [
            rows(values, model.mesh_faceadr, model.mesh_facenum).reshape(-1)
            for values in (model.mesh_face, model.mesh_facenormal)
        ]
        mapped = bool(model.mesh_texcoordnum[index])
        if mapped:
            corners.append(
                rows(model.mesh_facetexcoord, model.mesh_faceadr, model.mesh_facenum).reshape(-1)
            )
        used, faces = np.unique(np.stack(corners, axis=1), axis=0, return_inverse=True)
        uv = np.zeros((len(used), 2), np.float32)
        if mapped:
            uv = rows(model.mesh_texcoord, model.mesh_texcoordadr, model.mesh_texcoordnum)
            uv = uv[used[:, 2]].astype(np.float32)
        mesh = Mesh(
            vertices[used[:, 0]].astype(np.float32),
            faces.reshape(-1, 3).astype(np.int32),
            normals[used[:, 1]].astype(np.float32),
            uv,
        )
        return mesh, mapped

    def _texture(self, material: int) -> NDArray[np.uint8] | None:
        """Return the colours of a material's texture, (h, w, 3); of a cube, its sides in a row."""
        import mujoco

        model = self._model
        if material < 0:
            return None
        index = int(model.mat_texid[material, int(mujoco.mjtTextureRole.mjTEXROLE_RGB)])
        if index < 0:
            return None
        height, width = int(model.tex_height[index]), int(model.tex_width[index])
        channels, start = int(model.tex_nchannel[index]), int(model.tex_adr[index])
        flat = model.tex_data[start : start + height * width * channels]
        image = np.asarray(flat, np.uint8).reshape(height, width, channels)
        return np.ascontiguousarray(np.broadcast_to(image[..., :3], (height, width, 3)))
