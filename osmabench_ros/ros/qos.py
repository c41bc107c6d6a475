"""Quality of service: the profiles of the contract, and what ends on the graph offer and ask.

Subscriptions check the size of a serialised message before it is deserialised.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    QoSCompatibility,
    QoSProfile,
    ReliabilityPolicy,
    qos_check_compatible,
)
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from rclpy.topic_endpoint_info import TopicEndpointInfo

from osmabench_ros.errors import ContractError
from osmabench_ros.msg import FrameAck, LabelInfo, RecordedMap, RunInfo, RunState, SemanticMap
from osmabench_ros.sequences.bags.bag_storage import OfferedQos

# Default; the largest message of the contract is a depth image of 4096 x 4096.
MAX_MESSAGE_BYTES = 80 * 2**20

# Types of many small parts become many times as large when they are deserialised.
MAX_BYTES: dict[type[Any], int] = {
    **dict.fromkeys((DiagnosticArray, FrameAck, LabelInfo, RecordedMap, RunInfo, RunState), 2**20),
    SemanticMap: 32 * 2**20,
}


def frame_profile(*, lockstep: bool) -> QoSProfile:
    """Return the profile of the topics of a frame: lockstep keeps all, realtime the last 10."""
    return _profile(depth=None if lockstep else 10)


def latched_profile() -> QoSProfile:
    """Return the latched profile of run information, labels, maps and reports."""
    return _profile(latched=True, depth=1)


def lossless_profile() -> QoSProfile:
    """Return the profile of acknowledgements and map chunks, of which none may be lost."""
    return _profile(depth=None)


def observer_profile() -> QoSProfile:
    """Return the profile of an observer: it matches any publisher, and slows none down."""
    return _profile(reliable=False, depth=10)


def clock_profile() -> QoSProfile:
    """Return the profile of /clock."""
    return _profile(depth=1)


def diagnostics_profile() -> QoSProfile:
    """Return the profile of /diagnostics, as aggregators subscribe to it."""
    return _profile(depth=10)


def tf_profile(*, static: bool) -> QoSProfile:
    """Return the profile of /tf and /tf_static, as listeners of tf2 have it."""
    return _profile(latched=static, depth=100)


def _profile(*, reliable: bool = True, latched: bool = False, depth: int | None) -> QoSProfile:
    """Return a profile that keeps the last `depth` messages, or all."""
    return QoSProfile(
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        history=HistoryPolicy.KEEP_ALL if depth is None else HistoryPolicy.KEEP_LAST,
        depth=depth or 1,
    )


def describe(profile: QoSProfile) -> str:
    """Return the policies that decide compatibility, e.g. 'reliable, transient local'."""
    names = (profile.reliability.name, profile.durability.name)
    return ', '.join(name.lower().replace('_', ' ') for name in names)


# Messages that a recorder's subscription keeps while it is busy.
DEPTH = 200
# Bags are played faster than robots publish, in bursts.
PLAYED_DEPTH = 100
MAX_REPEATED = 100


def offered_from_profile(profile: QoSProfile) -> OfferedQos:
    """Return the QoS of a publisher in the form of bags."""
    return OfferedQos(
        profile.reliability.name.lower(),
        profile.durability.name.lower(),
        profile.history.name.lower(),
        profile.depth,
    )


def profile_for_recording(publishers: Sequence[QoSProfile]) -> QoSProfile:
    """Return the strongest profile that matches all publishers (one or more) of a topic."""
    reliable = all(item.reliability == ReliabilityPolicy.RELIABLE for item in publishers)
    latched = all(item.durability == DurabilityPolicy.TRANSIENT_LOCAL for item in publishers)
    return _profile(reliable=reliable, latched=latched, depth=DEPTH)


def profile_for_playing(topic: str, offered: Sequence[OfferedQos]) -> QoSProfile:
    """Return the profile to publish a recorded topic with; /tf_static is always latched."""
    reliable = all(item.reliability != 'best_effort' for item in offered)
    latched = topic.rsplit('/', 1)[-1] == 'tf_static' or (
        bool(offered) and all(item.latched for item in offered)
    )
    depth = max((item.depth for item in offered), default=0)
    least = 1 if latched else PLAYED_DEPTH
    return _profile(reliable=reliable, latched=latched, depth=min(max(depth, least), 1000))


def count_repeated_messages(offered: Sequence[OfferedQos]) -> int:
    """Return how many last messages of a topic a late joiner would get, 0 if it is not latched."""
    latched = [item for item in offered if item.latched]
    return min(sum(max(1, item.depth) for item in latched), MAX_REPEATED)


# The graph gives this time limit, in seconds, or more, where there is none.
FOREVER_S = 2**31 - 1


@dataclass(frozen=True)
class Endpoint:
    """One publisher or subscriber; `type_hash` is empty where the middleware does not give it."""

    node: str
    type_name: str
    type_hash: str
    profile: QoSProfile


@dataclass(frozen=True)
class TopicGraph:
    """Publishers and subscribers of a topic, by full name, without the node that looks."""

    name: str
    publishers: tuple[Endpoint, ...] = ()
    subscribers: tuple[Endpoint, ...] = ()
    # Type hash of the subscription of the node that looks; empty without one.
    own_hash: str = ''


def topic_graph(node: Node, topic: str) -> TopicGraph:
    """Return the publishers and subscribers of a topic."""
    name = str(node.resolve_topic_name(topic))
    own = node.get_fully_qualified_name()
    by_node = attrgetter('node')
    publishers = sorted(map(_endpoint, node.get_publishers_info_by_topic(name)), key=by_node)
    subscribers = sorted(map(_endpoint, node.get_subscriptions_info_by_topic(name)), key=by_node)
    return TopicGraph(
        name,
        tuple(item for item in publishers if item.node != own),
        tuple(item for item in subscribers if item.node != own),
        next((item.type_hash for item in subscribers if item.node == own), ''),
    )


def full_name(info: TopicEndpointInfo) -> str:
    """Return the name of the node behind an endpoint, with its namespace."""
    return f'{info.node_namespace.rstrip("/")}/{info.node_name}'


def _endpoint(info: TopicEndpointInfo) -> Endpoint:
    type_hash = str(info.topic_type_hash or '')
    return Endpoint(full_name(info), info.topic_type, type_hash, info.qos_profile)


def qos_conflict(publisher: Endpoint, subscriber: Endpoint) -> str:
    """Return why the QoS of a publisher and a subscriber do not match; empty if they do."""
    reason = _mismatch(publisher.profile, subscriber.profile)
    return reason and (
        f'{publisher.node} publishes {describe(publisher.profile)}, {subscriber.node} subscribes '
        f'{describe(subscriber.profile)}: {reason}'
    )


def require_compatible(
    topic: str, publisher: tuple[str, QoSProfile], subscriber: tuple[str, QoSProfile]
) -> None:
    """Raise ContractError, which names both, if a subscriber would receive nothing."""
    if reason := _mismatch(publisher[1], subscriber[1]):
        raise ContractError(
            f'topic "{topic}": QoS of publisher {publisher[0]} ({describe(publisher[1])}) and '
            f'subscriber {subscriber[0]} ({describe(subscriber[1])}) do not match: {reason}. '
            'Use the profile of the topic contract on both sides.'
        )


def _mismatch(publisher: QoSProfile, subscriber: QoSProfile) -> str:
    result, reason = qos_check_compatible(_comparable(publisher), _comparable(subscriber))
    return str(reason).strip().rstrip(';') if result == QoSCompatibility.ERROR else ''


def _comparable(profile: QoSProfile) -> QoSProfile:
    """Return the policies that decide compatibility, in the form that rclpy compares."""
    return QoSProfile(
        reliability=profile.reliability,
        durability=profile.durability,
        liveliness=profile.liveliness,
        liveliness_lease_duration=_limit(profile.liveliness_lease_duration),
        deadline=_limit(profile.deadline),
        depth=1,
    )


def _limit(duration: Duration) -> Duration:
    return Duration() if duration.nanoseconds >= FOREVER_S * 10**9 else duration


def listening_profile(publishers: tuple[Endpoint, ...], depth: int) -> QoSProfile:
    """Return a profile that matches all publishers and delays none, reliable if latched."""
    latched = bool(publishers) and all(
        item.profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
        and item.profile.reliability == ReliabilityPolicy.RELIABLE
        for item in publishers
    )
    return _profile(reliable=latched, latched=latched, depth=depth)


def deserialize_checked(
    data: bytes, message_type: type[Any], topic: str, max_bytes: int | None = None
) -> Any:
    """Deserialise a message from outside; raises ContractError if too large or malformed."""
    limit = MAX_BYTES.get(message_type, MAX_MESSAGE_BYTES) if max_bytes is None else max_bytes
    if len(data) > limit:
        remedy = 'publish smaller images or chunks'
        problem = f'a message of {len(data)} bytes exceeds {limit}'
        raise ContractError(f'topic "{topic}": {problem}; {remedy}')
    try:
        return deserialize_message(data, message_type)
    except (RuntimeError, ValueError, MemoryError) as error:
        raise ContractError(
            f'topic "{topic}": {len(data)} bytes are not a {message_type.__name__}: {error}; '
            'its publisher may use another version of the type'
        ) from error


def create_checked_subscription(
    node: Node,
    message_type: type[Any],
    topic: str,
    callback: Callable[[Any], None],
    profile: QoSProfile,
    *,
    max_bytes: int | None = None,
) -> Subscription:
    """Subscribe to messages from outside; what `deserialize_checked` refuses is raised."""

    def on_raw(data: bytes) -> None:
        callback(deserialize_checked(data, message_type, topic, max_bytes))

    guard = getattr(node, 'guarded', lambda function: function)
    return node.create_subscription(message_type, topic, guard(on_raw), profile, raw=True)
