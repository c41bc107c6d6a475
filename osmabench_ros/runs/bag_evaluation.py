"""Scores the map of a bag against a reference, or describes it without one; needs no ROS."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from osmabench_ros.base.files import (
    Existing,
    filled_folder,
    sha256_of,
    write_json,
)
from osmabench_ros.errors import ConfigError, RunError, SequenceError
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.language.embedding import PrecomputedEmbedder
from osmabench_ros.maps.storage import write_map
from osmabench_ros.maps.topics.kinds import choose_map_topic
from osmabench_ros.maps.topics.recorded_map import RecordedMap
from osmabench_ros.metrics.map_statistics import map_statistics
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.trajectory_records import TrajectoryScore
from osmabench_ros.runs.bag_comparison import MAP_FOLDER, BagFigures, Comparison, compared
from osmabench_ros.runs.bag_content import BagContent, read_content
from osmabench_ros.runs.bag_map import identity_of, map_of_bag
from osmabench_ros.runs.bag_output import check_output, write_poses
from osmabench_ros.runs.bag_poses import poses_of_bag
from osmabench_ros.runs.bag_questions import SUITE as WRITTEN_SUITE
from osmabench_ros.runs.bag_questions import written_question_records
from osmabench_ros.runs.bag_reference import reference_of
from osmabench_ros.runs.bag_report import REFERENCE_FREE, BagReport, timing_records
from osmabench_ros.runs.bag_settings import BagSource
from osmabench_ros.runs.config import Requirement, SuiteConfig
from osmabench_ros.runs.evaluation import REPORT, made_suites, versions
from osmabench_ros.runs.identity import RunIdentity
from osmabench_ros.runs.progress import Progress
from osmabench_ros.runs.questioned_map import stated_map
from osmabench_ros.runs.references import Reference
from osmabench_ros.runs.report_model import Record, Status, for_run, map_remarks, unmet
from osmabench_ros.runs.requirement import Source, of_sources
from osmabench_ros.sequences.bag import Bag, open_bag
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth

Found = TypeVar('Found')

WRITTEN_FOLDER = 'written_questions'


@dataclass(frozen=True, eq=False)
class BagEvaluation:
    """The report of a bag as written, and the stack's poses beside the true ones, if compared.

    `ground_truth_directory` is what the map was compared with, None without a reference.
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
    """Evaluate the recorded map of a bag; without a reference the suites do not run.

    `output_directory` appears when everything is done; it gets report.json, map/, ground_truth/,
    trajectory/, vqa/ and, for what an alignment changes, aligned/. Requirements of other mappers
    and conditions are left out. Raises RunError if the folder holds more than an evaluation that
    `replace` allows to replace; nothing is written if bag, map, reference or an option is at
    fault.
    """
    check_output(output_directory, replace=replace)
    made_suites(suites)
    for file in source.text_features.values():
        PrecomputedEmbedder(file)
    if source.questions_file is not None and not source.questions_file.exists():
        raise RunError(f'there are no questions at {source.questions_file}')
    told = progress or (lambda _text, _fraction: None)
    with open_bag(source.path, source.msg_paths) as bag:
        told('looking through the bag', 0.0)
        content = read_content(bag)
        with filled_folder(output_directory, Existing.REPLACE) as folder:
            work = _Work(source, bag, content, folder, told)
            done = work.evaluation(suites, requirements)
    truth = done.ground_truth_directory
    if truth is not None and truth.is_relative_to(folder):
        # It was made in the temporary folder, which has its final name now.
        truth = output_directory / truth.relative_to(folder)
    return dataclasses.replace(done, ground_truth_directory=truth)


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
            comparison = Comparison(identity, reference, truth, suites, self._folder)
            figures = compared(
                recorded.semantic_map, comparison, source, content, trajectory, self._progress
            )
            self._remarks += figures.remarks
        metrics = [
            *figures.metrics,
            *(trajectory.records if trajectory else ()),
            *self._asked(recorded, identity, truth),
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
        """Keep the remarks on something that was found, return it."""
        self._remarks += found[1]
        return found[0]

    def _described(self, recorded: RecordedMap) -> BagFigures:
        """Keep the map; there is nothing to compare it with."""
        write_map(recorded.semantic_map, self._folder / MAP_FOLDER)
        self._remarks.append(REFERENCE_FREE)
        unasked = MetricRecord.not_applicable('exact_questions', '', 'accuracy')
        return BagFigures((), (unasked,), {'map': sha256_of(self._folder / MAP_FOLDER)})

    def _asked(
        self, recorded: RecordedMap, identity: RunIdentity, truth: GroundTruth | None
    ) -> list[MetricRecord]:
        """Return the accuracy of answers to questions of a language model, if there is one."""
        source = self._source
        client = None if source.model is None else source.model.client()
        if client is None:
            return [MetricRecord.not_applicable(WRITTEN_SUITE, '', 'accuracy')]
        self._remarks.append(
            f'questions and right answers are those that {client.name} wrote from images of the '
            'bag: they are no ground truth'
        )
        return written_question_records(
            self._bag,
            self._content,
            stated_map(recorded.semantic_map, truth, source.text_features),
            client,
            self._folder / WRITTEN_FOLDER,
            most_frames=source.question_frames,
            scene=str(identity.scene_key),
            progress=self._progress,
        )

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
            failed_requirements=unmet(_of_bag(requirements, identity), records),
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


def _of_bag(requirements: Sequence[Requirement], identity: RunIdentity) -> tuple[Requirement, ...]:
    """Return the requirements that a recorded map can be held against."""
    return of_sources(for_run(tuple(requirements), identity), Source.MAP, Source.BAG)


def _numbers(transform: Similarity | None) -> tuple[float, ...]:
    if transform is None:
        return ()
    pose = transform.pose
    return (*pose.translation.tolist(), *pose.quaternion.tolist(), transform.scale)
