"""Reads a Gazebo world (SDF) and its models as a scene; its frame is z-up metres already."""

import hashlib
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from defusedxml.ElementTree import fromstring
from numpy.typing import NDArray

from osmabench_ros.base.documents import read_xml
from osmabench_ros.base.reading import naming_errors, read_bytes
from osmabench_ros.errors import MissingFileError, SceneError, choose, errors_as, warn
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes import assets, solids
from osmabench_ros.scenes.asset_files import (
    FrameScope,
    TextureSearch,
    find_picture,
    find_text,
    leads_into,
    numbers,
    read_pose,
    resolve_path,
)
from osmabench_ros.scenes.mesh_files import decode_texture
from osmabench_ros.scenes.scene import NEUTRAL, Light, LightKind, Material, Mesh, Scene
from osmabench_ros.scenes.worlds import parts as world_parts

# Distance at which a light has the brightness that its attenuation gives it.
#
# Gazebo attenuates by constant + linear d + quadratic d^2, a `Light` only by d^2.
REFERENCE_M = 2.0

VARIABLES = ('GZ_SIM_RESOURCE_PATH', 'GAZEBO_MODEL_PATH', 'SDF_PATH', 'GAZEBO_RESOURCE_PATH')


class ModelFinder:
    """Looks for models and their files in given folders, near the world, then by variables.

    `up_axis_acts` says whether the `up_axis` of Collada files turns them; `missing` collects the
    errors of files that were not found.
    """

    def __init__(
        self, world: Path, options: world_parts.WorldOptions, *, up_axis_acts: bool
    ) -> None:
        self.textures, self.up_axis_acts = tuple(options.textures), up_axis_acts
        self.missing: list[str] = []
        home = world.absolute().parent
        near = [home, home / 'models', home.parent / 'models']
        near += [home.parent] if home.name == 'worlds' else []
        variables = [part for name in VARIABLES for part in os.environ.get(name, '').split(':')]
        self.folders = [*options.models, *near, *(Path(part) for part in variables if part)]

    def find(self, uri: str, base: Path, where: str) -> Path:
        """Return the file or folder within the folders searched that a URI or a path names."""
        scheme, _, rest = uri.partition('://') if '://' in uri else ('', '', uri)
        if scheme in ('', 'file'):
            candidates = [base / rest, *(folder / rest for folder in self.folders)]
        elif scheme in ('model', 'package') and '..' not in Path(rest).parts:
            candidates = [folder / rest for folder in self.folders]
        else:
            problem = f'{where}: {uri} is not on this machine'
            raise MissingFileError(f'{problem}; download the model and name it by model://')
        for path in (*candidates, *(_find_in_any_case(item) for item in candidates)):
            if path is not None and resolve_path(path) is not None:
                return self._locate_within(path, rest, f'{where}: {uri}')
        searched = ', '.join(map(str, dict.fromkeys(self.folders)))
        problem = f'{where}: {uri} is in none of {searched}'
        raise MissingFileError(f'{problem}; name its folder with --models')

    def texture(self, uri: str, base: Path, where: str) -> Path:
        """Return a picture as `find` does, else the one of its name below `textures`."""
        try:
            return self.find(uri, base, where)
        except MissingFileError:
            found = find_picture(uri, self.textures)
            if found is None:
                raise
            return found

    def _locate_within(self, path: Path, name: str, what: str) -> Path:
        if Path(name).is_absolute() or not leads_into(self.folders, path):
            problem = f'{what} is outside of the folders of models'
            raise SceneError(f'{problem}; give its folder with --models')
        return path

    def find_model_file(self, folder: Path, where: str) -> Path:
        """Return the newest SDF file of a model folder."""
        for name in (*_sort_files_by_version(folder / 'model.config'), 'model.sdf'):
            if name and resolve_path(folder / name) is not None:
                return self._locate_within(folder / name, name, f'{where}: {name}')
        raise MissingFileError(f'{where}: {folder} holds no model.sdf; the model is incomplete')


def _sort_files_by_version(config: Path) -> list[str]:
    """Return the SDF files that a `model.config` names, newest first; none if it is broken."""
    if not config.is_file():
        return []
    try:
        listed = list(read_xml(config, SceneError).iter('sdf'))
    except SceneError as error:
        warn(f'{error}; model.sdf in the same folder is read')
        return []
    listed.sort(key=lambda item: _parse_version(item.get('version', '0')), reverse=True)
    return [(item.text or '').strip() for item in listed]


def _find_in_any_case(path: Path) -> Path | None:
    """Return the only path that differs from a missing one only in case, else None."""
    place = Path(path.anchor)
    for part in path.parts[1 if path.anchor else 0 :]:
        if resolve_path(place / part) is None:
            try:
                alike = [item for item in place.iterdir() if item.name.lower() == part.lower()]
            except OSError:
                return None
            if len(alike) != 1:
                return None
            part = alike[0].name
        place = place / part
    return place


def _parse_version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split('.') if part.isdigit())


def read_light(element: Element, pose: Pose, where: str) -> Light:
    """Convert a <light>; `pose` is its own in the world."""
    name = element.get('name', 'light')
    where = f'{where}: light "{name}"'

    def number(path: str, default: float) -> float:
        return float(numbers(element.find(path), (default,), where)[0])

    shape = element.get('type', 'point')
    kinds = [kind.value for kind in LightKind]
    kind = LightKind(choose(shape, kinds, SceneError, f'{where}: type "{shape}"'))
    light = world_parts.make_light(
        name,
        kind,
        pose.translation,
        pose.rotation @ numbers(element.find('direction'), (0.0, 0.0, -1.0), where),
        numbers(element.find('diffuse'), (1.0, 1.0, 1.0), where),
        number('intensity', 1.0),
        number('spot/outer_angle', math.pi / 2) / 2,
    )
    below = (
        number('attenuation/constant', 1.0)
        + number('attenuation/linear', 0.0) * REFERENCE_M
        + number('attenuation/quadratic', 0.0) * REFERENCE_M**2
    )
    factor = 1.0 if kind is LightKind.DIRECTIONAL else REFERENCE_M**2 / max(below, 1e-3)
    return replace(light, intensity=light.intensity * factor)


# The light of Gazebo's own model `sun`.
SUN = Light('sun', LightKind.DIRECTIONAL, direction=(-0.5, 0.1, -0.9), intensity=0.8, lamp=False)

# Gazebo's own model, 100 m x 100 m and grey.
GROUND_PLANE = fromstring(
    '<model name="ground_plane"><link name="link"><visual name="visual">'
    '<geometry><plane><normal>0 0 1</normal><size>100 100</size></plane></geometry>'
    '<material><diffuse>0.7 0.7 0.7 1</diffuse></material>'
    '</visual></link></model>'
)

# sRGB of the usual names of Gazebo's material scripts, without 'Gazebo/'.
SCRIPT_COLORS = {
    'white': (1.0, 1.0, 1.0), 'black': (0.05, 0.05, 0.05), 'grey': (0.7, 0.7, 0.7),
    'darkgrey': (0.35, 0.35, 0.35), 'red': (0.9, 0.1, 0.1), 'green': (0.1, 0.75, 0.1),
    'blue': (0.1, 0.1, 0.9), 'yellow': (0.95, 0.9, 0.1), 'orange': (1.0, 0.51, 0.02),
    'purple': (0.6, 0.1, 0.8), 'turquoise': (0.1, 0.8, 0.8), 'wood': (0.6, 0.42, 0.26),
    'gold': (0.83, 0.69, 0.22), 'indigo': (0.29, 0.0, 0.51), 'skyblue': (0.53, 0.81, 0.92),
}  # fmt: skip


def load_visual(visual: Element, base: Path, finder: ModelFinder, where: str) -> list[Mesh]:
    """Return the meshes of a <visual> in its own frame, metres; `base` is its file's folder."""
    geometry = visual.find('geometry')
    if geometry is None or numbers(visual.find('transparency'), (0.0,), where)[0] >= 1:
        return []
    material = _read_look(visual.find('material'), base, finder, where)
    mesh_element = geometry.find('mesh')
    if mesh_element is not None:  # keeps the materials of its file
        return _load_mesh_file(mesh_element, base, finder, where)
    shape = _make_shape(geometry, where)
    return [] if shape is None else [replace(shape, material=material)]


def _make_shape(geometry: Element, where: str) -> Mesh | None:
    for item in geometry:

        def read(key: str, default: tuple[float, ...], item: Element = item) -> NDArray[Any]:
            return numbers(item.find(key), default, f'{where}: <{item.tag}>')

        if item.tag == 'ellipsoid':
            ball = solids.make_mesh(solids.ellipsoid((2, 2, 2), solids.SEGMENTS))
            return assets.map_linearly(ball, np.diag(read('radii', (1, 1, 1))))
        if item.tag == 'plane':
            return solids.plane(read('size', (1, 1)), read('normal', (0, 0, 1)))
        shape = solids.make_shape(item.tag, read)
        if shape is not None:
            return shape
        if item.tag != 'empty':
            what = f'{where}: geometry <{item.tag}> is not supported'
            raise SceneError(f'{what}; replace it by a mesh')
    return None


def _load_mesh_file(element: Element, base: Path, finder: ModelFinder, where: str) -> list[Mesh]:
    uri = find_text(element, 'uri')
    if not uri:
        raise SceneError(f'{where}: <mesh> has no <uri>')
    path = finder.find(uri, base, where)
    search = TextureSearch(finder.textures)
    try:
        nodes = assets.load_nodes(path, textures=search)
    except MissingFileError as error:
        finder.missing.append(str(error))
        nodes = assets.load_nodes(path, textures=replace(search, grey_if_missing=True))
    wanted = find_text(element, 'submesh/name')
    if wanted:
        nodes = tuple(node for node in nodes if wanted in node.names)
    meshes = [mesh for node in nodes for mesh in node.meshes]
    if not meshes:
        part = f'no submesh "{wanted}"' if wanted else 'no triangles'
        raise SceneError(f'{where}: {path} has {part}')
    scale: NDArray[np.float64] = np.diag(numbers(element.find('scale'), (1, 1, 1), where))
    if not scale.any(axis=0).all():
        raise SceneError(f'{where}: <scale> must not be 0')
    axes = assets.get_axes(path)
    if path.suffix.lower() == '.dae' and not finder.up_axis_acts:
        axes = assets.read_collada_axes(read_bytes(path, SceneError)).T
    if find_text(element, 'submesh/center', 'false').lower() in ('1', 'true'):
        points = np.concatenate([mesh.vertices for mesh in meshes])
        middle = (points.min(axis=0) + points.max(axis=0)) / 2
        meshes = [replace(mesh, vertices=mesh.vertices - middle) for mesh in meshes]
    return [assets.map_linearly(mesh, scale @ axes) for mesh in meshes]


def _read_look(element: Element | None, base: Path, finder: ModelFinder, where: str) -> Material:
    """Return the material that an element describes, a neutral one if it describes none."""
    if element is None:
        return NEUTRAL
    maps = (find_text(element, f'pbr/{kind}/albedo_map') for kind in ('metal', 'specular'))
    albedo = next(filter(None, maps), '')
    if albedo:
        try:
            path = finder.texture(albedo, base, where)
        except MissingFileError as error:
            finder.missing.append(str(error))
            return NEUTRAL
        image = decode_texture(read_bytes(path, SceneError), f'{where}: texture {path}')
        return Material((1.0, 1.0, 1.0), image)
    if element.find('diffuse') is not None:
        red, green, blue = np.clip(numbers(element.find('diffuse'), (1, 1, 1), where), 0, 1)
        return Material((float(red), float(green), float(blue)))
    script = find_text(element, 'script/name').rpartition('/')[2].lower()
    return Material(SCRIPT_COLORS[script]) if script in SCRIPT_COLORS else NEUTRAL


# Version of SDF; Gazebo Classic reads no later ones, new Gazebo writes them.
LAST_OF_CLASSIC = (1, 7)

# Elements of <scene> that a `Scene` has no place for.
IGNORED = ('ambient', 'shadows', 'fog')

# Models may be nested this deep; a deeper nest includes itself.
MAX_DEPTH = 12


def load_gazebo_world(
    path: Path, options: world_parts.WorldOptions = world_parts.DEFAULT_OPTIONS
) -> Scene:
    """Read a .world or .sdf file; SceneError names the fault, MissingFileError all missing files.

    What options let be left out is in `left_out` of the scene.
    """
    with naming_errors(path, SceneError):
        reader = _WorldReader(path, options)
        parts = reader.read()
        return world_parts.make_scene(
            parts,
            'gazebo',
            path,
            options,
            lights=tuple(reader.lights),
            sha256=reader.digest.hexdigest(),
            missing=reader.finder.missing,
        )


class _WorldReader:
    """Collects models and lights, and the digest of the SDF files."""

    def __init__(self, path: Path, options: world_parts.WorldOptions) -> None:
        self.path = path
        self.digest = hashlib.sha256()
        self.lights: list[Light] = []
        self._root = self._parse(path)
        acts = _is_up_axis_used(options.collada_up, self._root, path)
        self.finder = ModelFinder(path, options, up_axis_acts=acts)
        self._placed: dict[str, Pose] = {}

    def read(self) -> list[world_parts.Part]:
        """Return all models with something to see, and collect all lights."""
        world = self._root.find('world')
        where = str(self.path)
        world = self._root if world is None else world
        _warn_of_ignored(world, self.path)
        scope = _make_scope(world, where)
        # A saved state of the world gives poses to its models.
        self._placed = {
            model.get('name', ''): read_pose(model, where)[0]
            for model in world.findall('state/model')
            if model.find('pose') is not None
        }
        models = list(self._iterate_children(world, scope, Pose.identity(), self.path, '', 0))
        self._add_lights(world, scope, Pose.identity(), where)
        return models

    def _parse(self, path: Path) -> Element:
        root = read_xml(path, SceneError)
        if root.tag != 'sdf':
            raise SceneError(f'{path} is not an SDF file; its root is <{root.tag}>')
        self.digest.update(read_bytes(path, SceneError))
        return root

    def _iterate_children(
        self, parent: Element, scope: FrameScope, above: Pose, file: Path, prefix: str, depth: int
    ) -> Iterator[world_parts.Part]:
        """Yield the models of a world or model, nested ones included."""
        if depth > MAX_DEPTH:
            raise SceneError(f'{file}: model "{prefix}" includes itself')
        for element in parent:
            name = element.get('name') or find_text(element, 'name')
            if element.tag == 'model':
                model, source = element, file
            elif element.tag == 'include' and (found := self._resolve_include(element, file)):
                model, source = found
                name = name or model.get('name', 'model')
            else:
                continue
            name = f'{prefix}{name}'
            posed = model if element.find('pose') is None else element
            pose = scope.resolve(*read_pose(posed, f'{source}: model "{name}"'))
            pose = self._placed.get(name, above @ pose)
            yield from self._read_model(model, name, pose, source, depth)

    def _resolve_include(self, element: Element, file: Path) -> tuple[Element, Path] | None:
        """Return the model an <include> names and its file; None for the sun, a light."""
        uri = find_text(element, 'uri')
        where = f'{file}: include "{uri}"'
        try:
            found = self.finder.find(uri, file.parent, where)
            source = self.finder.find_model_file(found, where) if found.is_dir() else found
        except MissingFileError as error:
            built_in = uri.rstrip('/').rpartition('/')[2].lower()
            if built_in == 'ground_plane':
                return GROUND_PLANE, file
            if built_in == 'sun':
                self.lights.append(SUN)
            else:
                self.finder.missing.append(str(error))
            return None
        root = self._parse(source)
        for light in root.findall('light'):
            pose = read_pose(light, where)[0]
            self.lights.append(read_light(light, read_pose(element, where)[0] @ pose, where))
        model = root.find('model')
        if model is None:
            if root.find('light') is None:
                raise SceneError(f'{where}: {source} holds no <model>')
            return None
        return model, source

    def _read_model(
        self, model: Element, name: str, pose: Pose, file: Path, depth: int
    ) -> Iterator[world_parts.Part]:
        where = f'{file}: model "{name}"'
        scope = _make_scope(model, where)
        meshes: list[Mesh] = []
        for link in model.findall('link'):
            link_pose = scope.resolve(*read_pose(link, where))
            for visual in link.findall('visual'):
                offset = link_pose @ read_pose(visual, where)[0]
                try:
                    found = load_visual(visual, file.parent, self.finder, where)
                except MissingFileError as error:
                    self.finder.missing.append(str(error))
                else:
                    meshes += [assets.move_mesh(mesh, offset) for mesh in found]
            self._add_lights(link, FrameScope(), pose @ link_pose, where)
        nested = list(self._iterate_children(model, scope, pose, file, f'{name}::', depth + 1))
        if meshes:
            yield world_parts.Part(name, pose, tuple(meshes))
        elif len(nested) == 1:
            # A model that only wraps another replaces it, under the name the world gives it.
            nested = [world_parts.Part(name, nested[0].pose, nested[0].meshes)]
        yield from nested

    def _add_lights(self, parent: Element, scope: FrameScope, above: Pose, where: str) -> None:
        for light in parent.findall('light'):
            pose = above @ scope.resolve(*read_pose(light, where))
            self.lights.append(read_light(light, pose, where))


def _is_up_axis_used(wanted: world_parts.ColladaUp, root: Element, path: Path) -> bool:
    """Return whether the `up_axis` of Collada files turns them, in a world of this version."""
    if wanted is not world_parts.ColladaUp.VERSION:
        return wanted is world_parts.ColladaUp.APPLIED
    version = root.get('version', '1.0')
    what = f'{path}: <sdf version="{version}"> is not a version'
    with errors_as(SceneError, what, ValueError, remedy='correct it, or give --collada-up'):
        return tuple(int(part) for part in version.split('.')) > LAST_OF_CLASSIC


def _warn_of_ignored(world: Element, path: Path) -> None:
    found = [tag for tag in IGNORED if world.find(f'scene/{tag}') is not None]
    if found:
        tags = ', '.join(f'<{tag}>' for tag in found)
        what = 'conditions say what the ambient light and shadows are'
        warn(f'{path}: {tags} of <scene> are ignored; {what}')


def _make_scope(parent: Element, where: str) -> FrameScope:
    entries = {}
    for element in parent:
        name = element.get('name') or find_text(element, 'name')
        if name and element.tag in ('model', 'include', 'link', 'frame', 'light'):
            pose, frame = read_pose(element, where)
            entries[name] = pose, frame or element.get('attached_to', '')
    return FrameScope(entries, where)
