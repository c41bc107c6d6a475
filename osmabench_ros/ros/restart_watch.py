"""Notices that a participant was started anew before its final map was there."""

from __future__ import annotations

from collections.abc import Iterable

from rclpy.node import Node

from osmabench_ros.errors import ParticipantError
from osmabench_ros.ros.endpoints import full_name
from osmabench_ros.ros.participants import whereabouts

OF_EVERY_NODE = '/parameter_events'
"""A topic that each node publishes from its first moment to its last, whatever else it does."""

Identities = frozenset[tuple[int, ...]]
"""What DDS knows the publishers of a node by; never the same after a restart."""


class RestartWatch:
    """Remembers the participants as they are now.

    One that comes back has forgotten the frames that it had acknowledged. Its map would be scored
    as one of all of them, so a restart ends the run.
    """

    def __init__(self, node: Node, names: Iterable[str]) -> None:
        self._node = node
        self._names = {full: name for name in names for full in whereabouts(node, name)}
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
            name = self._names.get(full_name(info))
            if name is not None:
                found.setdefault(name, set()).add(tuple(info.endpoint_gid))
        return {name: frozenset(identities) for name, identities in found.items()}
