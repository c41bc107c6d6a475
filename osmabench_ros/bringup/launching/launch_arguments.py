"""Arguments of the launch files, and the actions that all of them begin with."""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import psutil
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.logging import get_logger
from launch.substitutions import EnvironmentVariable, LaunchConfiguration
from pydantic import BaseModel

from launch import LaunchContext, LaunchDescription
from osmabench_ros.base.documents import parse_mapping
from osmabench_ros.base.processes import end_processes
from osmabench_ros.base.settings import Model, settings_of, with_settings
from osmabench_ros.bringup import isolation
from osmabench_ros.bringup.launching.launch_interrupts import interrupts
from osmabench_ros.bringup.launching.single_run import check_argument_names
from osmabench_ros.errors import ConfigError, errors_as
from osmabench_ros.geometry.pose import Pose

GRACE_S = 5.0
# The name under which launch looks for a command to start all processes with.
LAUNCH_PREFIX = 'launch-prefix'
INTERRUPT_AT_PARENTS_DEATH = 'setpriv --pdeathsig INT'


def guard_processes(context: LaunchContext) -> None:
    """End all processes of a launch with it.

    If an action raises, e.g. because an executable is not found, launch shuts down but still
    starts the processes that were next in line, and never ends them. At SIGTERM and SIGKILL it
    ends no process at all.
    """
    atexit.register(lambda: end_processes(psutil.Process().children(recursive=True), GRACE_S))
    if shutil.which('setpriv'):
        context.launch_configurations.setdefault(LAUNCH_PREFIX, INTERRUPT_AT_PARENTS_DEATH)


DOMAIN_VARIABLE, AUTO_DOMAIN = 'ROS_DOMAIN_ID', 'auto'
# The highest domain with ports only for itself.
LAST_DOMAIN = 232

_held = ExitStack()


def _enter_domain(context: LaunchContext) -> None:
    text = LaunchConfiguration('domain').perform(context) or '0'
    if text == AUTO_DOMAIN:
        atexit.register(_held.close)
        text = str(_held.enter_context(isolation.private_domain()))
        get_logger('osmabench').info(f'{DOMAIN_VARIABLE}={text} is the domain of this launch')
    elif not (text.isdecimal() and int(text) <= LAST_DOMAIN):
        allowed = f'a number from 0 to {LAST_DOMAIN}, or {AUTO_DOMAIN}'
        raise ConfigError(f'launch argument domain:={text} must be {allowed}')
    context.environment[DOMAIN_VARIABLE] = text


# What ROS knows as ROS_AUTOMATIC_DISCOVERY_RANGE.
RANGES = (isolation.LOCALHOST, 'SUBNET', 'OFF', 'SYSTEM_DEFAULT')

BOOLEANS = {'true': True, 'false': False}


@dataclass(frozen=True)
class Argument:
    """An argument of a launch file, as --show-args prints it; required without a default."""

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
        """Return its value; numbers stay texts, which the models of settings read and check."""
        text = LaunchConfiguration(self.name).perform(context)
        if self.kind is bool:
            return BOOLEANS[text]
        if self.kind is list:
            return [item for item in map(str.strip, text.split(',')) if item]
        if self.kind is dict:
            return parse_mapping(text, f'launch argument {self.name}', ConfigError)
        if self.kind is Pose:
            with errors_as(ConfigError, f'launch argument {self.name}:={text}', ValueError):
                return _pose(text)
        return text


def make_arguments(
    model: type[BaseModel],
    names: str,
    choices: Mapping[str, Sequence[str]] | None = None,
    **defaults: object,
) -> tuple[Argument, ...]:
    """Return the arguments for settings of a model, given by names separated by blanks."""
    known = {item.name: item for item in settings_of(model)}
    made = model()
    found = []
    for name in names.split():
        item = known[name]
        default: Any = defaults.get(name, item.of(made))
        text, how = str(default), ''
        if item.kind is list:
            text, how = ','.join(default), '; separated by commas'
        elif item.kind is bool:
            text = text.lower()
        # YAML stays a text: some settings take a file instead.
        kind = str if item.kind is dict else item.kind
        allowed = (choices or {}).get(name, item.choices)
        found.append(Argument(name, text, item.description.rstrip('.') + how, kind, allowed))
    return tuple(found)


def make_settings(model: type[Model], given: Mapping[str, Any]) -> Model:
    """Return a model with the values of launch arguments; a ConfigError names a wrong one."""
    return with_settings(model(), given, 'launch argument ')


def _pose(text: str) -> Pose:
    numbers = [float(item) for item in text.split()]
    if len(numbers) != 7:
        raise ValueError('it must be x y z qx qy qz qw, 7 numbers')
    return Pose.from_quaternion(numbers[3:], numbers[:3])


# Takes the values of arguments by name, and returns the actions that start processes.
Start = Callable[[LaunchContext, dict[str, Any]], list[LaunchDescriptionEntity]]


def describe_launch(arguments: Sequence[Argument], start: Start) -> LaunchDescription:
    """Return a launch file's description: its arguments, those that all have, and its start."""
    name = isolation.RANGE_VARIABLE
    discovery = DeclareLaunchArgument(
        'discovery_range',
        default_value=EnvironmentVariable(name, default_value=isolation.LOCALHOST),
        description='Nodes to discover: LOCALHOST on this machine, SUBNET on a robot too',
        choices=RANGES,
    )
    setting = SetEnvironmentVariable(name, LaunchConfiguration('discovery_range'))
    domain = DeclareLaunchArgument(
        'domain',
        default_value=EnvironmentVariable(DOMAIN_VARIABLE, default_value='0'),
        description=f'ROS domain, as {DOMAIN_VARIABLE}; {AUTO_DOMAIN} for an unused one',
    )
    declared = [discovery, domain, *(item.declaration() for item in arguments)]

    def begin(context: LaunchContext) -> None:
        interrupts.install()
        file = context.get_locals_as_dict().get('current_launch_file_path', '')
        check_argument_names(context.argv, [item.name for item in declared], file)

    def start_with_values(context: LaunchContext) -> list[LaunchDescriptionEntity]:
        # For the node of launch itself, and for all processes, also of stacks.
        context.environment.update(isolation.launch_environment())
        _enter_domain(context)
        guard_processes(context)
        return start(context, {item.name: item.value(context) for item in arguments})

    return LaunchDescription(
        [
            OpaqueFunction(function=begin),
            *declared,
            setting,
            OpaqueFunction(function=start_with_values),
        ]
    )
