"""Reads a USD stage as a scene, at its default time; turned to z up and scaled to metres."""

import hashlib
import io
import math
import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.fence import read_in_fence
from osmabench_ros.base.images import encode_srgb
from osmabench_ros.base.reading import naming_errors, read_bytes
from osmabench_ros.errors import MissingDependencyError, SceneError, errors_as, warn
from osmabench_ros.geometry.axes import WORLD_FROM_HABITAT
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.asset_files import leads_into
from osmabench_ros.scenes.assets import (
    map_linearly,
    pack_mesh,
    scale_normals,
    select_faces,
    sum_normals,
    unpack_mesh,
)
from osmabench_ros.scenes.mesh_files import decode_texture
from osmabench_ros.scenes.scene import NEUTRAL, LightKind, Material, Mesh, Scene, make_triple
from osmabench_ros.scenes.solids import make_shape, plane
from osmabench_ros.scenes.worlds import parts as world_parts

# Inputs of UsdPreviewSurface, and of the materials of Isaac Sim.
COLOR_INPUTS = ('diffuseColor', 'diffuse_color_constant')
TEXTURE_INPUT = 'diffuse_texture'

Z_TO_AXIS = {
    'X': np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    'Y': np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    'Z': np.eye(3),
}


def read_shape(prim: Any, where: str) -> Mesh | None:
    """Return the mesh of a geometric primitive, None with a warning of those unknown."""
    from pxr import UsdGeom

    def value(name: str) -> Any:
        return prim.GetAttribute(name).Get()

    def read(name: str, _: tuple[float, ...]) -> NDArray[np.float64]:
        return np.full(3, float(value('height' if name == 'length' else name)))

    kind = str(prim.GetTypeName())
    if prim.IsA(UsdGeom.Plane):
        mesh = plane([float(value('width')), float(value('length'))])
    elif (made := make_shape('box' if kind == 'Cube' else kind.lower(), read)) is not None:
        mesh = made
    else:
        warn(f'{where} is a {kind}, which is left out; replace it by a mesh')
        return None
    axis = prim.GetAttribute('axis')
    return map_linearly(mesh, Z_TO_AXIS[str(axis.Get())]) if axis else mesh


def read_triangles(mesh: Any, uv_name: str, where: str) -> tuple[Mesh, NDArray[np.int64]]:
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
    fans = fans[kept]
    owners = owners[kept]

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
        sums = sum_normals(vertices, fans, corners if smooth else None)
    uv = np.zeros((len(corners), 2), np.float32) if uv is None else uv
    return (
        Mesh(
            vertices,
            fans.astype(np.int32),
            scale_normals(sums if normals is None else normals),
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
            for attribute in _get_sources(shader.GetInput(name)):
                source = UsdShade.Shader(attribute.GetPrim())
                if source and source.GetIdAttr().Get() == 'UsdUVTexture':
                    image = source.GetInput('file')
                    texture = self._read_texture(image.Get() if image else None)
                    return texture, _find_uv_name(source)
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


def _get_sources(given: Any) -> Iterable[Any]:
    """Return the attributes that give an input of a shader its value; none for no input."""
    from pxr import UsdShade

    found: Iterable[Any] = UsdShade.Utils.GetValueProducingAttributes(given) if given else ()
    return found


def _find_uv_name(texture: Any) -> str:
    """Return the name of the texture coordinates that a texture is laid by."""
    from pxr import UsdShade

    for attribute in _get_sources(texture.GetInput('st')):
        reader = UsdShade.Shader(attribute.GetPrim())
        for value in _get_sources(reader.GetInput('varname') if reader else None):
            return str(value.Get())
    return 'st'


def _make_plain_material(linear: NDArray[np.float64]) -> Material:
    return Material(make_triple(encode_srgb(np.clip(linear[:3], 0, 1))))


# Of the folder of a stage, which it may be made of, that are counted.
_MOST_FILES = 10_000

# What USD itself takes, as a size of file; it is loaded within the limits.
_LIBRARY_BYTES = 2**26


def load_usd_stage(
    path: Path, options: world_parts.WorldOptions = world_parts.DEFAULT_OPTIONS
) -> Scene:
    """Read a .usd, .usda, .usdc or .usdz file; SceneError, or a LimitError, names the fault.

    An object is a prim with a semantic label or a component, else a prim directly in the default
    prim, with all below it.
    """
    with naming_errors(path, SceneError):
        if find_spec('pxr') is None:
            raise MissingDependencyError(f'{path}: USD stages need usd-core; {extra("worlds")}')
        digest = hashlib.sha256(read_bytes(path, SceneError)).hexdigest()
        near = islice(path.parent.rglob('*'), _MOST_FILES)
        near_bytes = sum(item.stat().st_size for item in near if item.is_file())
        found = read_in_fence(
            read_plain_stage,
            path,
            # Not pxr: its threads do not survive a fork.
            libraries=('PIL.Image',),
            more_bytes=near_bytes + _LIBRARY_BYTES,
        )
        parts = [
            world_parts.Part(name, Pose.identity(), tuple(map(unpack_mesh, meshes)), class_name)
            for name, class_name, meshes in found['parts']
        ]
        lights = tuple(
            world_parts.make_light(name, LightKind(kind), *rest)
            for name, kind, *rest in found['lights']
        )
        return world_parts.make_scene(
            parts, 'usd', path, options, lights=lights, sha256=digest, missing=found['missing']
        )


def read_plain_stage(path: Path) -> dict[str, Any]:
    """Read the visible prims of a stage, in the fence."""
    # Each thread of USD reserves address space, which is limited.
    os.environ['PXR_WORK_THREAD_LIMIT'] = '1'
    from pxr import Tf, Usd, UsdUtils

    try:
        layers, assets, unresolved = UsdUtils.ComputeAllDependencies(str(path))
        stage = Usd.Stage.Open(str(path)) if layers else None
    except Tf.ErrorException as error:
        text = ' '.join(str(error).split())
        raise SceneError(f'{path} is not a whole USD file: {text}') from error
    if stage is None:
        raise SceneError(f'{path} is not a USD file; export it again')
    named = [
        layer.ComputeAbsolutePath(name)
        for layer in layers
        for name in layer.GetCompositionAssetDependencies()
    ]
    for used in (*named, *assets):
        # Of a file in an archive, the archive.
        place = Path(str(used).partition('[')[0])
        if place.exists() and not leads_into([path.parent], place):
            raise SceneError(f'{path}: {used} is outside of its folder; put it there')
    missing = [f'{name} is not there' for name in unresolved if not name.endswith('.mdl')]
    reader = _StageReader(stage, path)
    return {'parts': reader.parts(), 'lights': list(reader.lights()), 'missing': missing}


class _StageReader:
    """Makes meshes of the prims of a stage."""

    def __init__(self, stage: Any, path: Path) -> None:
        from pxr import UsdGeom

        self._stage, self._path = stage, path
        y_up = UsdGeom.GetStageUpAxis(stage) == UsdGeom.Tokens.y
        self._unit_m = float(UsdGeom.GetStageMetersPerUnit(stage))
        self._axes = (WORLD_FROM_HABITAT if y_up else np.eye(3)) * self._unit_m
        self._transforms = UsdGeom.XformCache()
        self._materials = Materials(path)

    def parts(self) -> list[tuple[str, str, list[dict[str, Any]]]]:
        """Return a unique name, the class or '', and plain meshes in the world of each object."""
        from pxr import UsdGeom

        groups: dict[str, tuple[Any, list[Mesh]]] = {}
        for prim in self._iterate_visible_prims():
            if prim.IsA(UsdGeom.Gprim):
                owner = self._find_owner(prim)
                meshes = groups.setdefault(str(owner.GetPath()), (owner, []))[1]
                meshes += [self._place_mesh(mesh, prim) for mesh in self._read_meshes(prim)]
        found: dict[str, tuple[str, str, list[dict[str, Any]]]] = {}
        for owner, meshes in groups.values():
            name = owner.GetName()
            while name in found:
                name = f'{name}_{len(found)}'
            if meshes:
                found[name] = name, _label(owner), list(map(pack_mesh, meshes))
        return list(found.values())

    def lights(self) -> Iterator[tuple[Any, ...]]:
        """Yield the arguments of `make_light` for every light but dome lights."""
        from pxr import UsdLux

        for prim in self._iterate_visible_prims():
            if prim.IsA(UsdLux.DomeLight):
                warn(f'{self._path}: {prim.GetPath()} lights from all sides, which is left out')
            elif prim.HasAPI(UsdLux.LightAPI):
                kind, size_m2, area_m2 = self._read_emitter(prim)
                if kind is None:
                    warn(f'{self._path}: light {prim.GetPath()} is of an unknown kind, left out')
                    continue
                light = UsdLux.LightAPI(prim)
                power = float(light.GetIntensityAttr().Get())
                power *= 2.0 ** float(light.GetExposureAttr().Get())
                if light.GetNormalizeAttr().Get():
                    power /= area_m2
                half_angle_rad = math.pi / 2
                if prim.HasAPI(UsdLux.ShapingAPI):
                    cone = float(UsdLux.ShapingAPI(prim).GetShapingConeAngleAttr().Get())
                    half_angle_rad = min(math.radians(cone), half_angle_rad)
                    narrow = half_angle_rad < math.pi / 2 and kind is LightKind.POINT
                    kind = LightKind.SPOT if narrow else kind
                matrix = np.array(self._transforms.GetLocalToWorldTransform(prim))
                direction = self._axes @ -matrix[2, :3]
                yield (
                    str(prim.GetPath()),
                    kind.value,
                    self._axes @ matrix[3, :3],
                    direction / max(float(np.linalg.norm(direction)), 1e-12),
                    [float(value) for value in light.GetColorAttr().Get()],
                    power * size_m2,
                    half_angle_rad,
                )

    def _read_emitter(self, prim: Any) -> tuple[LightKind | None, float, float]:
        """Return kind, factor from radiance to a `Light`'s intensity, and what normalizes power.

        A diffuse surface of albedo a under irradiance E has radiance a E / pi, and is drawn as a
        times the light that falls on it: the factor is the area that is seen from 1 m, over pi.
        """
        from pxr import UsdLux

        def size(name: str) -> float:
            return float(prim.GetAttribute(f'inputs:{name}').Get()) * self._unit_m

        if prim.IsA(UsdLux.SphereLight):
            radius = size('radius')
            return LightKind.POINT, radius**2, 4 * math.pi * radius**2 / self._unit_m**2
        if prim.IsA(UsdLux.DiskLight):
            radius = size('radius')
            return LightKind.SPOT, radius**2, math.pi * radius**2 / self._unit_m**2
        if prim.IsA(UsdLux.RectLight):
            area = size('width') * size('height')
            return LightKind.SPOT, area / math.pi, area / self._unit_m**2
        if prim.IsA(UsdLux.CylinderLight):
            radius = size('radius')
            length = size('length')
            area = 2 * math.pi * radius * length
            return LightKind.POINT, 2 * radius * length / math.pi, area / self._unit_m**2
        if prim.IsA(UsdLux.DistantLight):
            half = math.radians(float(prim.GetAttribute('inputs:angle').Get()) / 2)
            solid = math.pi * math.sin(half) ** 2
            return LightKind.DIRECTIONAL, (solid or 1.0) / math.pi, solid or 1.0
        return None, 0.0, 1.0

    def _iterate_visible_prims(self) -> Iterator[Any]:
        """Yield all prims that a camera sees."""
        from pxr import Usd, UsdGeom

        walk = iter(Usd.PrimRange(self._stage.GetPseudoRoot(), Usd.TraverseInstanceProxies()))
        for prim in walk:
            if prim.IsA(UsdGeom.PointInstancer):
                warn(f'{self._path}: {prim.GetPath()} repeats prims by points, which is not read')
                walk.PruneChildren()
            elif prim.IsA(UsdGeom.Imageable):
                found = UsdGeom.Imageable(prim)
                hidden = found.ComputeVisibility() == UsdGeom.Tokens.invisible
                if not hidden and found.ComputePurpose() in ('default', 'render'):
                    yield prim

    def _find_owner(self, prim: Any) -> Any:
        """Return the prim that is the object a shape belongs to."""
        from pxr import Kind, Usd, UsdGeom

        chain = []
        while prim and not prim.IsPseudoRoot():
            chain.append(prim)
            prim = prim.GetParent()
        labelled = [item for item in chain if _label(item)]
        if labelled:
            return labelled[0]
        chain.reverse()
        for item in chain:
            kind = Usd.ModelAPI(item).GetKind()
            if Kind.Registry.IsA(kind, Kind.Tokens.component):
                return item
        top = self._stage.GetDefaultPrim()
        for item in chain[:-1]:
            group = Kind.Registry.IsA(Usd.ModelAPI(item).GetKind(), Kind.Tokens.group)
            if item != top and not group and not item.IsA(UsdGeom.Scope):
                return item
        return chain[-1]

    def _place_mesh(self, mesh: Mesh, prim: Any) -> Mesh:
        # USD multiplies rows by matrices.
        matrix = np.array(self._transforms.GetLocalToWorldTransform(prim))
        linear = self._axes @ matrix[:3, :3].T
        if not np.isfinite(matrix).all() or abs(np.linalg.det(linear)) < 1e-18:
            raise SceneError(f'{self._path}: {prim.GetPath()} is scaled by 0; correct its xform')
        turned = map_linearly(mesh, linear)
        vertices = turned.vertices + self._axes @ matrix[3, :3]
        return replace(turned, vertices=vertices.astype(np.float32))

    def _read_meshes(self, prim: Any) -> list[Mesh]:
        """Return the meshes of a shape, one a material."""
        from pxr import UsdGeom, UsdShade

        where = f'{self._path}: {prim.GetPath()}'
        if not prim.IsA(UsdGeom.Mesh):
            shape = read_shape(prim, where)
            return [] if shape is None else [replace(shape, material=self._materials.of(prim)[0])]
        own, uv_name = self._materials.of(prim)
        subsets = UsdShade.MaterialBindingAPI(prim).GetMaterialBindSubsets()
        names = [self._materials.of(item.GetPrim())[1] for item in subsets]
        wanted = next(filter(None, [uv_name, *names]), 'st')
        mesh, owners = read_triangles(UsdGeom.Mesh(prim), wanted, where)
        if not len(mesh.faces):
            return []
        found = []
        rest = np.ones(len(mesh.faces), bool)
        for subset in subsets:
            chosen = np.isin(owners, np.array(subset.GetIndicesAttr().Get() or (), int)) & rest
            rest &= ~chosen
            if chosen.any():
                material = self._materials.of(subset.GetPrim())[0]
                found.append(replace(select_faces(mesh, chosen), material=material))
        if rest.all():
            return [replace(mesh, material=own)]
        return [*found, replace(select_faces(mesh, rest), material=own)] if rest.any() else found


def _label(prim: Any) -> str:
    """Return the class that a prim is labelled with, by UsdSemantics or the older scheme."""
    for name in ('semantics:labels:class', 'semantics:labels:category'):
        found = prim.GetAttribute(name)
        if found and (labels := found.Get()):
            return str(labels[0])
    for attribute in prim.GetAttributes():
        name = attribute.GetName()
        if name.startswith('semantic:') and name.endswith(':params:semanticType'):
            data = prim.GetAttribute(name.replace('semanticType', 'semanticData'))
            if attribute.Get() == 'class' and data and data.Get():
                return str(data.Get())
    return ''
