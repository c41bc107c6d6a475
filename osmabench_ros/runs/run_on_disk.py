"""Restores the plan of a run from its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from osmabench_ros.base.files import read_json
from osmabench_ros.errors import RunError, errors_as
from osmabench_ros.runs.config import MatrixConfig, SceneConfig, parse_config
from osmabench_ros.runs.identity import RunIdentity, SceneKey, Seeds, slug
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.simulation.conditions import (
    Condition,
    load_condition,
    name_of_condition,
    parse_condition,
)

MANIFEST = 'manifest.json'
_PARTS = 6

_Item = TypeVar('_Item')


def open_run(directory: Path) -> RunPlan:
    """Return the plan of a run from its folder; loads no scene."""
    directory = directory.resolve()
    _check_is_run(directory)
    manifest = directory.parent / MANIFEST
    with errors_as(RunError, f'{manifest} has no configuration', KeyError, TypeError, shown=repr):
        config = parse_config(read_json(manifest)['config'], str(manifest))
    return plan_of_run(directory, config)


def plan_of_run(directory: Path, config: MatrixConfig) -> RunPlan:
    """Return the plan of a run of a configuration, whose folder need not be there yet."""
    manifest, noted = directory.parent / MANIFEST, _noted(directory)
    dataset, scene, condition, mapper, simulator, seed, *speed = directory.name.split('.')
    seeds = Seeds.of_text(seed)
    assert seeds is not None
    given = _named(
        condition, ((name_of_condition(item), item) for item in config.conditions), manifest
    )
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
        _seeded(seeds, config, manifest),
        _named(mapper, ((item.name, item) for item in config.mappers), manifest),
        _condition(directory, noted, given),
        config,
        directory.parent,
    )


def _seeded(seeds: Seeds, config: MatrixConfig, manifest: Path) -> SceneConfig:
    of_path = Seeds(seeds.scene, seeds.path)
    of_scenes = ((str(Seeds(item.seed, item.path_seed)), item) for item in config.seeded_scenes)
    if seeds.method is not None and seeds.method not in config.seeds.method:
        raise _unknown(str(seeds), manifest)
    return _named(str(of_path), of_scenes, manifest)


def _noted(directory: Path) -> Mapping[str, Any]:
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


def _named(part: str, items: Iterable[tuple[str, _Item]], manifest: Path) -> _Item:
    for name, item in items:
        if slug(name) == part:
            return item
    raise _unknown(part, manifest)


def _unknown(part: str, manifest: Path) -> RunError:
    return RunError(f'{manifest} knows no "{part}"; the folder was renamed or belongs elsewhere')
