"""The simulator alone, so that any stack can subscribe: a scene under a condition, on topics."""

from launch.actions import OpaqueFunction
from launch.launch_description_entity import LaunchDescriptionEntity

from launch import LaunchContext, LaunchDescription
from osmabench_ros.bringup.launching.launch_arguments import (
    Argument,
    arguments_of,
    declarations,
    settings_from,
    values,
)
from osmabench_ros.bringup.launching.launch_nodes import ended, node_actions
from osmabench_ros.bringup.launching.launch_viewer import viewer_actions
from osmabench_ros.bringup.spec.definition import bridge_alone
from osmabench_ros.ros.node.settings import BridgeSettings
from osmabench_ros.simulation.conditions import list_conditions
from osmabench_ros.simulation.simulator import simulator_names

ARGUMENTS = (
    *arguments_of(
        BridgeSettings,
        'scene scene_name sequence sequence_topics seed path_file strategy goals '
        'simulator pacing participants speed_factor frame_rate_hz image_width image_height '
        'transforms publish_tf map_origin start_paused',
        {'simulator': simulator_names()},
        seed=5,
        pacing='realtime',
    ),
    Argument('condition', 'baseline', 'Light and motion', choices=list_conditions()),
    Argument('rviz', 'false', 'Look at the frames in RViz; needs the package rviz2', bool),
    Argument('namespace', '', 'Of the node and its topics'),
)


def start_bridge(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Start the bridge that the arguments describe; it stays until it is interrupted."""
    given = values(context, ARGUMENTS)
    namespace = given.pop('namespace')
    viewer = viewer_actions(rviz=True, namespace=namespace) if given.pop('rviz') else []
    bridge = bridge_alone(settings_from(BridgeSettings, given))
    return [*viewer, *node_actions([bridge], ended, namespace=namespace)]


def generate_launch_description() -> LaunchDescription:
    """Describe the bridge."""
    return LaunchDescription([*declarations(ARGUMENTS), OpaqueFunction(function=start_bridge)])
