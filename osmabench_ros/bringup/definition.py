"""The one definition of the nodes of a run, and of its bag; runner and launch files use it.

The mapping nodes are the mapper of a bundled method, or a stack and its adapter.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from osmabench_ros.base import contract as topics
from osmabench_ros.base import files
from osmabench_ros.base.contract import BAG_RECORDER, BRIDGE, EVALUATOR, MAPPER, RECORDER
from osmabench_ros.errors import RunError, SequenceError, errors_as
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers import live_method
from osmabench_ros.mappers.offline_method import filled
from osmabench_ros.ros.node import settings as node_settings
from osmabench_ros.ros.node.parameters import PLAN_FILE
from osmabench_ros.ros.node.participants import DeclaredParticipant
from osmabench_ros.ros.node.settings import MapAdapterSettings, TfSettings
from osmabench_ros.runs.config import (
    MapperConfig,
    MatrixConfig,
    PacingConfig,
    SceneConfig,
    Settling,
    TrajectoryConfig,
)
from osmabench_ros.runs.evaluation import FRAMES_FOLDER
from osmabench_ros.runs.plan import PATH_FILE, RunPlan
from osmabench_ros.runs.run_manifest import config_of_run
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences.bags import recording_report

PACKAGE = 'osmabench_ros'
# Name of a third-party node or stack; an adapter called MAPPER publishes its map.
METHOD = 'method'


@dataclass(frozen=True)
class NodeSpec:
    """A node with everything that the runner and the launch files need to start it.

    Its settings go to it as a file, its plan. `executable` is a program in lib/osmabench_ros that
    runs the module of this name in osmabench_ros.nodes, `command` another program in its place.
    If that starts several nodes and takes no ROS arguments, `is_node` is False,
    and the bridge waits for `participants` by name.

    `topics` of a stack have its map and pose, and a bag of the run holds them too;
    `tf` is of the node that maps; with `ends_run` its end is the end of the run and its exit code
    the verdict.
    """

    name: str
    executable: str = ''
    settings: BaseModel | None = None
    command: tuple[str, ...] = ()
    acks: bool = False
    is_node: bool = True
    participants: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    tf: TfSettings = field(default_factory=TfSettings)
    ends_run: bool = False

    @property
    def ours(self) -> bool:
        """Whether it is a node of this package, not a program of others."""
        return not self.command

    def parameters(self, folder: Path) -> dict[str, str]:
        """Write the plan of the node to a folder, and return the parameters that name it."""
        if self.settings is None:
            return {}
        file = folder.absolute() / f'{self.name}.json'
        files.write_text(file, self.settings.model_dump_json(indent=1))
        return {PLAN_FILE.name: str(file)}

    @property
    def module(self) -> str:
        """The module with the node, if it is one of ours."""
        return f'{PACKAGE}.nodes.{self.executable}'

    def command_line(self, folder: Path) -> list[str]:
        """Return the command of its process, with its plan in a folder."""
        if not self.is_node:
            return list(self.command)
        start = list(self.command) or [sys.executable, '-m', self.module]
        return [*start, *self.arguments(folder)]

    def arguments(self, folder: Path) -> list[str]:
        """Return the arguments of the node, with its plan in a folder."""
        given = [f'{name}:={file}' for name, file in self.parameters(folder).items()]
        parameters = [item for text in given for item in ('-p', text)]
        return ['--ros-args', '-r', f'__node:={self.name}', *parameters]


TOPICS = {
    'color': topics.COLOR,
    'depth': topics.DEPTH,
    'semantic': topics.SEMANTIC,
    'instance': topics.INSTANCE,
    'color_info': topics.COLOR_INFO,
    'depth_info': topics.DEPTH_INFO,
    'camera_pose': topics.CAMERA_POSE,
    'odometry': topics.ODOMETRY,
}
LABEL_SPACE = 'label_space.yaml'
# In the folder of a run, for the files of the stack.
STACK_FOLDER = 'stack'


def stack_values(
    work: Path,
    base_to_camera: Pose,
    *,
    namespace: str = '',
    variables: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the values of the ``${...}`` of a live method; the pose is optical, in base_link."""
    prefix = f'/{namespace.strip("/")}/' if namespace.strip('/') else '/'
    return {
        **{name: prefix + topic for name, topic in TOPICS.items()},
        'world_frame': topics.WORLD_FRAME,
        'base_frame': topics.BASE_FRAME,
        'camera_frame': topics.CAMERA_FRAME,
        'base_to_camera': yaml.safe_dump(
            base_to_camera.matrix.tolist(), default_flow_style=True, width=10_000
        ).strip(),
        'work': str(work.absolute()),
        **(variables or {}),
    }


@contextmanager
def stack_folder(plan: RunPlan) -> Iterator[Path]:
    """Yield the folder for the stack of a run, if it has one; it appears with all files in it."""
    folder, resources = plan.directory / STACK_FOLDER, ExitStack()
    if plan.mapper.stack:
        whole = files.atomic_directory(folder, files.Existing.MOVE_ASIDE)
        folder = resources.enter_context(whole)
    try:
        yield folder
    finally:
        resources.close()  # after an error the files may show its cause


def prepare_stack(
    name: str, work: Path, values: Mapping[str, str], label_set: LabelSet | None
) -> live_method.LiveMethod:
    """Fill in a live method and write its files; ConfigError if a value is missing."""
    method = live_method.load_live_method(name).filled(values)
    files.claim_folder(work)
    for file, text in method.files.items():
        files.write_text(work / file, text)
    if label_set is not None:
        files.write_text(work / LABEL_SPACE, live_method.hydra_label_space(label_set))
    return method


def mapping_nodes(plan: RunPlan, work: Path) -> list[NodeSpec]:
    """Return the nodes that turn frames into the map of a run, the one that maps first."""
    mapper = plan.mapper
    if mapper.stack:
        method = live_method.load_live_method(mapper.stack).filled(values_of_stack(plan, work))
        settings = _wait_for_method(adapter_settings(method), plan)
        return [_stack(plan, method, work), adapter(settings, method)]
    if mapper.map_topic:
        node = _make_third_party(METHOD, plan)
        settings = MapAdapterSettings(
            method=mapper.name, map_topic=mapper.map_topic, map_type=mapper.map_type
        )
        return [node, adapter(_wait_for_method(settings, plan))]
    if mapper.command:
        return [_make_third_party(MAPPER, plan)]
    return [_specify_bundled(plan)]


def _make_third_party(name: str, plan: RunPlan) -> NodeSpec:
    mapper = plan.mapper
    return NodeSpec(
        name,
        command=tuple(_with_seed(part, plan) for part in mapper.command),
        acks=mapper.acks,
        tf=tf_settings(mapper),
    )


def adapter_settings(method: live_method.LiveMethod) -> MapAdapterSettings:
    """Return the adapter settings of a filled-in stack."""
    source, finish = method.map, method.finish
    settings = MapAdapterSettings(method=method.name)
    if isinstance(source, live_method.MapFile):
        place = {'map_file': Path(source.path), 'importer': source.importer}
    else:
        place = {'map_topic': source.topic, 'map_type': source.type}
    if finish is not None:
        place |= {f'finish_{name}': value for name, value in finish}
    return settings.model_copy(update=place)


def adapter(
    settings: MapAdapterSettings, method: live_method.LiveMethod | None = None
) -> NodeSpec:
    """Return the adapter node, which publishes the map of a stack or node as `semantic_map`."""
    pose = '' if method is None or method.pose is None else method.pose.topic
    topics = tuple(filter(None, (settings.map_topic, pose)))
    return NodeSpec(MAPPER, 'map_adapter_node', settings, topics=topics)


def _wait_for_method(settings: MapAdapterSettings, plan: RunPlan) -> MapAdapterSettings:
    """Return the settings of an adapter that waits for the method of its run."""
    mapper, longest_s = plan.mapper, plan.config.pacing.evaluation_timeout_s
    # Else the run would end for want of a map.
    timeout_s = min(mapper.settle_timeout_s, 0.9 * longest_s)
    values = {
        'settling': Settling(settle_s=mapper.settle_s, settle_timeout_s=timeout_s),
        'count_frames': not mapper.acks,
    }
    return settings.model_copy(update=values)


def _specify_bundled(plan: RunPlan) -> NodeSpec:
    mapper = plan.mapper
    values = {
        'run': str(plan.directory.absolute()),
        'scene': plan.identity.scene_key.scene,
        'condition': plan.identity.condition,
        'seed': str(plan.method_seed),
    }
    return NodeSpec(
        MAPPER,
        'mapper_node',
        node_settings.MapperSettings(
            mapper=mapper.bundled,
            options=filled(mapper.options, values, f'options of mapper {mapper.name}'),
            seed=plan.method_seed,
            pacing=plan.pacing_config,
            evaluation=plan.config.evaluation,
        ),
        acks=True,
        tf=tf_settings(mapper),
    )


def _with_seed(text: str, plan: RunPlan) -> str:
    """Fill in ``${seed}`` and keep the rest, which may be for a shell."""
    return text.replace('${seed}', str(plan.method_seed))


def tf_settings(mapper: MapperConfig, method: live_method.LiveMethod | None = None) -> TfSettings:
    """Return who publishes which edge of TF, by the configuration or else the stack's file."""
    declared = method or TfSettings()
    return TfSettings(
        transforms=declared.transforms if mapper.transforms is None else mapper.transforms,
        publish_tf=mapper.publish_tf,
        map_origin=mapper.map_origin or declared.map_origin,
    )


def values_of_stack(plan: RunPlan, work: Path) -> dict[str, str]:
    """Return the values that the file of a stack may refer to in a run."""
    variables = {name: _with_seed(text, plan) for name, text in plan.mapper.variables.items()}
    return stack_values(work, plan.config.camera.mount.base_to_camera, variables=variables)


def _stack(plan: RunPlan, method: live_method.LiveMethod, work: Path) -> NodeSpec:
    pose = plan.config.camera.mount.base_to_camera
    numbers = [*pose.translation, *pose.quaternion]
    return NodeSpec(
        METHOD,
        command=(
            *('ros2', 'launch', PACKAGE, 'stack.launch.py'),
            f'stack:={plan.mapper.stack}',
            f'variables:={yaml.safe_dump(plan.mapper.variables, default_flow_style=True).strip()}',
            f'work:={work.absolute()}',
            f'ground_truth:={(plan.ground_truth_directory).absolute()}',
            f'base_to_camera:={" ".join(f"{number:.9g}" for number in numbers)}',
        ),
        is_node=False,
        participants=method.participants,
        tf=tf_settings(plan.mapper, method),
    )


def nodes_of_run(plan: RunPlan, work: Path | None = None) -> list[NodeSpec]:
    """Return the nodes of a prepared run, the bridge last, because it waits for the others."""
    config, mapping = plan.config, mapping_nodes(plan, work or plan.directory / STACK_FOLDER)
    followers = [
        *mapping,
        map_recorder(
            plan.map_directory,
            plan.pacing_config,
            keep_intermediate_maps=config.evaluation.map_every_frames > 0,
        ),
        *bag_recorder(plan, [topic for spec in mapping for topic in spec.topics]),
        evaluator(
            config,
            plan.ground_truth_directory,
            plan.questions_file,
            plan.directory,
            settling=Settling(allow_partial=plan.mapper.allow_partial),
        ),
    ]
    others = {'tf': mapping[0].tf, 'participants': participants_of(followers)}
    settings = bridge_settings(plan).model_copy(update=others)
    return [*followers, NodeSpec(BRIDGE, 'simulator_bridge_node', settings)]


def participants_of(specs: Sequence[NodeSpec]) -> tuple[DeclaredParticipant, ...]:
    """Return the nodes that the bridge waits for."""
    found = []
    for spec in specs:
        if spec.is_node:
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
        config_sha256=files.sha256_of_data(config_of_run(plan)),
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


def map_recorder(
    map_directory: Path, pacing: PacingConfig, participant: str = MAPPER, **more: Any
) -> NodeSpec:
    """Return the node that records maps, and next to them the frames that it keeps."""
    given = node_settings.MapRecorderSettings(
        map_directory=map_directory.absolute(),
        frames_directory=map_directory.absolute().with_name(FRAMES_FOLDER),
        participant=participant,
        pacing=pacing,
        **more,
    )
    return NodeSpec(RECORDER, 'map_recorder_node', given, acks=True, ends_run=given.exit_when_done)


def evaluator(
    config: MatrixConfig, ground_truth: Path, questions: Path | None, out: Path, **more: Any
) -> NodeSpec:
    """Return the node that scores the map of a run and ends the run with the verdict."""
    given = node_settings.EvaluatorSettings(
        ground_truth_directory=ground_truth.absolute(),
        questions_file=questions.absolute() if questions else None,
        output_directory=out.absolute(),
        suites=config.suites,
        requirements=config.requirements,
        text_features={name: file.absolute() for name, file in config.text_features.items()},
        exit_when_done=True,
        **more,
    )
    return NodeSpec(EVALUATOR, 'evaluator_node', given, ends_run=True)


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
        acks=plan.pacing_config.lockstep,
    )
    return [recorder_node(plan.bag_directory, recording)]


def make_room_for_bag(plan: RunPlan) -> None:
    """Move the bag of an interrupted attempt aside; it may be its only result."""
    directory = plan.bag_directory
    if plan.config.recording.enabled and directory.exists():
        files.check_folder(directory, files.Existing.MERGE)
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
