"""Makes Habitat-Sim load the templates that a scene instance names, not ones with similar names.

Habitat-Sim 0.3 takes the first template whose path contains the name, so 'PortraitA' may come out
as 'DeskPortraitA'. Of the positions of joints it leaves out those that are whole numbers.
"""

from __future__ import annotations

import json
import os
from typing import Any

SCENE_SUFFIX = '.scene_instance.json'
FOLDER = 'scene'


class ExactScene:
    """A scene as Habitat-Sim is to load it, `name`, and the handles of its templates."""

    def __init__(self, mediator: Any, scene: str) -> None:
        self.name = scene
        self.objects: list[str] = []
        self.stages: list[str] = []
        self.articulated: list[str] = []
        paths = [
            path
            for path in mediator.get_scene_handles()
            if os.path.basename(path) == scene + SCENE_SUFFIX and os.path.isfile(path)
        ]
        if len(paths) == 1:
            self._read(mediator, paths[0])

    def _read(self, mediator: Any, path: str) -> None:
        with open(path, encoding='utf-8') as file:
            instance = json.load(file)
        stage = instance.get('stage_instance', {})
        objects = instance.get('object_instances', [])
        articulated = instance.get('articulated_object_instances', [])
        self.stages = _exact(mediator.stage_template_manager, [stage])
        self.objects = _exact(mediator.object_template_manager, objects)
        self.articulated = _exact(mediator.ao_template_manager, articulated)
        for entry in articulated:
            if 'initial_joint_pose' in entry:
                entry['initial_joint_pose'] = _as_floats(entry['initial_joint_pose'])
        os.makedirs(FOLDER, exist_ok=True)
        self.name = os.path.abspath(os.path.join(FOLDER, os.path.basename(path)))
        with open(self.name, 'w', encoding='utf-8') as file:
            json.dump(instance, file)


def _exact(manager: Any, entries: list[dict[str, Any]]) -> list[str]:
    """Replace the template names of entries by whole paths, and return those without repeats."""
    found: list[str] = []
    for entry in entries:
        name = entry.get('template_name', '')
        similar = manager.get_template_handles(name) if name else []
        wanted = os.path.basename(name).split('.')[0]
        exact = [handle for handle in similar if os.path.basename(handle).split('.')[0] == wanted]
        exact = exact or similar  # a part of a name will do if only one template has it
        if len(exact) == 1:
            entry['template_name'] = exact[0]
            found += exact
    return sorted(set(found))


def _as_floats(positions: Any) -> Any:
    if isinstance(positions, dict):
        return {key: float(value) for key, value in positions.items()}
    return [float(value) for value in positions]
