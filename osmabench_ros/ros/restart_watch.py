"""Notices that a participant was started anew before its final map was there."""

from __future__ import annotations

from collections.abc import Iterable

from rclpy.node import Node

from osmabench_ros.errors import ParticipantError

OF_EVERY_NODE = '/parameter_events'
"""A topic that each node publishes from its first moment to its last, whatever else it does."""

Identities = frozenset[tuple[int, ...]]
"""What DDS knows the publishers of a node by; never the same after a restart."""


class RestartWatch:
    """Remembers the participants as they are now.

    One that comes back has forgotten the frames that it had acknowledged. Its map would be scored
    as one of all of them, so a restart ends the run.

    Parameters
    ----------
    node : Node
        Looks at the graph.
    names : iterable of str
        Nodes that are there.
    """

    def __init__(self, node: Node, names: Iterable[str]) -> None:
        self._node = node
        self._names = frozenset(names)
        self._known = self._look()

    def check(self, frames_published: int) -> None:
        """Raise ParticipantError if a participant is another one than at the start."""
        for name, found in self._look().items():
            if not found <= self._known.setdefault(name, found):
                raise ParticipantError(
                    f'node "{name}" was started anew after {frames_published} frames: it has '
                    'forgotten them, and its map would lack them. Find out why it ended, and '
                    'repeat the run'
                )

    def _look(self) -> dict[str, Identities]:
        found: dict[str, set[tuple[int, ...]]] = {}
        for info in self._node.get_publishers_info_by_topic(OF_EVERY_NODE):
            if info.node_name in self._names:
                found.setdefault(info.node_name, set()).add(tuple(info.endpoint_gid))
        return {name: frozenset(identities) for name, identities in found.items()}
