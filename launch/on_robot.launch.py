"""Recorder and evaluator for a stack that runs already; no simulator is started."""

from pathlib import Path
from typing import Any

from launch.actions import LogInfo
from launch.launch_description_entity import LaunchDescriptionEntity

from launch import LaunchContext, LaunchDescription
from osmabench_ros.bringup.launching.launch_interrupts import interrupts

# Before slow imports: Ctrl-C meanwhile is an error too.
interrupts.install()

from osmabench_ros.base.strict import validated
from osmabench_ros.bringup.launching.launch_arguments import (
    Argument,
    describe_launch,
    make_arguments,
)
from osmabench_ros.bringup.launching.launch_nodes import end_launch, launch_nodes
from osmabench_ros.bringup.runner.on_robot import OnRobot, conclude, nodes_on_robot
from osmabench_ros.mappers.live_method import live_method_names
from osmabench_ros.ros.node.settings import MapAdapterSettings
from osmabench_ros.runs.config import Settling, load_config

ARGUMENTS = (
    Argument('out', 'on_robot', 'New folder for map, bag and report'),
    Argument(
        'ground_truth', '', 'From osmabench scene ground-truth; empty to record without scores'
    ),
    Argument('questions', '', 'questions.jsonl of the scene; made if empty'),
    Argument('config', 'single_run', 'Configuration that suites and requirements are from'),
    Argument('stack', '', f'A YAML file, or one of {", ".join(live_method_names())}'),
    Argument('variables', '{}', 'Variables of its file, a YAML mapping', dict),
    Argument('map_topic', '', 'Instead of stack: where the map is published'),
    *make_arguments(MapAdapterSettings, 'map_type map_frame_is_world'),
    Argument('settling', '{}', 'settle_s, settle_timeout_s, allow_partial: YAML mapping', dict),
    Argument('record', 'true', 'Record a bag too', bool),
    Argument('condition', '', 'For the report'),
    Argument('mapper', '', 'For the report'),
    Argument('namespace', '', 'Of our nodes and topics'),
    Argument('remappings', '{}', 'From our topics to topics of the robot, a YAML mapping', dict),
)

NAMES = ('condition', 'mapper')


def start_nodes(_context: LaunchContext, given: dict[str, Any]) -> list[LaunchDescriptionEntity]:
    """Start what records and scores; the launch ends with the verdict."""
    settings = OnRobot(
        Path(given['out']),
        load_config(given['config']),
        Path(given['ground_truth']) if given['ground_truth'] else None,
        Path(given['questions']) if given['questions'] else None,
        given['stack'],
        given['map_topic'],
        given['map_type'],
        given['variables'],
        given['map_frame_is_world'],
        validated(Settling, given['settling'], 'launch argument settling'),
        given['record'],
        {name: given[name] for name in NAMES},
    )

    def finish(exit_code: int) -> list[LaunchDescriptionEntity]:
        return [LogInfo(msg=conclude(settings, exit_code)), *end_launch(0)]

    return launch_nodes(
        interrupts.cut_off(lambda: nodes_on_robot(settings)),
        finish,
        namespace=given['namespace'],
        remappings=given['remappings'],
    )


def generate_launch_description() -> LaunchDescription:
    """Describe the nodes."""
    return describe_launch(ARGUMENTS, start_nodes)
