"""The simulator for any stack that subscribes: a scene under a condition, on topics."""

from typing import Any

from launch.launch_description_entity import LaunchDescriptionEntity

from launch import LaunchContext, LaunchDescription
from osmabench_ros.base.contract import BRIDGE
from osmabench_ros.bringup.definition import NodeSpec
from osmabench_ros.bringup.launching.launch_arguments import (
    Argument,
    describe_launch,
    make_arguments,
    make_settings,
)
from osmabench_ros.bringup.launching.launch_nodes import end_launch, launch_nodes, launch_viewer
from osmabench_ros.ros.node.settings import BridgeSettings
from osmabench_ros.simulation.conditions import list_conditions
from osmabench_ros.simulation.simulator import list_simulators

ARGUMENTS = (
    *make_arguments(
        BridgeSettings,
        'scene scene_name sequence sequence_topics seed path_file goals '
        'simulator pacing participants speed_factor frame_rate_hz image_width image_height '
        'transforms publish_tf map_origin start_paused',
        {'simulator': list_simulators()},
        seed=5,
        pacing='realtime',
    ),
    Argument('condition', 'baseline', 'Light and motion', choices=list_conditions()),
    Argument('rviz', 'false', 'Look at the frames in RViz; needs the package rviz2', bool),
    Argument('namespace', '', 'Of the node and its topics'),
)


def start_bridge(_context: LaunchContext, given: dict[str, Any]) -> list[LaunchDescriptionEntity]:
    """Start the bridge that the arguments describe; it stays until it is interrupted."""
    namespace = given.pop('namespace')
    viewer = launch_viewer(rviz=True, namespace=namespace) if given.pop('rviz') else []
    settings = make_settings(BridgeSettings, given).model_copy(update={'run_id': BRIDGE})
    bridge = NodeSpec(BRIDGE, 'simulator_bridge_node', settings, ends_run=True)
    return [*viewer, *launch_nodes([bridge], end_launch, namespace=namespace)]


def generate_launch_description() -> LaunchDescription:
    """Describe the bridge."""
    return describe_launch(ARGUMENTS, start_bridge)
