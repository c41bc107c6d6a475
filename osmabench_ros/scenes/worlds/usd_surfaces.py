"""Shapes and materials of a USD stage; meshes are in the coordinates of their prims."""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.color import encoded
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import OsmabenchWarning, SceneError, errors_as
from osmabench_ros.scenes.assets import linearly_mapped, sum_normals
from osmabench_ros.scenes.mesh_files import decode_texture
from osmabench_ros.scenes.primitives import box, capsule, cylinder, plane, sphere
from osmabench_ros.scenes.scene import NEUTRAL, Material, Mesh

COLOR_INPUTS = ('diffuseColor', 'diffuse_color_constant')
TEXTURE_INPUT = 'diffuse_texture'
"""Inputs of UsdPreviewSurface, and of the materials of Isaac Sim."""

Z_TO_AXIS = {
    'X': np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    'Y': np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    'Z': np.eye(3),
}


def make_shape(prim: Any, where: str) -> Mesh | None:
    """Return the mesh of a geometric primitive, None with a warning of those unknown."""
    from pxr import UsdGeom

    def value(name: str) -> Any:
        return prim.GetAttribute(name).Get()

    if prim.IsA(UsdGeom.Cube):
        return box(np.full(3, float(value('size'))))
    if prim.IsA(UsdGeom.Sphere):
        return sphere(float(value('radius')))
    if prim.IsA(UsdGeom.Plane):
        mesh = plane([float(value('width')), float(value('length'))])
    elif prim.IsA(UsdGeom.Cylinder):
        mesh = cylinder(float(value('radius')), float(value('height')))
    elif prim.IsA(UsdGeom.Capsule):
        mesh = capsule(float(value('radius')), float(value('height')))
    else:
        text = f'{where} is a {prim.GetTypeName()}, which is left out; replace it by a mesh'
        warnings.warn(text, OsmabenchWarning, stacklevel=2)
        return None
    return linearly_mapped(mesh, Z_TO_AXIS[str(value('axis'))])


def triangles(mesh: Any, uv_name: str, where: str) -> tuple[Mesh, NDArray[np.int64]]:
    """Return a mesh of triangles, a vertex a corner, and the face that each one is of."""
    from pxr import UsdGeom

    points = np.array(mesh.GetPointsAttr().Get() or (), np.float32).reshape(-1, 3)
    counts = np.array(mesh.GetFaceVertexCountsAttr().Get() or (), int)
    corners = np.array(mesh.GetFaceVertexIndicesAttr().Get() or (), int)
    whole = counts.sum() == len(corners) and (counts >= 3).all() and np.isfinite(points).all()
    if not whole or (len(corners) and not 0 <= corners.min() <= corners.max() < len(points)):
        raise SceneError(f'{where} has faces without corners, or points that are not there')
    faces_of_corners = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    holes = np.array(mesh.GetHoleIndicesAttr().Get() or (), int)
    kept = np.repeat(~np.isin(np.arange(len(counts)), holes), counts - 2)
    owners = np.repeat(np.arange(len(counts)), counts - 2)
    # Faces are fans about their first corners.
    nth = np.arange(len(owners)) - np.repeat(np.cumsum(counts - 2) - (counts - 2), counts - 2)
    fans = np.stack([starts[owners], starts[owners] + nth + 1, starts[owners] + nth + 2], axis=1)
    if mesh.GetOrientationAttr().Get() == UsdGeom.Tokens.leftHanded:
        fans = fans[:, ::-1]
    fans, owners = fans[kept], owners[kept]

    def spread(values: Any, how: str, width: int) -> NDArray[np.float32] | None:
        """Return a row a corner, None if there are too few."""
        rows = np.array(values if values is not None else (), np.float32).reshape(-1, width)
        index = {
            'constant': np.zeros(len(corners), int),
            'uniform': faces_of_corners,
            'faceVarying': np.arange(len(corners)),
        }.get(how, corners)
        return rows[index] if len(index) and index.max() < len(rows) else None

    primvars = UsdGeom.PrimvarsAPI(mesh)
    uv = None
    for name in dict.fromkeys((uv_name, 'st', 'UVMap', 'st0')):
        found = primvars.GetPrimvar(name)
        if found and found.HasValue() and uv is None:
            uv = spread(found.ComputeFlattened(), str(found.GetInterpolation()), 2)
    normals = spread(mesh.GetNormalsAttr().Get(), str(mesh.GetNormalsInterpolation()), 3)
    named = primvars.GetPrimvar('normals')
    if named and named.HasValue():
        normals = spread(named.ComputeFlattened(), str(named.GetInterpolation()), 3)
    vertices = points[corners]
    if normals is None:
        smooth = mesh.GetSubdivisionSchemeAttr().Get() != UsdGeom.Tokens.none
        normals = sum_normals(vertices, fans, corners if smooth else None).astype(np.float32)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = np.where(length > 1e-6, normals / np.maximum(length, 1e-6), [0, 0, 1])
    uv = np.zeros((len(corners), 2), np.float32) if uv is None else uv
    return (
        Mesh(
            vertices,
            fans.astype(np.int32),
            normals.astype(np.float32),
            np.column_stack([uv[:, 0], 1.0 - uv[:, 1]]).astype(np.float32),
        ),
        owners,
    )


class Materials:
    """Reads the materials of a stage, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, tuple[Material, str]] = {}

    def of(self, prim: Any) -> tuple[Material, str]:
        """Return how a prim looks, and the name of the texture coordinates, '' without any."""
        from pxr import UsdGeom, UsdShade

        bound = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0]
        key = str(bound.GetPath()) if bound else ''
        if key:
            if key not in self._known:
                self._known[key] = self._read_shader(bound)
            return self._known[key]
        shape = prim if prim.IsA(UsdGeom.Gprim) else prim.GetParent()
        colors = UsdGeom.PrimvarsAPI(shape).FindPrimvarWithInheritance('displayColor')
        values = np.array(colors.Get() or ()) if colors else np.empty(0)
        if not values.size:
            return NEUTRAL, ''
        return _make_plain_material(values.reshape(-1, 3).mean(axis=0)), ''

    def _read_shader(self, material: Any) -> tuple[Material, str]:
        from pxr import UsdShade

        shaders = [material.ComputeSurfaceSource(context)[0] for context in ('', 'mdl')]
        shader = next(filter(None, shaders), None)
        if shader is None:
            return NEUTRAL, ''
        texture = shader.GetInput(TEXTURE_INPUT)
        if texture and texture.Get():
            return self._read_texture(texture.Get()), 'st'
        for name in COLOR_INPUTS:
            for attribute in _sources(shader.GetInput(name)):
                source = UsdShade.Shader(attribute.GetPrim())
                if source and source.GetIdAttr().Get() == 'UsdUVTexture':
                    image = source.GetInput('file')
                    return self._read_texture(image.Get() if image else None), _find_uv_name(
                        source
                    )
                return _make_plain_material(np.array(attribute.Get(), float)), ''
        return NEUTRAL, ''

    def _read_texture(self, asset: Any) -> Material:
        place = asset.resolvedPath if asset else ''
        if not place:
            return NEUTRAL
        what = f'{self._path}: texture {asset.path}'
        archive, _, inner = place.rstrip(']').partition('[')
        data = read_bytes(Path(archive), SceneError)
        if inner:
            with errors_as(SceneError, f'{what} cannot be read', KeyError, zipfile.BadZipFile):
                data = zipfile.ZipFile(io.BytesIO(data)).read(inner)
        return Material((1.0, 1.0, 1.0), decode_texture(data, what))


def _sources(given: Any) -> Iterable[Any]:
    """Return the attributes that give an input of a shader its value; none for no input."""
    from pxr import UsdShade

    found: Iterable[Any] = UsdShade.Utils.GetValueProducingAttributes(given) if given else ()
    return found


def _find_uv_name(texture: Any) -> str:
    """Return the name of the texture coordinates that a texture is laid by."""
    from pxr import UsdShade

    for attribute in _sources(texture.GetInput('st')):
        reader = UsdShade.Shader(attribute.GetPrim())
        for value in _sources(reader.GetInput('varname') if reader else None):
            return str(value.Get())
    return 'st'


def _make_plain_material(linear: NDArray[np.float64]) -> Material:
    red, green, blue = encoded(np.clip(linear[:3], 0, 1)).tolist()
    return Material((red, green, blue))
