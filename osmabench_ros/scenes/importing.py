"""Imports scenes of other formats into scene folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from osmabench_ros.base.files import Existing, check_folder
from osmabench_ros.base.limits.documents import read_json
from osmabench_ros.errors import ConfigError, SceneError
from osmabench_ros.scenes.folder.manifest import MANIFEST
from osmabench_ros.scenes.folder.writer import write_scene_folder
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.plausibility import warn_of_implausible_parts
from osmabench_ros.scenes.scene import Scene

WORLD_SUFFIXES = ('.world', '.sdf')


def import_scene(
    source: str,
    out_directory: Path,
    *,
    models: Sequence[Path] = (),
    classes: Mapping[str, str] | None = None,
    scene: str = '',
    seed: int = 0,
    overwrite: bool = False,
) -> Scene:
    """Read a Gazebo world or what `load_scene` reads, and write a scene folder; or SceneError."""
    check_folder(out_directory, Existing.REPLACE if overwrite else Existing.REFUSE, MANIFEST)
    path = Path(source).expanduser()
    if path.suffix.lower() in WORLD_SUFFIXES:
        from osmabench_ros.scenes.gazebo.world import load_gazebo_world

        imported = load_gazebo_world(path, models, classes)
        warn_of_implausible_parts(imported)
    elif models or classes:
        raise SceneError(f'{source} is no Gazebo world; model folders and classes are for those')
    else:
        imported = load_scene(source, scene=scene, seed=seed)
    write_scene_folder(imported, out_directory, overwrite)
    return imported


def read_class_patterns(path: Path) -> dict[str, str]:
    """Read class names by shell pattern from a JSON file; ConfigError if missing or malformed."""
    data = read_json(path, ConfigError)
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise ConfigError(f'{path} must hold an object of class names by pattern')
    return data
