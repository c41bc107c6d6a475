"""Scores the map of a bag against a reference, or describes it without one; needs no ROS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.base.files import (
    Existing,
    atomic_directory,
    check_folder,
    sha256_of,
    write_json,
    write_text,
)
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import ConfigError, RunError, SequenceError
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory, read_tum, tum_text
from osmabench_ros.maps.disk.storage import write_map
from osmabench_ros.maps.importer import TopicOptions
from osmabench_ros.maps.semantic_map import SemanticMap, transformed_map
from osmabench_ros.maps.topics.kinds import RecordedMap, choose_map_topic, read_recorded_map
from osmabench_ros.metrics.map_statistics import map_statistics
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.trajectory_records import ALIGNED, TrajectoryScore, score_trajectory
from osmabench_ros.runs.bag.bag_settings import REFERENCE_FREE, BagReport, BagSource
from osmabench_ros.runs.bag.map_alignment import Alignment, align_map, place_map
from osmabench_ros.runs.bag.references import Reference, reference_of
from osmabench_ros.runs.bag_content import BagContent, read_content, timing_records
from osmabench_ros.runs.config import Requirement, SuiteConfig
from osmabench_ros.runs.evaluate.evaluation import (
    REPORT,
    EvaluationInputs,
    check_sources,
    evaluate_loaded,
    versions,
)
from osmabench_ros.runs.evaluate.map_evaluation import UNKNOWN
from osmabench_ros.runs.identity import RunIdentity, SceneKey, Seeds
from osmabench_ros.runs.prepare.recorded_trajectories import bag_trajectory, reference_topic
from osmabench_ros.runs.requirement import Source, of_sources
from osmabench_ros.runs.results.report_model import (
    Record,
    RunReport,
    Status,
    for_run,
    map_remarks,
    unmet,
)
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences.bags.bag import Bag, open_bag
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth

MAP_FOLDER, ALIGNED_FOLDER, TRAJECTORY_FOLDER = 'map', 'aligned', 'trajectory'


@dataclass(frozen=True, eq=False)
class BagEvaluation:
    """The report of a bag as written, and the stack's poses with the true ones."""

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
    `replace` allows to replace; nothing is written if bag, map, reference or an option is wrong.
    """
    check_folder(output_directory, Existing.MOVE_ASIDE)
    report = output_directory / REPORT
    if report.exists() and not replace:
        raise RunError(f'{report} exists; use --force to move it aside, or choose another --out')
    check_sources(suites, source.config.text_features, source.questions_file)
    with open_bag(source.path, source.msg_paths) as bag:
        progress('looking through the bag', 0.0)
        content = read_content(bag)
        with atomic_directory(output_directory, Existing.MOVE_ASIDE) as folder:
            done = _evaluate(source, bag, content, suites, requirements, folder, progress)
    truth = done.ground_truth_directory
    if truth is not None and truth.is_relative_to(folder):
        # It was made in the temporary folder, which has its final name now.
        truth = output_directory / truth.relative_to(folder)
    return BagEvaluation(done.report, done.trajectory, truth)


def _evaluate(
    source: BagSource,
    bag: Bag,
    content: BagContent,
    suites: Sequence[SuiteConfig],
    requirements: Sequence[Requirement],
    folder: Path,
    progress: Progress,
) -> BagEvaluation:
    remarks = [f'the bag is not complete: {bag.cut_off}'] if bag.cut_off else []
    topic = _map_topic(source, bag, content)
    trajectory = _score_poses(source, bag, content, remarks)
    reference = reference_of(source, bag, content, folder, progress)
    truth = None if reference is None else read_ground_truth(reference.directory)
    progress('reading the map', 0.0)
    recorded = _read_map(source, bag, content, topic, truth, remarks)
    made = recorded.semantic_map
    identity = _identity(source, content, made, truth, remarks)
    alignment, reports = None, []
    if reference is None or truth is None:
        write_map(made, folder / MAP_FOLDER)
        remarks.append(REFERENCE_FREE)
        metrics = [MetricRecord.not_applicable('exact_questions', '', 'accuracy')]
        hashes, encoders = {'map': sha256_of(folder / MAP_FOLDER)}, {}
    else:
        frame_id = reference.frame_id or made.header.frame_id
        placement, remark = place_map(source, made, frame_id, content.transforms)
        remarks.append(remark)
        alignment = align_map(source, made, truth, placement, trajectory, progress)
        variants = {'': placement}
        if alignment is not None:
            variants[ALIGNED] = alignment.similarity
            remarks += alignment.remarks
        for suffix, similarity in variants.items():
            place = folder / ALIGNED_FOLDER if suffix else folder
            placed = transformed_map(made, similarity, frame_id)
            inputs = _inputs(source, identity, reference, place)
            reports.append(_score(inputs, placed, truth, suites, suffix, progress))
        metrics = list(alignment.records) if alignment else []
        hashes, encoders = reports[0].hashes, reports[0].encoders
    metrics += trajectory.records if trajectory else ()
    metrics += [*timing_records(content, topic), *map_statistics(made)]
    scored = (record for report in reports for record in report.metrics)
    records = (*scored, *(Record.of(identity, record) for record in metrics))
    of_bags = of_sources(for_run(tuple(requirements), identity), Source.MAP, Source.BAG)
    report = BagReport(
        run_id=identity.run_id,
        status=Status.COMPLETE,
        metrics=records,
        failed_requirements=unmet(of_bags, records),
        versions=versions(),
        hashes=hashes,
        encoders=encoders,
        bag=source.path.name,
        map_topic=recorded.topic,
        map_type=recorded.message_type,
        frame_id=made.header.frame_id,
        stamp_ns=made.header.stamp_ns,
        reference='' if reference is None else reference.description,
        map_complete=made.header.complete,
        remarks=(*map_remarks(made.header), *remarks),
        transform=_numbers(alignment),
    )
    write_json(folder / REPORT, report.model_dump(mode='json'))
    if trajectory is not None:
        for name in ('reference', 'estimate'):
            text = tum_text(getattr(trajectory, name))
            write_text(folder / TRAJECTORY_FOLDER / f'{name}.tum', text)
    return BagEvaluation(report, trajectory, None if reference is None else reference.directory)


def _numbers(alignment: Alignment | None) -> tuple[float, ...]:
    if alignment is None:
        return ()
    pose = alignment.similarity.pose
    return (*pose.translation.tolist(), *pose.quaternion.tolist(), alignment.similarity.scale)


def _inputs(
    source: BagSource, identity: RunIdentity, reference: Reference, folder: Path
) -> EvaluationInputs:
    return EvaluationInputs(
        identity,
        folder / MAP_FOLDER,
        reference.directory,
        folder,
        reference.questions_file,
        source.device,
        source.config.text_features,
    )


def _score(
    inputs: EvaluationInputs,
    semantic_map: SemanticMap,
    truth: GroundTruth,
    suites: Sequence[SuiteConfig],
    suffix: str,
    progress: Progress,
) -> RunReport:
    """Return the report of a map; the names of its suites get a suffix."""
    write_map(semantic_map, inputs.map_directory)
    report = evaluate_loaded(inputs, semantic_map, truth, suites, (), progress)
    records = (item.model_copy(update={'suite': item.suite + suffix}) for item in report.metrics)
    return report.model_copy(update={'metrics': tuple(records)})


def _map_topic(source: BagSource, bag: Bag, content: BagContent) -> str:
    try:
        return choose_map_topic(content.types, source.map_topic)
    except ConfigError as error:
        if not bag.cut_off:
            raise
        raise SequenceError(
            f'{bag.path} is not complete ({bag.cut_off}), and what can be read of it holds no '
            f'map to choose: {error}'
        ) from error


def _read_map(
    source: BagSource,
    bag: Bag,
    content: BagContent,
    topic: str,
    truth: GroundTruth | None,
    remarks: list[str],
) -> RecordedMap:
    info = content.run_info
    options = TopicOptions(
        source.method or (info.mapper if info else '') or topic.strip('/').replace('/', '_'),
        _label_set(source, content, truth, remarks),
        info.scene if info else (truth.scene if truth else ''),
        info.condition if info else '',
    )
    until_ns = None if source.at_s is None else content.start_ns + round(source.at_s * 1e9)
    recorded = read_recorded_map(bag, topic, options, until_ns=until_ns)
    remarks += recorded.remarks
    dense = recorded.semantic_map.dense
    if dense is None:
        remarks.append('the map has no points; metrics that need them do not apply')
    elif dense.labels is None and not recorded.semantic_map.graph.nodes:
        remarks.append('the map has neither labels nor nodes: geometry only')
    return recorded


def _label_set(
    source: BagSource, content: BagContent, truth: GroundTruth | None, remarks: list[str]
) -> LabelSet | None:
    """Return the label set of the user, else of the bag, else of the reference."""
    known = source.label_set if source.label_set is not None else content.label_set
    if known is not None or truth is None or not truth.label_set.classes:
        return known
    remarks.append(
        'the bag does not say what class ids mean; if the map has any, they were read by the '
        f'label set of the reference, "{truth.label_set.name}"'
    )
    return truth.label_set


def _identity(
    source: BagSource,
    content: BagContent,
    made: SemanticMap,
    truth: GroundTruth | None,
    remarks: list[str],
) -> RunIdentity:
    """Return the run's identity by the bag, else by reference and map."""
    info = content.run_info
    if info is None:
        dataset, scene = (truth.dataset, truth.scene) if truth else ('bag', source.path.stem)
        provenance = made.header.provenance
        method = source.method or provenance.method
        key = SceneKey(dataset, scene, source.seed)
        return RunIdentity(key, provenance.condition or UNKNOWN, method, UNKNOWN)
    if truth is not None and (truth.dataset, truth.scene) != (info.dataset, info.scene):
        remarks.append(
            f'the bag is of {info.dataset}, {info.scene}; the reference is of {truth.dataset}, '
            f'{truth.scene}'
        )
    seeds = Seeds.of_run(info.run_id, int(info.seed))
    key = SceneKey(info.dataset, info.scene, seeds.scene, seeds.path)
    method = source.method or info.mapper
    return RunIdentity(key, info.condition, method, info.simulator, method_seed=seeds.method)


def _score_poses(
    source: BagSource, bag: Bag, content: BagContent, remarks: list[str]
) -> TrajectoryScore | None:
    """Return the errors of the stack's poses, None if the user names none."""
    choice = source.trajectory
    if not choice.estimate:
        return None
    estimate = bag_trajectory(bag, content, choice.estimate)
    true, name = _true_poses(source, bag, content, estimate)
    score = score_trajectory(true, estimate, choice.settings)
    remarks += [f'poses of {choice.estimate} are compared with {name}', *score.remarks]
    return score


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
