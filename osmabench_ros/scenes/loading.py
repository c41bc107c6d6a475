"""Finds the right loader for a scene, and warns of one that is on its side or has another unit."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.configuration import config_path, described_names
from osmabench_ros.base.reading import naming_errors
from osmabench_ros.errors import SceneError, suggestion, warn
from osmabench_ros.scenes.changes import Change, apply_changes
from osmabench_ros.scenes.scene import Scene, SceneObject
from osmabench_ros.scenes.specification import read_specification

# Longest edge of a scene, from a corner of a room to a shopping centre.
SMALLEST_M, LARGEST_M = 1.0, 300.0

# A scene that is higher than this is not upright if it is also higher than it is wide.
STOREY_M = 4.0

# World z of a floor; houses with floors elsewhere are rare.
LOWEST_M, HIGHEST_M = -10.0, 10.0

# Height of the camera of OSMa-Bench; walls reach higher.
EYE_M = 1.5

# Median of the longest edges of objects, from a screw to a lorry.
THING_M = (0.005, 8.0)

# A surface is level if its normal has at least this share along z.
LEVEL = 0.9

BIN_M = 0.1
FLOOR_SHARE = 0.25
FLOOR_NAME = 'floor'


def warn_of_implausible_parts(scene: Scene) -> None:
    """Warn of everything that `describe_implausible_parts` finds."""
    for text in describe_implausible_parts(scene):
        warn(f'scene {scene.dataset}/{scene.name}: {text}')


def describe_implausible_parts(scene: Scene) -> Iterator[str]:
    """Yield a sentence with numbers for everything about a scene that a building would not have.

    Extent and unit, gravity, height of the floor and of the objects on it are examined; surfaces
    that face upwards are the floor at their lowest level with a quarter of the largest one's area.
    """
    size = scene.box.size
    extent = f'{size[0]:.3g} x {size[1]:.3g} m and {size[2]:.3g} m high'
    if not SMALLEST_M <= size.max() <= LARGEST_M:
        yield f'it is {extent}; check its unit ("unit_m", "units_to_meters", <scale>)'
    loose = {item.id for item in scene.label_set.classes if not item.structure}
    things = [item.box.size.max() for item in scene.objects if item.class_id in loose]
    if len(things) > 1 and not THING_M[0] <= (median := float(np.median(things))) <= THING_M[1]:
        yield f'half of its {len(things)} things are longer than {median:.3g} m; check their unit'
    if size[2] > max(STOREY_M, float(size[:2].min())):
        yield f'it is {extent}, higher than wide; check which axis is up'
    yield from _check_level_classes(scene)
    yield from _check_floor(scene, float(scene.box.maximum[2]))


def _check_level_classes(scene: Scene) -> Iterator[str]:
    """Yield a sentence if the objects called floor are not level."""
    floors = [item for item in scene.objects if scene.class_name(item) == FLOOR_NAME]
    parts = [_measure_triangles(item) for item in floors]
    area = sum(float(areas.sum()) for areas, _, _ in parts)
    level = sum(float(areas[np.abs(up) > LEVEL].sum()) for areas, up, _ in parts)
    if area > 0 and level < 0.5 * area:
        yield (
            f'only {level / area:.0%} of the {area:.3g} m2 of its {len(floors)} floors is level; '
            'check which axis is up'
        )


def _check_floor(scene: Scene, top_m: float) -> Iterator[str]:
    found = [_measure_triangles(item) for item in scene.objects]
    areas, up, heights = (np.concatenate([part[i] for part in found]) for i in range(3))
    areas = areas[up > LEVEL]
    heights = heights[up > LEVEL]
    if areas.sum() <= 0:
        yield 'no surface of it faces upwards, so a robot has no floor; check which axis is up'
        return
    low = heights.min()
    at = np.bincount(((heights - low) / BIN_M).astype(int), areas)
    floor_m = float(low + np.argmax(at >= FLOOR_SHARE * at.max()) * BIN_M)
    if not LOWEST_M <= floor_m <= HIGHEST_M:
        yield f'its floor is at z = {floor_m:.3g} m; check its origin, and which axis is up'
    if top_m - floor_m < EYE_M:
        yield (
            f'it ends {top_m - floor_m:.3g} m above its floor, below a camera at {EYE_M} m; check '
            'its unit, and which axis is up'
        )


def _measure_triangles(
    item: SceneObject,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return area, z of the unit normal and middle height of every triangle, each (F,)."""
    corners = item.world_vertices[item.world_faces].astype(np.float64)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    doubled = np.linalg.norm(normals, axis=1)
    return doubled / 2, normals[:, 2] / np.maximum(doubled, 1e-12), corners[:, :, 2].mean(axis=1)


# The reference of the procedural scene.
APARTMENT = 'apartment'
MANIFEST = 'scene.json'
REPLICA_INFO = 'habitat/info_semantic.json'
SPECIFIED = ('.yaml', '.yml')


def load_scene(
    reference: str, *, scene: str = '', seed: int = 0, changes: Sequence[Change] = ()
) -> Scene:
    """Load a scene, change it, and warn of implausible properties.

    Parameters
    ----------
    reference : str
        'apartment' for the procedural one, the path of a Habitat
        `*.scene_dataset_config.json` or of a scene folder with a `scene.json`, the folder
        of a scene of Replica, or a YAML file with the specification of an apartment, by path
        or by its name below `config/specifications`.
    scene : str
        Name of a scene of a data set with several; the first one without a name. For an
        apartment only ``'seed_<seed>'`` is accepted.
    seed : int
        Which apartment, also of those that a specification allows.
    changes : sequence of Change
        Changes to make in it, as by `apply_changes`.

    Raises
    ------
    SceneError
        If there is no such scene, naming the known ones, or if it cannot be changed so.
    """
    if changes:
        return apply_changes(load_scene(reference, scene=scene, seed=seed), changes)
    if reference == APARTMENT:
        return _build_apartment(scene, seed)
    path = locate_scene(reference)
    if path.suffix in SPECIFIED:
        from osmabench_ros.scenes.apartment.specified import build_specified_apartment

        built = build_specified_apartment(read_specification(path), seed)
        return _check_name(built, path, scene)
    with naming_errors(path, SceneError):
        loaded = _load_from_files(path, reference, scene)
    warn_of_implausible_parts(loaded)
    return loaded


def locate_scene(reference: str) -> Path:
    """Return the path of a scene other than the apartment; nothing need be there.

    A file at the path is preferred to a specification of the package with that name.
    """
    path = Path(reference).expanduser()
    if reference in described_names('specifications') and not path.exists():
        return config_path('specifications', f'{reference}.yaml')
    return path


def _load_from_files(path: Path, reference: str, scene: str) -> Scene:
    if path.name.endswith('.scene_dataset_config.json'):
        from osmabench_ros.scenes.habitat.loader import load_habitat_scene

        return load_habitat_scene(path, scene)
    if path.name == MANIFEST or (path / MANIFEST).is_file():
        from osmabench_ros.scenes.folder import load_scene_folder

        return _check_name(load_scene_folder(path), path, scene)
    if (path / REPLICA_INFO).is_file():
        from osmabench_ros.scenes.replica import load_replica_scene

        return _check_name(load_replica_scene(path), path, scene)
    kinds = ['<path>.scene_dataset_config.json', '<specification>.yaml']
    kinds += [f'<folder with {name}>' for name in (MANIFEST, REPLICA_INFO)]
    known = [APARTMENT, *described_names('specifications'), *kinds]
    problem = 'is not a scene this package can load' if path.exists() else 'does not exist'
    raise SceneError(f'scene "{reference}" {problem}. {suggestion(reference, known)}')


@lru_cache(maxsize=1)
def _build_apartment(scene: str, seed: int) -> Scene:
    """Return an apartment, which depends on no file; the last one is kept."""
    from osmabench_ros.scenes.apartment.generate import generate_apartment

    if scene not in ('', f'seed_{seed}'):
        raise SceneError(f'the apartment of seed {seed} is called "seed_{seed}", not "{scene}"')
    return generate_apartment(seed)


def _check_name(loaded: Scene, path: Path, scene: str) -> Scene:
    if scene not in ('', loaded.name):
        raise SceneError(f'{path} holds the scene "{loaded.name}", not "{scene}"')
    return loaded
