"""Makes Habitat-Sim load the templates that a scene instance names, not ones with similar names.

Habitat-Sim 0.3 takes the first template whose path contains the name, so 'PortraitA' may come out
as 'DeskPortraitA'.
"""

from __future__ import annotations

import json
import os
from typing import Any

SCENE_SUFFIX = '.scene_instance.json'
FOLDER = 'scene'


def exact_scene(mediator: Any, scene: str) -> str:
    """Return the name under which a scene is loaded with the right templates.

    Parameters
    ----------
    mediator : habitat_sim.metadata.MetadataMediator
        With the data set.
    scene : str
        Name of a scene instance; anything else, such as a stage, is returned as it is.

    Returns
    -------
    str
        The path of a copy in the working directory that names templates by their whole path, if
        any name is ambiguous; else the path of the scene instance.
    """
    paths = [path for path in mediator.get_scene_handles() if _stem(path, SCENE_SUFFIX) == scene]
    if len(paths) != 1 or not os.path.isfile(paths[0]):
        return scene
    with open(paths[0], encoding='utf-8') as file:
        instance = json.load(file)
    entries = [(mediator.stage_template_manager, instance.get('stage_instance', {}))]
    for key, manager in (
        ('object_instances', mediator.object_template_manager),
        ('articulated_object_instances', mediator.ao_template_manager),
    ):
        entries += [(manager, entry) for entry in instance.get(key, [])]
    replaced = [_made_exact(manager, entry) for manager, entry in entries]
    if not any(replaced):
        return str(paths[0])
    os.makedirs(FOLDER, exist_ok=True)
    copy = os.path.abspath(os.path.join(FOLDER, scene + SCENE_SUFFIX))
    with open(copy, 'w', encoding='utf-8') as file:
        json.dump(instance, file)
    return copy


def _made_exact(manager: Any, entry: dict[str, Any]) -> bool:
    """Replace an ambiguous template name by the path it means; tell whether there was one."""
    name = entry.get('template_name', '')
    similar = manager.get_template_handles(name) if name else []
    wanted = os.path.basename(name)
    exact = [handle for handle in similar if os.path.basename(handle).split('.')[0] == wanted]
    if len(similar) < 2 or len(exact) != 1:
        return False
    entry['template_name'] = exact[0]
    return True


def _stem(path: str, suffix: str) -> str:
    name = os.path.basename(path)
    return name[: -len(suffix)] if name.endswith(suffix) else name
