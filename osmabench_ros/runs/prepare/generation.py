"""Renders the scenes of a configuration under its conditions into sequences on disk."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from osmabench_ros.base.files import Existing, atomic_directory, check_folder, sha256_of_data
from osmabench_ros.base.progress import Progress, share, silent
from osmabench_ros.errors import ConfigError, RunError
from osmabench_ros.runs.config import MatrixConfig, SceneConfig
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.prepare.preparation import Preparation
from osmabench_ros.runs.prepare.shared_path import navigation_of, shared_path
from osmabench_ros.runs.results.results_folder import held
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.sequences.layout import DOCUMENT, OSMA, SCANNET, SequenceInfo, read_info
from osmabench_ros.sequences.writer import BagWriter, FolderWriter, SequenceWriter
from osmabench_ros.simulation.conditions import Condition
from osmabench_ros.simulation.frame_source import FrameSource, SimulatedFrames
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.simulation.simulator import Simulator
from osmabench_ros.simulation.trajectory import sample_trajectory


class OutputFormat(str, Enum):
    """Storage format of sequences."""

    OSMA = 'osma'
    SCANNET = 'scannet'
    MCAP = 'mcap'


@dataclass(frozen=True)
class GeneratedSequence:
    """The folder of a sequence; `kept` if an earlier call wrote it."""

    directory: Path
    kept: bool


def generate_sequences(
    config: MatrixConfig,
    formats: Sequence[OutputFormat],
    out: Path,
    progress: Progress = silent,
) -> list[GeneratedSequence]:
    """Render every scene under every condition once, and write it in every format.

    OUT/FORMAT/CONDITION/SCENE are complete, and the same bytes for the same configuration; those
    that are there are kept. Raises RunError if a folder is not of this configuration, or is in
    use.
    """
    check_folder(out, Existing.MERGE)
    Preparation().check_names(config)
    if recorded := [str(item.sequence) for item in config.scenes if item.sequence is not None]:
        raise ConfigError(
            f'sequence {recorded[0]} is recorded already; generate renders simulated scenes'
        )
    chosen = list(dict.fromkeys(formats))
    written: list[GeneratedSequence] = []
    with held(out):
        scenes = config.seeded_scenes
        for number, item in enumerate(scenes):
            part = share(progress, number / len(scenes), (number + 1) / len(scenes))
            written += _generate_scene(config, item, chosen, out, part)
    return written


def _generate_scene(
    config: MatrixConfig,
    item: SceneConfig,
    formats: Sequence[OutputFormat],
    out: Path,
    report: Progress,
) -> list[GeneratedSequence]:
    scene = item.load()
    key = SceneKey(scene.dataset, scene.name, item.seed, item.path_seed)
    conditions = list(config.loaded_conditions.values())
    digests = [_digest(config, item, condition) for condition in conditions]
    folders = [
        {form: out / form.value / condition.name / str(key) for form in formats}
        for condition in conditions
    ]
    kept = [
        {path for path in paths.values() if _is_there(path, digest)}
        for paths, digest in zip(folders, digests, strict=True)
    ]
    missing = [
        {form: at for form, at in paths.items() if at not in there}
        for paths, there in zip(folders, kept, strict=True)
    ]
    if any(missing):
        report(f'{key}: planning the path', 0.0)
        path = shared_path(config, item.seed_of_path, scene, navigation_of(config, scene))
        # One for all conditions, because loading a scene may take minutes.
        with closing(config.simulator.simulator(scene, config.camera)) as simulator:
            for number, condition in enumerate(conditions):
                if not missing[number]:
                    continue
                source = _frames(config, item, scene, simulator, condition, path)
                info = SequenceInfo(
                    scene.dataset,
                    scene.name,
                    condition.name,
                    scene.label_set,
                    source.base_to_camera,
                    digests[number],
                )
                part = share(report, number / len(conditions), (number + 1) / len(conditions))
                _write(source, info, missing[number], part)
                source.restore()
    return [
        GeneratedSequence(at, at in kept[number])
        for number, paths in enumerate(folders)
        for at in paths.values()
    ]


def _frames(
    config: MatrixConfig,
    item: SceneConfig,
    scene: Scene,
    simulator: Simulator,
    condition: Condition,
    path: RobotPath,
) -> SimulatedFrames:
    camera, rate = config.camera, config.trajectory.frame_rate_hz
    trajectory = sample_trajectory(path, condition.motion_at(rate), rate, camera.mount)
    start = partial(config.simulator.simulator, camera=camera)
    return SimulatedFrames(scene, simulator, condition, trajectory, item.seed_of_path, start)


def _write(
    source: FrameSource,
    info: SequenceInfo,
    folders: dict[OutputFormat, Path],
    report: Progress,
) -> None:
    try:
        with ExitStack() as stack:
            writers = [
                _open(form, stack.enter_context(atomic_directory(directory)), info)
                for form, directory in folders.items()
            ]
            for index in range(len(source)):
                report(f'{info.scene}: {info.condition}', index / len(source))
                frame = source.frame(index).frame
                for writer in writers:
                    writer.write(frame)
            for writer in writers:
                writer.close()
    except OSError as error:
        raise RunError(f'{next(iter(folders.values()))} cannot be written: {error}') from error


def _open(form: OutputFormat, directory: Path, info: SequenceInfo) -> SequenceWriter:
    if form is OutputFormat.MCAP:
        return BagWriter(directory, info)
    return FolderWriter(directory, OSMA if form is OutputFormat.OSMA else SCANNET, info)


def _digest(config: MatrixConfig, item: SceneConfig, condition: Condition) -> str:
    """Return the digest of all inputs of frames."""
    parts = (condition, config.camera, config.robot, config.trajectory, config.simulator)
    return sha256_of_data([_data_of(item), *(part.model_dump(mode='json') for part in parts)])


def _data_of(item: SceneConfig) -> dict[str, Any]:
    """Return a scene for digests; without path seed and changes as before there were such."""
    later = {'path_seed': item.path_seed is None, 'changes': not item.changes}
    return item.model_dump(mode='json', exclude={key for key, absent in later.items() if absent})


def _is_there(directory: Path, digest: str) -> bool:
    """Return whether a folder holds exactly this sequence."""
    if not directory.exists():
        return False
    if (directory / DOCUMENT).exists() and read_info(directory)[0].source_sha256 == digest:
        return True
    raise RunError(
        f'{directory} exists and is not of this configuration; choose another --out or remove it'
    )
