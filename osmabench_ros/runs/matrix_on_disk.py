"""The folder of a matrix: its manifest, the plans of its runs, and how far each came."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from osmabench_ros.base import files
from osmabench_ros.base.documents import read_yaml
from osmabench_ros.base.strict import Strict, read_model, validated
from osmabench_ros.errors import ConfigError, RunError, errors_as
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.runs import run_manifest
from osmabench_ros.runs.config import MatrixConfig, PacingConfig, ScoringConfig, parse_config
from osmabench_ros.runs.evaluation import INCOMPLETE, TRUE_TRAJECTORY
from osmabench_ros.runs.identity import SceneKey, is_run_name, slug
from osmabench_ros.runs.open_vocabulary import OpenVocabularyLabeller
from osmabench_ros.runs.plan import PATH_FILE, RunPlan, config_digest, plan_runs
from osmabench_ros.runs.report_model import RunReport, without_classes
from osmabench_ros.runs.run_manifest import MANIFEST, PAGES, is_locked, without_home
from osmabench_ros.simulation.conditions import Condition, name_of_condition
from osmabench_ros.suites.hypo3d import suite as hypo3d
from osmabench_ros.suites.hypo3d.generation import SUITE
from osmabench_ros.suites.question_suite import ExactQuestionsSuite
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.vqa.evaluation import QuestionedMap
from osmabench_ros.vqa.question_files import read_records
from osmabench_ros.vqa.questions import Question
from osmabench_ros.vqa.stages import RunFolder

# Of a run that failed: its report, with the error.
FAILURE = 'failure.json'


class RunState(str, Enum):
    """How far a run came."""

    DONE = 'done'
    FAILED = 'failed'
    # A server failed, or the command was cut off: the same command goes on.
    INCOMPLETE = 'incomplete'
    RUNNING = 'running'
    NOT_BEGUN = 'not begun'


# The report of a run by its state; the first that is there counts.
REPORTS = {
    RunState.FAILED: FAILURE,
    RunState.DONE: 'report.json',
    RunState.INCOMPLETE: INCOMPLETE,
}


class Stage(str, Enum):
    """The stages of a run, in order."""

    # Path, ground truth and questions of its scene, and the manifest.
    PREPARE = 'prepare'
    # The method is mapping.
    MAP = 'map'
    # The suites score the map.
    EVALUATE = 'evaluate'
    # Scores over time, and the digests of the results.
    FINISH = 'finish'


def next_stage(directory: Path) -> Stage | None:
    """Return the stage that a run goes on with, by its folder; None if it is done."""
    if (directory / 'report.json').exists():
        return None if run_manifest.has_metrics(directory) else Stage.FINISH
    if (directory / 'map').exists():
        return Stage.EVALUATE
    return Stage.MAP if (directory / MANIFEST).exists() else Stage.PREPARE


def claim(
    root: Path,
    config: MatrixConfig,
    plans: Sequence[RunPlan],
    digest_of: Callable[[RunPlan], str],
    *,
    fresh: bool = False,
    sweep: bool = False,
) -> run_manifest.ExtraWork:
    """Check that a locked folder has only results that `plans` go on with, and write its manifest.

    Returns which of them have to be done again, as `find_extra_work`; `fresh` moves all aside.
    Raises RunError too if a folder that is not ours is where one with results goes.
    """
    files.claim_folder(root)
    if fresh:
        files.move_aside(root)
    files.check_file(root / MANIFEST)
    extra = run_manifest.find_extra_work(plans, digest_of)
    write_manifest(root, config, plans, sweep=sweep)
    folders = [root / PAGES]
    for plan in () if sweep else plans:
        folders += [plan.shared_directory.parent, plan.shared_directory]
        folders += [plan.directory, plan.map_directory]
    for folder in folders:
        files.check_folder(folder, files.Existing.MERGE)
    return extra


class MatrixManifest(Strict):
    """Model of the manifest.json of a matrix: everything that its plans are made from again.

    `scenes` are the keys of the seeded scenes; the runs of a `sweep` have other speeds than
    `config`.
    """

    config_sha256: str
    config: MatrixConfig
    scenes: tuple[SceneKey, ...]
    conditions: tuple[Condition, ...]
    sweep: bool = False


def write_manifest(
    root: Path, config: MatrixConfig, plans: Sequence[RunPlan], *, sweep: bool = False
) -> None:
    """Write the manifest of a matrix with some plans."""
    keys = {plan.scene: plan.identity.scene_key for plan in plans}
    manifest = MatrixManifest(
        config_sha256=config_digest(config),
        config=config,
        scenes=tuple(keys[item] for item in config.seeded_scenes),
        conditions=config.loaded_conditions,
        sweep=sweep,
    )
    data = manifest.model_dump(mode='json', exclude={'config': {'sweep'}})
    files.write_json(root / MANIFEST, without_home(data))


@dataclass(frozen=True)
class RunOnDisk:
    """A run, how far it came, why no further, and whether it has a report, be it of a failure."""

    run_id: str
    state: RunState
    reason: str = ''
    has_report: bool = False


@dataclass(frozen=True)
class MatrixOnDisk:
    """The folder of a matrix."""

    root: Path

    @cached_property
    def _manifest(self) -> MatrixManifest:
        return read_model(MatrixManifest, self.root / MANIFEST)

    @property
    def config(self) -> MatrixConfig:
        """The configuration of its runs."""
        return self._manifest.config

    @property
    def config_digest(self) -> str:
        """The digest of the configuration as it was run."""
        return self._manifest.config_sha256

    @cached_property
    def plans(self) -> Mapping[str, RunPlan]:
        """The planned runs by their names; of a sweep, by speed 1."""
        return self._plans(self.config)

    def _plans(self, config: MatrixConfig) -> Mapping[str, RunPlan]:
        with errors_as(RunError, str(self.root / MANIFEST), ValueError, remedy='restore it'):
            scenes = dict(zip(config.seeded_scenes, self._manifest.scenes, strict=True))
            plans = plan_runs(config, scenes, self.root, self._manifest.conditions)
        return {plan.identity.run_id: plan for plan in plans}

    def plan(self, run_id: str) -> RunPlan:
        """Return the plan of a run, at its own pace."""
        plans = self.plans
        if self._manifest.sweep and (noted := run_manifest.read_manifest(self.root / run_id)):
            pacing = validated(PacingConfig, noted['config']['pacing'], run_id, RunError)
            plans = self._plans(self.config.model_copy(update={'pacing': pacing}))
        if run_id not in plans:
            why = 'the folder was renamed or belongs elsewhere'
            raise RunError(f'{self.root / MANIFEST} has no run "{run_id}"; {why}')
        return plans[run_id]

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The planned runs; of a sweep, those that began."""
        if not self._manifest.sweep:
            return tuple(self.plans)
        names = sorted(path.name for path in self.root.iterdir() if path.is_dir())
        return tuple(name for name in names if is_run_name(name))

    def runs(self) -> Iterator[RunOnDisk]:
        """Yield every run with its state, in order."""
        locked = is_locked(self.root)
        return (self._look_at_run(run_id, locked=locked) for run_id in self.run_ids)

    def _look_at_run(self, run_id: str, *, locked: bool) -> RunOnDisk:
        folder = self.root / run_id
        if not folder.exists():
            return RunOnDisk(run_id, RunState.NOT_BEGUN)
        for state, file in REPORTS.items():
            if (folder / file).exists():
                done = state is RunState.DONE
                error = '' if done else read_model(RunReport, folder / file).error
                return RunOnDisk(run_id, state, error, has_report=True)
        stage = next_stage(folder) or Stage.FINISH
        if locked:
            return RunOnDisk(run_id, RunState.RUNNING, stage.value)
        reason = f'cut off at the stage {stage.value}; the same command goes on'
        return RunOnDisk(run_id, RunState.INCOMPLETE, reason)

    @cached_property
    def versions(self) -> Mapping[str, frozenset[str]]:
        """The versions of each package that the done runs were scored with."""
        found: dict[str, set[str]] = {}
        for run in self.runs():
            if run.state is RunState.DONE:
                manifest = run_manifest.read_manifest(self.root / run.run_id)
                for name, version in manifest.get('versions', {}).items():
                    found.setdefault(name, set()).add(str(version))
        return {name: frozenset(versions) for name, versions in found.items()}

    def report(
        self, run: RunOnDisk, classes: Collection[tuple[str, str, str]] | None = None
    ) -> RunReport | None:
        """Return the report of a run, None if it has none yet.

        Of the metrics of single classes only `classes` are in it, by suite, metric and class, and
        the accuracies by category; without, all are. Reading the others of ten thousand runs would
        take minutes.
        """
        if not run.has_report:
            return None
        folder, file = self.root / run.run_id, REPORTS[run.state]
        if classes is None:
            return read_model(RunReport, folder / file)
        of_classes = any(name for *_, name in classes)
        if run.state is RunState.DONE and not of_classes and run_manifest.has_metrics(folder):
            file = run_manifest.METRICS
        return without_classes(read_model(RunReport, folder / file), classes)


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
    if not directory.is_dir():
        raise RunError(f'{directory} does not exist; name the folder of a run or of a map')
    if not is_run_name(directory.name):
        runs = sorted(path.parent.name for path in directory.glob('*/map'))
        hint = f'; name one of its runs: {", ".join(runs)}' if runs else ''
        form = 'dataset.scene.condition.mapper.simulator.seed'
        raise RunError(f'{directory} is not the folder of a run ({form}){hint}')
    return MatrixOnDisk(directory.parent).plan(directory.name)


def with_origin_of_run(semantic_map: SemanticMap, folder: Path) -> SemanticMap:
    """Return a map with scene and condition of the run that a folder has, if it names no scene."""
    header, noted = semantic_map.header, run_manifest.read_manifest(folder)
    if header.provenance.scene or 'run_id' not in noted:
        return semantic_map
    scene = f'{noted["dataset"]} {noted["scene"]}'
    origin = replace(header.provenance, scene=scene, condition=noted['condition'])
    return replace(semantic_map, header=replace(header, provenance=origin))


# The one option of the suite that says how a map is read, not who answers or judges.
_MATCHING = 'embedding'


def questioned_map(run: RunFolder) -> QuestionedMap:
    """Return a recorded map with the names and rules of the run's suite."""
    config = ScoringConfig(suites=())
    if (run.directory.resolve().parent / MANIFEST).exists():
        config = open_run(run.directory).config
    scene, semantic_map = run.scene, run.semantic_map()
    labeller = OpenVocabularyLabeller(semantic_map, config.text_features).node_labeller
    context = SuiteContext(scene, semantic_map, run.ground_truth(), node_labeller=labeller)
    given = (item.options for item in config.suites if item.name == ExactQuestionsSuite.name)
    chosen = {key: value for key, value in next(given, {}).items() if key == _MATCHING}
    return ExactQuestionsSuite(options=chosen).prepare_map(context)


# Parts of the names of folders next to the folder of a matrix.
REMAPPED, LIVE = 'changed', 'live'


def locate_derived_matrix(plan: RunPlan, kind: str) -> Path:
    """Return the folder next to the matrix for a kind of runs of a scene."""
    name = f'{plan.root.name}_{kind}_{plan.identity.scene_key}'
    return plan.root.with_name(slug(name))


def make_derived_matrices(plans: Sequence[RunPlan]) -> Iterator[MatrixConfig]:
    """Yield the matrices that the suite hypo3d needs next to a matrix that was run, if any.

    For each path in a scene: the changed scenes under the conditions of the matrix, and one run
    of each mapper in which the first change is made halfway. A scene that could not be prepared
    has none.
    """
    for folder in dict.fromkeys(plan.shared_directory for plan in plans):
        own = [plan for plan in plans if plan.shared_directory == folder]
        done = [plan for plan in own if (plan.directory / TRUE_TRAJECTORY).exists()]
        options = hypo3d.hypo3d_options(own[0].config.suites)
        if not done or options is None or options.before is not None:
            continue
        drive_again = partial(_drive_again, done[0], {plan.mapper.name for plan in done}, options)
        scene = done[0].scene.model_dump(mode='json', exclude_defaults=True)
        changes = _read_changes(done[0])
        if options.remap and changes:
            earlier = scene.get('changes', [])
            scenes = [{**scene, 'changes': [*earlier, *new]} for new in changes.values()]
            yield drive_again(REMAPPED, {}, scenes=scenes, evaluation={})
        halfway = folder / hypo3d.HALFWAY_FILE
        if options.live_maps_every and changes and halfway.exists():
            yield drive_again(
                LIVE,
                {'change': next(iter(changes))},
                scenes=[scene],
                conditions=[str(halfway.absolute())],
                evaluation={'map_every_frames': options.live_maps_every},
            )


def _read_changes(plan: RunPlan) -> dict[str, list[Any]]:
    """Return the changes that are asked about, by the names of the changed scenes."""
    found: dict[str, list[Any]] = {}
    for item in read_records(plan.questions_file, Question):
        if item.suite == SUITE and item.provenance['changed_scene'] not in found:
            number = int(item.provenance['number'])
            file = plan.shared_directory / hypo3d.CHANGE_FILES.format(number)
            found[item.provenance['changed_scene']] = read_yaml(file, ConfigError)
    return found


def _drive_again(
    plan: RunPlan,
    mappers: Collection[str],
    options: hypo3d.Hypo3DOptions,
    kind: str,
    asked: Mapping[str, str],
    **own: Any,
) -> MatrixConfig:
    """Return a configuration that drives along the path of a run again.

    Its suite asks the questions again, without describing the changes.
    """
    data = plan.config.model_dump(mode='json')
    name = locate_derived_matrix(plan, kind).name
    drawn = {'strategy', 'goal_points', 'planner', 'navmesh', 'storey', 'recorded_frame'}
    track = {key: value for key, value in data['trajectory'].items() if key not in drawn}
    left_out = {'remap', 'live_maps_every', 'before', 'change'}
    kept = options.model_dump(mode='json', exclude=left_out, exclude_defaults=True)
    before = str(plan.questions_file.absolute())
    data |= {
        'name': name,
        'seeds': {'method': data['seeds']['method']},
        'mappers': [item for item in data['mappers'] if item['name'] in mappers],
        'trajectory': {**track, 'recorded': str((plan.shared_directory / PATH_FILE).absolute())},
        'suites': [{'name': SUITE, 'options': {**kept, 'before': before, **asked}}],
        'requirements': [],
        'recording': {},
        'sweep': {},
        **own,
    }
    return parse_config(data, f'{name}, made for {plan.config.name}')


def find_derived_runs(plan: RunPlan, kind: str) -> list[RunPlan]:
    """Return the finished runs of a mapper next to its run, under the same condition.

    Those that a change is made in are next to the runs of the first condition.
    """
    root, wanted = locate_derived_matrix(plan, kind), plan.identity
    first = name_of_condition(plan.config.conditions[0])
    if not (root / MANIFEST).is_file() or (kind == LIVE and wanted.condition != first):
        return []
    matrix = MatrixOnDisk(root)
    found = [matrix.plan(run.run_id) for run in matrix.runs() if run.state is RunState.DONE]
    return [
        other
        for other in found
        if (other.identity.mapper, other.identity.method_seed)
        == (wanted.mapper, wanted.method_seed)
        and (kind == LIVE or other.identity.condition == wanted.condition)
    ]
