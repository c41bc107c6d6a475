"""Loads a scene of a Habitat scene data set into the z-up world."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import SceneError
from osmabench_ros.geometry.axes import WORLD_FROM_HABITAT, object_pose_from_habitat
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.assets import linearly_mapped, load_meshes
from osmabench_ros.scenes.habitat.dataset import SUFFIX, HabitatDataset
from osmabench_ros.scenes.habitat.lights import read_lights
from osmabench_ros.scenes.habitat.semantics import class_id_of, read_label_set, read_rooms
from osmabench_ros.scenes.json_files import number, read_object, rotation_of, vector
from osmabench_ros.scenes.room_membership import room_of, sizes_of
from osmabench_ros.scenes.scene import Mesh, Room, Scene, SceneObject
from osmabench_ros.semantics.labels import LabelSet

NO_STAGE = 'NONE'


def load_habitat_scene(path: Path, scene: str = '') -> Scene:
    """Load a scene of a data set.

    Parameters
    ----------
    path : Path
        `*.scene_dataset_config.json`.
    scene : str
        Name of a scene instance; the first one without a name.

    Raises
    ------
    SceneError
        If a file is missing or broken; names it and the object that wants it.
    """
    if not path.name.endswith(SUFFIX):
        raise SceneError(f'{path} is no Habitat scene data set; its name must end in {SUFFIX}')
    dataset = HabitatDataset.open(path)
    return _SceneReader(dataset, dataset.scene(scene)).read()


class _SceneReader:
    """Collects the objects of one scene instance and the digest of every file it reads."""

    def __init__(self, dataset: HabitatDataset, path: Path) -> None:
        self.dataset, self.path = dataset, path
        self.instance = {**dataset.defaults('scene_instances'), **read_object(path)}
        self.name = path.name.removesuffix('.scene_instance.json')
        self._templates: dict[str, tuple[dict[str, Any], tuple[Mesh, ...]]] = {}
        self._digest = hashlib.sha256()
        for file in (dataset.path, path):
            self._digest.update(file.read_bytes())

    def read(self) -> Scene:
        """Return the scene."""
        semantics = self.dataset.semantic_descriptor(
            str(self.instance.get('semantic_scene_instance', ''))
        )
        if semantics is not None:
            self._update_digest(semantics)
        labels = read_label_set(semantics, self.dataset.name)
        entries = self._object_entries()
        rooms = read_rooms(semantics, first_id=len(entries) + 2)
        objects = self._objects(entries, labels, rooms)
        setup = self.dataset.light_setup(str(self.instance.get('default_lighting', '')))
        if setup is not None:
            self._update_digest(setup[1])
        return Scene(
            self.dataset.name,
            self.name,
            labels,
            tuple(objects),
            rooms,
            read_lights(setup[0], str(setup[1])) if setup else (),
            source_sha256=self._digest.hexdigest(),
            source=str(self.dataset.path.absolute()),
        )

    def _update_digest(self, path: Path) -> None:
        try:
            self._digest.update(path.read_bytes())
        except OSError as error:
            raise SceneError(f'{self.path} names {path}, which cannot be read: {error}') from error

    def _object_entries(self) -> list[dict[str, Any]]:
        entries = self.instance.get('object_instances', [])
        if not isinstance(entries, list) or not all(isinstance(item, dict) for item in entries):
            raise SceneError(f'{self.path}: "object_instances" must be a list of objects')
        if self.instance.get('articulated_object_instances'):
            names = {
                str(i.get('template_name')) for i in self.instance['articulated_object_instances']
            }
            raise SceneError(
                f'{self.path} has articulated objects ({", ".join(sorted(names))}), which this '
                'loader does not read; render the scene with the habitat simulator'
            )
        return entries

    def _objects(
        self, entries: list[dict[str, Any]], labels: LabelSet, rooms: tuple[Room, ...]
    ) -> list[SceneObject]:
        count: Counter[str] = Counter()
        objects = []
        stage = self._stage(labels)
        if stage is not None:
            objects.append(stage)
        for entry in entries:
            template = str(entry.get('template_name', ''))
            if not template:
                raise SceneError(f'{self.path}: an object instance has no "template_name"')
            stem = Path(template).name
            count[stem] += 1
            name = f'{stem}.{count[stem]}'
            objects.append(self._object(len(objects) + 1, name, template, entry, labels, rooms))
        return objects

    def _stage(self, labels: LabelSet) -> SceneObject | None:
        entry = self.instance.get('stage_instance', {})
        template = str(entry.get('template_name', NO_STAGE))
        if template.upper() == NO_STAGE:
            return None
        return self._object(1, 'stage', template, entry, labels, (), is_stage=True)

    def _object(
        self,
        instance_id: int,
        name: str,
        template: str,
        entry: Mapping[str, Any],
        labels: LabelSet,
        rooms: tuple[Room, ...],
        is_stage: bool = False,
    ) -> SceneObject:
        where = f'{self.path}: object "{name}"'
        config, meshes = self._asset(template, is_stage, where)
        scale = vector(entry, 'non_uniform_scale', (1.0, 1.0, 1.0), where)
        scale = scale * number(entry, 'uniform_scale', 1.0, where)
        if not scale.all():
            raise SceneError(f'{where} is scaled by 0; its scale must not be 0')
        translation = vector(entry, 'translation', (0.0, 0.0, 0.0), where)
        pose = Pose.from_quaternion(rotation_of(entry, 'rotation', where), translation)
        origin = str(entry.get('translation_origin', self.instance.get('translation_origin', '')))
        if not is_stage and origin.lower() != 'asset_local':
            pose = pose @ Pose(np.eye(3), -_center_of_mass(config, meshes, where) * scale)
        matrix = WORLD_FROM_HABITAT @ np.diag(scale)
        placed = tuple(linearly_mapped(mesh, matrix) for mesh in meshes)
        semantic_id = int(entry.get('semantic_id', config.get('semantic_id', 0)))
        class_id = class_id_of(semantic_id, labels, f'object "{name}"', str(self.path))
        item = SceneObject(instance_id, name, class_id, placed, object_pose_from_habitat(pose))
        return SceneObject(
            instance_id, name, class_id, placed, item.pose, sizes_of(item), room_of(item, rooms)
        )

    def _asset(
        self, template: str, is_stage: bool, where: str
    ) -> tuple[dict[str, Any], tuple[Mesh, ...]]:
        """Return the attributes and y-up meshes in metres of a template, read only once."""
        if template not in self._templates:
            find = self.dataset.stage_config if is_stage else self.dataset.object_config
            config, folder = find(template)
            if not config.get('render_asset'):
                raise SceneError(f'{where}: template "{template}" has no "render_asset"')
            asset = folder / str(config['render_asset'])
            try:
                meshes = load_meshes(asset)
            except SceneError as error:
                raise SceneError(f'{where}: {error}') from error
            self._update_digest(asset)
            frame = _asset_frame(config, where)
            meshes = tuple(linearly_mapped(mesh, frame) for mesh in meshes)
            self._templates[template] = (config, meshes)
        return self._templates[template]


def _asset_frame(config: Mapping[str, Any], where: str) -> NDArray[np.float64]:
    """Return the map from an asset's coordinates to metres with y up and -z to the front."""
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


def _center_of_mass(
    config: Mapping[str, Any], meshes: tuple[Mesh, ...], where: str
) -> NDArray[np.float64]:
    """Return what Habitat puts an object's origin at: its COM, else the middle of its box."""
    if 'COM' in config:
        return vector(config, 'COM', (0.0, 0.0, 0.0), where)
    points = np.concatenate([mesh.vertices for mesh in meshes]).astype(float)
    return np.asarray((points.min(axis=0) + points.max(axis=0)) / 2)
