"""Records a bag of a run, or of a robot, until it is interrupted."""

from dataclasses import replace
from pathlib import Path

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
from osmabench_ros.bringup.spec.definition import recorder_node
from osmabench_ros.sequences.bags.recording_report import RecordingSettings

ARGUMENTS = (
    Argument('out', 'bag', 'New folder for the bag'),
    *arguments_of(
        RecordingSettings,
        'topics all_topics exclude compression max_file_bytes max_file_s',
    ),
    Argument('namespace', '', 'Of the topics'),
)


def start_recorder(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Start the recorder that the arguments describe."""
    given = values(context, ARGUMENTS)
    namespace, out = given.pop('namespace'), given.pop('out')
    recorder = recorder_node(Path(out), settings_from(RecordingSettings, given))
    return node_actions([replace(recorder, ends_run=True)], ended, namespace=namespace)


def generate_launch_description() -> LaunchDescription:
    """Describe the recorder."""
    return LaunchDescription([*declarations(ARGUMENTS), OpaqueFunction(function=start_recorder)])
