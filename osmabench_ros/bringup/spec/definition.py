"""The one definition of the nodes of a run, and of its bag; runner and launch files use it."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from osmabench_ros.base.contract import BAG_RECORDER, BRIDGE, EVALUATOR, MAPPER, RECORDER
from osmabench_ros.base.files import Existing, check_folder, sha256_of_data
from osmabench_ros.bringup.spec.mapping_nodes import STACK_FOLDER, mapping_nodes
from osmabench_ros.bringup.spec.node_spec import NodeSpec
from osmabench_ros.errors import RunError, SequenceError, errors_as
from osmabench_ros.ros.node import settings as node_settings
from osmabench_ros.ros.node.participants import DeclaredParticipant
from osmabench_ros.runs.config import PacingMode, SceneConfig, Settling, TrajectoryConfig
from osmabench_ros.runs.plan import PATH_FILE, RunPlan
from osmabench_ros.runs.run_manifest import config_of_run
from osmabench_ros.sequences.bags import recording_report


def bridge_alone(settings: node_settings.BridgeSettings) -> NodeSpec:
    """Return the bridge without a run around it."""
    here = settings.model_copy(update={'run_id': BRIDGE})
    return NodeSpec(BRIDGE, 'simulator_bridge_node', here, participant=False, ends_run=True)


def nodes_of_run(plan: RunPlan, work: Path | None = None) -> list[NodeSpec]:
    """Return the nodes of a prepared run, the bridge last, because it waits for the others."""
    mapping = mapping_nodes(plan, work or plan.directory / STACK_FOLDER)
    own_topics = [topic for spec in mapping for topic in spec.topics]
    recorders = [_recorder(plan), *bag_recorder(plan, own_topics)]
    followers = [*mapping, *recorders, _evaluator(plan)]
    beside = {'tf': mapping[0].tf, 'participants': participants_of(followers)}
    settings = bridge_settings(plan).model_copy(update=beside)
    return [*followers, NodeSpec(BRIDGE, 'simulator_bridge_node', settings, participant=False)]


def participants_of(specs: Sequence[NodeSpec]) -> tuple[DeclaredParticipant, ...]:
    """Return the nodes that the bridge waits for."""
    found = []
    for spec in specs:
        if spec.is_node and spec.participant:
            found.append(DeclaredParticipant(name=spec.name, acks=spec.acks))
        found += [DeclaredParticipant(name=name, acks=False) for name in spec.participants]
    return tuple(found)


def bridge_settings(plan: RunPlan) -> node_settings.BridgeSettings:
    """Return the settings of the simulation of a run, or of the sequence that it plays."""
    config, identity = plan.config, plan.identity
    always = node_settings.BridgeSettings(
        scene=SceneConfig(seed=plan.scene.seed),
        condition=identity.condition,
        pacing=plan.pacing_config,
        run_id=identity.run_id,
        mapper=identity.mapper,
        config_sha256=sha256_of_data(config_of_run(plan)),
    )
    if plan.scene.sequence is not None:
        played = {'sequence': plan.scene.sequence.absolute(), 'sequence_topics': plan.scene.topics}
        return always.model_copy(update=played)
    simulated = {
        'scene': plan.scene,
        # By value, and under the name that the run has; the file may have changed since.
        'condition': plan.condition.model_copy(update={'name': identity.condition}),
        'simulator': config.simulator,
        'camera': config.camera,
        'trajectory': TrajectoryConfig(frame_rate_hz=config.trajectory.frame_rate_hz),
        'path_file': plan.shared_directory / PATH_FILE,
    }
    return always.model_copy(update=simulated)


def _recorder(plan: RunPlan) -> NodeSpec:
    return NodeSpec(
        RECORDER,
        'map_recorder_node',
        node_settings.MapRecorderSettings(
            map_directory=plan.map_directory,
            frames_directory=plan.frames_directory,
            participant=MAPPER,
            pacing=plan.pacing_config,
            keep_intermediate_maps=plan.config.evaluation.map_every_frames > 0,
        ),
        acks=True,
    )


def _evaluator(plan: RunPlan) -> NodeSpec:
    config = plan.config
    return NodeSpec(
        EVALUATOR,
        'evaluator_node',
        node_settings.EvaluatorSettings(
            ground_truth_directory=plan.ground_truth_directory,
            questions_file=plan.questions_file,
            output_directory=plan.directory,
            suites=config.suites,
            requirements=config.requirements,
            text_features={name: file.absolute() for name, file in config.text_features.items()},
            settling=Settling(allow_partial=plan.mapper.allow_partial),
            exit_when_done=True,
        ),
        ends_run=True,
    )


def recorder_node(directory: Path, settings: recording_report.RecordingSettings) -> NodeSpec:
    """Return the node that records to a folder."""
    here = settings.model_copy(update={'bag_directory': directory.absolute()})
    return NodeSpec(BAG_RECORDER, 'bag_recorder_node', here, acks=settings.acks)


def bag_recorder(plan: RunPlan, own_topics: Sequence[str]) -> list[NodeSpec]:
    """Return the node that records a run, lossless in lockstep; none if not asked for."""
    settings = plan.config.recording
    if not settings.enabled:
        return []
    fields = recording_report.RecordedTopics.model_fields
    chosen = {name: getattr(settings, name) for name in fields}
    recording = recording_report.RecordingSettings(
        **chosen,
        more_topics=tuple(own_topics),
        max_file_bytes=round(settings.split_size_mb * 1e6),
        acks=plan.pacing is PacingMode.LOCKSTEP,
    )
    return [recorder_node(plan.bag_directory, recording)]


def make_room_for_bag(plan: RunPlan) -> None:
    """Move the bag of an interrupted attempt aside; it may be its only result."""
    directory = plan.bag_directory
    if plan.config.recording.enabled and directory.exists():
        check_folder(directory, Existing.MERGE)
        aside = (directory.with_name(f'{directory.name}_interrupted_{n}') for n in count(1))
        directory.rename(next(path for path in aside if not path.exists()))


def check_bag(plan: RunPlan) -> None:
    """Raise RunError if the run ended but its bag was not finished."""
    if not plan.config.recording.enabled:
        return
    run, remedy = f'run {plan.identity.run_id}', 'start over with --fresh'
    with errors_as(RunError, f'{run} was not recorded', SequenceError, remedy=remedy):
        report = recording_report.read_report(plan.bag_directory)
    if not report.complete:
        why = report.error or 'its recorder was killed before it had written everything'
        raise RunError(f'the bag of {run} is not complete: {why}; {remedy}')
