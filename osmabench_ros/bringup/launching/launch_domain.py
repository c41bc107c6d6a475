"""The ROS domain of a launch, and unique node names in it."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.logging import get_logger
from launch.substitutions import EnvironmentVariable, LaunchConfiguration

from launch import LaunchContext
from osmabench_ros.bringup.launching.launch_interrupts import interrupts
from osmabench_ros.bringup.spec.isolation import lock, lock_folder, private_domain
from osmabench_ros.errors import ConfigError, RunError

LOOK_S = 1.0
"""How long to look for nodes that have no lock: of other users, machines and containers."""
LOOK_PERIOD_S = 0.1


def full_name(namespace: str, name: str) -> str:
    """Return the name of a node with its namespace."""
    return '/' + '/'.join([*filter(None, namespace.split('/')), name])


class NodeClaims:
    """Nodes that this process alone may start as long as it lives; the graph comes late."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, str], int] = {}

    def claim(self, domain: int, names: Sequence[str]) -> list[str]:
        """Claim nodes by full name; return those that other processes have claimed already."""
        new = [name for name in names if (domain, name) not in self._held]
        others = []
        for name in new:
            file = f'{domain}{name.replace("/", ".")}.{os.getuid()}'
            handle = lock(lock_folder() / file)
            if handle is None:
                others.append(name)
            else:
                self._held[domain, name] = handle
        return others or (_on_graph(domain, new) if new else [])


def _on_graph(domain: int, names: Sequence[str]) -> list[str]:
    """Return which of the given nodes are in a domain."""
    import rclpy

    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain, args=[])
    try:
        node = rclpy.create_node(f'osmabench_look_{os.getpid()}', context=context)
        deadline = time.monotonic() + LOOK_S
        found: set[str] = set()
        while not found and time.monotonic() < deadline:
            time.sleep(LOOK_PERIOD_S)
            present = node.get_node_names_and_namespaces()
            found = {full_name(space, name) for name, space in present} & set(names)
        node.destroy_node()
    finally:
        context.try_shutdown()
    return sorted(found)


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
    others = interrupts.cut_off(lambda: _claims.claim(domain, wanted))
    if others:
        space = ', namespace:=NAME' if 'namespace' in context.launch_configurations else ''
        raise RunError(
            f'ROS domain {domain} has {", ".join(others)} of another launch already. End that '
            f'one, or keep apart by {DOMAIN}:={AUTO}{space} or another {VARIABLE}. '
            '(A node that was killed is seen for some 20 s more.)'
        )
