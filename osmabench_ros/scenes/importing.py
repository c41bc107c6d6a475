"""Imports scenes of other formats into scene folders."""

import hashlib
from pathlib import Path

import numpy as np

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.files import Existing, check_folder
from osmabench_ros.base.reading import naming_errors, read_bytes
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import ConfigError, SceneError
from osmabench_ros.geometry.axes import WORLD_FROM_HABITAT
from osmabench_ros.scenes.assets import center_meshes, find_parents, load_nodes, map_linearly
from osmabench_ros.scenes.loading import APARTMENT, load_scene, warn_of_implausible_parts
from osmabench_ros.scenes.scene import Light, Mesh, Scene
from osmabench_ros.scenes.worlds.gazebo import load_gazebo_world
from osmabench_ros.scenes.worlds.parts import (
    DEFAULT_OPTIONS,
    ColladaUp,
    Part,
    WorldOptions,
    make_scene,
)
from osmabench_ros.scenes.worlds.usd import load_usd_stage
from osmabench_ros.scenes.writing import write_scene_folder

MESH_SUFFIXES = ('.glb', '.gltf', '.obj', '.dae')

LAMP_BELOW_TOP_M = 0.3

# Lights a room of 6 m by 5 m, its corners at a fifth.
LAMP_INTENSITY = 3.0


def load_mesh_scene(path: Path, options: WorldOptions = DEFAULT_OPTIONS) -> Scene:
    """Read a glTF, OBJ or Collada file, y up, as a scene; SceneError names the fault.

    Every node with triangles is an object, or all below one parent are, if `options` say so;
    classes are guessed from the names of nodes, as those
    of models in worlds are. Lights are not read from mesh files: one lamp hangs in the middle,
    below the highest point.
    """
    with naming_errors(path, SceneError):
        nodes = load_nodes(path)
        by_name: dict[str, list[Mesh]] = {}
        parents: dict[str, str] = {}
        for node, parent in zip(nodes, find_parents(nodes), strict=True):
            meshes = [map_linearly(mesh, WORLD_FROM_HABITAT) for mesh in node.meshes]
            name = (options.group_by_parent and parent) or node.names[0]
            by_name.setdefault(name, []).extend(meshes)
            parents[name] = parent if parent != name else ''
        parts = []
        for name, meshes in by_name.items():
            local, pose = center_meshes(meshes)
            parts.append(Part(name, pose, local, parent=parents[name]))
        if not parts:
            raise SceneError(f'{path} has no triangles; export the objects with their surfaces')
        corners = np.concatenate([mesh.vertices for found in by_name.values() for mesh in found])
        low = corners.min(axis=0)
        high = corners.max(axis=0)
        x, y = (low + high)[:2] / 2
        z = max(high[2] - LAMP_BELOW_TOP_M, low[2])
        lamp = Light('lamp', position=(float(x), float(y), float(z)), intensity=LAMP_INTENSITY)
        digest = hashlib.sha256(read_bytes(path, SceneError)).hexdigest()
        return make_scene(parts, path.stem, path, options, lights=(lamp,), sha256=digest)


# By the suffix of the file.
WORLD_LOADERS = {
    **dict.fromkeys(('.world', '.sdf'), load_gazebo_world),
    **dict.fromkeys(('.usd', '.usda', '.usdc', '.usdz'), load_usd_stage),
    **dict.fromkeys(MESH_SUFFIXES, load_mesh_scene),
}


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

    Only the files of `WORLD_LOADERS` take options in `world`. SceneError for unreadable files.
    """
    check_folder(out_directory, Existing.MOVE_ASIDE if overwrite else Existing.REFUSE)
    path = Path(source).expanduser()
    load = WORLD_LOADERS.get(path.suffix.lower())
    if load is None:
        if world != DEFAULT_OPTIONS:
            raise SceneError(f'{source} is neither a mesh file nor a world of Gazebo or USD')
        imported = load_scene(source, scene=scene, seed=seed)
    else:
        of_gazebo = world.models or world.textures or world.collada_up is not ColladaUp.VERSION
        if of_gazebo and load is not load_gazebo_world:
            options = '--models, --textures and --collada-up are for those'
            raise SceneError(f'{source} is not a Gazebo world; {options}')
        if world.group_by_parent and load is not load_mesh_scene:
            raise SceneError(f'{source} is not a mesh file; --group-by is for the nodes of one')
        imported = load(path, world)
        warn_of_implausible_parts(imported)
    write_scene_folder(imported, out_directory, overwrite)
    return imported


def read_known_classes(name_or_path: str) -> tuple[str, ...]:
    """Return the class names of 'apartment', or those in a JSON file; ConfigError if malformed.

    The file holds a list of names, or an object with "classes" that are names or have a "name".
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
    data, remedy = read_json(path, ConfigError), 'give class names by pattern'
    return validated(dict[str, str], data, str(path), remedy=remedy)
