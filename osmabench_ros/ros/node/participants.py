"""The declared participants of a run: whether they run, and that no one else publishes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rclpy.node import Node

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import BAG_PLAYER, BAG_RECORDER, BRIDGE, CONTRACT, MAPPER
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError, ParticipantError
from osmabench_ros.ros.wire.qos import (
    full_name,
    latched_profile,
    lossless_profile,
    require_compatible,
)

ACKS_SUFFIX, UNSIGNED_SUFFIX = ':acks', ':unsigned'


class DeclaredParticipant(Strict):
    """A node that takes part in a run; `signs` says whether it knows the token of the run."""

    name: str
    acks: bool
    signs: bool = True

    def __str__(self) -> str:
        acks, unsigned = self.acks * ACKS_SUFFIX, (not self.signs) * UNSIGNED_SUFFIX
        return self.name + acks + unsigned

    @classmethod
    def parse(cls, text: str) -> DeclaredParticipant:
        """Read 'name' or 'name:acks', either with ':unsigned' behind it."""
        signing = text.removesuffix(UNSIGNED_SUFFIX)
        name = signing.removesuffix(ACKS_SUFFIX)
        if not name or ':' in name:
            raise ConfigError(
                f'participant "{text}" is malformed; write NAME or NAME{ACKS_SUFFIX}'
            )
        acks, signs = signing.endswith(ACKS_SUFFIX), signing == text
        return cls(name=name, acks=acks, signs=signs)


def whereabouts(node: Node, name: str) -> list[str]:
    """Return the full names of the nodes that may be a participant, in our namespace first."""
    found = {
        f'{namespace.rstrip("/")}/{found}'
        for found, namespace in node.get_node_names_and_namespaces()
        if found == name
    }
    own = f'{node.get_namespace().rstrip("/")}/{name}'
    return [own] if own in found else sorted(found)


def missing_participants(node: Node, participants: Sequence[DeclaredParticipant]) -> list[str]:
    """Return descriptions of what must still connect before frame 0 is published.

    A participant is there when its node is, in the bridge's namespace or else in one other, when
    it subscribes to a frame topic if it acknowledges frames, and when its acknowledgements find
    their way here; any other node, an RViz say, is never waited for. Raises ContractError if a
    participant subscribes or publishes with QoS that cannot match.
    """
    missing = []
    for participant in participants:
        found = whereabouts(node, participant.name)
        if len(found) != 1:
            missing.append(_ambiguous(node, found) or f'node "{participant.name}" is not running')
            continue
        _check_other_topics(node, found[0])
        if participant.acks:
            missing += _missing_endpoints(node, found[0])
    return missing


def _ambiguous(node: Node, found: Sequence[str]) -> str:
    if not found:
        return ''
    return (
        f'{" and ".join(found)} have one name, and neither is in the namespace of '
        f'{node.get_fully_qualified_name()}: put both into one, or rename one'
    )


def _shown(name: str) -> str:
    """Return a full name as people write it: plain where there is no namespace."""
    return name[1:] if name.count('/') == 1 else name


def _check_other_topics(node: Node, name: str) -> None:
    """Check the QoS of a participant's other topics with bridge and recorder."""
    for topic in (topics.RUN_INFO, topics.RUN_STATE, topics.LABEL_INFO):
        for info in node.get_subscriptions_info_by_topic(_resolved(node, topic)):
            if full_name(info) == name:
                require_compatible(
                    topic, (node.get_name(), latched_profile()), (_shown(name), info.qos_profile)
                )
    for topic, profile in (
        (topics.SEMANTIC_MAP, latched_profile()),
        (topics.SEMANTIC_MAP_CHUNK, lossless_profile()),
    ):
        for info in node.get_publishers_info_by_topic(_resolved(node, topic)):
            if full_name(info) == name:
                require_compatible(
                    topic, (_shown(name), info.qos_profile), ('the recorder', profile)
                )


def _missing_endpoints(node: Node, name: str) -> list[str]:
    missing = []
    if not _subscribes_to_frames(node, name):
        missing.append(f'"{_shown(name)}" subscribes to no frame topic')
    ack_publishers = node.get_publishers_info_by_topic(_resolved(node, topics.FRAME_ACK))
    own = [info for info in ack_publishers if full_name(info) == name]
    for info in own:
        require_compatible(
            topics.FRAME_ACK,
            (_shown(name), info.qos_profile),
            (node.get_name(), lossless_profile()),
        )
    if not own:
        missing.append(
            f'"{_shown(name)}" does not publish {topics.FRAME_ACK}; if it acknowledges no frames, '
            f'declare that: acks: false in a configuration, else {name.split("/")[-1]} without '
            f'"{ACKS_SUFFIX}"'
        )
    return missing


def _subscribes_to_frames(node: Node, name: str) -> bool:
    found = False
    for topic in topics.FRAME_TOPICS:
        resolved = _resolved(node, topic)
        ours = [
            info.qos_profile
            for info in node.get_publishers_info_by_topic(resolved)
            if full_name(info) == node.get_fully_qualified_name()
        ]
        for info in node.get_subscriptions_info_by_topic(resolved):
            if full_name(info) == name and ours:
                require_compatible(
                    topic, (node.get_name(), ours[0]), (_shown(name), info.qos_profile)
                )
                found = True
    return found


def _resolved(node: Node, topic: str) -> str:
    return str(node.resolve_topic_name(topic))


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
