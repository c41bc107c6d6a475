"""References of recorded maps: a run, a scene, a folder, or a cloud of the user."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.base.contract import CAMERA_INFO, WORLD_FRAME
from osmabench_ros.base.progress import Progress
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers import pointcloud
from osmabench_ros.maps.importers.source_files import get_points_and_colors
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.metrics.geometry import occupied_voxels
from osmabench_ros.runs.bag_content import REFERENCE_TOPICS, BagContent, bag_trajectory
from osmabench_ros.runs.bag_settings import BagSource
from osmabench_ros.runs.config import MatrixConfig, load_config, with_scene
from osmabench_ros.runs.plan import GROUND_TRUTH_FOLDER, QUESTIONS_FILE
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.run_manifest import SHARED_FOLDER, read_manifest
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.labels import NO_INSTANCE, UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.sequences import ground_truth
from osmabench_ros.sequences.bags.bag import Bag

_CELL_M = 0.25
_NO_CAMERA = Intrinsics(2, 2, 1.0, 1.0, 0.5, 0.5)
"""For a cloud of the user's: the camera that saw it is not known."""


@dataclass(frozen=True)
class Reference:
    """Ground truth on disk and a description for people; `frame_id` '' is the map's frame."""

    directory: Path
    description: str
    questions_file: Path | None = None
    frame_id: str = WORLD_FRAME


def run_reference(path: Path) -> Reference:
    """Return the ground truth of a run, by its folder; ConfigError if there is none."""
    candidates = [path, path / GROUND_TRUTH_FOLDER]
    if shared := read_manifest(path).get(SHARED_FOLDER):
        candidates.append(path.resolve().parent / 'shared' / shared / GROUND_TRUTH_FOLDER)
    for folder in candidates:
        if (folder / ground_truth.DOCUMENT).is_file():
            questions = folder.parent / QUESTIONS_FILE
            known = questions if questions.is_file() else None
            return Reference(folder, f'ground truth {folder}', known)
    looked = ', '.join(str(folder / ground_truth.DOCUMENT) for folder in candidates)
    raise ConfigError(
        f'{path} is not a run with ground truth: none of these exists: {looked}. Name the folder '
        'of a run below runs/MATRIX/, or make ground truth with `osmabench scene ground-truth`'
    )


def scene_reference(
    config: MatrixConfig,
    scene: str,
    seed: int,
    directory: Path,
    path: tuple[StampedTrajectory, Intrinsics] | None,
    progress: Progress,
) -> Reference:
    """Make the ground truth of a scene; `path` has the poses and camera of the recording.

    Without it, `config` gives camera and path. With it, the visible surface is the part that this
    path saw, and compat metrics, which need rendered depth, are not applicable.
    """
    described = f'scene {scene}, seed {seed}'
    if path is None:
        [made] = Preparation().prepare_all(with_scene(config, scene, seed), directory, progress)
        description = f'{described}, along the path of configuration "{config.name}"'
        return Reference(made / GROUND_TRUTH_FOLDER, description, made / QUESTIONS_FILE)
    trajectory, camera = path
    truth = ground_truth.build_ground_truth(
        load_scene(scene, seed=seed),
        [trajectory.pose(row) for row in range(len(trajectory))],
        camera,
        max_depth_m=config.camera.far_m,
        seed=seed,
        progress=progress,
    )
    ground_truth.write_ground_truth(truth, directory / GROUND_TRUTH_FOLDER)
    return Reference(directory / GROUND_TRUTH_FOLDER, f'{described}, along the recorded path')


def cloud_reference(file: Path, label_set: LabelSet | None, directory: Path) -> Reference:
    """Make ground truth of a user's PLY or PCD, z up, metres, with labels of `label_set`."""
    class_file = None if label_set is not None else pointcloud.find_class_file(file)
    known = label_set if class_file is None else pointcloud.read_label_set(class_file)
    # The geometry can be compared without the meaning of the labels.
    if known is None:
        points, _ = get_points_and_colors(pointcloud.read_columns(file), file)
        finite = np.isfinite(points).all(axis=1)
        dense, graph = DenseMap(np.asarray(points[finite], np.float32)), SceneGraph()
    else:
        made = pointcloud.import_map(file, ImportOptions(label_set=known))
        assert made.dense is not None
        dense, graph = made.dense, made.graph
    count, labels, instances = len(dense.points), dense.labels, dense.instances
    if not count:
        raise ConfigError(f'reference {file} has no points')
    surface = LabelledCloud(
        dense.points,
        np.full(count, UNLABELLED, np.int32) if labels is None else labels,
        np.full(count, NO_INSTANCE, np.int32) if instances is None else instances,
    )
    labelled = bool((surface.labels != UNLABELLED).any())
    # Each occupied cell counts as one face of a cell.
    area_m2 = len(occupied_voxels(surface.points, _CELL_M)) * _CELL_M**2
    truth = ground_truth.GroundTruth(
        'reference',
        file.stem,
        known or LabelSet('none', ()),
        graph,
        surface,
        surface.select(np.zeros(count, bool)),
        (),
        _NO_CAMERA,
        ground_truth.seen_instances(surface.instances, 1),
        surface if labelled else None,
        points_per_m2=max(count / area_m2, 1.0),
    )
    ground_truth.write_ground_truth(truth, directory / GROUND_TRUTH_FOLDER)
    kind = 'labelled' if labelled else 'unlabelled, geometry only'
    description = f'reference cloud {file.name}, {count} points, {kind}'
    return Reference(directory / GROUND_TRUTH_FOLDER, description, frame_id='')


def reference_of(
    source: BagSource, bag: Bag, content: BagContent, directory: Path, progress: Progress
) -> Reference | None:
    """Return the reference, made in a folder if it does not exist yet; None without one."""
    if source.scene:
        path = read_recorded_path(bag, content)
        config = source.config
        if not isinstance(config, MatrixConfig):
            # It says how maps are scored, and nothing of camera and simulator.
            config = load_config('single_run')
        found = scene_reference(config, source.scene, source.seed, directory, path, progress)
    elif (folder := source.run or source.ground_truth) is not None:
        found = run_reference(folder)
    elif source.cloud is not None:
        progress('reading the reference', 0.0)
        found = cloud_reference(source.cloud, source.label_set, directory)
    else:
        return None
    if source.reference_frame is not None:
        found = dataclasses.replace(found, frame_id=source.reference_frame)
    if source.questions_file is not None:
        found = dataclasses.replace(found, questions_file=source.questions_file)
    return found


def read_recorded_path(
    bag: Bag, content: BagContent
) -> tuple[StampedTrajectory, Intrinsics] | None:
    """Return true camera poses and the camera of a recording, None if it lacks either."""
    topics = [topic for topic in content.types if topic.endswith(f'/{REFERENCE_TOPICS[0]}')]
    camera = _camera(bag, content)
    if len(topics) != 1 or camera is None:
        return None
    return bag_trajectory(bag, content, topics[0]), camera


def _camera(bag: Bag, content: BagContent) -> Intrinsics | None:
    info: Any = content.run_info.camera_info if content.run_info is not None else None
    if info is None:
        topics = sorted(topic for topic, kind in content.types.items() if kind == CAMERA_INFO)
        first = next(bag.messages(topics[:1]), None) if topics else None
        info = None if first is None else first.deserialise()
    if info is None:
        return None
    k = [float(value) for value in info.k]
    try:
        return Intrinsics(int(info.width), int(info.height), k[0], k[4], k[2], k[5])
    except ValueError:
        # An uncalibrated camera says so by zeros.
        return None
