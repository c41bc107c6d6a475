"""Nodes of a ROS domain that belong to others: claimed or on the graph; needs no launch."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from osmabench_ros.bringup.spec.isolation import lock, lock_folder

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
