"""Prepares the data that runs on one path in a scene share: path, ground truth, questions.

A dry run lists the runs of a matrix, and the requests to language models that it would make.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from osmabench_ros.base import files
from osmabench_ros.base.configuration import SIMULATORS, load_extension
from osmabench_ros.base.progress import Progress
from osmabench_ros.errors import ConfigError, check_all, warn
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory, format_tum
from osmabench_ros.language.embedding import PrecomputedEmbedder
from osmabench_ros.language.settings import run_dry
from osmabench_ros.mappers.live_method import load_live_method
from osmabench_ros.mappers.mapper import make_mapper, mapper_class, reads_albedo
from osmabench_ros.mappers.offline_method import filled
from osmabench_ros.metrics.comparison import estimate_power
from osmabench_ros.runs import run_manifest, shared_path
from osmabench_ros.runs.config import MapperConfig, MatrixConfig, SceneConfig, check_for_runs
from osmabench_ros.runs.evaluation import TRUE_TRAJECTORY, make_suites
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.matrix_on_disk import Stage, next_stage
from osmabench_ros.runs.plan import (
    GROUND_TRUTH_FOLDER,
    PATH_FILE,
    QUESTIONS_FILE,
    RunPlan,
    plan_runs,
)
from osmabench_ros.scenes.loading import APARTMENT
from osmabench_ros.scenes.scene import Lighting, Scene
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences import ground_truth
from osmabench_ros.sequences.layout import RecordedSequence
from osmabench_ros.sequences.recorded import names_of, open_sequence
from osmabench_ros.simulation.conditions import name_of_condition, require_light
from osmabench_ros.simulation.frame_source import make_stamp
from osmabench_ros.simulation.robot_path import RobotPath, Trajectory
from osmabench_ros.simulation.schedule import Moment, Span
from osmabench_ros.simulation.simulator import Simulator
from osmabench_ros.simulation.strategies import Lookouts
from osmabench_ros.simulation.walkable_grid import WalkableGrid
from osmabench_ros.suites.hypo3d.suite import hypo3d_options
from osmabench_ros.suites.suite import (
    PreparedScene,
    PreparesQuestions,
    SimulatedScene,
    make_suite,
    models_asked_by,
)
from osmabench_ros.vqa.exact.generation import questions_about
from osmabench_ros.vqa.question_files import write_records

COVERAGE_FILE = 'coverage.json'


class Preparation:
    """The scenes of configurations, each loaded once by `load`, and their shared data."""

    def __init__(self, load: Callable[[SceneConfig], Scene] = SceneConfig.load) -> None:
        self._scene = lru_cache(maxsize=2)(load)
        self._sequence = lru_cache(maxsize=8)(
            lambda item: open_sequence(item.recorded_files[0], item.topics)
        )
        self._key = lru_cache(maxsize=1024)(self._read_key)
        self._digest = lru_cache(maxsize=1024)(
            lambda item: (
                _hash_recorded(item)
                if item.sequence
                else run_manifest.scene_digest(self._scene(item))
            )
        )

    def check_names(self, config: MatrixConfig) -> None:
        """Look up every name of a configuration, before anything is made; or ConfigError.

        The error names all that are not found.
        """
        check_all(
            [
                *(partial(make_suite, item.name, item.options) for item in config.suites),
                lambda: config.loaded_conditions,
                *(partial(self._check_there, item, config) for item in config.scenes),
                partial(load_extension, SIMULATORS, config.simulator.name),
                *(partial(_check_mapper, item) for item in config.mappers),
                *(partial(PrecomputedEmbedder, file) for file in config.text_features.values()),
            ]
        )
        suites = make_suites(config.suites)
        check_for_runs(
            config.requirements,
            grows=config.evaluation.map_every_frames > 0,
            final_only=[suite.name for suite in suites if models_asked_by(suite)],
        )

    def _check_there(self, item: SceneConfig, config: MatrixConfig) -> None:
        if item.sequence is not None:
            recorded = self._sequence(item).info.condition
            others = [name for name in config.conditions if recorded and name != recorded]
            if others or len(config.conditions) > 1:
                problem = f'was recorded under one condition, "{recorded or "unknown"}"'
                remedy = f'write conditions: [{recorded or "baseline"}]'
                raise ConfigError(f'sequence {item.sequence} {problem}; {remedy}')
        elif item.reference != APARTMENT and not Path(item.reference).expanduser().exists():
            self._key(item)

    def check_mappers(self, config: MatrixConfig) -> None:
        """Make every bundled mapper once for every scene; ConfigError if it does not fit."""
        # Once for all paths in a scene.
        for item in dict.fromkeys(item.without_path for item in config.seeded_scenes):
            for mapper in config.mappers:
                if mapper.bundled:
                    _check_albedo(config, item, mapper)
                    # The folder of the run is not there yet.
                    values = {
                        'run': '${run}',
                        'scene': self._key(item).scene,
                        'condition': name_of_condition(config.conditions[0]),
                        'seed': str(item.seed),
                    }
                    make_mapper(
                        mapper.bundled,
                        label_set=self._label_set(item),
                        seed=item.seed,
                        options=filled(mapper.options, values, f'options of mapper {mapper.name}'),
                    )

    def plans(self, config: MatrixConfig, root: Path) -> list[RunPlan]:
        """Return the runs of a configuration in the folder of its results.

        Raises ConfigError if seeds make equal scenes, SimulationError if a scene would be dark.
        """
        keys = {item: self._key(item) for item in config.seeded_scenes}
        _refuse_equal_scenes(config, keys)
        plans = plan_runs(config, keys, root)
        lit = {
            (plan.scene.without_path, plan.condition.name): plan
            for plan in plans
            if plan.scene.sequence is None
        }
        for plan in lit.values():
            require_light(plan.condition, self.scene_of(plan))
        return plans

    def digest_of(self, plan: RunPlan) -> str:
        """Return the digest of the scene of a run."""
        return self._digest(plan.scene.without_path)

    def scene_of(self, plan: RunPlan) -> Scene:
        """Return the scene of a run that is simulated."""
        return self._scene(plan.scene.without_path)

    def _read_key(self, item: SceneConfig) -> SceneKey:
        if item.sequence is not None:
            names = names_of(self._sequence(item), item.recorded_files[0])
            return SceneKey(*names, item.seed)
        scene = self._scene(item.without_path)
        return SceneKey(scene.dataset, scene.name, item.seed, item.path_seed)

    def _label_set(self, item: SceneConfig) -> LabelSet:
        if item.sequence is not None:
            return _read_recorded_labels(item, self._sequence(item))
        return self._scene(item).label_set

    def prepare(self, plan: RunPlan, progress: Progress) -> Path:
        """Make the shared folder of a run, unless it is there, by renaming, and return it."""
        directory = plan.shared_directory
        if directory.exists():
            return directory
        if plan.scene.sequence is not None:
            truth = _read_truth(plan.scene, self._sequence(plan.scene))
            with files.atomic_directory(directory) as temporary:
                self._write_truth(plan, truth, temporary, progress)
            return directory
        progress('planning the path', 0.0)
        scene = self.scene_of(plan)
        navigation = shared_path.navigation_of(plan.config, scene)
        path = shared_path.shared_path(plan.config, plan.scene.seed_of_path, scene, navigation)
        trajectory = shared_path.drive(plan.config, path)
        coverage = _measure_coverage(plan, scene, navigation, trajectory)
        storeys = ', '.join(f'{item["share"]:.0%}' for item in coverage.get('storeys', ()))
        of_each = f' ({storeys} of the storeys, from below)' if storeys else ''
        progress(f'the path sees {coverage["share"]:.0%} of what can be seen{of_each}', 0.0)
        truth = ground_truth.build_ground_truth(
            scene,
            trajectory.camera_poses,
            plan.config.camera.intrinsics,
            frames=_render_unlit_frames(plan, scene, trajectory),
            max_depth_m=plan.config.camera.far_m,
            seed=plan.scene.seed,
            progress=progress,
        )
        with files.atomic_directory(directory) as temporary:
            files.write_json(temporary / PATH_FILE, path.to_json())
            files.write_json(temporary / COVERAGE_FILE, coverage)
            self._write_truth(plan, truth, temporary, progress)
        return directory

    def _write_truth(
        self, plan: RunPlan, truth: ground_truth.GroundTruth, directory: Path, progress: Progress
    ) -> None:
        ground_truth.write_ground_truth(truth, directory / GROUND_TRUTH_FOLDER)
        self._write_questions(plan, directory, directory, progress)
        self._write_manifest(plan, directory)

    def _write_manifest(self, plan: RunPlan, directory: Path) -> None:
        manifest = run_manifest.describe_shared(plan, self.digest_of(plan))
        files.write_json(directory / run_manifest.MANIFEST, manifest)

    def prepare_extra_work(self, extra: run_manifest.ExtraWork, progress: Progress) -> None:
        """Add the questions of more suites to prepared scenes, and have maps scored again."""
        for plan in extra.scenes:
            directory = plan.shared_directory
            progress(f'{directory.name}: adding the questions of more suites', 0.0)
            with files.atomic_directory(directory, files.Existing.MERGE) as temporary:
                self._write_questions(plan, directory, temporary, progress)
            # Last, so that an interrupted addition is made again.
            self._write_manifest(plan, directory)
        for plan, reasons in extra.runs:
            why = '; '.join(map(str, reasons))
            progress(f'{plan.identity.run_id}: the map is kept and scored again: {why}', 0.0)
            run_manifest.forget_scores(plan)

    def _write_questions(
        self, plan: RunPlan, prepared: Path, directory: Path, progress: Progress
    ) -> None:
        """Write the questions of all suites about a `prepared` path and its ground truth."""
        progress('generating questions', 0.0)
        truth = ground_truth.read_ground_truth(prepared / GROUND_TRUTH_FOLDER)
        key, seed = str(plan.identity.scene_key), plan.scene.seed_of_path
        questions = questions_about(truth, scene=key, seed=seed)
        simulated = None
        if plan.scene.sequence is None:
            scene = self.scene_of(plan)
            path = RobotPath.read(prepared / PATH_FILE)
            simulated = SimulatedScene(scene, path, partial(_start_wide, plan, scene))
        prepared_scene = PreparedScene(truth, key, seed, directory, simulated, progress)
        for suite in make_suites(plan.config.suites):
            if isinstance(suite, PreparesQuestions):
                questions += suite.prepare(prepared_scene)
        write_records(directory / QUESTIONS_FILE, questions)

    def write_true_trajectory(self, plan: RunPlan) -> None:
        """Write the true poses of a prepared run: before any effect, or of a sequence.

        A sequence that was recorded with the poses that a robot believes in has no true ones.
        """
        if plan.scene.sequence is None:
            frames = shared_path.driven_trajectory(plan).frames
            poses = [(make_stamp(frame.time_s), frame.camera_pose) for frame in frames]
        elif plan.condition.changes_poses:
            return
        else:
            recorded = self._sequence(plan.scene)
            poses = list(zip(recorded.stamps_ns, recorded.poses, strict=True))
        text = format_tum(StampedTrajectory.from_poses(poses))
        files.write_text(plan.directory / TRUE_TRAJECTORY, text)

    def prepare_all(
        self, config: MatrixConfig, root: Path, progress: Progress
    ) -> dict[Path, bool]:
        """Make the shared folder of every scene of a configuration; return which were kept.

        Raises RunError, key by key, if one that is there was made with other settings.
        """
        files.check_folder(root, files.Existing.MERGE)
        self.check_names(config)
        folders = {plan.shared_directory: plan for plan in self.plans(config, root)}
        with run_manifest.lock_folder(root):
            kept = {folder: folder.exists() for folder in folders}
            extra = run_manifest.find_extra_work(folders.values(), self.digest_of)
            self.prepare_extra_work(run_manifest.ExtraWork(extra.scenes), progress)
            for plan in folders.values():
                self.prepare(plan, progress)
        return kept


def _check_mapper(mapper: MapperConfig) -> None:
    if mapper.bundled:
        mapper_class(mapper.bundled)
    if mapper.stack:
        load_live_method(mapper.stack).check_variables(mapper.variables)


def _refuse_equal_scenes(config: MatrixConfig, keys: Mapping[SceneConfig, SceneKey]) -> None:
    """Refuse seeds that make no other scene, which would count as one."""
    seeds: dict[tuple[str, str, str], int] = {}
    for item, key in keys.items() if config.seeds.scene else ():
        if seeds.setdefault((item.reference, item.scene, key.scene), item.seed) != item.seed:
            problem = f'scene {key.scene} of {item.reference} is the same for every seed'
            raise ConfigError(f'{problem}; list seeds.path instead of seeds.scene')


def _check_albedo(config: MatrixConfig, item: SceneConfig, mapper: MapperConfig) -> None:
    """Refuse a mapper that waits for colours without light where nothing gives them."""
    if not reads_albedo(mapper.options):
        return
    simulator = load_extension(SIMULATORS, config.simulator.name)
    if item.sequence is not None or not getattr(simulator, 'shows_albedo', False):
        source = f'sequence {item.sequence}' if item.sequence else config.simulator.name
        problem = f'has the option albedo, but {source} shows no colours without light'
        raise ConfigError(f'mapper "{mapper.name}" {problem}; choose simulator "opengl"')


def _start_wide(plan: RunPlan, scene: Scene, hfov_rad: float) -> Simulator:
    """Start the backend of a run with another field of view."""
    camera = plan.config.camera.model_copy(update={'hfov_deg': math.degrees(hfov_rad)})
    return plan.config.simulator.simulator(scene, camera)


def _measure_coverage(
    plan: RunPlan, scene: Scene, navigation: WalkableGrid, trajectory: Trajectory
) -> dict[str, Any]:
    camera, storeys_m = plan.config.camera, navigation.storeys_m
    lookouts = Lookouts(
        scene, navigation, camera.mounting_height_m, camera.far_m, seed=plan.scene.seed
    )
    whole, *storeys = (
        {'share': item.share, **asdict(item)}
        for item in lookouts.measure_coverages(
            trajectory.camera_poses, camera.intrinsics, storeys_m
        )
    )
    found = {'strategy': plan.config.trajectory.strategy.value, **whole}
    heights = [{'height_m': round(height_m, 3)} for height_m in storeys_m]
    if storeys:
        found['storeys'] = [a | b for a, b in zip(heights, storeys, strict=True)]
    return found


def _render_unlit_frames(plan: RunPlan, scene: Scene, trajectory: Trajectory) -> Iterator[Frame]:
    """Yield depth, semantic and instance images, which do not depend on light."""
    camera = plan.config.camera
    with closing(plan.config.simulator.simulator(scene, camera)) as simulator:
        simulator.set_lighting(Lighting.unlit())
        for index, instant in enumerate(trajectory.frames):
            seen = simulator.render(instant.camera_pose)
            yield Frame(
                index,
                round(instant.time_s * 1e9),
                instant.camera_pose,
                camera.intrinsics,
                seen.color,
                seen.depth_m,
                seen.semantic,
                seen.instance,
            )


# Of larger files, which are images and bags, a digest takes only the size.
_CONTENT_BYTES = 2**20


def _read_recorded_labels(item: SceneConfig, sequence: RecordedSequence) -> LabelSet:
    """Return the classes that the bridge announces; raise ConfigError if the sequence has none."""
    labels = sequence.info.label_set
    if labels is None:
        remedy = 'add embed_semseg_classes.json'
        raise ConfigError(f'sequence {item.sequence} names no classes; {remedy}')
    return labels


def _read_truth(item: SceneConfig, sequence: RecordedSequence) -> ground_truth.GroundTruth:
    """Read the ground truth of a recorded scene; raises ConfigError if it has other classes."""
    truth = ground_truth.read_ground_truth(item.recorded_files[1])
    if truth.label_set.classes != _read_recorded_labels(item, sequence).classes:
        both = f'ground truth {item.ground_truth} and sequence {item.sequence}'
        raise ConfigError(f'{both} have different classes; name those made for each other')
    return truth


def _hash_recorded(item: SceneConfig) -> str:
    """Return the digest of the files of sequence and ground truth."""
    digest = hashlib.sha256()
    for root in item.recorded_files:
        for file in sorted(root.rglob('*')) if root.is_dir() else [root]:
            if file.is_file():
                size = file.stat().st_size
                digest.update(f'{file.relative_to(root).as_posix()} {size}\n'.encode())
                digest.update(file.read_bytes() if size <= _CONTENT_BYTES else b'')
    return digest.hexdigest()


def run_warnings(plan: RunPlan, preparation: Preparation) -> tuple[str, ...]:
    """Return the warnings about a prepared run that its report has to show, and warn of them."""
    found: tuple[str, ...] = ()
    if plan.scene.sequence is None:
        found = (*_check_condition(plan), *_check_lamps(plan, preparation))
    if plan.pacing is not plan.config.pacing.mode:
        why = 'since it acknowledges no frames (acks: false): it may lose some'
        found = (f'runs of mapper "{plan.mapper.name}" are realtime, {why}', *found)
    for text in found:
        warn(text)
    return found


def _check_condition(plan: RunPlan) -> Iterator[str]:
    """Yield a warning if everything that changes on the way changes after the end of the path."""
    last = shared_path.driven_trajectory(plan).frames[-1]
    end = Moment(last.segment, last.segment_progress, last.time_s)
    changes = list(_changes(plan.condition))
    if changes and not any(span.contains(end) for span in changes):
        length = f'{end.segment + end.segment_progress:.3g} goal segments and {end.time_s:.3g} s'
        yield (
            f'condition "{plan.condition.name}" changes nothing on scene '
            f'{plan.identity.scene_key}: the path ends before its first change, after {length}; '
            'raise trajectory.max_frames or trajectory.goals, or change the condition'
        )


def _changes(item: Any, key: str = '') -> Iterator[Span]:
    """Yield the spans of a condition, each from its first change on."""
    if isinstance(item, Span):
        start, end = item.limits
        # A light that is alive from the start on changes when it dies, if it does.
        at = end if key == 'alive' and start == 0 else start
        if at is not None:
            unit = 'segments' if item.seconds is None else 'seconds'
            yield Span.model_validate({unit: (at, None)})
    elif isinstance(item, BaseModel):
        for name, value in item:
            yield from _changes(value, name)
    elif isinstance(item, tuple):
        for value in item:
            yield from _changes(value, key)


def _check_lamps(plan: RunPlan, preparation: Preparation) -> Iterator[str]:
    """Yield which lamps a rule has chosen, if the condition acts on lamps, and if it has none."""
    scene, lighting = preparation.scene_of(plan), plan.condition.lighting
    lights = [light for light, _ in lighting.list_lights(scene)]
    for number, rule in enumerate(lighting.scene_lights):
        if lights and not any(rule.select.matches(light, scene) for light in lights):
            named = f'condition "{plan.condition.name}": lighting.scene_lights.{number}'
            yield f'{named} selects no light of scene {scene.dataset}/{scene.name}'
    chosen = any(rule.select.lamps is not None for rule in lighting.scene_lights)
    if chosen and scene.lamp_rule and (lighting.setup is None or not lighting.setup.is_for(scene)):
        yield f'condition "{plan.condition.name}": {scene.lamps_in_words}'


DONE = 'done'
MAPPED_LATER = 'hypo3d also maps changed scenes, which are chosen once these runs are done'


@run_dry()
def list_expected_work(config: MatrixConfig, out: Path, *, fresh: bool = False) -> list[str]:
    """Return the planned work, a line each; loads the scenes, writes nothing.

    Raises RunError, key by key, if there are results that were made otherwise, unless `fresh`.
    """
    preparation = Preparation()
    preparation.check_names(config)
    preparation.check_mappers(config)
    plans = preparation.plans(config, out / config.name)
    work = dict.fromkeys((plan.identity.run_id for plan in plans), _from(Stage.PREPARE))
    if not fresh:
        extra = run_manifest.find_extra_work(plans, preparation.digest_of)
        stages = {plan.identity.run_id: next_stage(plan.directory) for plan in plans}
        work = {run_id: _from(stage) if stage else DONE for run_id, stage in stages.items()}
        for plan, reasons in extra.runs:
            why = '; '.join(map(str, reasons))
            work[plan.identity.run_id] = f'{_from(Stage.EVALUATE)}, since {why}'
    identities = [plan.identity for plan in plans]
    columns = len({(item.condition, item.mapper) for item in identities})
    power = estimate_power((item.place for item in identities), columns)
    derived = hypo3d_options(config.suites)
    later = [MAPPED_LATER] if derived and (derived.remap or derived.live_maps_every) else []
    lines = (f'{run_id}: {left}' for run_id, left in work.items())
    maps = sum(left != DONE for left in work.values())
    return [*lines, *later, *_describe_models(config, maps), *power]


def _from(first: Stage) -> str:
    stages = [stage.value for stage in Stage]
    return f'to do: {", ".join(stages[stages.index(first.value) :])}'


def _describe_models(config: MatrixConfig, maps: int) -> Iterator[str]:
    suites = make_suites(config.suites)
    asking = {suite.name: models_asked_by(suite) for suite in suites if models_asked_by(suite)}
    if not asking:
        yield 'no language model is asked'
    for name, models in asking.items():
        yield f'{name} asks {" and ".join(models)} about the final map of each run, {maps} to do'
    if asking:
        yield 'the cost for a run with a map: osmabench vqa answer RUN --answerer MODEL --dry-run'
    every = config.evaluation.map_every_frames
    if asking and every:
        yield (
            f'scores over time (a map every {every} frames) leave out {", ".join(asking)}: '
            'a language model is asked about final maps only'
        )
