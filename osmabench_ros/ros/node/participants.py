"""The declared participants of a run, and whether its topics have one publisher each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rclpy.node import Node

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import CONTRACT
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError, ParticipantError
from osmabench_ros.ros.wire.qos import (
    full_name,
    latched_profile,
    lossless_profile,
    require_compatible,
)

ACKS_SUFFIX = ':acks'


class DeclaredParticipant(Strict):
    """A node that takes part in a run; `acks` says whether it acknowledges frames."""

    name: str
    acks: bool

    def __str__(self) -> str:
        return self.name + self.acks * ACKS_SUFFIX

    @classmethod
    def parse(cls, text: str) -> DeclaredParticipant:
        """Read 'name' or 'name:acks'; ConfigError if it is neither."""
        name = text.removesuffix(ACKS_SUFFIX)
        if not name or ':' in name:
            raise ConfigError(
                f'participant "{text}" is malformed; write NAME or NAME{ACKS_SUFFIX}'
            )
        return cls(name=name, acks=name != text)


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

WITH_ONE_PUBLISHER = tuple(item.name for item in CONTRACT if item.name != topics.FRAME_ACK)


def check_publishers(node: Node, names: Iterable[str] = WITH_ONE_PUBLISHER) -> None:
    """Raise ParticipantError, which names the nodes, if several publish one of these topics."""
    # Several stacks, each in its namespace, share the topics that are in none.
    alone = node.get_namespace() == '/'
    for topic in (_resolved(node, name) for name in names if alone or not name.startswith('/')):
        # One node may have several publishers, and two nodes in two processes the same name.
        publishers = {
            (full_name(info), bytes(info.endpoint_gid[:PARTICIPANT_BYTES]))
            for info in node.get_publishers_info_by_topic(topic)
        }
        if len(publishers) > 1:
            listed = ' and '.join(sorted(name for name, _ in publishers))
            raise ParticipantError(
                f'topic "{topic}" has {len(publishers)} publishers: {listed}. End all but one, or '
                'give the others another topic, namespace or ROS_DOMAIN_ID'
            )
