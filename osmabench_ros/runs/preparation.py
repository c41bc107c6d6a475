"""What the runs of one scene and seed share: path, ground truth, questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

from osmabench_ros.base.files import filled_folder, write_json
from osmabench_ros.base.owned_folder import refuse_foreign
from osmabench_ros.errors import RunError
from osmabench_ros.extensions import SIMULATORS, load_extension
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.language.embedding import PrecomputedEmbedder
from osmabench_ros.mappers.live_method import load_live_method
from osmabench_ros.mappers.registry import make_mapper, mapper_class
from osmabench_ros.runs.config import MatrixConfig, SceneConfig
from osmabench_ros.runs.evaluation import made_suites
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.inputs import scene_digest
from osmabench_ros.runs.plan import RunPlan, plan_runs
from osmabench_ros.runs.recorded_scenes import (
    check_recorded_conditions,
    recorded_digest,
    recorded_key,
    recorded_labels,
    recorded_truth,
)
from osmabench_ros.runs.requirement import check_for_runs
from osmabench_ros.runs.results_folder import held
from osmabench_ros.runs.shared_path import navigation_of, shared_path
from osmabench_ros.scenes.lights import Lighting
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences.ground_truth import (
    GroundTruth,
    build_ground_truth,
    write_ground_truth,
)
from osmabench_ros.simulation.coverage import Lookouts
from osmabench_ros.simulation.navigation import NavigationMap
from osmabench_ros.simulation.registry import make_simulator
from osmabench_ros.simulation.robot_path import Motion, RobotPath
from osmabench_ros.simulation.trajectory import CameraMount, Trajectory, sample_trajectory
from osmabench_ros.suites.suite import models_asked_by
from osmabench_ros.vqa.exact.generation import questions_about
from osmabench_ros.vqa.question_files import write_records

PATH_FILE = 'path.json'
COVERAGE_FILE = 'coverage.json'
GROUND_TRUTH_FOLDER = 'ground_truth'
QUESTIONS_FILE = 'questions.jsonl'

Progress = Callable[[str, float], None]


def check_names(config: MatrixConfig) -> None:
    """Look up every name of a configuration, before anything is made.

    Raises ConfigError if a condition, mapper, suite or option is unknown, a file of text features
    is at fault, or a requirement is one that no run can fulfil.
    """
    suites = made_suites(config.suites)
    check_for_runs(
        config.requirements,
        grows=config.evaluation.map_every_frames > 0,
        final_only=[suite.name for suite in suites if models_asked_by(suite)],
    )
    _ = config.loaded_conditions
    check_recorded_conditions(config)
    load_extension(SIMULATORS, config.simulator.name)
    for mapper in config.mappers:
        if mapper.bundled:
            mapper_class(mapper.bundled)
        if mapper.stack:
            load_live_method(mapper.stack).check_variables(mapper.variables)
    for file in config.text_features.values():
        PrecomputedEmbedder(file)


def check_mappers(config: MatrixConfig) -> None:
    """Make every bundled mapper once for every scene, because they know their options.

    Raises ConfigError if an option is unknown, or a mapper cannot serve the classes of a scene.
    """
    for item in config.scenes:
        for mapper in config.mappers:
            if mapper.bundled:
                make_mapper(
                    mapper.bundled,
                    label_set=_label_set(item),
                    seed=item.seed,
                    options=mapper.options,
                )


def scene_keys(config: MatrixConfig) -> dict[SceneConfig, SceneKey]:
    """Return the identity of every scene; loads each once."""
    return {item: _key(item) for item in config.scenes}


def scene_digests(config: MatrixConfig) -> dict[SceneKey, str]:
    """Return the digest of every scene as it was loaded, whatever files it came from."""
    return {_key(item): _digest(item) for item in config.scenes}


def scene_of(plan: RunPlan) -> Scene:
    """Return the scene of a run that is simulated."""
    return _scene(plan.scene)


def scene_digest_of(plan: RunPlan) -> str:
    """Return the digest of the scene of a run."""
    return _digest(plan.scene)


@lru_cache(maxsize=1024)
def _digest(item: SceneConfig) -> str:
    return scene_digest(_scene(item)) if item.sequence is None else recorded_digest(item)


@lru_cache(maxsize=1024)
def _key(item: SceneConfig) -> SceneKey:
    if item.sequence is not None:
        return recorded_key(item)
    scene = _scene(item)
    return SceneKey(scene.dataset, scene.name, item.seed)


def _label_set(item: SceneConfig) -> LabelSet:
    return _scene(item).label_set if item.sequence is None else recorded_labels(item)


@lru_cache(maxsize=2)
def _scene(config: SceneConfig) -> Scene:
    return load_scene(config.reference, scene=config.scene, seed=config.seed)


def prepare_scene(plan: RunPlan, progress: Progress) -> Path:
    """Make the shared folder of a run, unless it is there, and return it.

    It holds path.json and coverage.json, unless the scene was recorded, ground_truth/ and
    questions.jsonl; it is complete, because it appears by renaming.
    """
    directory = plan.shared_directory
    if directory.exists():
        return directory
    if plan.scene.sequence is not None:
        truth = recorded_truth(plan.scene)
        with filled_folder(directory) as temporary:
            _write_truth(plan, truth, temporary, progress)
        return directory
    progress('planning the path', 0.0)
    scene = _scene(plan.scene)
    navigation = navigation_of(plan.config, scene)
    path = shared_path(plan.config, plan.scene.seed, scene, navigation)
    coverage = _coverage(plan, scene, navigation, path)
    progress(f'the path sees {coverage["share"]:.0%} of the surface that can be seen', 0.0)
    truth = _ground_truth(plan, scene, path, progress)
    with filled_folder(directory) as temporary:
        write_json(temporary / PATH_FILE, path.to_json())
        write_json(temporary / COVERAGE_FILE, coverage)
        _write_truth(plan, truth, temporary, progress)
    return directory


def _write_truth(plan: RunPlan, truth: GroundTruth, directory: Path, progress: Progress) -> None:
    progress('generating questions', 0.0)
    questions = questions_about(truth, scene=str(plan.identity.scene_key), seed=plan.scene.seed)
    write_ground_truth(truth, directory / GROUND_TRUTH_FOLDER)
    write_records(directory / QUESTIONS_FILE, questions)


def prepare_scenes(config: MatrixConfig, root: Path, progress: Progress) -> list[Path]:
    """Make the shared folder of every scene of a configuration under a root, as runs have it.

    Raises ConfigError if a name is unknown, and RunError if such a folder exists: it may be of
    another configuration.
    """
    refuse_foreign([root], folders=True)
    check_names(config)
    plans = plan_runs(config, scene_keys(config), root)
    folders = {plan.shared_directory: plan for plan in plans}
    for directory in folders:
        if directory.exists():
            raise RunError(f'{directory} exists; remove it or choose another --out')
    with held(root):
        return [prepare_scene(plan, progress) for plan in folders.values()]


def _coverage(
    plan: RunPlan, scene: Scene, navigation: NavigationMap, path: RobotPath
) -> dict[str, float | str]:
    camera = plan.config.camera
    lookouts = Lookouts(
        scene, navigation, camera.mounting_height_m, camera.far_m, seed=plan.scene.seed
    )
    covered = lookouts.coverage(_trajectory(plan, path).camera_poses, camera.intrinsics)
    strategy = plan.config.trajectory.strategy.value
    return {'strategy': strategy, 'share': covered.share, **asdict(covered)}


def _trajectory(plan: RunPlan, path: RobotPath) -> Trajectory:
    camera = plan.config.camera
    mount = CameraMount(camera.mounting_height_m, camera.pitch_rad)
    return sample_trajectory(path, Motion(), plan.config.trajectory.frame_rate_hz, mount)


def _ground_truth(plan: RunPlan, scene: Scene, path: RobotPath, progress: Progress) -> GroundTruth:
    trajectory = _trajectory(plan, path)
    return build_ground_truth(
        scene,
        trajectory.camera_poses,
        plan.config.camera.intrinsics,
        frames=_unlit_frames(plan, scene, trajectory),
        max_depth_m=plan.config.camera.far_m,
        seed=plan.scene.seed,
        progress=progress,
    )


def _unlit_frames(plan: RunPlan, scene: Scene, trajectory: Trajectory) -> Iterator[Frame]:
    """Yield the depth, semantic and instance images; light plays no part in them."""
    camera, config = plan.config.camera, plan.config.simulator
    options = {'near_m': camera.near_m, 'far_m': camera.far_m, **config.options}
    simulator = make_simulator(config.name, scene, camera.intrinsics, options)
    try:
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
    finally:
        simulator.close()
