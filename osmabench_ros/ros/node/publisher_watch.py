"""Checks that only the declared nodes of a run publish its topics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rclpy.node import Node

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import BAG_PLAYER, BAG_RECORDER, BRIDGE, CONTRACT, MAPPER
from osmabench_ros.errors import ParticipantError
from osmabench_ros.ros.node.participants import DeclaredParticipant, whereabouts
from osmabench_ros.ros.wire.endpoints import full_name

PERIOD_S = 0.25
"""Between two looks at the graph; it is in memory, a look takes a millisecond."""

PARTICIPANT_BYTES = 12
"""Length of the common prefix of all publishers of one DDS participant, i.e. one process."""

STARTING_S = 30.0
"""After which a node that was killed has left the graph."""

UNKNOWN_NAME = '_NODE_NAME_UNKNOWN_'
UNKNOWN_S = 5.0
"""DDS knows a publisher a moment earlier than ROS the name of its node; others have no name."""


def publishers_of_run(
    participants: Sequence[DeclaredParticipant], map_publisher: str
) -> dict[str, set[str]]:
    """Return the names of the nodes that may publish, by topic, where a bridge runs."""
    declared = _declared(map_publisher)
    declared[topics.FRAME_ACK] |= {item.name for item in participants} | {BAG_RECORDER}
    if not any(item.acks for item in participants):
        del declared[topics.FRAME_ACK]
    return declared


def publishers_beside_stack(map_publisher: str) -> dict[str, set[str]]:
    """As `publishers_of_run`, but for frames of a robot or a bag, and only for our topics."""
    return {
        topic: names | {BAG_PLAYER}
        for topic, names in _declared(map_publisher).items()
        if BRIDGE not in names and topic != topics.FRAME_ACK
    }


def _declared(map_publisher: str) -> dict[str, set[str]]:
    names = {item.name: item.publisher for item in CONTRACT}
    return {
        topic: {map_publisher if name == MAPPER else name}
        for topic, name in names.items()
        if map_publisher or name != MAPPER
    }


@dataclass(frozen=True)
class _Publisher:
    """A publisher as the graph knows it."""

    node: str
    identity: str

    @property
    def nameless(self) -> bool:
        return UNKNOWN_NAME in self.node

    @property
    def process(self) -> str:
        return self.identity[: 2 * PARTICIPANT_BYTES]

    def __str__(self) -> str:
        name = 'a program that is no ROS node' if self.nameless else self.node
        return f'{name} (DDS {self.identity})'


class PublisherWatch:
    """Checks the publishers of a run's topics; undeclared topics may have any publisher.

    A node is declared by its name, in the namespace of the watching node, or, if there is no such
    node, in one other. Any process can take a name, so a declared name in two processes is noticed
    too. Nothing here keeps a message from arriving: see run_token.py.
    """

    def __init__(
        self,
        node: Node,
        declared: Mapping[str, set[str]],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node, self._now_s = node, now_s
        # Several stacks, each in its namespace, share the topics that are in none.
        alone = node.get_namespace() == '/'
        self._declared = {
            str(node.resolve_topic_name(topic)): names
            for topic, names in declared.items()
            if alone or not topic.startswith('/')
        }
        self._nameless_since_s: dict[str, float] = {}

    def check(self, *, starting: bool) -> list[str]:
        """Check once, and return conflicts that may still resolve.

        Raises ParticipantError, which names the topic and all its publishers, if one is undeclared
        or its name is in two processes. While the run is `starting`, without a frame, the latter
        may clear up: a node that was killed stays in the graph for some seconds.
        """
        pending = []
        for topic, names in self._declared.items():
            found = self.publishers(topic)
            if undeclared := [item for item in found if self._is_undeclared(item, names)]:
                which = ', '.join(map(str, undeclared))
                why = f'published by {which}, which this run does not declare'
                raise ParticipantError(_refusal(topic, why, found))
            if doubles := _doubles(found):
                text = _refusal(topic, f'several nodes called {doubles[0].node} publish it', found)
                if not starting:
                    raise ParticipantError(text)
                pending.append(text)
        return pending

    def publishers(self, topic: str) -> list[_Publisher]:
        """Return all publishers of a topic, sorted."""
        found = self._node.get_publishers_info_by_topic(topic)
        publishers = [
            _Publisher(full_name(info), bytes(info.endpoint_gid[:16]).hex()) for info in found
        ]
        return sorted(publishers, key=lambda item: (item.node, item.identity))

    def _is_undeclared(self, publisher: _Publisher, names: set[str]) -> bool:
        if publisher.node == self._node.get_fully_qualified_name():
            return False
        if publisher.nameless:
            since_s = self._nameless_since_s.setdefault(publisher.identity, self._now_s())
            return self._now_s() - since_s > UNKNOWN_S
        self._nameless_since_s.pop(publisher.identity, None)
        own = self._node.get_namespace().rstrip('/')
        if publisher.node in {f'{own}/{name}' for name in names}:
            return False
        name = publisher.node.rsplit('/', 1)[-1]
        return name not in names or publisher.node not in whereabouts(self._node, name)


def _doubles(found: list[_Publisher]) -> list[_Publisher]:
    """Return publishers of nodes with the same name in several processes."""
    processes: dict[str, set[str]] = {}
    for item in found:
        if not item.nameless:
            processes.setdefault(item.node, set()).add(item.process)
    return [item for item in found if len(processes.get(item.node, ())) > 1]


def _refusal(topic: str, why: str, found: list[_Publisher]) -> str:
    return (
        f'topic "{topic}": {why}. Its publishers are {", ".join(map(str, found))}. End what does '
        'not belong to the run, or give it another topic, namespace or ROS_DOMAIN_ID'
    )
