"""Arguments of the launch files: declared with description and choices, read with their type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.substitutions import EnvironmentVariable, LaunchConfiguration

from launch import LaunchContext
from osmabench_ros.base.limits.documents import parse_mapping
from osmabench_ros.bringup.argument_names import check_argument_names
from osmabench_ros.bringup.isolation import LOCALHOST, RANGE_VARIABLE, launch_environment
from osmabench_ros.bringup.launch_domain import domain_actions
from osmabench_ros.bringup.launch_interrupts import interrupts
from osmabench_ros.bringup.launch_orphans import Orphanage
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.transform_edges import TfMode

RANGES = (LOCALHOST, 'SUBNET', 'OFF', 'SYSTEM_DEFAULT')
"""What ROS knows as ROS_AUTOMATIC_DISCOVERY_RANGE."""

BOOLEANS = {'true': True, 'false': False}


@dataclass(frozen=True)
class Argument:
    """An argument of a launch file, as `ros2 launch --show-args` prints it.

    Without a default (None) it is required. `kind` is str, int, float, bool, Pose (x y z qx qy qz
    qw), list for texts separated by commas, or dict for a YAML mapping; no choices allow anything.
    """

    name: str
    default: str | None
    description: str
    kind: type = str
    choices: Sequence[str] = ()

    def declaration(self) -> DeclareLaunchArgument:
        """Return the action that declares it."""
        choices = list(self.choices or (BOOLEANS if self.kind is bool else ())) or None
        return DeclareLaunchArgument(
            self.name, default_value=self.default, description=self.description, choices=choices
        )

    def value(self, context: LaunchContext) -> Any:
        """Return what it was set to; a ConfigError names the argument if that is not its kind."""
        text = LaunchConfiguration(self.name).perform(context)
        if self.kind is bool:
            return BOOLEANS[text]
        if self.kind is list:
            return [item for item in map(str.strip, text.split(',')) if item]
        if self.kind is dict:
            return parse_mapping(text, f'launch argument {self.name}', ConfigError)
        try:
            return (_pose if self.kind is Pose else self.kind)(text)
        except ValueError as error:
            raise ConfigError(
                f'launch argument {self.name}:={text} is no {self.kind.__name__}: {error}'
            ) from error


TF_MODES = tuple(item.value for item in TfMode)
OF_STACK = 'Edges that the stack publishes on TF itself, as map->odom,odom->base_link'
TRANSFORMS = Argument('transforms', '', OF_STACK, list)
PUBLISH_TF = Argument(
    'publish_tf', 'auto', 'Edge from the world on TF; auto: as transforms leave it', str, TF_MODES
)


def _pose(text: str) -> Pose:
    numbers = [float(word) for word in text.split()]
    if len(numbers) != POSE_NUMBERS:
        raise ValueError(f'it must be x y z qx qy qz qw, {POSE_NUMBERS} numbers')
    return Pose.from_quaternion(numbers[3:], numbers[:3])


POSE_NUMBERS = 7


def declarations(arguments: Sequence[Argument]) -> list[LaunchDescriptionEntity]:
    """Return the actions that declare arguments, and those that all launch files have.

    Nothing listens beyond this machine unless the user says so, by that argument or by the
    environment.
    """
    discovery = DeclareLaunchArgument(
        'discovery_range',
        default_value=EnvironmentVariable(RANGE_VARIABLE, default_value=LOCALHOST),
        description='Who may be heard: LOCALHOST for this machine alone, SUBNET for a robot too',
        choices=RANGES,
    )
    setting = SetEnvironmentVariable(RANGE_VARIABLE, LaunchConfiguration('discovery_range'))
    transports = OpaqueFunction(function=_set_transports)
    domain, enter_domain = domain_actions()
    declared = [discovery, domain, *(item.declaration() for item in arguments)]

    def check(context: LaunchContext) -> None:
        file = context.get_locals_as_dict().get('current_launch_file_path', '')
        check_argument_names(context.argv, [item.name for item in declared], file)

    checked = OpaqueFunction(function=check)
    installed = OpaqueFunction(function=lambda _context: interrupts.install())
    first = [installed, checked, *declared]
    return [*first, setting, transports, enter_domain, *Orphanage().actions()]


def _set_transports(context: LaunchContext) -> None:
    # For the node of launch itself, and for the nodes of foreign stacks.
    context.environment.update(launch_environment())


def values(context: LaunchContext, arguments: Sequence[Argument]) -> dict[str, Any]:
    """Return the values of arguments by name; raises as `Argument.value`."""
    return {item.name: item.value(context) for item in arguments}
