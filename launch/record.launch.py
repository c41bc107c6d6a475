"""Records a bag of a run, or of a robot, until it is interrupted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from launch.launch_description_entity import LaunchDescriptionEntity

from launch import LaunchContext, LaunchDescription
from osmabench_ros.bringup.definition import recorder_node
from osmabench_ros.bringup.launching.launch_arguments import (
    Argument,
    describe_launch,
    make_arguments,
    make_settings,
)
from osmabench_ros.bringup.launching.launch_nodes import end_launch, launch_nodes
from osmabench_ros.sequences.bags.recording_report import RecordingSettings

ARGUMENTS = (
    Argument('out', 'bag', 'New folder for the bag'),
    *make_arguments(
        RecordingSettings,
        'topics all_topics exclude compression max_file_bytes max_file_s',
    ),
    Argument('namespace', '', 'Of the topics'),
)


def start_recorder(
    _context: LaunchContext, given: dict[str, Any]
) -> list[LaunchDescriptionEntity]:
    """Start the recorder that the arguments describe."""
    namespace, out = given.pop('namespace'), given.pop('out')
    recorder = recorder_node(Path(out), make_settings(RecordingSettings, given))
    return launch_nodes([replace(recorder, ends_run=True)], end_launch, namespace=namespace)


def generate_launch_description() -> LaunchDescription:
    """Describe the recorder."""
    return describe_launch(ARGUMENTS, start_recorder)
