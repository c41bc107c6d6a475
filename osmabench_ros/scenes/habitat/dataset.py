"""A `*.scene_dataset_config.json`, the files it names, and the templates of its objects."""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import SceneError, choose, errors_as, suggestion
from osmabench_ros.geometry.axes import WORLD_FROM_HABITAT, turn_pose_from_habitat
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes import asset_files
from osmabench_ros.scenes.assets import load_many_meshes, load_meshes, map_linearly
from osmabench_ros.scenes.scene import Mesh

# Axes that Habitat-Sim takes a stage to have that is a GLB file and nothing else: MP3D's.
BARE_STAGE = {'up': (0.0, 0.0, 1.0), 'front': (0.0, 1.0, 0.0)}

# Attributes, and the folder that paths in them start from.
Described = tuple[dict[str, Any], Path]


SUFFIX = '.scene_dataset_config.json'

# In default attributes, a placeholder for the name of the asset or scene.
NAME_TOKEN = '%%CONFIG_NAME_AS_ASSET_FILENAME%%'  # noqa: S105

_SECTIONS = {
    'stages': '.stage_config.json',
    'objects': '.object_config.json',
    'articulated_objects': '.ao_config.json',
    'light_setups': '.lighting_config.json',
    'scene_instances': '.scene_instance.json',
}


class HabitatDataset:
    """The content of a scene data set, as its configuration file describes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name.removesuffix(SUFFIX)
        self._data = asset_files.read_object(path)
        self._list_files = cache(self._find_files)

    def _get_defaults(self, section: str) -> dict[str, Any]:
        return dict(self._data.get(section, {}).get('default_attributes', {}))

    def scene(self, name: str) -> tuple[str, dict[str, Any], Path]:
        """Return name, content and file of a scene instance or a stage, of '' the first."""
        stages = self._list_files('stages')
        scenes = self._list_files('scene_instances')
        choices = {**stages, **scenes}
        if not choices:
            raise SceneError(f'{self.path}: "scene_instances" and "stages" match no file')
        key = _match(name, choices) if name else min(scenes or stages)
        if key is None:
            raise SceneError(f'{self.path} has no scene "{name}". {suggestion(name, choices)}')
        defaults = self._get_defaults('scene_instances')
        wanted = str(defaults.get('semantic_scene_instance', ''))
        if NAME_TOKEN in wanted:
            wanted = wanted.replace(NAME_TOKEN, key.split('.')[0])
            # What only the defaults name need not be there for every scene.
            there = _get_last_part(wanted) in self._find_descriptors()
            defaults['semantic_scene_instance'] = wanted if there else None
        if key in scenes:
            return key, {**defaults, **asset_files.read_object(scenes[key])}, scenes[key]
        return key, {**defaults, 'stage_instance': {'template_name': key}}, stages[key]

    def template_name(self, section: str, name: str) -> str:
        """Return the template of a name, else the only path with it; may raise SceneError."""
        choices = self._list_choices(section)
        key = _match(name, choices)
        if key is None:
            problem = f'{self.path}: "{section}" has no template "{name}"'
            raise SceneError(f'{problem}. {suggestion(_get_last_part(name), choices)}')
        return key

    def _list_choices(self, section: str) -> dict[str, Path]:
        configured = dict.fromkeys(self._read_templates(section), self.path)
        return {**self._list_files(section), **configured}

    def file(self, base: Path, name: str, where: str) -> Path:
        """Return the path of a file relative to `base`; SceneError if none is in the data set."""
        root = self.path.parent.resolve()
        if Path(name).is_relative_to(root):  # absolute, as SceneSmith's packing has it
            base, name = root, str(Path(name).relative_to(root))
        return asset_files.locate_file_within(self.path.parent, name, base, where)

    def template(self, section: str, name: str) -> Described:
        """Return attributes of a template of a section and the folder its paths start from."""
        key = self.template_name(section, name)
        configured = self._read_templates(section)
        if key in configured:
            return configured[key]
        return self._read(section, self._list_files(section)[key])

    def light_setup(self, name: str) -> Described | None:
        """Return a light setup, of '' the only one that there is; None if it means no light."""
        known = self._list_choices('light_setups')
        key = _get_last_part(name)
        if not key and len(known) == 1:
            key = next(iter(known))
        if not key or key in ('no_lights', 'none'):
            return None
        choose(key, known, SceneError, f'{self.path} has no light setup "{name}"')
        return self.template('light_setups', key)[0], known[key]

    def semantic_descriptor(self, name: str | None) -> Path | None:
        """Return the descriptor of a name, the only one there is for '', and None for None."""
        if name is None:
            return None
        files = self._find_descriptors()
        key = _get_last_part(name)
        if not key:
            return next(iter(files.values())) if len(files) == 1 else None
        problem = f'{self.path} has no semantic scene descriptor "{name}"'
        return files[choose(key, files, SceneError, problem)]

    def _find_descriptors(self) -> dict[str, Path]:
        section = self._data.get('semantic_scene_descriptor_instances', {})
        files = {
            key: self.file(self.path.parent, value, str(self.path))
            for key, value in section.items()
            if isinstance(value, str)
        }
        for patterns in section.get('paths', {}).values():
            for path in self._match_files(patterns, '.json'):
                files.setdefault(path.name.split('.')[0], path)
        return files

    def _read(self, section: str, path: Path | None) -> Described:
        """Return the attributes in a file of a section, or its default ones, and their folder."""
        defaults = self._get_defaults(section)
        if path is None:
            return defaults, self.path.parent
        if path.suffix == '.json':
            return {**defaults, **asset_files.read_object(path)}, path.parent
        # As in Habitat-Sim, a configuration next to an asset is read even if it is not listed.
        beside = path.with_name(path.name.removesuffix(path.suffix) + _SECTIONS[section])
        own = asset_files.read_object(beside) if beside.is_file() else {}
        bare = section == 'stages' and path.suffix == '.glb' and not beside.is_file()
        said = 'default_attributes' in self._data.get(section, {})
        frame = BARE_STAGE if bare and not said else {}
        asset = 'urdf_filepath' if path.suffix == '.urdf' else 'render_asset'
        return {**defaults, **frame, asset: path.name, **own}, path.parent

    def _read_templates(self, section: str) -> dict[str, Described]:
        """Return by handle the templates that the data set itself describes, not a file."""
        files, where = self._list_files(section), f'{self.path}: "{section}.configs"'
        cells = self._data.get(section, {}).get('configs', [])
        if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
            raise SceneError(f'{where} must be a list of objects')
        found: dict[str, Described] = {}
        for cell in cells:
            original = str(cell.get('original_file', ''))
            changes = cell.get('attributes', {})
            handle, source = str(cell.get('template_handle', '')), ''
            if original:
                named = [key for key, file in files.items() if str(file).endswith(original)]
                if not named:
                    raise SceneError(f'{where} changes "{original}", which is not among the paths')
                source = named[0]
            if not (handle or source) or not isinstance(changes, dict):
                keys = '"attributes", and an "original_file" or a "template_handle"'
                raise SceneError(f'{where}: an entry needs {keys}')
            base, folder = self._read(section, files[source] if source else None)
            # Lights are added to the lights of the original, one by one.
            lights = {**base.get('lights', {}), **changes.get('lights', {})}
            merged = {**base, **changes, **({'lights': lights} if lights else {})}
            found[_get_last_part(handle or source)] = merged, folder
        return found

    def _find_files(self, section: str) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for kind, patterns in self._data.get(section, {}).get('paths', {}).items():
            wanted = _SECTIONS[section] if kind == '.json' else kind
            for path in self._match_files(patterns, wanted):
                found.setdefault(path.name.removesuffix(wanted), path)
        return found

    def _match_files(self, patterns: list[str] | str, suffix: str) -> list[Path]:
        """Return the files of glob patterns or folders, relative to the configuration."""
        root = self.path.parent
        found: list[Path] = []
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            if '..' in Path(pattern).parts:
                raise SceneError(f'{self.path}: path "{pattern}" leaves the data set')
            what = f'{self.path}: path "{pattern}" is not a pattern'
            with errors_as(SceneError, what, NotImplementedError, ValueError):
                matches = sorted(root.glob(pattern.rstrip('/'))) if pattern else []
            for path in matches:
                found += sorted(path.iterdir()) if path.is_dir() else [path]
        wanted = [path for path in found if path.name.endswith(suffix) and path.is_file()]
        for path in wanted:
            self.file(root, str(path.relative_to(root)), f'{self.path}: a link')
        return wanted


def _get_last_part(name: str) -> str:
    """Return a template's handle without folders and suffixes."""
    last = Path(name).name
    for suffix in (*_SECTIONS.values(), '.semantic_config.json', '.glb', '.urdf', '.json'):
        last = last.removesuffix(suffix)
    return last


def _match(name: str, choices: Mapping[str, Path]) -> str | None:
    """Return the choice of this name, else the only one with the name in its path."""
    key = _get_last_part(name)
    if key in choices:
        return key
    similar = [
        other
        for other, path in choices.items()
        if name and (name in other or name in path.as_posix())
    ]
    return similar[0] if len(similar) == 1 else None


@dataclass(frozen=True, eq=False)
class Template:
    """An object or stage to be placed; `frame` (3, 3) maps the file to metres, y up, front -z."""

    config: Mapping[str, Any]
    folder: Path
    meshes: tuple[Mesh, ...]
    frame: NDArray[np.float64]
    root: Path

    def path(self, key: str) -> Path | None:
        """Return the file an attribute names, None if there is no such file."""
        name = Path(str(self.config['render_asset'])).name.split('.')[0]
        value = str(self.config.get(key, '')).replace(NAME_TOKEN, name)
        path = asset_files.resolve_path(self.folder / value)
        if not value or path is None or not path.is_file():
            return None
        return asset_files.locate_file_within(self.root, value, self.folder, f'attribute "{key}"')


class Templates:
    """Reads templates of a data set, each once."""

    def __init__(self, dataset: HabitatDataset) -> None:
        self.dataset = dataset
        self._known: dict[tuple[bool, str], Template] = {}
        self._meshes: dict[Path, tuple[Mesh, ...]] = {}
        self.digest = hashlib.sha256()

    def count(self, path: Path, wanted_by: Path) -> None:
        """Count a file in the digest; SceneError if it cannot be read."""
        with errors_as(SceneError, str(wanted_by), SceneError):
            self.digest.update(read_bytes(path, SceneError))

    def read_meshes(self, names: Iterable[str]) -> None:
        """Read the meshes of object templates together; files with errors are left to `read`."""
        assets: dict[Path, None] = {}
        for name in filter(None, names):
            config, folder = self.dataset.template('objects', name)
            with suppress(SceneError):
                file = self.dataset.file(folder, str(config.get('render_asset')), name)
                assets |= {file: None} if file.is_file() else {}
        self._meshes = load_many_meshes(list(assets))

    def read(self, name: str, where: str, is_stage: bool = False) -> Template:
        """Return a template by name; SceneError, which begins with `where`, if it is broken."""
        if (is_stage, name) not in self._known:
            config, folder = self.dataset.template('stages' if is_stage else 'objects', name)
            if not config.get('render_asset'):
                raise SceneError(f'{where}: template "{name}" has no "render_asset"')
            asset = self.dataset.file(folder, str(config['render_asset']), where)
            with errors_as(SceneError, str(where), SceneError):
                meshes = self._meshes.pop(asset, ()) or load_meshes(asset)
            self.count(asset, folder)
            root = self.dataset.path.parent
            found = Template(config, folder, meshes, _read_frame(config, where), root)
            self._known[(is_stage, name)] = found
        return self._known[(is_stage, name)]


def _read_frame(config: Mapping[str, Any], where: str) -> NDArray[np.float64]:
    up = asset_files.vector(config, 'up', (0.0, 1.0, 0.0), where)
    front = asset_files.vector(config, 'front', (0.0, 0.0, -1.0), where)
    rotation = np.stack([np.cross(front, up), up, -front])
    if np.abs(rotation @ rotation.T - np.eye(3)).max() > 1e-3:
        raise SceneError(f'{where}: "up" and "front" must be perpendicular unit vectors')
    scale = asset_files.vector(config, 'scale', (1.0, 1.0, 1.0), where)
    scale = scale * asset_files.number(config, 'units_to_meters', 1.0, where)
    if not scale.all():
        raise SceneError(f'{where}: "scale" must not be 0')
    return np.asarray(np.diag(scale) @ rotation)


def read_scale(entry: Mapping[str, Any], where: str) -> NDArray[np.float64]:
    """Return the scale (3,) of an instance."""
    scale = asset_files.vector(entry, 'non_uniform_scale', (1.0, 1.0, 1.0), where)
    scale = scale * asset_files.number(entry, 'uniform_scale', 1.0, where)
    if not scale.all():
        raise SceneError(f'{where} is scaled by 0; its scale must not be 0')
    return scale


def read_instance_pose(entry: Mapping[str, Any], where: str) -> Pose:
    """Return the pose of an instance in Habitat's world."""
    translation = asset_files.vector(entry, 'translation', (0.0, 0.0, 0.0), where)
    w, x, y, z = asset_files.vector(entry, 'rotation', (1.0, 0.0, 0.0, 0.0), where)
    norm = float(np.sqrt(w * w + x * x + y * y + z * z))
    if norm < 1e-6:
        raise SceneError(f'{where}: "rotation" is a quaternion of length 0')
    return Pose.from_quaternion((x / norm, y / norm, z / norm, w / norm), translation)


def place_instance(
    template: Template, entry: Mapping[str, Any], origin: str, where: str
) -> tuple[tuple[Mesh, ...], Pose]:
    """Return the meshes and pose, z up, of an instance; its translation moves its `origin`."""
    scale = read_scale(entry, where)
    pose = read_instance_pose(entry, where)
    if origin.lower() != 'asset_local':
        pose = pose @ Pose(np.eye(3), -_compute_center_of_mass(template, where) * scale)
    matrix = WORLD_FROM_HABITAT @ np.diag(scale) @ template.frame
    meshes = tuple(map_linearly(mesh, matrix) for mesh in template.meshes)
    return meshes, turn_pose_from_habitat(pose)


def _compute_center_of_mass(template: Template, where: str) -> NDArray[np.float64]:
    if 'COM' in template.config:
        return asset_files.vector(template.config, 'COM', (0.0, 0.0, 0.0), where)
    points = np.concatenate([mesh.vertices for mesh in template.meshes]) @ template.frame.T
    return np.asarray((points.min(axis=0) + points.max(axis=0)) / 2)
