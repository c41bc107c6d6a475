"""What SDF elements name and show: models and files, geometry, materials and lights."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.documents import read_xml
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import MissingFileError, OsmabenchWarning, SceneError, choose
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.asset_files import (
    TextureSearch,
    find_picture,
    find_text,
    leads_into,
    numbers,
    resolved,
)
from osmabench_ros.scenes.assets import (
    axes_of,
    linearly_mapped,
    load_nodes,
    read_collada_axes,
)
from osmabench_ros.scenes.mesh_files import decode_texture
from osmabench_ros.scenes.primitives import box, capsule, cylinder, plane, sphere
from osmabench_ros.scenes.scene import NEUTRAL, Light, LightKind, Material, Mesh
from osmabench_ros.scenes.worlds.parts import WorldOptions, make_light

REFERENCE_M = 2.0
"""Distance at which a light has the brightness that its attenuation gives it.

Gazebo attenuates by constant + linear d + quadratic d^2, a `Light` only by d^2.
"""

VARIABLES = ('GZ_SIM_RESOURCE_PATH', 'GAZEBO_MODEL_PATH', 'SDF_PATH', 'GAZEBO_RESOURCE_PATH')


class ModelFinder:
    """Looks for models and their files in given folders, near the world, then by variables.

    `up_axis_acts` says whether the `up_axis` of Collada files turns them; `missing` collects the
    errors of files that were not found.
    """

    def __init__(self, world: Path, options: WorldOptions, *, up_axis_acts: bool) -> None:
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
            raise MissingFileError(
                f'{where}: {uri} is not on this machine in a folder of models; '
                'download the model into one and name it by model://'
            )
        for path in (*candidates, *(_in_any_case(item) for item in candidates)):
            if path is not None and resolved(path) is not None:
                return self._within(path, rest, f'{where}: {uri}')
        searched = ', '.join(str(folder) for folder in dict.fromkeys(self.folders))
        raise MissingFileError(
            f'{where}: {uri} is in none of {searched}; name its folder with --models'
        )

    def texture(self, uri: str, base: Path, where: str) -> Path:
        """Return a picture as `find` does, else the one of its name below `textures`."""
        try:
            return self.find(uri, base, where)
        except MissingFileError:
            found = find_picture(uri, self.textures)
            if found is None:
                raise
            return found

    def _within(self, path: Path, name: str, what: str) -> Path:
        if Path(name).is_absolute() or not leads_into(self.folders, path):
            raise SceneError(
                f'{what} is outside of the folders of models; name it relative to one of them, '
                'or give its folder with --models'
            )
        return path

    def model_file(self, folder: Path, where: str) -> Path:
        """Return the newest SDF file of a model folder."""
        for name in (*_files_by_version(folder / 'model.config'), 'model.sdf'):
            if name and resolved(folder / name) is not None:
                return self._within(folder / name, name, f'{where}: {name}')
        raise MissingFileError(f'{where}: {folder} holds no model.sdf; the model is incomplete')


def _files_by_version(config: Path) -> list[str]:
    """Return the SDF files that a `model.config` names, newest first; none if it is broken."""
    if not config.is_file():
        return []
    try:
        listed = list(read_xml(config, SceneError).iter('sdf'))
    except SceneError as error:
        warnings.warn(f'{error}; model.sdf beside it is read', OsmabenchWarning, stacklevel=2)
        return []
    listed.sort(key=lambda item: _version(item.get('version', '0')), reverse=True)
    return [(item.text or '').strip() for item in listed]


def _in_any_case(path: Path) -> Path | None:
    """Return the only path that differs from a missing one only in case, else None."""
    place = Path(path.anchor)
    for part in path.parts[1 if path.anchor else 0 :]:
        if resolved(place / part) is None:
            try:
                alike = [item for item in place.iterdir() if item.name.lower() == part.lower()]
            except OSError:
                return None
            if len(alike) != 1:
                return None
            part = alike[0].name
        place = place / part
    return place


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split('.') if part.isdigit())


def read_light(element: Element, pose: Pose, where: str) -> Light:
    """Convert a <light>; `pose` is its own in the world."""
    name = element.get('name', 'light')
    where = f'{where}: light "{name}"'

    def number(path: str, default: float) -> float:
        return float(numbers(element.find(path), 1, (default,), where)[0])

    shape = element.get('type', 'point')
    kinds = [kind.value for kind in LightKind]
    kind = LightKind(choose(shape, kinds, SceneError, f'{where}: type "{shape}"'))
    light = make_light(
        name,
        kind,
        pose.translation,
        pose.rotation @ numbers(element.find('direction'), 3, (0.0, 0.0, -1.0), where),
        numbers(element.find('diffuse'), 3, (1.0, 1.0, 1.0), where),
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


def sun() -> Light:
    """Return the light of Gazebo's own model `sun`."""
    return Light(
        'sun', LightKind.DIRECTIONAL, direction=(-0.5, 0.1, -0.9), intensity=0.8, lamp=False
    )


def ground_plane() -> Element:
    """Return Gazebo's own model `ground_plane`, 100 m x 100 m and grey."""
    model = Element('model', name='ground_plane')
    visual = SubElement(SubElement(model, 'link', name='link'), 'visual', name='visual')
    shape = SubElement(SubElement(visual, 'geometry'), 'plane')
    SubElement(shape, 'normal').text = '0 0 1'
    SubElement(shape, 'size').text = '100 100'
    SubElement(SubElement(visual, 'material'), 'diffuse').text = '0.7 0.7 0.7 1'
    return model


SCRIPT_COLORS = {
    'white': (1.0, 1.0, 1.0), 'black': (0.05, 0.05, 0.05), 'grey': (0.7, 0.7, 0.7),
    'darkgrey': (0.35, 0.35, 0.35), 'red': (0.9, 0.1, 0.1), 'green': (0.1, 0.75, 0.1),
    'blue': (0.1, 0.1, 0.9), 'yellow': (0.95, 0.9, 0.1), 'orange': (1.0, 0.51, 0.02),
    'purple': (0.6, 0.1, 0.8), 'turquoise': (0.1, 0.8, 0.8), 'wood': (0.6, 0.42, 0.26),
    'gold': (0.83, 0.69, 0.22), 'indigo': (0.29, 0.0, 0.51), 'skyblue': (0.53, 0.81, 0.92),
}  # fmt: skip
"""sRGB of the usual names of Gazebo's material scripts, without 'Gazebo/'."""


def load_visual(visual: Element, base: Path, finder: ModelFinder, where: str) -> list[Mesh]:
    """Return the meshes of a <visual> in its own frame, metres; `base` is its file's folder."""
    geometry = visual.find('geometry')
    if geometry is None or numbers(visual.find('transparency'), 1, (0.0,), where)[0] >= 1:
        return []
    material = _material(visual.find('material'), base, finder, where)
    mesh_element = geometry.find('mesh')
    if mesh_element is not None:  # keeps the materials of its file
        return _mesh_file(mesh_element, base, finder, where)
    shape = _shape(geometry, where)
    return [] if shape is None else [replace(shape, material=material)]


def _shape(geometry: Element, where: str) -> Mesh | None:
    for item in geometry:
        name = f'{where}: <{item.tag}>'
        if item.tag == 'box':
            return box(numbers(item.find('size'), 3, (1, 1, 1), name))
        if item.tag == 'sphere':
            return sphere(float(numbers(item.find('radius'), 1, (1,), name)[0]))
        if item.tag in ('cylinder', 'capsule'):
            radius = float(numbers(item.find('radius'), 1, (0.5,), name)[0])
            length = float(numbers(item.find('length'), 1, (1,), name)[0])
            return (cylinder if item.tag == 'cylinder' else capsule)(radius, length)
        if item.tag == 'ellipsoid':
            radii = numbers(item.find('radii'), 3, (1, 1, 1), name)
            return linearly_mapped(sphere(1.0), np.diag(radii))
        if item.tag == 'plane':
            normal = numbers(item.find('normal'), 3, (0, 0, 1), name)
            return plane(numbers(item.find('size'), 2, (1, 1), name), normal)
        if item.tag != 'empty':
            raise SceneError(
                f'{where}: geometry <{item.tag}> is not supported; replace it by a mesh'
            )
    return None


def _mesh_file(element: Element, base: Path, finder: ModelFinder, where: str) -> list[Mesh]:
    uri = find_text(element, 'uri')
    if not uri:
        raise SceneError(f'{where}: <mesh> has no <uri>')
    path = finder.find(uri, base, where)
    search = TextureSearch(finder.textures)
    try:
        nodes = load_nodes(path, textures=search)
    except MissingFileError as error:
        finder.missing.append(str(error))
        nodes = load_nodes(path, textures=replace(search, grey_if_missing=True))
    wanted = find_text(element, 'submesh/name')
    if wanted:
        nodes = tuple(node for node in nodes if wanted in node.names)
    meshes = [mesh for node in nodes for mesh in node.meshes]
    if not meshes:
        part = f'no submesh "{wanted}"' if wanted else 'no triangles'
        raise SceneError(f'{where}: {path} has {part}')
    scale: NDArray[np.float64] = np.diag(numbers(element.find('scale'), 3, (1, 1, 1), where))
    if not scale.any(axis=0).all():
        raise SceneError(f'{where}: <scale> must not be 0')
    axes = axes_of(path)
    if path.suffix.lower() == '.dae' and not finder.up_axis_acts:
        axes = read_collada_axes(read_bytes(path, SceneError)).T
    if find_text(element, 'submesh/center', 'false').lower() in ('1', 'true'):
        points = np.concatenate([mesh.vertices for mesh in meshes])
        middle = (points.min(axis=0) + points.max(axis=0)) / 2
        meshes = [replace(mesh, vertices=mesh.vertices - middle) for mesh in meshes]
    return [linearly_mapped(mesh, scale @ axes) for mesh in meshes]


def _material(element: Element | None, base: Path, finder: ModelFinder, where: str) -> Material:
    """Return the material that an element describes, a neutral one if it describes none."""
    if element is None:
        return NEUTRAL
    albedo = find_text(element, 'pbr/metal/albedo_map') or find_text(
        element, 'pbr/specular/albedo_map'
    )
    if albedo:
        try:
            path = finder.texture(albedo, base, where)
        except MissingFileError as error:
            finder.missing.append(str(error))
            return NEUTRAL
        image = decode_texture(read_bytes(path, SceneError), f'{where}: texture {path}')
        return Material((1.0, 1.0, 1.0), image)
    if element.find('diffuse') is not None:
        red, green, blue = np.clip(numbers(element.find('diffuse'), 3, (1, 1, 1), where), 0, 1)
        return Material((float(red), float(green), float(blue)))
    script = find_text(element, 'script/name').rpartition('/')[2].lower()
    return Material(SCRIPT_COLORS[script]) if script in SCRIPT_COLORS else NEUTRAL
