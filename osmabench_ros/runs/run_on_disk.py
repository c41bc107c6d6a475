"""Restores the plan of a run from its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from osmabench_ros.base.files import read_json
from osmabench_ros.errors import RunError, errors_as
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.runs.config import MatrixConfig, parse_config
from osmabench_ros.runs.identity import RunIdentity, SceneKey, Seeds, slug
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.results.results_folder import MANIFEST
from osmabench_ros.simulation.conditions import (
    Condition,
    load_condition,
    name_of_condition,
    parse_condition,
)

_PARTS = 6

_Item = TypeVar('_Item')


def open_run(directory: Path) -> RunPlan:
    """Return the plan of a run from its folder; loads no scene."""
    directory = directory.resolve()
    _check_is_run(directory)
    manifest = directory.parent / MANIFEST
    with errors_as(RunError, f'{manifest} has no configuration', KeyError, TypeError, shown=repr):
        config = parse_config(read_json(manifest)['config'], str(manifest))
    return PlansOfRuns(config).of(directory)


class PlansOfRuns:
    """Finds the plans of the runs of a configuration, of any number of them."""

    def __init__(self, config: MatrixConfig) -> None:
        self._config = config
        scenes = ((str(Seeds(item.seed, item.path_seed)), item) for item in config.seeded_scenes)
        self._scenes = _by_slug(scenes)
        self._mappers = _by_slug((item.name, item) for item in config.mappers)
        self._conditions = _by_slug((name_of_condition(item), item) for item in config.conditions)

    def of(self, directory: Path) -> RunPlan:
        """Return the plan of the run of a folder, which need not be there yet."""
        manifest, noted = directory.parent / MANIFEST, noted_of_run(directory)
        dataset, scene, condition, mapper, simulator, seed, *speed = directory.name.split('.')
        seeds = Seeds.of_text(seed)
        assert seeds is not None
        if seeds.method is not None and seeds.method not in self._config.seeds.method:
            raise _unknown(str(seeds), manifest)
        given = _known(condition, self._conditions, manifest)
        identity = RunIdentity(
            SceneKey(
                noted.get('dataset', dataset), noted.get('scene', scene), seeds.scene, seeds.path
            ),
            name_of_condition(given),
            mapper,
            simulator,
            float(speed[0].removeprefix('x').replace('-', '.')) if speed else None,
            seeds.method,
        )
        return RunPlan(
            identity,
            _known(str(Seeds(seeds.scene, seeds.path)), self._scenes, manifest),
            _known(mapper, self._mappers, manifest),
            _condition(directory, noted, given),
            self._config,
            directory.parent,
        )


def noted_of_run(directory: Path) -> Mapping[str, Any]:
    """Return the manifest of a run, empty if it has none yet."""
    manifest = directory / MANIFEST
    return read_json(manifest) if manifest.exists() else {}


def _condition(directory: Path, noted: Mapping[str, Any], given: str) -> Condition:
    """Return the condition of a run, from its manifest if it has one already."""
    if not noted:
        return load_condition(given)
    manifest = directory / MANIFEST
    with errors_as(RunError, f'{manifest} has no condition', KeyError, TypeError, shown=repr):
        data = noted['config']['condition']
    return parse_condition(name_of_condition(given), data, str(manifest))


def _check_is_run(directory: Path) -> None:
    if is_run_name(directory.name):
        return
    if not directory.is_dir():
        raise RunError(f'{directory} does not exist; name the folder of a run or of a map')
    runs = sorted(path.parent.name for path in directory.glob('*/map'))
    hint = f'; name one of its runs: {", ".join(runs)}' if runs else ''
    raise RunError(
        f'{directory} is not the folder of a run (dataset.scene.condition.mapper.simulator.seed)'
        f'{hint}'
    )


def is_run_name(name: str) -> bool:
    """Return whether a folder's name is one that runs have."""
    parts = name.split('.')
    return len(parts) in (_PARTS, _PARTS + 1) and Seeds.of_text(parts[_PARTS - 1]) is not None


def _by_slug(items: Iterable[tuple[str, _Item]]) -> dict[str, _Item]:
    """Return items by their part of a folder's name, the first of those that have the same."""
    found: dict[str, _Item] = {}
    for name, item in items:
        found.setdefault(slug(name), item)
    return found


def _known(part: str, items: Mapping[str, _Item], manifest: Path) -> _Item:
    if part not in items:
        raise _unknown(part, manifest)
    return items[part]


def _unknown(part: str, manifest: Path) -> RunError:
    return RunError(f'{manifest} knows no "{part}"; the folder was renamed or belongs elsewhere')


def with_origin_of_run(semantic_map: SemanticMap, folder: Path) -> SemanticMap:
    """Return a map with scene and condition from the name of its run, if it names no scene."""
    header = semantic_map.header
    origin = header.provenance
    if origin.scene or not is_run_name(folder.name):
        return semantic_map
    dataset, scene, condition, *_ = folder.name.split('.')
    named = replace(origin, scene=f'{dataset} {scene}', condition=condition)
    return replace(semantic_map, header=replace(header, provenance=named))
