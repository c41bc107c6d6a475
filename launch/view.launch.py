"""Look at maps: in colour, with their errors, on topics, and in RViz where it is installed."""

from launch.actions import OpaqueFunction
from launch.launch_description_entity import LaunchDescriptionEntity

from launch import LaunchContext, LaunchDescription
from osmabench_ros.bringup.launching.launch_arguments import (
    Argument,
    arguments_of,
    declarations,
    values,
)
from osmabench_ros.bringup.launching.launch_viewer import viewer_actions
from osmabench_ros.ros.node.settings import MapViewerSettings

ARGUMENTS = (
    *arguments_of(MapViewerSettings, 'map_directory ground_truth_directory'),
    Argument('rviz', 'true', 'Start RViz; needs the package rviz2', bool),
    Argument('namespace', '', 'Of the topics to look at'),
)


def start_viewer(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Start the viewer that the arguments describe; it stays until it is interrupted."""
    return viewer_actions(**values(context, ARGUMENTS))


def generate_launch_description() -> LaunchDescription:
    """Describe the viewer."""
    return LaunchDescription([*declarations(ARGUMENTS), OpaqueFunction(function=start_viewer)])
