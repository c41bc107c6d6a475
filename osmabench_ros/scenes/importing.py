"""Imports scenes of other formats into scene folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.files import Existing, check_folder
from osmabench_ros.errors import ConfigError, SceneError
from osmabench_ros.scenes.loading import APARTMENT, load_scene
from osmabench_ros.scenes.plausibility import warn_of_implausible_parts
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.worlds.parts import DEFAULT_OPTIONS, ColladaUp, WorldOptions
from osmabench_ros.scenes.writing import write_scene_folder

GAZEBO_SUFFIXES = ('.world', '.sdf')
USD_SUFFIXES = ('.usd', '.usda', '.usdc', '.usdz')
MESH_SUFFIXES = ('.glb', '.gltf', '.obj', '.dae')


def import_scene(
    source: str,
    out_directory: Path,
    *,
    world: WorldOptions = DEFAULT_OPTIONS,
    scene: str = '',
    seed: int = 0,
    overwrite: bool = False,
) -> Scene:
    """Read a world of another simulator or what `load_scene` reads, and write a scene folder.

    `world` is for worlds alone. Raises SceneError for what cannot be read.
    """
    check_folder(out_directory, Existing.MOVE_ASIDE if overwrite else Existing.REFUSE)
    path = Path(source).expanduser()
    load = _world_loader(path.suffix.lower())
    if load is not None:
        if path.suffix.lower() not in GAZEBO_SUFFIXES:
            _refuse_gazebo_options(source, world)
        imported = load(path, world)
        warn_of_implausible_parts(imported)
    elif world != DEFAULT_OPTIONS:
        raise SceneError(
            f'{source} is no mesh file and no world of Gazebo or USD; options of worlds are '
            'for those'
        )
    else:
        imported = load_scene(source, scene=scene, seed=seed)
    write_scene_folder(imported, out_directory, overwrite)
    return imported


def _world_loader(suffix: str) -> Callable[[Path, WorldOptions], Scene] | None:
    if suffix in GAZEBO_SUFFIXES:
        from osmabench_ros.scenes.worlds.gazebo import load_gazebo_world

        return load_gazebo_world
    if suffix in USD_SUFFIXES:
        from osmabench_ros.scenes.worlds.usd import load_usd_stage

        return load_usd_stage
    if suffix in MESH_SUFFIXES:
        from osmabench_ros.scenes.worlds.mesh import load_mesh_scene

        return load_mesh_scene
    return None


def _refuse_gazebo_options(source: str, world: WorldOptions) -> None:
    if world.models or world.textures or world.collada_up is not ColladaUp.VERSION:
        raise SceneError(
            f'{source} is no Gazebo world; --models, --textures and --collada-up are for those'
        )


def read_known_classes(name_or_path: str) -> tuple[str, ...]:
    """Return the class names of 'apartment', or those in a JSON file; ConfigError if malformed.

    The file holds a list of names, or an object whose "classes" are names or have a "name".
    """
    if name_or_path == APARTMENT:
        from osmabench_ros.scenes.apartment.generate import APARTMENT_LABELS

        return tuple(item.name for item in APARTMENT_LABELS.classes)
    data = read_json(Path(name_or_path), ConfigError)
    items = data.get('classes') if isinstance(data, dict) else data
    names = [item.get('name') if isinstance(item, dict) else item for item in items or ()]
    known = tuple(name for name in names if isinstance(name, str) and name)
    if not known or len(known) != len(names):
        raise ConfigError(f'{name_or_path} must hold a list of class names, or "classes"')
    return known


def read_class_patterns(path: Path) -> dict[str, str]:
    """Read class names by shell pattern from a JSON file; ConfigError if missing or malformed."""
    data = read_json(path, ConfigError)
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise ConfigError(f'{path} must hold an object of class names by pattern')
    return data
