"""The folder of a matrix: its manifest, the plans of its runs, and how far each came."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from osmabench_ros.base.files import (
    Existing,
    check_file,
    check_folder,
    claim_folder,
    move_aside,
    read_json,
    write_json,
)
from osmabench_ros.base.strict import read_model
from osmabench_ros.errors import RunError, errors_as
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.runs.config import MatrixConfig, parse_config
from osmabench_ros.runs.evaluate.evaluation import INCOMPLETE
from osmabench_ros.runs.identity import RunIdentity, SceneKey, Seeds, is_run_name, slug
from osmabench_ros.runs.inputs import collect_inputs, without_home
from osmabench_ros.runs.plan import RunPlan, config_digest
from osmabench_ros.runs.results.report_model import RunReport, without_classes
from osmabench_ros.runs.results.results_folder import MANIFEST, PAGES, is_held
from osmabench_ros.runs.run_manifest import (
    FIGURES,
    Growth,
    find_growth,
    has_figures,
    read_manifest,
)
from osmabench_ros.simulation.conditions import (
    Condition,
    load_condition,
    name_of_condition,
    parse_condition,
)

FAILURE = 'failure.json'
"""Of a run that failed: its report, with the error."""
RUNS = 'runs.json'
SCHEMA = 'osmabench.runs/1'

_Item = TypeVar('_Item')


class RunState(str, Enum):
    """How far a run came."""

    DONE = 'done'
    FAILED = 'failed'
    INCOMPLETE = 'incomplete'
    """A server failed, or the command was cut off: the same command goes on."""
    RUNNING = 'running'
    NOT_BEGUN = 'not begun'


class Stage(str, Enum):
    """The stages of a run, in order."""

    PREPARE = 'prepare'
    """Path, ground truth and questions of its scene, and the manifest."""
    MAP = 'map'
    """The method maps what it sees."""
    EVALUATE = 'evaluate'
    """The suites score the map."""
    FINISH = 'finish'
    """Scores over time, and the digests of the results."""


def next_stage(directory: Path) -> Stage | None:
    """Return the stage that a run goes on with, by its folder; None if it is done."""
    if (directory / 'report.json').exists():
        return None if has_figures(directory) else Stage.FINISH
    if (directory / 'map').exists():
        return Stage.EVALUATE
    return Stage.MAP if (directory / MANIFEST).exists() else Stage.PREPARE


def note_runs(root: Path, plans: Sequence[RunPlan]) -> None:
    """Write which runs belong to the folder of a matrix, before the first of them begins."""
    run_ids = [plan.identity.run_id for plan in plans]
    write_json(root / RUNS, {'schema_name': SCHEMA, 'runs': run_ids})


def claim(
    root: Path,
    config: MatrixConfig,
    plans: Sequence[RunPlan],
    digest_of: Callable[[RunPlan], str],
    *,
    fresh: bool = False,
) -> Growth:
    """Check that a locked folder has only results that `plans` go on with, and write its manifest.

    Returns which of them have to be done again, as `find_growth`; `fresh` moves all aside.
    """
    claim_folder(root)
    if fresh:
        move_aside(root)
    check_file(root / MANIFEST)
    growth = find_growth(plans, digest_of)
    write_manifest(root, config, collect_inputs(plans, digest_of))
    return growth


def write_manifest(root: Path, config: MatrixConfig, inputs: Mapping[str, str]) -> None:
    """Write the manifest of a matrix: the whole configuration and its inputs."""
    data = {
        'config_sha256': config_digest(config),
        'config': without_home(config.model_dump(mode='json', exclude={'sweep'})),
        'inputs': dict(inputs),
    }
    write_json(root / MANIFEST, data)


def check_results(root: Path, plans: Sequence[RunPlan]) -> None:
    """Raise RunError if a folder that is not ours is where one with results goes."""
    folders = [root / PAGES]
    for plan in plans:
        folders += [plan.shared_directory.parent, plan.shared_directory]
        folders += [plan.directory, plan.map_directory]
    for folder in folders:
        check_folder(folder, Existing.MERGE)


@dataclass(frozen=True)
class RunOnDisk:
    """A run, how far it came, and the first line of why it came no further."""

    run_id: str
    state: RunState
    reason: str = ''


@dataclass(frozen=True)
class MatrixOnDisk:
    """The folder of a matrix."""

    root: Path

    @cached_property
    def _manifest(self) -> Mapping[str, Any]:
        found = read_json(self.root / MANIFEST)
        if not isinstance(found, dict) or 'config' not in found:
            raise RunError(f'{self.root / MANIFEST} has no configuration; name a folder of runs')
        return found

    @cached_property
    def config(self) -> MatrixConfig:
        """The configuration of its runs."""
        return parse_config(self._manifest['config'], str(self.root / MANIFEST))

    @property
    def config_digest(self) -> str:
        """The digest of the configuration as it was run."""
        return str(self._manifest.get('config_sha256', ''))

    @property
    def inputs(self) -> Mapping[str, str]:
        """Digests of what the results depend on besides the configuration."""
        return self._manifest.get('inputs') or {}

    @cached_property
    def run_ids(self) -> tuple[str, ...]:
        """The planned runs; of an earlier version, which did not note them, those that began."""
        file = self.root / RUNS
        if file.exists():
            with errors_as(RunError, f'{file} is malformed', KeyError, TypeError, shown=repr):
                return tuple(read_json(file)['runs'])
        names = sorted(path.name for path in self.root.iterdir() if path.is_dir())
        return tuple(name for name in names if is_run_name(name))

    def runs(self) -> Iterator[RunOnDisk]:
        """Yield every run with its state, in order."""
        held = is_held(self.root)
        return (self._looked_at(run_id, held=held) for run_id in self.run_ids)

    def _looked_at(self, run_id: str, *, held: bool) -> RunOnDisk:
        folder = self.root / run_id
        if not folder.exists():
            return RunOnDisk(run_id, RunState.NOT_BEGUN)
        if (folder / FAILURE).exists():
            return RunOnDisk(run_id, RunState.FAILED, self._report(run_id, FAILURE).error)
        if (folder / 'report.json').exists():
            return RunOnDisk(run_id, RunState.DONE)
        if (folder / INCOMPLETE).exists():
            return RunOnDisk(run_id, RunState.INCOMPLETE, self._report(run_id, INCOMPLETE).error)
        stage = next_stage(folder) or Stage.FINISH
        if held:
            return RunOnDisk(run_id, RunState.RUNNING, stage.value)
        reason = f'cut off at the stage {stage.value}; the same command goes on'
        return RunOnDisk(run_id, RunState.INCOMPLETE, reason)

    def plan(self, run_id: str) -> RunPlan:
        """Return the plan of a run."""
        return self._plans.of(self.root / run_id)

    @cached_property
    def _plans(self) -> PlansOfRuns:
        return PlansOfRuns(self.config)

    @cached_property
    def versions(self) -> Mapping[str, frozenset[str]]:
        """The versions of each package that the done runs were scored with."""
        found: dict[str, set[str]] = {}
        for run in self.runs():
            if run.state is RunState.DONE:
                manifest = read_json(self.root / run.run_id / MANIFEST)
                for name, version in manifest.get('versions', {}).items():
                    found.setdefault(name, set()).add(str(version))
        return {name: frozenset(versions) for name, versions in found.items()}

    def has_report(self, run: RunOnDisk) -> bool:
        """Return whether a run has a report, be it of a failure."""
        return self._file(run) is not None

    def report(
        self, run: RunOnDisk, classes: Collection[tuple[str, str, str]] | None = None
    ) -> RunReport | None:
        """Return the report of a run, None if it has none yet.

        Of the metrics of single classes only `classes` are in it, by suite, metric and class, and
        the accuracies by category; without, all are. Reading the others of ten thousand runs would
        take minutes.
        """
        file, folder = self._file(run), self.root / run.run_id
        if file is None:
            return None
        if classes is None:
            return self._report(run.run_id, file)
        of_classes = any(name for *_, name in classes)
        if run.state is RunState.DONE and not of_classes and has_figures(folder):
            file = FIGURES
        return without_classes(self._report(run.run_id, file), classes)

    def _file(self, run: RunOnDisk) -> str | None:
        files = {
            RunState.DONE: 'report.json',
            RunState.FAILED: FAILURE,
            RunState.INCOMPLETE: INCOMPLETE,
        }
        file = files.get(run.state)
        return file if file and (self.root / run.run_id / file).exists() else None

    def _report(self, run_id: str, file: str) -> RunReport:
        return read_model(RunReport, self.root / run_id / file)


def matrices_at(path: Path) -> list[MatrixOnDisk]:
    """Return the matrix in a folder, or those one level below; RunError if there is none."""
    if is_run_name(path.absolute().name):
        raise RunError(f'{path} is the folder of one run; name the folder above it')
    if (path / MANIFEST).is_file():
        return [MatrixOnDisk(path)]
    with errors_as(RunError, f'cannot read {path}', OSError):
        below = sorted(item for item in path.iterdir() if (item / MANIFEST).is_file())
    if not below:
        raise RunError(f'{path} holds no runs; name the --out of osmabench run, or a folder in it')
    return [MatrixOnDisk(item) for item in below]


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
        manifest, noted = directory.parent / MANIFEST, read_manifest(directory)
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
