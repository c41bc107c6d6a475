"""The files that Habitat-Sim reads a scene from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from osmabench_ros.errors import SimulationError
from osmabench_ros.scenes.habitat.dataset import SUFFIX
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.writing import write_habitat_dataset
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet


def dataset_file(scene: Scene, dataset_config: str) -> Path | None:
    """Return the data set that has a scene, or None if the scene is not on disk as one."""
    path = Path(dataset_config or scene.source).expanduser()
    if path.name.endswith(SUFFIX) and path.is_file():
        return path.absolute()
    if dataset_config:
        raise SimulationError(
            f'dataset_config "{dataset_config}" is no file *{SUFFIX}; name that of the data set '
            f'with scene {scene.dataset}/{scene.name}, or leave it out'
        )
    return None


def written(scene: Scene, directory: Path) -> tuple[Path, Scene]:
    """Write the shapes of a scene as a data set; return it, and the scene as loaded from there."""
    names = {item.instance_id: f'thing_{item.instance_id}' for item in scene.objects}
    # Classes, rooms and lights stay here: not all of them have a place in Habitat's format.
    shapes = Scene(
        'written',
        'scene',
        LabelSet.from_names('written', ['thing']),
        tuple(
            replace(item, name=names[item.instance_id], class_id=UNLABELLED, room_id=None)
            for item in scene.objects
        ),
    )
    loaded = tuple(replace(item, name=f'{names[item.instance_id]}.1') for item in scene.objects)
    return write_habitat_dataset(shapes, directory), replace(
        scene, name=shapes.name, objects=loaded
    )
