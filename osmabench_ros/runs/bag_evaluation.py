"""Scores the map of a bag against a reference, or describes it without one; needs no ROS."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmabench_ros.errors import ConfigError, OsmabenchError, RunError
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.geometry.tum_file import read_tum, tum_text
from osmabench_ros.language.embedding import PrecomputedEmbedder
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.storage import write_map
from osmabench_ros.maps.topics.kinds import choose_map_topic
from osmabench_ros.maps.topics.options import TopicOptions
from osmabench_ros.maps.topics.recorded_map import RecordedMap, read_recorded_map
from osmabench_ros.maps.transformation import transformed_map
from osmabench_ros.metrics.map_statistics import map_statistics
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.trajectory_records import ALIGNED, TrajectoryScore, score_trajectory
from osmabench_ros.runs.bag_content import BagContent, read_content
from osmabench_ros.runs.bag_report import (
    BAG_SCHEMA,
    REFERENCE_FREE,
    BagReport,
    timing_records,
)
from osmabench_ros.runs.bag_settings import BagSource
from osmabench_ros.runs.config import Requirement, SuiteConfig
from osmabench_ros.runs.evaluation import REPORT, EvaluationInputs, evaluate_loaded, versions
from osmabench_ros.runs.files import (
    read_json,
    replaced_directory,
    sha256_of,
    write_json,
    write_text,
)
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.map_alignment import (
    AppliedAlignment,
    MapAlignment,
    Placement,
    aligned_by_icp,
    aligned_by_trajectory,
    aligned_by_transform,
    placement_of,
)
from osmabench_ros.runs.map_evaluation import UNKNOWN
from osmabench_ros.runs.progress import Progress
from osmabench_ros.runs.recorded_trajectories import bag_trajectory, reference_topic
from osmabench_ros.runs.references import (
    Reference,
    cloud_reference,
    run_reference,
    scene_reference,
)
from osmabench_ros.runs.report_model import Record, RunReport, Status, for_run, unmet
from osmabench_ros.sequences.bag import Bag, open_bag
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth
from osmabench_ros.sequences.pose_topics import TRAJECTORY_TYPES
from osmabench_ros.suites.registry import make_suite

MAP_FOLDER = 'map'
ALIGNED_FOLDER = 'aligned'
TRAJECTORY_FOLDER = 'trajectory'


@dataclass(frozen=True, eq=False)
class BagEvaluation:
    """What came of a bag.

    Parameters
    ----------
    report : BagReport
        As written.
    trajectory : TrajectoryScore, optional
        The stack's poses beside the true ones.
    ground_truth_directory : Path, optional
        What the map was compared with; None without a reference.
    """

    report: BagReport
    trajectory: TrajectoryScore | None
    ground_truth_directory: Path | None = None


def evaluate_bag(
    source: BagSource,
    suites: Sequence[SuiteConfig],
    output_directory: Path,
    requirements: Sequence[Requirement] = (),
    *,
    replace: bool = False,
    progress: Progress | None = None,
) -> BagEvaluation:
    """Evaluate the recorded map of a bag.

    Parameters
    ----------
    source : BagSource
        What to evaluate, against what.
    suites : sequence of SuiteConfig
        In order; not run without a reference.
    output_directory : Path
        Gets report.json, map/, ground_truth/, trajectory/, vqa/ and, for what an alignment
        changes, aligned/. It appears when everything is done.
    requirements : sequence of Requirement
        Those of other mappers and conditions are left out.
    replace : bool
        Whether an earlier evaluation of a bag may be replaced.
    progress : callable, optional
        Gets what is going on and the fraction done.

    Raises
    ------
    RunError
        If the folder holds something.
    OsmabenchError
        If bag, map, reference or an option is at fault; nothing is written then.
    """
    _check_output(output_directory, replace=replace)
    for item in suites:
        make_suite(item.name, item.options)
    for file in source.text_features.values():
        PrecomputedEmbedder(file)
    if source.questions_file is not None and not source.questions_file.exists():
        raise RunError(f'there are no questions at {source.questions_file}')
    told = progress or (lambda _text, _fraction: None)
    with open_bag(source.path, source.msg_paths) as bag:
        told('looking through the bag', 0.0)
        content = read_content(bag)
        with replaced_directory(output_directory) as folder:
            work = _Work(source, bag, content, folder, told)
            done = work.evaluation(suites, requirements)
    truth = done.ground_truth_directory
    if truth is not None and truth.is_relative_to(folder):
        # It was made in the temporary folder, which has its final name now.
        truth = output_directory / truth.relative_to(folder)
    return dataclasses.replace(done, ground_truth_directory=truth)


def _check_output(directory: Path, *, replace: bool) -> None:
    """Refuse a folder that holds anything but an earlier evaluation that may be replaced."""
    if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
        return
    report = directory / REPORT
    try:
        is_ours = read_json(report).get('schema_name') == BAG_SCHEMA
    except (OsmabenchError, AttributeError):
        is_ours = False
    if not is_ours:
        raise RunError(f'{directory} holds something else; choose another --out')
    if not replace:
        raise RunError(f'{report} exists; use --force to replace it, or choose another --out')


class _Work:
    """One evaluation under way."""

    def __init__(
        self, source: BagSource, bag: Bag, content: BagContent, folder: Path, progress: Progress
    ) -> None:
        self._source = source
        self._bag = bag
        self._content = content
        self._folder = folder
        self._progress = progress
        self._remarks: list[str] = []
        if content.cut_off:
            self._remarks.append(f'the bag is not complete: {content.cut_off}')

    def evaluation(
        self, suites: Sequence[SuiteConfig], requirements: Sequence[Requirement]
    ) -> BagEvaluation:
        topic = choose_map_topic(self._content.types, self._source.map_topic)
        trajectory = self._trajectory()
        reference = self._reference()
        truth = None if reference is None else read_ground_truth(reference.directory)
        recorded = self._map(topic, truth)
        identity = self._identity(recorded.semantic_map, truth)
        metrics = [*(trajectory.records if trajectory else ())]
        metrics += timing_records(self._content, topic)
        metrics += map_statistics(recorded.semantic_map)
        scored: list[RunReport] = []
        transform: Similarity | None = None
        if reference is None or truth is None:
            write_map(recorded.semantic_map, self._folder / MAP_FOLDER)
            metrics.append(MetricRecord.not_applicable('exact_questions', '', 'accuracy'))
            self._remarks.append(REFERENCE_FREE)
        else:
            placed, applied = self._placed(recorded, reference, truth, trajectory)
            scored.append(self._scored(placed, '', identity, reference, truth, suites))
            if applied is not None:
                transform = applied.similarity
                metrics += applied.records
                scored.append(
                    self._scored(
                        transformed_map(recorded.semantic_map, transform, placed.header.frame_id),
                        ALIGNED,
                        identity,
                        reference,
                        truth,
                        suites,
                    )
                )
        records = tuple(
            [record for report in scored for record in report.metrics]
            + [Record.of(identity, record) for record in metrics]
        )
        report = BagReport(
            run_id=identity.run_id,
            status=Status.COMPLETE,
            metrics=records,
            failed_requirements=unmet(for_run(tuple(requirements), identity), records),
            versions=versions(),
            hashes=scored[0].hashes if scored else {'map': sha256_of(self._folder / MAP_FOLDER)},
            encoders=scored[0].encoders if scored else {},
            bag=str(self._source.path),
            map_topic=topic,
            map_type=recorded.message_type,
            frame_id=recorded.semantic_map.header.frame_id,
            stamp_ns=recorded.semantic_map.header.stamp_ns,
            reference='' if reference is None else reference.description,
            remarks=tuple(self._remarks),
            transform=_numbers(transform),
        )
        write_json(self._folder / REPORT, report.model_dump(mode='json'))
        made = None if reference is None else reference.directory
        return BagEvaluation(report, trajectory, made)

    def _reference(self) -> Reference | None:
        choice, source = self._source.reference, self._source
        found: Reference | None = None
        if choice.scene:
            path = self._recorded_path()
            found = scene_reference(
                source.config, choice.scene, source.seed, self._folder, path, self._progress
            )
        elif choice.run is not None:
            found = run_reference(choice.run)
        elif choice.cloud is not None:
            found = cloud_reference(choice.cloud, source.label_set, self._folder)
        if found is not None and choice.frame_id is not None:
            found = dataclasses.replace(found, frame_id=choice.frame_id)
        if found is not None and source.questions_file is not None:
            found = dataclasses.replace(found, questions_file=source.questions_file)
        return found

    def _recorded_path(self) -> tuple[StampedTrajectory, Intrinsics] | None:
        """Return true camera poses and the camera, if the bag has both."""
        content = self._content
        info = content.run_info
        topics = [
            topic
            for topic, kind in content.types.items()
            if topic.endswith('/ground_truth/camera_pose') and kind in TRAJECTORY_TYPES
        ]
        camera = info.camera_info if info is not None else self._camera_info()
        if len(topics) != 1 or camera is None:
            return None
        k = [float(value) for value in camera.k]
        try:
            intrinsics = Intrinsics(camera.width, camera.height, k[0], k[4], k[2], k[5])
        except (ValueError, IndexError):
            return None
        return bag_trajectory(self._bag, content, topics[0]), intrinsics

    def _camera_info(self) -> Any | None:
        kind = 'sensor_msgs/msg/CameraInfo'
        topics = sorted(topic for topic, found in self._content.types.items() if found == kind)
        first = next(self._bag.messages(topics[:1]), None) if topics else None
        return None if first is None else first.deserialise()

    def _map(self, topic: str, truth: GroundTruth | None) -> RecordedMap:
        source, content = self._source, self._content
        info = content.run_info
        options = TopicOptions(
            source.method or (info.mapper if info else '') or topic.strip('/').replace('/', '_'),
            self._label_set(truth),
            info.scene if info else (truth.scene if truth else ''),
            info.condition if info else '',
        )
        until_ns = None if source.at_s is None else content.start_ns + round(source.at_s * 1e9)
        self._progress('reading the map', 0.0)
        recorded = read_recorded_map(self._bag, topic, options, until_ns=until_ns)
        self._remarks += recorded.remarks
        dense = recorded.semantic_map.dense
        if dense is None:
            self._remarks.append('the map has no points; figures that need them do not apply')
        elif dense.labels is None and not recorded.semantic_map.graph.nodes:
            self._remarks.append('the map has neither labels nor nodes: geometry only')
        return recorded

    def _label_set(self, truth: GroundTruth | None) -> Any:
        if self._source.label_set is not None:
            return self._source.label_set
        if self._content.label_set is not None:
            return self._content.label_set
        if truth is not None and truth.label_set.classes:
            self._remarks.append(
                'the bag does not say what its class ids mean; they were read by the label set of '
                f'the reference, "{truth.label_set.name}"'
            )
            return truth.label_set
        return None

    def _identity(self, made: SemanticMap, truth: GroundTruth | None) -> RunIdentity:
        info, source = self._content.run_info, self._source
        method = source.method or made.header.provenance.method
        if info is not None:
            key = SceneKey(info.dataset, info.scene, int(info.seed))
            if truth is not None and (truth.dataset, truth.scene) != (info.dataset, info.scene):
                self._remarks.append(
                    f'the bag says it is of {info.dataset}, {info.scene}, the reference is of '
                    f'{truth.dataset}, {truth.scene}'
                )
            return RunIdentity(key, info.condition, source.method or info.mapper, info.simulator)
        dataset, scene = (truth.dataset, truth.scene) if truth else ('bag', source.path.stem)
        condition = made.header.provenance.condition or UNKNOWN
        return RunIdentity(SceneKey(dataset, scene, source.seed), condition, method, UNKNOWN)

    def _trajectory(self) -> TrajectoryScore | None:
        choice = self._source.trajectory
        if not choice.estimate:
            return None
        self._progress('comparing trajectories', 0.0)
        estimate = bag_trajectory(self._bag, self._content, choice.estimate)
        if choice.reference_file is not None:
            true = read_tum(choice.reference_file)
        else:
            topic = choice.reference or reference_topic(self._content, estimate)
            if not topic:
                raise ConfigError(
                    f'{self._source.path} has no ground truth of poses to compare '
                    f'"{choice.estimate}" with; give --reference-topic or --reference-trajectory'
                )
            true = bag_trajectory(self._bag, self._content, topic)
            self._remarks.append(f'poses of {choice.estimate} are compared with {topic}')
        moving = {true.child_frame_id, estimate.child_frame_id} - {''}
        if len(moving) > 1:
            self._remarks.append(
                f'the poses are of "{estimate.child_frame_id}", the true ones of '
                f'"{true.child_frame_id}": how these frames lie in each other counts as error'
            )
        score = score_trajectory(true, estimate, choice.settings)
        for name, part in (('reference', score.reference), ('estimate', score.estimate)):
            write_text(self._folder / TRAJECTORY_FOLDER / f'{name}.tum', tum_text(part))
        return score

    def _placed(
        self,
        recorded: RecordedMap,
        reference: Reference,
        truth: GroundTruth,
        trajectory: TrajectoryScore | None,
    ) -> tuple[SemanticMap, AppliedAlignment | None]:
        """Return the map where the bag says it lies, and the alignment that the user wants."""
        choice, header = self._source.alignment, recorded.semantic_map.header
        placement = placement_of(
            header.frame_id,
            reference.frame_id,
            header.stamp_ns,
            self._content.transforms,
            choice.kind,
            transform_given=choice.transform is not None,
        )
        self._remarks.append(placement.remark)
        frame_id = reference.frame_id or header.frame_id
        placed = transformed_map(recorded.semantic_map, placement.similarity, frame_id)
        applied = self._alignment(recorded, truth, trajectory, placement)
        if applied is not None:
            self._remarks += applied.remarks
        return placed, applied

    def _alignment(
        self,
        recorded: RecordedMap,
        truth: GroundTruth,
        trajectory: TrajectoryScore | None,
        placement: Placement,
    ) -> AppliedAlignment | None:
        choice = self._source.alignment
        if choice.kind is MapAlignment.KNOWN and choice.transform is not None:
            return aligned_by_transform(choice.transform)
        if choice.kind is MapAlignment.TRAJECTORY:
            if trajectory is None:
                raise ConfigError('--align trajectory needs poses to align: add --pose-topic')
            self._check_frame(trajectory, recorded)
            return aligned_by_trajectory(trajectory)
        if choice.kind is not MapAlignment.ICP:
            return None
        self._progress('aligning by ICP', 0.0)
        initial, guess = placement.similarity, 'where the bag puts it'
        if choice.transform is not None:
            initial, guess = choice.transform, 'the transformation given'
        elif trajectory is not None:
            self._check_frame(trajectory, recorded)
            initial, guess = trajectory.similarity, 'the alignment of the trajectories'
        return aligned_by_icp(recorded.semantic_map, truth, initial, guess)

    def _check_frame(self, trajectory: TrajectoryScore, recorded: RecordedMap) -> None:
        own, frame_id = trajectory.estimate.frame_id, recorded.semantic_map.header.frame_id
        if own and own.lstrip('/') != frame_id:
            raise ConfigError(
                f'the poses are in frame "{own}", the map in "{frame_id}"; name poses in the '
                f'frame of the map, such as --pose-topic /tf:{frame_id}.base_link'
            )

    def _scored(
        self,
        semantic_map: SemanticMap,
        variant: str,
        identity: RunIdentity,
        reference: Reference,
        truth: GroundTruth,
        suites: Sequence[SuiteConfig],
    ) -> RunReport:
        """Return the figures of a map; the suites of a variant have its name behind theirs."""
        folder = self._folder / ALIGNED_FOLDER if variant else self._folder
        write_map(semantic_map, folder / MAP_FOLDER)
        inputs = EvaluationInputs(
            identity,
            folder / MAP_FOLDER,
            reference.directory,
            folder,
            reference.questions_file,
            self._source.device,
            self._source.text_features,
        )
        report = evaluate_loaded(inputs, semantic_map, truth, suites, (), self._progress)
        records = (
            record.model_copy(update={'suite': record.suite + variant})
            for record in report.metrics
        )
        return report.model_copy(update={'metrics': tuple(records)})


def _numbers(transform: Similarity | None) -> tuple[float, ...]:
    if transform is None:
        return ()
    pose = transform.pose
    return (*pose.translation.tolist(), *pose.quaternion.tolist(), transform.scale)
