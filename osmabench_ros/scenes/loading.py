"""Finds the right loader for a scene."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from osmabench_ros.base.configuration import config_path, described_names
from osmabench_ros.base.reading import naming_errors
from osmabench_ros.errors import SceneError, suggestion
from osmabench_ros.scenes.changes import Change, changed_scene
from osmabench_ros.scenes.plausibility import warn_of_implausible_parts
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.specification import read_specification

APARTMENT = 'apartment'
"""The reference of the procedural scene."""
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
        Changes to make in it, as by `changed_scene`.

    Raises
    ------
    SceneError
        If there is no such scene, naming the known ones, or if it cannot be changed so.
    """
    if changes:
        return changed_scene(load_scene(reference, scene=scene, seed=seed), changes)
    if reference == APARTMENT:
        return _apartment(scene, seed)
    path = scene_path(reference)
    if path.suffix in SPECIFIED:
        from osmabench_ros.scenes.apartment.specified import specified_apartment

        return _named(specified_apartment(read_specification(path), seed), path, scene)
    with naming_errors(path, SceneError):
        loaded = _from_files(path, reference, scene)
    warn_of_implausible_parts(loaded)
    return loaded


def scene_path(reference: str) -> Path:
    """Return the path of a scene other than the apartment; nothing need be there.

    A file at the path is preferred to a specification of the package with that name.
    """
    path = Path(reference).expanduser()
    if reference in described_names('specifications') and not path.exists():
        return config_path('specifications', f'{reference}.yaml')
    return path


def _from_files(path: Path, reference: str, scene: str) -> Scene:
    if path.name.endswith('.scene_dataset_config.json'):
        from osmabench_ros.scenes.habitat.loader import load_habitat_scene

        return load_habitat_scene(path, scene)
    if path.name == MANIFEST or (path / MANIFEST).is_file():
        from osmabench_ros.scenes.folder import load_scene_folder

        return _named(load_scene_folder(path), path, scene)
    if (path / REPLICA_INFO).is_file():
        from osmabench_ros.scenes.replica import load_replica_scene

        return _named(load_replica_scene(path), path, scene)
    kinds = ['<path>.scene_dataset_config.json', '<specification>.yaml']
    kinds += [f'<folder with {name}>' for name in (MANIFEST, REPLICA_INFO)]
    known = [APARTMENT, *described_names('specifications'), *kinds]
    problem = 'is not a scene this package can load' if path.exists() else 'does not exist'
    raise SceneError(f'scene "{reference}" {problem}. {suggestion(reference, known)}')


@lru_cache(maxsize=1)
def _apartment(scene: str, seed: int) -> Scene:
    """Return an apartment, which depends on no file; the last one is kept."""
    from osmabench_ros.scenes.apartment.generate import generate_apartment

    if scene not in ('', f'seed_{seed}'):
        raise SceneError(
            f'the apartment of seed {seed} is called "seed_{seed}", not "{scene}"; '
            'leave the scene empty, or choose another seed'
        )
    return generate_apartment(seed).scene


def _named(loaded: Scene, path: Path, scene: str) -> Scene:
    if scene not in ('', loaded.name):
        raise SceneError(f'{path} holds the scene "{loaded.name}", not "{scene}"')
    return loaded
