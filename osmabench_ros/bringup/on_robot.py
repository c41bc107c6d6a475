"""Recorder and evaluator beside a stack that runs already: no simulator, no pacing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from osmabench_ros.base.files import check_folder
from osmabench_ros.base.owned_folder import claim_folder
from osmabench_ros.bringup.definition import EVALUATOR, RECORDER
from osmabench_ros.bringup.mapping_nodes import adapter, adapter_of_stack
from osmabench_ros.bringup.node_spec import MAPPER, NodeSpec
from osmabench_ros.bringup.recording import RecordingSettings
from osmabench_ros.bringup.stack_values import stack_values
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.axes import optical_pose_in_link
from osmabench_ros.mappers.live_method import load_live_method
from osmabench_ros.ros.node_names import BAG_RECORDER as BAG_RECORDER
from osmabench_ros.ros.token_variable import token_of_shell
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.mapper_config import Settling
from osmabench_ros.sequences.ground_truth import read_ground_truth

MAP_FOLDER, FRAMES_FOLDER, BAG_FOLDER = 'map', 'frames', 'bag'


@dataclass(frozen=True)
class OnRobot:
    """What is recorded and scored beside a running stack, into a folder that must not exist yet.

    Without ground truth the map is recorded and not scored; without questions they are made from
    it. `stack` (a name in config/methods/live, or a YAML file) or `map_topic` and `map_type` say
    who publishes the map; all are empty for a stack that publishes `semantic_map` itself.

    `map_frame_is_world`: the map is in the frame of the ground truth though TF does not say so;
    `names` are scene, condition, mapper and simulator for the report, where no run_info has them.
    """

    out: Path
    config: MatrixConfig
    ground_truth: Path | None = None
    questions: Path | None = None
    stack: str = ''
    map_topic: str = ''
    map_type: str = ''
    variables: Mapping[str, str] = field(default_factory=dict)
    map_frame_is_world: bool = False
    settling: Settling = field(default_factory=Settling)
    record: bool = False
    names: Mapping[str, str] = field(default_factory=dict)


def nodes_on_robot(settings: OnRobot) -> list[NodeSpec]:
    """Return the nodes; the evaluator ends the run, without one the map recorder.

    Raises RunError if there is something in the folder for results, ConfigError if the stack is
    unknown or named in two ways, SequenceError if the ground truth cannot be read.
    """
    check_folder(settings.out)
    adapters = _adapter(settings)
    own_topics = [topic for spec in adapters for topic in spec.topics]
    specs = [*adapters, _recorder(settings), *_bag_recorder(settings, own_topics)]
    specs += _evaluator(settings)
    claim_folder(settings.out)
    return specs


def _adapter(settings: OnRobot) -> list[NodeSpec]:
    if settings.stack and settings.map_topic:
        raise ConfigError('give stack:= or map_topic:=, not both; a stack knows its topic')
    settling = settings.settling.model_dump(include={'settle_s', 'settle_timeout_s'})
    frame = {'map_frame_is_world': settings.map_frame_is_world, **settling}
    if settings.map_topic:
        topic = {'map_topic': settings.map_topic, 'map_type': settings.map_type}
        return [adapter(settings.names.get('mapper') or 'unknown', {**topic, **frame})]
    if not settings.stack:
        return []
    # The stack runs already: only its topic and its service are needed, never its files.
    values = stack_values(settings.out, optical_pose_in_link(), variables=settings.variables)
    spec = adapter_of_stack(load_live_method(settings.stack).filled(values))
    return [replace(spec, parameters={**spec.parameters, **frame})]


def _recorder(settings: OnRobot) -> NodeSpec:
    adapted = bool(settings.stack or settings.map_topic)
    return NodeSpec(
        RECORDER,
        'map_recorder_node',
        {
            'map_directory': str((settings.out / MAP_FOLDER).absolute()),
            'frames_directory': str((settings.out / FRAMES_FOLDER).absolute()),
            'participant': MAPPER if adapted else '',
            # What runs already has a token only if the shell has it.
            'signed': adapted or bool(token_of_shell()),
            'watch_publishers': True,
            'pacing': 'realtime',
            'exit_when_done': settings.ground_truth is None,
        },
        ends_run=settings.ground_truth is None,
    )


def _bag_recorder(settings: OnRobot, own_topics: list[str]) -> list[NodeSpec]:
    if not settings.record:
        return []
    return [RecordingSettings(settings.out / BAG_FOLDER, more_topics=tuple(own_topics)).node()]


def _evaluator(settings: OnRobot) -> list[NodeSpec]:
    if settings.ground_truth is None:
        return []
    read_ground_truth(settings.ground_truth)
    config = settings.config
    return [
        NodeSpec(
            EVALUATOR,
            'evaluator_node',
            {
                'ground_truth_directory': str(settings.ground_truth.absolute()),
                'questions_file': str(settings.questions.absolute()) if settings.questions else '',
                'output_directory': str(settings.out.absolute()),
                'suites': yaml.safe_dump([item.model_dump() for item in config.suites]),
                'requirements': yaml.safe_dump(
                    [item.model_dump() for item in config.requirements]
                ),
                'allow_partial': settings.settling.allow_partial,
                'exit_when_done': True,
                'use_run_info': False,
                **{name: text for name, text in settings.names.items() if text},
            },
            ends_run=True,
        )
    ]
