"""Scores the map of a bag, aligned with a reference, or describes it; needs no ROS."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.base import files
from osmabench_ros.base.contract import CAMERA_INFO, WORLD_FRAME
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import ConfigError, SequenceError, errors_as
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Similarity
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory, format_tum, read_tum
from osmabench_ros.maps.importer import ImportOptions, TopicOptions
from osmabench_ros.maps.importers import pointcloud
from osmabench_ros.maps.importers.source_files import get_points_and_colors
from osmabench_ros.maps.map_kinds import RecordedMap, choose_map_topic, read_recorded_map
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap, transform_map
from osmabench_ros.maps.storage import write_map
from osmabench_ros.metrics import trajectory_records
from osmabench_ros.metrics.geometry import find_occupied_voxels
from osmabench_ros.metrics.map_statistics import map_statistics
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.registration import registered
from osmabench_ros.metrics.trajectory import error_statistics
from osmabench_ros.runs import bag_content, evaluation, report_model
from osmabench_ros.runs.config import (
    MatrixConfig,
    Requirement,
    ScoringConfig,
    Source,
    SuiteConfig,
    load_config,
    with_scene,
)
from osmabench_ros.runs.identity import RunIdentity
from osmabench_ros.runs.plan import GROUND_TRUTH_FOLDER, QUESTIONS_FILE
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.run_manifest import SHARED_FOLDER, read_manifest
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.semantics.cloud import LabelledCloud, joined
from osmabench_ros.semantics.labels import NO_INSTANCE, UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.sequences import ground_truth
from osmabench_ros.sequences.bags.bag import Bag, open_bag

_CELL_M = 0.25
# For a cloud of the user's: the camera that saw it is not known.
_NO_CAMERA = Intrinsics(2, 2, 1.0, 1.0, 0.5, 0.5)


class MapAlignment(str, Enum):
    """How a map is aligned beyond the frames that the bag names."""

    NONE = 'none'
    KNOWN = 'known'
    ICP = 'icp'
    TRAJECTORY = 'trajectory'


@dataclass(frozen=True, kw_only=True)
class BagSource:
    """A bag, as `open_bag` takes it, and how to read and score it; else ConfigError.

    The reference of the map is a scene, a run, ground truth, a cloud, or none. `transform` is the
    alignment `known`, or the first guess of `icp`. Poses are named by topic,
    ``/tf:PARENT.CHILD`` or TUM file.
    """

    path: Path
    config: ScoringConfig
    msg_paths: tuple[Path, ...] = ()
    map_topic: str = ''
    at_s: float | None = None
    method: str = ''
    label_set: LabelSet | None = None
    scene: str = ''
    run: Path | None = None
    ground_truth: Path | None = None
    cloud: Path | None = None
    reference_frame: str | None = None
    align: MapAlignment | None = None
    transform: Similarity | None = None
    pose_topic: str = ''
    reference_topic: str = ''
    reference_trajectory: Path | None = None
    pairing: trajectory_records.TrajectorySettings = field(
        default_factory=trajectory_records.TrajectorySettings
    )
    questions_file: Path | None = None
    device: str = 'auto'
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.references) > 1:
            names = ', '.join(map(str, self.references))
            raise ConfigError(f'a map has one reference, not {len(self.references)}: {names}')
        if self.reference_topic and self.reference_trajectory:
            raise ConfigError('give true poses by topic or by file, not both')
        if (self.reference_topic or self.reference_trajectory) and not self.pose_topic:
            raise ConfigError("true poses are given, but not the stack's own: add --pose-topic")

    @property
    def references(self) -> list[str | Path]:
        """The references that are given."""
        return [item for item in (self.scene, self.run, self.ground_truth, self.cloud) if item]


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
    graph = SceneGraph()
    # The geometry can be compared without the meaning of the labels.
    if known is None:
        points, _ = get_points_and_colors(pointcloud.read_columns(file), file)
        dense = DenseMap(np.asarray(points[np.isfinite(points).all(axis=1)], np.float32))
    else:
        made = pointcloud.import_map(file, ImportOptions(label_set=known))
        assert made.dense is not None
        dense, graph = made.dense, made.graph
    count = len(dense.points)
    if not count:
        raise ConfigError(f'reference {file} has no points')
    labels, instances = (
        np.full(count, absent, np.int32) if values is None else values
        for values, absent in ((dense.labels, UNLABELLED), (dense.instances, NO_INSTANCE))
    )
    surface = LabelledCloud(dense.points, labels, instances)
    labelled = bool((surface.labels != UNLABELLED).any())
    # Each occupied cell counts as one face of a cell.
    area_m2 = len(find_occupied_voxels(surface.points, _CELL_M)) * _CELL_M**2
    truth = ground_truth.GroundTruth(
        dataset='reference',
        scene=file.stem,
        label_set=known or LabelSet('none', ()),
        graph=graph,
        surface=surface,
        unseen=surface.select(np.zeros(count, bool)),
        camera_poses=(),
        intrinsics=_NO_CAMERA,
        seen_instances=ground_truth.seen_instances(surface.instances, 1),
        fused=surface if labelled else None,
        max_depth_m=10.0,
        points_per_m2=max(count / area_m2, 1.0),
    )
    ground_truth.write_ground_truth(truth, directory / GROUND_TRUTH_FOLDER)
    kind = 'labelled' if labelled else 'unlabelled, geometry only'
    description = f'reference cloud {file.name}, {count} points, {kind}'
    return Reference(directory / GROUND_TRUTH_FOLDER, description, frame_id='')


SUITE = 'alignment'
_PLACED_WRONGLY = (
    'Is the reference z up, in metres, and of this place? --align and --transform place the map'
)
MAP_FOLDER, ALIGNED_FOLDER, TRAJECTORY_FOLDER = 'map', 'aligned', 'trajectory'


@dataclass(frozen=True, eq=False)
class BagEvaluation:
    """The report of a bag as written, and the stack's poses with the true ones."""

    report: report_model.BagReport
    trajectory: trajectory_records.TrajectoryScore | None
    ground_truth_directory: Path | None = None


def evaluate_bag(
    source: BagSource,
    suites: Sequence[SuiteConfig],
    output_directory: Path,
    requirements: Sequence[Requirement] = (),
    *,
    replace: bool = False,
    progress: Progress = silent,
) -> BagEvaluation:
    """Evaluate the recorded map of a bag; without a reference the suites do not run.

    `output_directory` appears when everything is done; requirements of other mappers and
    conditions are left out. Raises RunError if the folder holds more than an evaluation that
    `replace` allows to replace; nothing is written if bag, map, reference or an option is wrong.
    """
    files.check_folder(output_directory, files.Existing.MOVE_ASIDE)
    evaluation.check_report(output_directory, 'move it aside', replace=replace)
    evaluation.check_sources(suites, source.config.text_features, source.questions_file)
    with open_bag(source.path, source.msg_paths) as bag:
        progress('looking through the bag', 0.0)
        content = bag_content.read_content(bag)
        with files.atomic_directory(output_directory, files.Existing.MOVE_ASIDE) as folder:
            done = _Evaluation(source, bag, content, folder, progress).run(suites, requirements)
    if (truth := done.ground_truth_directory) is not None and truth.is_relative_to(folder):
        # The temporary folder, in which it was made, has its final name now.
        return dataclasses.replace(
            done, ground_truth_directory=output_directory / truth.relative_to(folder)
        )
    return done


@dataclass
class _Evaluation:
    """The evaluation of a bag into a folder."""

    source: BagSource
    bag: Bag
    content: bag_content.BagContent
    folder: Path
    progress: Progress
    remarks: list[str] = field(default_factory=list)

    def run(
        self,
        suites: Sequence[SuiteConfig],
        requirements: Sequence[Requirement],
    ) -> BagEvaluation:
        source, remarks = self.source, self.remarks
        if self.bag.cut_off:
            remarks.append(f'the bag is not complete: {self.bag.cut_off}')
        problem = f'{self.bag.path} is cut off ({self.bag.cut_off}) and holds no map to choose'
        with errors_as(SequenceError, problem, *([ConfigError] if self.bag.cut_off else [])):
            topic = choose_map_topic(self.content.types, source.map_topic)
        trajectory = self._score_poses()
        reference = self._find_reference()
        truth = None if reference is None else ground_truth.read_ground_truth(reference.directory)
        self.progress('reading the map', 0.0)
        recorded = self._read_map(topic, truth)
        made = recorded.semantic_map
        identity = self._identity(made, truth)
        complete: Any = {'run_id': identity.run_id, 'status': report_model.Status.COMPLETE}
        aligned = None
        if reference is None or truth is None:
            write_map(made, self.folder / MAP_FOLDER)
            remarks.append(report_model.REFERENCE_FREE)
            hashes = {'map': files.sha256_of(self.folder / MAP_FOLDER)}
            reports = [report_model.RunReport(**complete, hashes=hashes)]
            metrics = [MetricRecord.not_applicable('exact_questions', '', 'accuracy')]
        else:
            frame_id = reference.frame_id or made.header.frame_id
            placement = self._place_map(made, frame_id)
            aligned, metrics = self._align(made, truth, placement, trajectory)
            variants = {'': placement}
            if aligned is not None:
                variants[trajectory_records.ALIGNED] = aligned
            reports = [
                self._score(
                    transform_map(made, similarity, frame_id),
                    *(identity, reference, truth, suites, suffix),
                )
                for suffix, similarity in variants.items()
            ]
            placed = transform_map(made, list(variants.values())[-1], frame_id)
            remarks += report_model.place_remarks(placed, truth, _PLACED_WRONGLY)
        metrics += trajectory.records if trajectory else ()
        metrics += [*bag_content.timing_records(self.content, topic), *map_statistics(made)]
        scored = (record for report in reports for record in report.metrics)
        records = (*scored, *report_model.join_run(identity, metrics))
        numbers: tuple[float, ...] = ()
        if aligned is not None:
            pose = aligned.pose
            numbers = (*pose.translation.tolist(), *pose.quaternion.tolist(), aligned.scale)
        of_bags = report_model.for_run(requirements, identity, Source.MAP, Source.BAG)
        report = report_model.BagReport(
            **complete,
            metrics=records,
            failed_requirements=report_model.unmet(of_bags, records),
            versions=evaluation.versions(),
            hashes=reports[0].hashes,
            encoders=reports[0].encoders,
            bag=source.path.name,
            map_topic=recorded.topic,
            map_type=recorded.message_type,
            frame_id=made.header.frame_id,
            stamp_ns=made.header.stamp_ns,
            reference='' if reference is None else reference.description,
            map_complete=made.header.complete,
            remarks=(*report_model.map_remarks(made.header), *remarks),
            transform=numbers,
        )
        files.write_json(self.folder / evaluation.REPORT, report.model_dump(mode='json'))
        if trajectory is not None:
            for name in ('reference', 'estimate'):
                text = format_tum(getattr(trajectory, name))
                files.write_text(self.folder / TRAJECTORY_FOLDER / f'{name}.tum', text)
        directory = None if reference is None else reference.directory
        return BagEvaluation(report, trajectory, directory)

    def _find_reference(self) -> Reference | None:
        """Return the reference, made in the folder if it does not exist yet; None without one."""
        source, directory, progress = self.source, self.folder, self.progress
        if source.scene:
            path = self._read_recorded_path()
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
        given: Any = {'frame_id': source.reference_frame, 'questions_file': source.questions_file}
        return dataclasses.replace(found, **{k: v for k, v in given.items() if v is not None})

    def _read_recorded_path(self) -> tuple[StampedTrajectory, Intrinsics] | None:
        """Return true camera poses and the camera of a recording, None if it lacks either."""
        end = f'/{bag_content.REFERENCE_TOPICS[0]}'
        topics = [topic for topic in self.content.types if topic.endswith(end)]
        camera = self._read_camera()
        if len(topics) != 1 or camera is None:
            return None
        return bag_content.bag_trajectory(self.bag, self.content, topics[0]), camera

    def _read_camera(self) -> Intrinsics | None:
        content = self.content
        info: Any = content.run_info.camera_info if content.run_info is not None else None
        if info is None:
            topics = sorted(topic for topic, kind in content.types.items() if kind == CAMERA_INFO)
            first = next(self.bag.messages(topics[:1]), None) if topics else None
            info = None if first is None else first.deserialise()
        if info is None:
            return None
        k = [float(value) for value in info.k]
        try:
            return Intrinsics(int(info.width), int(info.height), k[0], k[4], k[2], k[5])
        except ValueError:
            # An uncalibrated camera says so by zeros.
            return None

    def _score(
        self,
        semantic_map: SemanticMap,
        identity: RunIdentity,
        reference: Reference,
        truth: ground_truth.GroundTruth,
        suites: Sequence[SuiteConfig],
        suffix: str,
    ) -> report_model.RunReport:
        """Return the report of a map; the names of its suites get a suffix."""
        folder = self.folder / ALIGNED_FOLDER if suffix else self.folder
        inputs = evaluation.EvaluationInputs(
            identity,
            folder / MAP_FOLDER,
            reference.directory,
            folder,
            reference.questions_file,
            self.source.device,
            self.source.config.text_features,
        )
        write_map(semantic_map, inputs.map_directory)
        report = evaluation.evaluate_loaded(inputs, semantic_map, truth, suites, (), self.progress)
        records = (dataclasses.replace(x, suite=x.suite + suffix) for x in report.metrics)
        return report.model_copy(update={'metrics': tuple(records)})

    def _read_map(self, topic: str, truth: ground_truth.GroundTruth | None) -> RecordedMap:
        info, at_s = self.content.run_info, self.source.at_s
        options = TopicOptions(
            self.source.method
            or (info.mapper if info else '')
            or topic.strip('/').replace('/', '_'),
            self._label_set(truth),
            info.scene if info else (truth.scene if truth else ''),
            info.condition if info else '',
        )
        until_ns = None if at_s is None else self.content.start_ns + round(at_s * 1e9)
        recorded = read_recorded_map(self.bag, topic, options, until_ns=until_ns)
        self.remarks += recorded.remarks
        dense = recorded.semantic_map.dense
        if dense is None:
            self.remarks.append('the map has no points; metrics that need them do not apply')
        elif dense.labels is None and not recorded.semantic_map.graph.nodes:
            self.remarks.append('the map has neither labels nor nodes: geometry only')
        return recorded

    def _label_set(self, truth: ground_truth.GroundTruth | None) -> LabelSet | None:
        """Return the label set of the user, else of the bag, else of the reference."""
        given = self.source.label_set
        known = given if given is not None else self.content.label_set
        if known is not None or truth is None or not truth.label_set.classes:
            return known
        self.remarks.append(
            'the bag does not say what class ids mean; if the map has any, they were read by the '
            f'label set of the reference, "{truth.label_set.name}"'
        )
        return truth.label_set

    def _identity(self, made: SemanticMap, truth: ground_truth.GroundTruth | None) -> RunIdentity:
        """Return the run's identity by the bag, else by reference and map."""
        info, source = self.content.run_info, self.source
        if info is None:
            names = (truth.dataset, truth.scene) if truth else ('bag', source.path.stem)
            known = evaluation.identify_unnamed_run(source.seed, mapper=source.method)
            return evaluation.complete_identity(known, *names, made.header.provenance)
        if truth is not None and (truth.dataset, truth.scene) != (info.dataset, info.scene):
            self.remarks.append(
                f'the bag is of {info.dataset}, {info.scene}; the reference is of '
                f'{truth.dataset}, {truth.scene}'
            )
        identity = RunIdentity.of_info(info)
        return dataclasses.replace(identity, mapper=source.method or identity.mapper)

    def _score_poses(self) -> trajectory_records.TrajectoryScore | None:
        """Return the errors of the stack's poses, None if the user names none."""
        source = self.source
        if not source.pose_topic:
            return None
        estimate = bag_content.bag_trajectory(self.bag, self.content, source.pose_topic)
        if (file := source.reference_trajectory) is not None:
            true, name = read_tum(file), file.name
        elif name := source.reference_topic or bag_content.reference_topic(self.content, estimate):
            true = bag_content.bag_trajectory(self.bag, self.content, name)
        else:
            problem = f'{source.path} has no true poses to compare "{source.pose_topic}" with'
            raise ConfigError(f'{problem}; give --reference-topic or --reference-trajectory')
        score = trajectory_records.score_trajectory(true, estimate, source.pairing)
        self.remarks += [f'poses of {source.pose_topic} are compared with {name}', *score.remarks]
        return score

    def _place_map(self, made: SemanticMap, reference_frame: str) -> Similarity:
        """Return where the map is by its frame and the TF of the bag; ConfigError if unknown."""
        map_frame, alignment = made.header.frame_id, self.source.align
        transforms = self.content.transforms
        if reference_frame in ('', map_frame):
            self.remarks.append(f'the map is in frame "{map_frame}"')
            return Similarity()
        pose = transforms.look_up_or_last(reference_frame, map_frame, made.header.stamp_ns)
        if pose is not None and alignment is not MapAlignment.NONE:
            remark = f'the map was put from frame "{map_frame}" into "{reference_frame}"'
            self.remarks.append(f'{remark} by the TF of the bag')
            return Similarity(pose)
        taken = f'coordinates in frame "{map_frame}" were taken as being in "{reference_frame}"'
        unknown = alignment is MapAlignment.KNOWN and self.source.transform is None
        if alignment is MapAlignment.NONE:
            self.remarks.append(f'{taken}, as --align none asks for')
        elif alignment is None or unknown:
            known = ', '.join(transforms.frames) or 'none'
            raise ConfigError(
                f'the map is in frame "{map_frame}", its reference in "{reference_frame}", and '
                f'the TF of the bag does not connect them (it has {known}); choose --align icp, '
                'trajectory, or known with --transform; or --align none, if the frames are the '
                'same'
            )
        else:
            self.remarks.append(f'before alignment {taken}')
        return Similarity()

    def _align(
        self,
        made: SemanticMap,
        truth: ground_truth.GroundTruth,
        placement: Similarity,
        trajectory: trajectory_records.TrajectoryScore | None,
    ) -> tuple[Similarity | None, list[MetricRecord]]:
        """Return the alignment that the user wants, if any beyond the placement, and residuals.

        The map is in its own frame. The first guess of `icp` is the user's transform, else the
        alignment of the trajectories, else `placement`. A large correction means an error of the
        map's frame. Raises ConfigError if an input of the alignment is not given, and MetricError
        if the map does not fit.
        """
        kind, transform = self.source.align, self.source.transform
        residuals: dict[str, float] = {}
        count = 0
        if kind is MapAlignment.KNOWN and transform is not None:
            similarity, remarks = transform, ['aligned by the transformation given']
        elif kind is MapAlignment.TRAJECTORY:
            if trajectory is None:
                raise ConfigError('--align trajectory needs poses to align: add --pose-topic')
            similarity = _similarity_of(trajectory, made)
            errors = error_statistics(trajectory.errors.translation_m)
            residuals, count = {'trajectory_rmse_m': errors.rmse}, errors.n
            how = trajectory.settings.alignment.value
            remarks = [f'aligned by the trajectory ({how}), {errors.rmse:.3g} m rmse left']
        elif kind is MapAlignment.ICP:
            self.progress('aligning by ICP', 0.0)
            initial, guess = placement, 'where the bag puts it'
            if transform is not None:
                initial, guess = transform, 'the transformation given'
            elif trajectory is not None:
                initial = _similarity_of(trajectory, made)
                guess = 'the alignment of the trajectories'
            if made.dense is None:
                problem = 'the map has no points for --align icp'
                raise ConfigError(f'{problem}; take --align known or trajectory')
            # A map may hold surfaces that the trajectory did not see.
            clouds = [cloud for cloud in (truth.surface, truth.unseen) if len(cloud)]
            whole = joined(clouds or [truth.surface])
            found = registered(made.dense.points, whole.points, whole.normals, initial)
            similarity, count = found.similarity, len(made.dense.points)
            residuals = {
                'icp_fitness': found.fitness,
                'icp_rmse_m': found.rmse_m,
                'icp_observability': found.observability,
            }
            within = f'{found.fitness:.1%} of the map within {found.inlier_distance_m:g} m'
            left = f'of the reference, {found.rmse_m:.3g} m rmse'
            remarks = [f'aligned by ICP from {guess}: {within} {left}']
            remarks += [f'doubtful: {doubt}' for doubt in found.doubts]
        else:
            return None, []
        self.remarks += remarks
        corrections = {
            'translation_m': similarity.distance_m,
            'rotation_deg': similarity.angle_deg,
            'scale_error': abs(similarity.scale - 1),
        }
        records = [
            MetricRecord(
                *(SUITE, '', name),
                value=value,
                n=count if name in residuals else 0,
                higher_is_better=name in ('icp_fitness', 'icp_observability'),
            )
            for name, value in {**residuals, **corrections}.items()
        ]
        return similarity, records


def _similarity_of(
    trajectory: trajectory_records.TrajectoryScore, made: SemanticMap
) -> Similarity:
    """Return the alignment of trajectories; ConfigError if they are in another frame."""
    own, frame_id = trajectory.estimate.frame_id.lstrip('/'), made.header.frame_id
    if own and own != frame_id:
        remedy = f'name poses in the latter, such as --pose-topic /tf:{frame_id}.base_link'
        raise ConfigError(f'the poses are in frame "{own}", the map in "{frame_id}"; {remedy}')
    return trajectory.similarity
