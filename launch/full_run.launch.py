"""A full run: simulate a scene under a condition, map it, record the map, score it."""

from pathlib import Path
from typing import Any

from launch.launch_description_entity import LaunchDescriptionEntity
from launch.logging import get_logger

from launch import LaunchContext, LaunchDescription
from osmabench_ros.bringup.launching.launch_interrupts import interrupts

# Before slow imports: Ctrl-C meanwhile is an error too.
interrupts.install()

from osmabench_ros.base.contract import BRIDGE, EVALUATOR, MAPPER, RECORDER
from osmabench_ros.bringup.launching.launch_arguments import (
    Argument,
    describe_launch,
    make_arguments,
)
from osmabench_ros.bringup.launching.launch_nodes import claim_nodes, launch_viewer
from osmabench_ros.bringup.launching.launch_run import launch_run
from osmabench_ros.bringup.launching.single_run import plan_single_run
from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.live_method import live_method_names
from osmabench_ros.mappers.mapper import mapper_names
from osmabench_ros.ros.node.settings import BridgeSettings
from osmabench_ros.runs.config import TrajectoryConfig
from osmabench_ros.simulation.conditions import list_conditions
from osmabench_ros.simulation.simulator import list_simulators

CONDITIONS = list_conditions()
MAPPERS = [*mapper_names(), *live_method_names()]

ARGUMENTS = (
    *make_arguments(BridgeSettings, 'scene scene_name seed', seed=5),
    Argument('condition', 'baseline', f'One of {", ".join(CONDITIONS)}, or a YAML file'),
    Argument('mapper', 'oracle', f'One of {", ".join(MAPPERS)}, or a YAML file of a stack'),
    Argument('variables', '{}', 'Variables of the file of a stack, a YAML mapping', dict),
    Argument('settling', '{}', 'Of a stack: settle_s, settle_timeout_s, allow_partial', dict),
    *make_arguments(
        BridgeSettings,
        'transforms publish_tf simulator pacing speed_factor frame_rate_hz image_width '
        'image_height',
        {'simulator': list_simulators()},
        frame_rate_hz=2.0,
    ),
    *make_arguments(TrajectoryConfig, 'max_frames'),
    Argument('rviz', 'false', 'Look at the map in RViz; needs the package rviz2', bool),
    Argument('namespace', '', 'Of the nodes and their topics, /tf and /clock too; for no stack'),
    Argument('out', 'runs', 'Folder that gets a folder of results'),
)


def start_run(context: LaunchContext, given: dict[str, Any]) -> list[LaunchDescriptionEntity]:
    """Prepare the run that the arguments describe, and start its nodes."""
    namespace = given.pop('namespace')
    if namespace and (given['mapper'].endswith('.yaml') or given['mapper'] in live_method_names()):
        raise ConfigError(
            f'namespace:={namespace} does not move the nodes of the stack mapper:='
            f'{given["mapper"]}; domain:=auto keeps them apart'
        )
    claim_nodes(context, (BRIDGE, MAPPER, RECORDER, EVALUATOR), namespace)
    # The viewer comes first, so that a missing RViz costs no preparation of a scene.
    viewer = launch_viewer(rviz=True, namespace=namespace) if given.pop('rviz') else []
    out = Path(given.pop('out'))
    logger = get_logger('osmabench')

    def show(text: str, _fraction: float) -> None:
        logger.info(text)

    plan = interrupts.cut_off(lambda: plan_single_run(given, out, show))
    return [*viewer, *launch_run(plan, namespace)]


def generate_launch_description() -> LaunchDescription:
    """Describe the run."""
    return describe_launch(ARGUMENTS, start_run)
