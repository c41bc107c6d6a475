"""Data sets of SceneSmith's scenes as OSMa-Bench++ packs them: names, and things in parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.scene import Mesh, SceneObject
from osmabench_ros.scenes.scene_files import read_object
from osmabench_ros.semantics.labels import LabelSet, normalised_name

SUMMARY = 'debug/{}.debug_summary.json'
_PARTS_OF_BUILDING = ('floor', 'wall')


@dataclass(frozen=True)
class PackedNames:
    """Names of the things of a scene, one an object instance in its order, and their classes.

    The configurations of such a data set number every mesh and name none: what things are stands
    in the summary beside them. The class of a thing is its name without its number.
    """

    path: Path
    things: tuple[str, ...]
    classes: tuple[str, ...]

    @classmethod
    def of_scene(cls, root: Path, scene: str) -> PackedNames | None:
        """Return the names of a scene; None for a data set of another kind."""
        path = root / SUMMARY.format(scene)
        if not path.is_file():
            return None
        entries = read_object(path).get('instances')
        keys = ('_meta_instance_name', '_meta_category')
        if not isinstance(entries, list) or not all(
            isinstance(item, dict) and all(isinstance(item.get(key), str) for key in keys)
            for item in entries
        ):
            raise SceneError(f'{path}: "instances" must be a list of objects with {keys}')
        pairs = [(item[keys[0]], item[keys[1]]) for item in entries]
        return cls(path, tuple(name for name, _ in pairs), tuple(_class(*pair) for pair in pairs))

    def label_set(self, name: str) -> LabelSet:
        """Return the classes of the scene."""
        structure = [item for item in _PARTS_OF_BUILDING if item in self.classes]
        return LabelSet.from_names(name, sorted(set(self.classes) - set(structure)), structure)

    def labelled(
        self, entries: Sequence[Mapping[str, Any]], labels: LabelSet
    ) -> list[dict[str, Any]]:
        """Return object instances with the ids of their classes."""
        if len(entries) != len(self.things):
            raise SceneError(
                f'{self.path} names {len(self.things)} instances, the scene has {len(entries)}; '
                'pack the data set again'
            )
        ids = map(labels.id_of, self.classes)
        return [{**item, 'semantic_id': key} for item, key in zip(entries, ids, strict=True)]

    def joined(self, objects: Sequence[SceneObject]) -> list[SceneObject]:
        """Return the things of the scene, each from all of its meshes, under its own name."""
        found: dict[str, SceneObject] = {}
        for name, part in zip(self.things, objects, strict=True):
            whole = found.get(name)
            found[name] = replace(part, name=name) if whole is None else _with(whole, part)
        return list(found.values())


def _class(name: str, category: str) -> str:
    if category in _PARTS_OF_BUILDING:
        return category
    return normalised_name(re.sub(r'[_\s-]*\d+$', '', name)) or category


def _with(whole: SceneObject, part: SceneObject) -> SceneObject:
    """Return a thing with the meshes of a part added, in its own coordinates."""
    shift = whole.pose.inverse() @ part.pose
    moved = [
        replace(
            mesh,
            vertices=shift.transform(mesh.vertices).astype(np.float32),
            normals=(mesh.normals @ shift.rotation.T).astype(np.float32),
        )
        for mesh in part.meshes
    ]
    meshes: tuple[Mesh, ...] = (*whole.meshes, *moved)
    return replace(whole, meshes=meshes)
