"""The declared participants of a run, and whether its topics have one publisher each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rclpy.node import Node

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import CONTRACT
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError, ParticipantError
from osmabench_ros.ros import qos

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
            remedy = f'write NAME or NAME{ACKS_SUFFIX}'
            raise ConfigError(f'participant "{text}" is malformed; {remedy}')
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
        if len(found) == 1:
            missing += _missing_endpoints(node, found[0], acks=participant.acks)
        elif found:
            place = f'neither is in the namespace of {node.get_fully_qualified_name()}'
            missing.append(f'{" and ".join(found)} have one name, and {place}; rename one')
        else:
            missing.append(f'node "{participant.name}" is not running')
    return missing


_FROM_BRIDGE = {
    **dict.fromkeys((topics.RUN_INFO, topics.RUN_STATE, topics.LABEL_INFO), qos.latched_profile()),
    **dict.fromkeys(topics.FRAME_TOPICS, qos.frame_profile(lockstep=True)),
}
_FROM_PARTICIPANTS = {
    topics.SEMANTIC_MAP: qos.latched_profile(),
    topics.SEMANTIC_MAP_CHUNK: qos.lossless_profile(),
    topics.FRAME_ACK: qos.lossless_profile(),
}


def _missing_endpoints(node: Node, name: str, *, acks: bool) -> list[str]:
    """Check the QoS of a participant's topics; return the endpoints that it lacks."""
    # Plain where there is no namespace, as people write it.
    shown = name[1:] if name.count('/') == 1 else name
    published = {item.topic_name for item in node.publishers}
    connected = set()
    for topic, profile in _FROM_BRIDGE.items():
        graph = qos.topic_graph(node, topic)
        for end in graph.subscribers if graph.name in published else ():
            if end.node == name:
                qos.require_compatible(topic, (node.get_name(), profile), (shown, end.profile))
                connected.add(topic)
    for topic, profile in _FROM_PARTICIPANTS.items():
        for end in qos.topic_graph(node, topic).publishers:
            if end.node == name:
                qos.require_compatible(topic, (shown, end.profile), ('the other side', profile))
                connected.add(topic)
    missing = []
    if acks and not connected & set(topics.FRAME_TOPICS):
        missing.append(f'"{shown}" subscribes to no frame topic')
    if acks and topics.FRAME_ACK not in connected:
        missing.append(
            f'"{shown}" does not publish {topics.FRAME_ACK}; if it acknowledges no frames, '
            f'declare that: acks: false in a configuration, else {name.split("/")[-1]} without '
            f'"{ACKS_SUFFIX}"'
        )
    return missing


# Between two looks at the graph; it is in memory, a look takes a millisecond.
PERIOD_S = 0.25

# Length of the common prefix of all publishers of one DDS participant, i.e. one process.
PARTICIPANT_BYTES = 12

# The name that ROS gives a publisher while it does not know the node.
UNKNOWN_NODE = '_NODE_NAME_UNKNOWN_'

WITH_ONE_PUBLISHER = tuple(item.name for item in CONTRACT if item.name != topics.FRAME_ACK)


def check_publishers(node: Node, names: Iterable[str] = WITH_ONE_PUBLISHER) -> None:
    """Raise ParticipantError, which names the nodes, if several publish one of these topics."""
    # Several stacks, each in its namespace, share the topics that are in none.
    alone = node.get_namespace() == '/'
    shared = (name for name in names if alone or not name.startswith('/'))
    for topic in map(node.resolve_topic_name, shared):
        # One node may have several publishers, and two nodes in two processes the same name.
        publishers = {
            (qos.full_name(info), bytes(info.endpoint_gid[:PARTICIPANT_BYTES]))
            for info in node.get_publishers_info_by_topic(topic)
            # That of a node that has just left, or comes: if it stays, the next look knows it.
            if info.node_name != UNKNOWN_NODE
        }
        if len(publishers) > 1:
            listed = ' and '.join(sorted(name for name, _ in publishers))
            raise ParticipantError(
                f'topic "{topic}" has {len(publishers)} publishers: {listed}. End all but one, or '
                'give the others another topic, namespace or ROS_DOMAIN_ID'
            )
