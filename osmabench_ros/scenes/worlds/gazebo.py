"""Reads a Gazebo world (SDF) as a scene; its frame is z-up metres already."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from osmabench_ros.base.documents import read_xml
from osmabench_ros.base.reading import naming_errors, read_bytes
from osmabench_ros.errors import MissingFileError, OsmabenchWarning, SceneError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.asset_files import FrameScope, find_text, read_pose
from osmabench_ros.scenes.assets import moved
from osmabench_ros.scenes.scene import Light, Mesh, Scene
from osmabench_ros.scenes.worlds.gazebo_models import (
    ModelFinder,
    ground_plane,
    load_visual,
    read_light,
    sun,
)
from osmabench_ros.scenes.worlds.parts import (
    DEFAULT_OPTIONS,
    ColladaUp,
    Part,
    WorldOptions,
    make_scene,
)

LAST_OF_CLASSIC = (1, 7)
"""Version of SDF; Gazebo Classic reads no later ones, new Gazebo writes them."""

IGNORED = ('ambient', 'shadows', 'fog')
"""Elements of <scene> that a `Scene` has no place for."""

MAX_DEPTH = 12
"""Models may be nested this deep; a deeper nest includes itself."""


def load_gazebo_world(path: Path, options: WorldOptions = DEFAULT_OPTIONS) -> Scene:
    """Read a .world or .sdf file; SceneError names the fault, MissingFileError all missing files.

    What options let be left out is in `left_out` of the scene.
    """
    with naming_errors(path, SceneError):
        reader = _WorldReader(path, options)
        parts = reader.read()
        return make_scene(
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

    def __init__(self, path: Path, options: WorldOptions) -> None:
        self.path = path
        self.digest = hashlib.sha256()
        self.lights: list[Light] = []
        self._root = self._parse(path)
        acts = _up_axis_acts(options.collada_up, self._root, path)
        self.finder = ModelFinder(path, options, up_axis_acts=acts)
        self._placed: dict[str, Pose] = {}

    def read(self) -> list[Part]:
        """Return all models with something to see, and collect all lights."""
        world, where = self._root.find('world'), str(self.path)
        world = self._root if world is None else world
        _warn_of_ignored(world, self.path)
        scope = _scope(world, where)
        # A saved state of the world gives poses to its models.
        self._placed = {
            model.get('name', ''): read_pose(model, where)[0]
            for model in world.findall('state/model')
            if model.find('pose') is not None
        }
        models = list(self._children(world, scope, Pose.identity(), self.path, '', 0))
        self._add_lights(world, scope, Pose.identity(), where)
        return models

    def _parse(self, path: Path) -> Element:
        root = read_xml(path, SceneError)
        if root.tag != 'sdf':
            raise SceneError(f'{path} is no SDF file; its root is <{root.tag}>')
        self.digest.update(read_bytes(path, SceneError))
        return root

    def _children(
        self,
        parent: Element,
        scope: FrameScope,
        above: Pose,
        file: Path,
        prefix: str,
        depth: int,
    ) -> Iterator[Part]:
        """Yield the models of a world or model, nested ones included."""
        if depth > MAX_DEPTH:
            raise SceneError(f'{file}: model "{prefix}" includes itself')
        for element in parent:
            name = element.get('name') or find_text(element, 'name')
            if element.tag == 'model':
                model, source = element, file
            elif element.tag == 'include' and (found := self._included(element, file)):
                model, source = found
                name = name or model.get('name', 'model')
            else:
                continue
            name = f'{prefix}{name}'
            posed = model if element.find('pose') is None else element
            pose = scope.resolve(*read_pose(posed, f'{source}: model "{name}"'))
            pose = self._placed.get(name, above @ pose)
            yield from self._model(model, name, pose, source, depth)

    def _included(self, element: Element, file: Path) -> tuple[Element, Path] | None:
        """Return the model an <include> names and its file; None for the sun, a light."""
        uri = find_text(element, 'uri')
        where = f'{file}: include "{uri}"'
        try:
            found = self.finder.find(uri, file.parent, where)
            source = self.finder.model_file(found, where) if found.is_dir() else found
        except MissingFileError as error:
            built_in = uri.rstrip('/').rpartition('/')[2].lower()
            if built_in == 'ground_plane':
                return ground_plane(), file
            if built_in == 'sun':
                self.lights.append(sun())
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

    def _model(
        self, model: Element, name: str, pose: Pose, file: Path, depth: int
    ) -> Iterator[Part]:
        where = f'{file}: model "{name}"'
        scope = _scope(model, where)
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
                    meshes += [moved(mesh, offset) for mesh in found]
            self._add_lights(link, FrameScope(), pose @ link_pose, where)
        nested = list(self._children(model, scope, pose, file, f'{name}::', depth + 1))
        if meshes:
            yield Part(name, pose, tuple(meshes))
        elif len(nested) == 1:
            # A model that only wraps another replaces it, under the name the world gives it.
            nested = [Part(name, nested[0].pose, nested[0].meshes)]
        yield from nested

    def _add_lights(self, parent: Element, scope: FrameScope, above: Pose, where: str) -> None:
        for light in parent.findall('light'):
            pose = above @ scope.resolve(*read_pose(light, where))
            self.lights.append(read_light(light, pose, where))


def _up_axis_acts(wanted: ColladaUp, root: Element, path: Path) -> bool:
    """Return whether the `up_axis` of Collada files turns them, in a world of this version."""
    if wanted is not ColladaUp.VERSION:
        return wanted is ColladaUp.APPLIED
    version = root.get('version', '1.0')
    try:
        parts = tuple(int(part) for part in version.split('.'))
    except ValueError:
        raise SceneError(
            f'{path}: <sdf version="{version}"> is no version; correct it, or say what '
            'up_axis of Collada files does with --collada-up'
        ) from None
    return parts > LAST_OF_CLASSIC


def _warn_of_ignored(world: Element, path: Path) -> None:
    found = [tag for tag in IGNORED if world.find(f'scene/{tag}') is not None]
    if found:
        warnings.warn(
            f'{path}: {", ".join(f"<{tag}>" for tag in found)} of <scene> are ignored; conditions '
            'say what the ambient light and shadows are',
            OsmabenchWarning,
            stacklevel=2,
        )


def _scope(parent: Element, where: str) -> FrameScope:
    entries = {}
    for element in parent:
        name = element.get('name') or find_text(element, 'name')
        if name and element.tag in ('model', 'include', 'link', 'frame', 'light'):
            pose, frame = read_pose(element, where)
            entries[name] = pose, frame or element.get('attached_to', '')
    return FrameScope(entries, where)
