"""Scores the map of a bag against a reference, or describes it without one; needs no ROS."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from osmabench_ros.base.files import atomic_directory, sha256_of, write_json, write_text
from osmabench_ros.base.owned_folder import Existing, check_folder
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import ConfigError, RunError, SequenceError
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory, read_tum, tum_text
from osmabench_ros.maps.disk.storage import write_map
from osmabench_ros.maps.importer import TopicOptions
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.topics.kinds import RecordedMap, choose_map_topic, read_recorded_map
from osmabench_ros.metrics.map_statistics import map_statistics
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.trajectory_records import TrajectoryScore, score_trajectory
from osmabench_ros.runs.bag.bag_comparison import MAP_FOLDER, BagFigures, MapComparison, compared
from osmabench_ros.runs.bag.bag_settings import (
    REFERENCE_FREE,
    BagReport,
    BagSource,
    timing_records,
)
from osmabench_ros.runs.bag.references import Reference, reference_of
from osmabench_ros.runs.bag_content import BagContent, read_content
from osmabench_ros.runs.config import Requirement, SuiteConfig
from osmabench_ros.runs.evaluate.evaluation import REPORT, check_sources, versions
from osmabench_ros.runs.evaluate.map_evaluation import UNKNOWN
from osmabench_ros.runs.identity import RunIdentity, SceneKey, Seeds
from osmabench_ros.runs.prepare.recorded_trajectories import bag_trajectory, reference_topic
from osmabench_ros.runs.requirement import Source, of_sources
from osmabench_ros.runs.results.report_model import Record, Status, for_run, map_remarks, unmet
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences.bags.bag import Bag, open_bag
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth


def map_of_bag(
    source: BagSource, bag: Bag, content: BagContent, topic: str, truth: GroundTruth | None
) -> tuple[RecordedMap, list[str]]:
    """Return the map of a topic, and remarks on it; an OsmabenchError if there is none."""
    info = content.run_info
    label_set, remarks = _label_set(source, content, truth)
    options = TopicOptions(
        source.method or (info.mapper if info else '') or topic.strip('/').replace('/', '_'),
        label_set,
        info.scene if info else (truth.scene if truth else ''),
        info.condition if info else '',
    )
    until_ns = None if source.at_s is None else content.start_ns + round(source.at_s * 1e9)
    recorded = read_recorded_map(bag, topic, options, until_ns=until_ns)
    return recorded, [*remarks, *recorded.remarks, *_lacking(recorded.semantic_map)]


def _label_set(
    source: BagSource, content: BagContent, truth: GroundTruth | None
) -> tuple[LabelSet | None, list[str]]:
    """Return the label set of the user, else the bag, else the reference; and remarks."""
    known = source.label_set if source.label_set is not None else content.label_set
    if known is not None or truth is None or not truth.label_set.classes:
        return known, []
    remark = (
        'the bag does not say what class ids mean; if the map has any, they were read by the '
        f'label set of the reference, "{truth.label_set.name}"'
    )
    return truth.label_set, [remark]


def _lacking(semantic_map: SemanticMap) -> list[str]:
    dense = semantic_map.dense
    if dense is None:
        return ['the map has no points; figures that need them do not apply']
    if dense.labels is None and not semantic_map.graph.nodes:
        return ['the map has neither labels nor nodes: geometry only']
    return []


def identity_of(
    source: BagSource, content: BagContent, made: SemanticMap, truth: GroundTruth | None
) -> tuple[RunIdentity, list[str]]:
    """Return the run identity by the bag, else by reference and map; and remarks."""
    info = content.run_info
    if info is None:
        dataset, scene = (truth.dataset, truth.scene) if truth else ('bag', source.path.stem)
        provenance = made.header.provenance
        method = source.method or provenance.method
        key = SceneKey(dataset, scene, source.seed)
        return RunIdentity(key, provenance.condition or UNKNOWN, method, UNKNOWN), []
    remarks = []
    if truth is not None and (truth.dataset, truth.scene) != (info.dataset, info.scene):
        remarks.append(
            f'the bag is of {info.dataset}, {info.scene}; the reference is of {truth.dataset}, '
            f'{truth.scene}'
        )
    seeds = Seeds.of_run(info.run_id, int(info.seed))
    key = SceneKey(info.dataset, info.scene, seeds.scene, seeds.path)
    method = source.method or info.mapper
    identity = RunIdentity(key, info.condition, method, info.simulator, method_seed=seeds.method)
    return identity, remarks


TRAJECTORY_FOLDER = 'trajectory'


def check_output(directory: Path, *, replace: bool) -> None:
    """Raise RunError for a folder that is not ours, or an evaluation that may not be replaced."""
    check_folder(directory, Existing.MOVE_ASIDE)
    report = directory / REPORT
    if report.exists() and not replace:
        raise RunError(f'{report} exists; use --force to move it aside, or choose another --out')


def write_poses(score: TrajectoryScore | None, directory: Path) -> None:
    """Write the compared trajectories, if there are any, as TUM files into their own folder."""
    if score is None:
        return
    folder = directory / TRAJECTORY_FOLDER
    for name, part in (('reference', score.reference), ('estimate', score.estimate)):
        write_text(folder / f'{name}.tum', tum_text(part))


def poses_of_bag(
    source: BagSource, bag: Bag, content: BagContent
) -> tuple[TrajectoryScore | None, list[str]]:
    """Return the errors of the stack's poses, None if the user names none, and remarks."""
    choice = source.trajectory
    if not choice.estimate:
        return None, []
    estimate = bag_trajectory(bag, content, choice.estimate)
    true, name = _true_poses(source, bag, content, estimate)
    remarks = [f'poses of {choice.estimate} are compared with {name}']
    score = score_trajectory(true, estimate, choice.settings)
    return score, [*remarks, *score.remarks]


def _true_poses(
    source: BagSource, bag: Bag, content: BagContent, estimate: StampedTrajectory
) -> tuple[StampedTrajectory, str]:
    choice = source.trajectory
    if choice.reference_file is not None:
        return read_tum(choice.reference_file), choice.reference_file.name
    topic = choice.reference or reference_topic(content, estimate)
    if not topic:
        raise ConfigError(
            f'{source.path} has no ground truth of poses to compare "{choice.estimate}" with; '
            'give --reference-topic or --reference-trajectory'
        )
    return bag_trajectory(bag, content, topic), topic


Found = TypeVar('Found')


@dataclass(frozen=True, eq=False)
class BagEvaluation:
    """The report of a bag as written, and the stack's poses beside the true ones."""

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
    progress: Progress = silent,
) -> BagEvaluation:
    """Evaluate the recorded map of a bag; without a reference the suites do not run.

    `output_directory` appears when everything is done; requirements of other mappers and
    conditions are left out. Raises RunError if the folder holds more than an evaluation that
    `replace` allows to replace; nothing is written if bag, map, reference or an option is at
    fault.
    """
    check_output(output_directory, replace=replace)
    check_sources(suites, source.text_features, source.questions_file)
    with open_bag(source.path, source.msg_paths) as bag:
        progress('looking through the bag', 0.0)
        content = read_content(bag)
        with atomic_directory(output_directory, Existing.MOVE_ASIDE) as folder:
            work = _Work(source, bag, content, folder, progress)
            done = work.evaluation(suites, requirements)
    truth = done.ground_truth_directory
    if truth is not None and truth.is_relative_to(folder):
        # It was made in the temporary folder, which has its final name now.
        truth = output_directory / truth.relative_to(folder)
    return dataclasses.replace(done, ground_truth_directory=truth)


class _Work:
    """State of one evaluation."""

    def __init__(
        self, source: BagSource, bag: Bag, content: BagContent, folder: Path, progress: Progress
    ) -> None:
        self._source = source
        self._bag = bag
        self._content = content
        self._folder = folder
        self._progress = progress
        self._remarks = [f'the bag is not complete: {bag.cut_off}'] if bag.cut_off else []

    def evaluation(
        self, suites: Sequence[SuiteConfig], requirements: Sequence[Requirement]
    ) -> BagEvaluation:
        source, content = self._source, self._content
        topic = self._map_topic()
        trajectory = self._noted(poses_of_bag(source, self._bag, content))
        reference = reference_of(source, self._bag, content, self._folder, self._progress)
        truth = None if reference is None else read_ground_truth(reference.directory)
        self._progress('reading the map', 0.0)
        recorded = self._noted(map_of_bag(source, self._bag, content, topic, truth))
        identity = self._noted(identity_of(source, content, recorded.semantic_map, truth))
        if reference is None or truth is None:
            figures = self._described(recorded)
        else:
            comparison = MapComparison(identity, reference, truth, suites, self._folder)
            figures = compared(
                recorded.semantic_map, comparison, source, content, trajectory, self._progress
            )
            self._remarks += figures.remarks
        metrics = [
            *figures.metrics,
            *(trajectory.records if trajectory else ()),
            *timing_records(content, topic),
            *map_statistics(recorded.semantic_map),
        ]
        records = (*figures.records, *(Record.of(identity, record) for record in metrics))
        report = self._report(recorded, reference, identity, figures, records, requirements)
        write_json(self._folder / REPORT, report.model_dump(mode='json'))
        write_poses(trajectory, self._folder)
        made = None if reference is None else reference.directory
        return BagEvaluation(report, trajectory, made)

    def _map_topic(self) -> str:
        try:
            return choose_map_topic(self._content.types, self._source.map_topic)
        except ConfigError as error:
            if not self._bag.cut_off:
                raise
            raise SequenceError(
                f'{self._bag.path} is not complete ({self._bag.cut_off}), and what can be read of '
                f'it holds no map to choose: {error}'
            ) from error

    def _noted(self, found: tuple[Found, list[str]]) -> Found:
        """Keep the remarks on a result, and return the result."""
        self._remarks += found[1]
        return found[0]

    def _described(self, recorded: RecordedMap) -> BagFigures:
        """Keep the map if there is no reference."""
        write_map(recorded.semantic_map, self._folder / MAP_FOLDER)
        self._remarks.append(REFERENCE_FREE)
        unasked = MetricRecord.not_applicable('exact_questions', '', 'accuracy')
        return BagFigures((), (unasked,), {'map': sha256_of(self._folder / MAP_FOLDER)})

    def _report(
        self,
        recorded: RecordedMap,
        reference: Reference | None,
        identity: RunIdentity,
        figures: BagFigures,
        records: tuple[Record, ...],
        requirements: Sequence[Requirement],
    ) -> BagReport:
        header = recorded.semantic_map.header
        return BagReport(
            run_id=identity.run_id,
            status=Status.COMPLETE,
            metrics=records,
            failed_requirements=unmet(
                of_sources(for_run(tuple(requirements), identity), Source.MAP, Source.BAG), records
            ),
            versions=versions(),
            hashes=dict(figures.hashes),
            encoders=dict(figures.encoders),
            bag=self._source.path.name,
            map_topic=recorded.topic,
            map_type=recorded.message_type,
            frame_id=header.frame_id,
            stamp_ns=header.stamp_ns,
            reference='' if reference is None else reference.description,
            map_complete=header.complete,
            remarks=(*map_remarks(header), *self._remarks),
            transform=_numbers(figures.transform),
        )


def _numbers(transform: Similarity | None) -> tuple[float, ...]:
    if transform is None:
        return ()
    pose = transform.pose
    return (*pose.translation.tolist(), *pose.quaternion.tolist(), transform.scale)
