"""The ROS domain of a launch, and unique node names in it."""

from __future__ import annotations

import atexit
from collections.abc import Iterable
from contextlib import ExitStack

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.logging import get_logger
from launch.substitutions import EnvironmentVariable, LaunchConfiguration

from launch import LaunchContext
from osmabench_ros.bringup.spec.isolation import NodeClaims, full_name, private_domain
from osmabench_ros.errors import ConfigError, RunError

DOMAIN = 'domain'
AUTO = 'auto'
VARIABLE = 'ROS_DOMAIN_ID'
LAST = 232
"""The highest domain that has ports of its own."""

_claims = NodeClaims()
_held = ExitStack()


def domain_actions() -> list[LaunchDescriptionEntity]:
    """Return the argument `domain`, and the actions that apply it to the whole launch."""
    declaration = DeclareLaunchArgument(
        DOMAIN,
        default_value=EnvironmentVariable(VARIABLE, default_value='0'),
        description=f'ROS domain, as {VARIABLE}; {AUTO} for one that nothing else here uses',
    )
    return [declaration, OpaqueFunction(function=_enter_domain)]


def _enter_domain(context: LaunchContext) -> None:
    text = LaunchConfiguration(DOMAIN).perform(context) or '0'
    if text == AUTO:
        atexit.register(_held.close)
        text = str(_held.enter_context(private_domain()))
        get_logger('osmabench').info(f'{VARIABLE}={text} is the domain of this launch')
    elif not (text.isdecimal() and int(text) <= LAST):
        raise ConfigError(
            f'launch argument {DOMAIN}:={text} must be a number from 0 to {LAST}, or {AUTO}'
        )
    context.environment[VARIABLE] = text


def claim_nodes(context: LaunchContext, names: Iterable[str], namespace: str = '') -> None:
    """Make sure that this launch alone has nodes of some names in its domain; or RunError."""
    domain = int(context.environment.get(VARIABLE) or 0)
    wanted = [full_name(namespace, name) for name in names]
    others = _claims.claim(domain, wanted)
    if others:
        space = ', namespace:=NAME' if 'namespace' in context.launch_configurations else ''
        raise RunError(
            f'ROS domain {domain} has {", ".join(others)} of another launch already. End that '
            f'one, or keep apart by {DOMAIN}:={AUTO}{space} or another {VARIABLE}. '
            '(A node that was killed is seen for some 20 s more.)'
        )
