"""Renders the scenes of a configuration under its conditions into sequences on disk."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from osmabench_ros.base.files import Existing, atomic_directory, check_folder, sha256_of_data
from osmabench_ros.base.progress import Progress, share, silent
from osmabench_ros.errors import ConfigError, RunError, errors_as
from osmabench_ros.runs.config import MatrixConfig, SceneConfig
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.run_manifest import lock_folder
from osmabench_ros.runs.shared_path import drive, navigation_of, shared_path
from osmabench_ros.sequences.layout import DOCUMENT, OSMA, SCANNET, SequenceInfo, read_info
from osmabench_ros.sequences.writer import BagWriter, FolderWriter, SequenceWriter
from osmabench_ros.simulation.conditions import Condition
from osmabench_ros.simulation.frame_source import FrameSource, SimulatedFrames

# By the name of their format.
WRITERS: Mapping[str, Callable[[Path, SequenceInfo], SequenceWriter]] = {
    'osma': lambda directory, info: FolderWriter(directory, OSMA, info),
    'scannet': lambda directory, info: FolderWriter(directory, SCANNET, info),
    'mcap': BagWriter,
}


def generate_sequences(
    config: MatrixConfig,
    formats: Sequence[str],
    out: Path,
    progress: Progress = silent,
) -> dict[Path, bool]:
    """Render every scene under every condition once, and write it in every format.

    OUT/FORMAT/CONDITION/SCENE are complete, and the same bytes for the same configuration; those
    that are there are kept. Returns which were kept, by folder. Raises RunError if a folder is not
    of this configuration, or is in use.
    """
    check_folder(out, Existing.MERGE)
    Preparation().check_names(config)
    for item in config.scenes:
        if item.sequence is not None:
            raise ConfigError(f'sequence {item.sequence} is recorded already; name a scene')
    chosen = list(dict.fromkeys(formats))
    written: dict[Path, bool] = {}
    with lock_folder(out):
        scenes = config.seeded_scenes
        for number, item in enumerate(scenes):
            part = share(progress, number / len(scenes), (number + 1) / len(scenes))
            written |= _generate_scene(config, item, chosen, out, part)
    return written


def _generate_scene(
    config: MatrixConfig,
    item: SceneConfig,
    formats: Sequence[str],
    out: Path,
    report: Progress,
) -> dict[Path, bool]:
    scene = item.load()
    key = SceneKey(scene.dataset, scene.name, item.seed, item.path_seed)
    found: dict[Path, bool] = {}
    missing: list[tuple[Condition, str, dict[str, Path]]] = []
    for condition in config.loaded_conditions:
        digest = _digest(config, item, condition)
        folders = {form: out / form / condition.name / str(key) for form in formats}
        left = {form: at for form, at in folders.items() if not _is_there(at, digest)}
        found |= {at: form not in left for form, at in folders.items()}
        if left:
            missing.append((condition, digest, left))
    if not missing:
        return found
    report(f'{key}: planning the path', 0.0)
    path = shared_path(config, item.seed_of_path, scene, navigation_of(config, scene))
    start = partial(config.simulator.simulator, camera=config.camera)
    # One for all conditions, because loading a scene may take minutes.
    with closing(start(scene)) as simulator:
        for number, (condition, digest, folders) in enumerate(missing):
            trajectory = drive(config, path, condition)
            source = SimulatedFrames(
                scene, simulator, condition, trajectory, item.seed_of_path, start
            )
            info = SequenceInfo(
                scene.dataset,
                scene.name,
                condition.name,
                scene.label_set,
                source.base_to_camera,
                digest,
            )
            part = share(report, number / len(missing), (number + 1) / len(missing))
            _write(source, info, folders, part)
            source.restore()
    return found


def _write(
    source: FrameSource,
    info: SequenceInfo,
    folders: dict[str, Path],
    report: Progress,
) -> None:
    problem = f'{next(iter(folders.values()))} cannot be written'
    with errors_as(RunError, problem, OSError), ExitStack() as stack:
        writers = [
            WRITERS[form](stack.enter_context(atomic_directory(directory)), info)
            for form, directory in folders.items()
        ]
        for index in range(len(source)):
            report(f'{info.scene}: {info.condition}', index / len(source))
            frame = source.frame(index).frame
            for writer in writers:
                writer.write(frame)
        for writer in writers:
            writer.close()


def _digest(config: MatrixConfig, item: SceneConfig, condition: Condition) -> str:
    """Return the digest of all inputs of frames."""
    parts = (condition, config.camera, config.robot, config.trajectory, config.simulator)
    return sha256_of_data([part.model_dump(mode='json') for part in (item, *parts)])


def _is_there(directory: Path, digest: str) -> bool:
    """Return whether a folder holds exactly this sequence."""
    if not directory.exists():
        return False
    if (directory / DOCUMENT).exists() and read_info(directory)[0].source_sha256 == digest:
        return True
    text = 'exists and is not of this configuration; choose another --out or remove it'
    raise RunError(f'{directory} {text}')
