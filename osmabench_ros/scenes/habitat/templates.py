"""Templates of a scene data set: attributes and meshes, read once and counted in the digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import SceneError, errors_as
from osmabench_ros.geometry.axes import WORLD_FROM_HABITAT, object_pose_from_habitat
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.asset_files import file_within, resolved
from osmabench_ros.scenes.assets import linearly_mapped, load_many_meshes, load_meshes
from osmabench_ros.scenes.habitat.dataset import NAME_TOKEN, HabitatDataset
from osmabench_ros.scenes.scene import Mesh
from osmabench_ros.scenes.scene_files import number, rotation_of, vector


@dataclass(frozen=True, eq=False)
class Template:
    """An object or stage to be placed; `frame` (3, 3) maps the file to metres, y up, front -z."""

    config: Mapping[str, Any]
    folder: Path
    meshes: tuple[Mesh, ...]
    frame: NDArray[np.float64]
    root: Path

    @property
    def name(self) -> str:
        """Name for `NAME_TOKEN`."""
        return Path(str(self.config['render_asset'])).name.split('.')[0]

    def path(self, key: str) -> Path | None:
        """Return the file an attribute names, None if there is no such file."""
        value = str(self.config.get(key, '')).replace(NAME_TOKEN, self.name)
        path = resolved(self.folder / value)
        if not value or path is None or not path.is_file():
            return None
        return file_within(self.root, value, self.folder, f'attribute "{key}"')


class Templates:
    """Reads templates of a data set, each once."""

    def __init__(self, dataset: HabitatDataset) -> None:
        self.dataset = dataset
        self._known: dict[tuple[bool, str], Template] = {}
        self._meshes: dict[Path, tuple[Mesh, ...]] = {}
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """Hex digest of every file counted so far."""
        return self._digest.hexdigest()

    def count(self, path: Path, wanted_by: Path) -> None:
        """Count a file in the digest; SceneError if it cannot be read."""
        with errors_as(SceneError, str(wanted_by), SceneError):
            self._digest.update(read_bytes(path, SceneError))

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
            found = Template(config, folder, meshes, _frame(config, where), root)
            self._known[(is_stage, name)] = found
        return self._known[(is_stage, name)]


def _frame(config: Mapping[str, Any], where: str) -> NDArray[np.float64]:
    up = vector(config, 'up', (0.0, 1.0, 0.0), where)
    front = vector(config, 'front', (0.0, 0.0, -1.0), where)
    rotation = np.stack([np.cross(front, up), up, -front])
    if np.abs(rotation @ rotation.T - np.eye(3)).max() > 1e-3:
        raise SceneError(f'{where}: "up" and "front" must be perpendicular unit vectors')
    scale = vector(config, 'scale', (1.0, 1.0, 1.0), where)
    scale = scale * number(config, 'units_to_meters', 1.0, where)
    if not scale.all():
        raise SceneError(f'{where}: "scale" must not be 0')
    return np.asarray(np.diag(scale) @ rotation)


def scale_of(entry: Mapping[str, Any], where: str) -> NDArray[np.float64]:
    """Return the scale (3,) of an instance."""
    scale = vector(entry, 'non_uniform_scale', (1.0, 1.0, 1.0), where)
    if not scale.all():
        raise SceneError(f'{where} is scaled by 0; its scale must not be 0')
    return scale * uniform_scale(entry, where)


def uniform_scale(entry: Mapping[str, Any], where: str) -> float:
    """Return the factor on all axes; articulated objects have no other."""
    scale = number(entry, 'uniform_scale', 1.0, where)
    if scale == 0:
        raise SceneError(f'{where} is scaled by 0; its scale must not be 0')
    return scale


def pose_of(entry: Mapping[str, Any], where: str) -> Pose:
    """Return the pose of an instance in Habitat's world."""
    translation = vector(entry, 'translation', (0.0, 0.0, 0.0), where)
    return Pose.from_quaternion(rotation_of(entry, 'rotation', where), translation)


def placed(
    template: Template, entry: Mapping[str, Any], origin: str, where: str
) -> tuple[tuple[Mesh, ...], Pose]:
    """Return the meshes and pose, z up, of an instance; its translation is that of `origin`."""
    scale, pose = scale_of(entry, where), pose_of(entry, where)
    if origin.lower() != 'asset_local':
        pose = pose @ Pose(np.eye(3), -_center_of_mass(template, where) * scale)
    matrix = WORLD_FROM_HABITAT @ np.diag(scale) @ template.frame
    meshes = tuple(linearly_mapped(mesh, matrix) for mesh in template.meshes)
    return meshes, object_pose_from_habitat(pose)


def _center_of_mass(template: Template, where: str) -> NDArray[np.float64]:
    if 'COM' in template.config:
        return vector(template.config, 'COM', (0.0, 0.0, 0.0), where)
    points = np.concatenate([mesh.vertices for mesh in template.meshes]) @ template.frame.T
    return np.asarray((points.min(axis=0) + points.max(axis=0)) / 2)
