"""Look at maps: in colour, with their errors, on topics, and in RViz where it is installed."""

from typing import Any

from launch.launch_description_entity import LaunchDescriptionEntity

from launch import LaunchContext, LaunchDescription
from osmabench_ros.bringup.launching.launch_arguments import (
    Argument,
    describe_launch,
    make_arguments,
)
from osmabench_ros.bringup.launching.launch_nodes import launch_viewer
from osmabench_ros.ros.node.settings import MapViewerSettings

ARGUMENTS = (
    *make_arguments(MapViewerSettings, 'map_directory ground_truth_directory'),
    Argument('rviz', 'true', 'Start RViz; needs the package rviz2', bool),
    Argument('namespace', '', 'Of the topics to look at'),
)


def start_viewer(_context: LaunchContext, given: dict[str, Any]) -> list[LaunchDescriptionEntity]:
    """Start the viewer that the arguments describe; it stays until it is interrupted."""
    return launch_viewer(**given)


def generate_launch_description() -> LaunchDescription:
    """Describe the viewer."""
    return describe_launch(ARGUMENTS, start_viewer)
