"""A mapping stack from config/methods/live, subscribed to our topics."""

from pathlib import Path
from typing import Any

from launch.launch_description_entity import LaunchDescriptionEntity

from launch import LaunchContext, LaunchDescription
from osmabench_ros.bringup.definition import prepare_stack, stack_values
from osmabench_ros.bringup.launching.launch_arguments import (
    Argument,
    describe_launch,
)
from osmabench_ros.bringup.launching.launch_run import launch_stack
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.live_method import live_method_names
from osmabench_ros.sequences.ground_truth import read_ground_truth

FORWARD = '0 0 0 -0.5 0.5 -0.5 0.5'
"""A camera at base_link that looks along x."""

ARGUMENTS = (
    Argument(
        'stack', None, f'One of {", ".join(live_method_names())}, or a YAML file like theirs'
    ),
    Argument('variables', '{}', 'Variables of its file, a YAML mapping', dict),
    Argument('work', 'stack', 'Folder for its files'),
    Argument('ground_truth', '', 'Ground truth with the classes of semantic images, if any'),
    Argument('base_to_camera', FORWARD, 'x y z qx qy qz qw: optical frame in base_link', Pose),
    Argument('namespace', '', 'Of our topics'),
)


def start_stack(_context: LaunchContext, given: dict[str, Any]) -> list[LaunchDescriptionEntity]:
    """Start the stack that the arguments name."""
    work = Path(given['work'])
    filled = stack_values(
        work,
        given['base_to_camera'],
        namespace=given['namespace'],
        variables=given['variables'],
    )
    truth = read_ground_truth(Path(given['ground_truth'])) if given['ground_truth'] else None
    method = prepare_stack(given['stack'], work, filled, truth.label_set if truth else None)
    return launch_stack(method)


def generate_launch_description() -> LaunchDescription:
    """Describe the stack."""
    return describe_launch(ARGUMENTS, start_stack)
