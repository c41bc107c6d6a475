"""Observes a running stack without disturbing it."""

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rclpy.node import Node
from rclpy.subscription import Subscription

from osmabench_ros.base import contract as topics
from osmabench_ros.base.progress import Progress
from osmabench_ros.errors import ContractError
from osmabench_ros.ros import qos
from osmabench_ros.ros.matched_client import command_node
from osmabench_ros.ros.messages.message_definitions import interface_class
from osmabench_ros.ros.messages.poses import SECOND_NS
from osmabench_ros.sequences.bags.bag_types import stamp_at

# Whole messages of a topic that are kept, the newest of them.
KEPT_BYTES = 64 * 2**20

DEPTH = 50
# Of a serialised message, before its header.
CDR_BYTES = 4


@dataclass
class TopicRecord:
    """The newest messages of a topic, the times of all in ns, and how many were lost."""

    name: str
    message_type: type[Any]
    has_header: bool = True
    received_ns: list[int] = field(default_factory=list)
    stamps_ns: list[int] = field(default_factory=list)
    wall_ns: list[int] = field(default_factory=list)
    lost: int = 0
    messages: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def rate_hz(self) -> float:
        """Messages a second, 0 if fewer than three came."""
        if len(self.received_ns) < 3:
            return 0.0
        span_ns = self.received_ns[-1] - self.received_ns[0]
        return (len(self.received_ns) - 1) * SECOND_NS / span_ns if span_ns else 0.0


class TopicListener(TopicRecord):
    """Fills itself from a raw subscription; nothing is deserialised before `finish`."""

    def __init__(self, node: Node, topic: str, message_type: type[Any], kept: int) -> None:
        fields = list(message_type.get_fields_and_field_types().values())
        super().__init__(topic, message_type, fields[:1] == ['std_msgs/Header'])
        self._newest: deque[bytes] = deque(maxlen=kept)
        self._last_number: int | None = None
        self._node = node
        self._publishers: tuple[qos.Endpoint, ...] = ()
        self._subscription: Subscription | None = None

    def listen(self, publishers: tuple[qos.Endpoint, ...]) -> bool:
        """Subscribe to these publishers; return whether one of them is new."""
        new = any(item not in self._publishers for item in publishers)
        self._publishers = publishers
        if not new:
            return False
        self._last_number = None
        profile = qos.listening_profile(publishers, DEPTH)
        if self._subscription is not None:
            if profile == self._subscription.qos_profile:
                return True
            self._node.destroy_subscription(self._subscription)
        self._subscription = self._node.create_subscription(
            self.message_type, self.name, self._take, profile, raw=True
        )
        return True

    def _take(self, data: bytes, info: dict[str, Any]) -> None:
        self.received_ns.append(time.monotonic_ns())
        self.wall_ns.append(time.time_ns())
        number = info.get('publication_sequence_number')
        # With a single publisher, gaps in its sequence numbers show losses.
        if len(self._publishers) == 1 and number is not None:
            if self._last_number is not None:
                self.lost += max(number - self._last_number - 1, 0)
            self._last_number = number
        if self.has_header:
            stamp_ns = stamp_at(data, CDR_BYTES)
            if stamp_ns is None:
                self.errors.append(f'{len(data)} bytes are not a message with a header')
                return
            self.stamps_ns.append(stamp_ns)
        self._newest.append(data)
        while len(self._newest) > 1 and sum(map(len, self._newest)) > KEPT_BYTES:
            self._newest.popleft()

    def finish(self) -> TopicRecord:
        """Deserialise the messages that were kept."""
        for data in self._newest:
            try:
                self.messages.append(qos.deserialize_checked(data, self.message_type, self.name))
            except ContractError as error:
                self.errors.append(str(error))
        self._newest.clear()
        return self


# How long participants of the network usually take to find each other.
DISCOVERY_S = 2.0

# Longest wait for required topics: a lost announcement is repeated after 3 s.
PATIENCE_S = 10.0

# Longest time of listening while further publishers come, in times the time asked for.
LONGEST = 4

LOOK_S = 0.2
KEPT_IMAGES, KEPT_MESSAGES = 3, 2000


@dataclass
class StackObservation:
    """Endpoints and messages by name of the contract; nodes have full names."""

    graphs: dict[str, qos.TopicGraph] = field(default_factory=dict)
    records: dict[str, TopicRecord] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()

    def newest(self, name: str) -> Any | None:
        """Return the newest message of a topic, None if none was received."""
        record = self.records.get(name)
        return record.messages[-1] if record and record.messages else None

    @property
    def camera_frame(self) -> str:
        """Frame of the newest colour image, '' without one."""
        image = self.newest(topics.COLOR)
        return '' if image is None else str(image.header.frame_id)


@dataclass(frozen=True)
class StackNames:
    """A stack's names for the topics of the contract, and its other map topics with types."""

    namespace: str = ''
    remappings: Mapping[str, str] = field(default_factory=dict)
    extra_topics: Mapping[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> list[str]:
        """Arguments of a node that uses these names."""
        space = self.namespace.strip('/')
        pairs = {**self.remappings, **({'__ns': f'/{space}'} if space else {})}
        rules = [item for name, value in pairs.items() for item in ('-r', f'{name}:={value}')]
        return ['--ros-args', *rules] if rules else []


def observe(
    names: StackNames, seconds: float, progress: Progress, domain: int | None = None
) -> StackObservation:
    """Listen to every topic of the contract for so many seconds after its last publisher came."""
    with command_node(
        'osmabench_doctor',
        domain=domain,
        arguments=names.arguments,
        start_parameter_services=False,
    ) as (node, executor):
        listeners = _Listeners(node, names.extra_topics)
        start = now = next_look = time.monotonic()
        end = start + DISCOVERY_S + seconds
        latest = start + DISCOVERY_S + LONGEST * seconds
        while now < end:
            if now >= next_look:
                next_look = now + LOOK_S
                if listeners.look():
                    end = max(end, min(now + seconds, latest))
                if not listeners.complete():
                    end = max(end, min(now + 2 * LOOK_S, start + PATIENCE_S))
            activity = 'listening' if now > start + DISCOVERY_S else 'looking for nodes'
            progress(activity, (now - start) / (end - start))
            executor.spin_once(timeout_sec=min(0.1, end - now))
            now = time.monotonic()
        return listeners.observation()


class _Listeners:
    """Listeners to all topics that have a publisher."""

    def __init__(self, node: Node, extra_topics: Mapping[str, str]) -> None:
        self._node = node
        self._type_names = {
            **topics.TYPES,
            **extra_topics,
            **dict.fromkeys((topics.TF, topics.TF_STATIC), topics.TF_TYPE),
        }
        self._kinds = {name: interface_class(text) for name, text in self._type_names.items()}
        self._listeners: dict[str, TopicListener] = {}
        self._graphs: dict[str, qos.TopicGraph] = {}

    def look(self) -> bool:
        """Subscribe to the publishers that are new since the last call; return whether any is."""
        came = False
        for name, kind in self._kinds.items():
            self._graphs[name] = graph = qos.topic_graph(self._node, name)
            if kind is None:
                continue
            expected = self._type_names[name]
            publishers = [item for item in graph.publishers if item.type_name == expected]
            if publishers and name not in self._listeners:
                is_heavy = 'data' in kind.get_fields_and_field_types()
                kept = KEPT_IMAGES if is_heavy else KEPT_MESSAGES
                self._listeners[name] = TopicListener(self._node, name, kind, kept)
            if name in self._listeners:
                came |= self._listeners[name].listen(tuple(publishers))
        return came

    def complete(self) -> bool:
        """Return whether every topic that a stack must have has a publisher."""
        return all(self._graphs[item.name].publishers for item in topics.CONTRACT if item.required)

    def observation(self) -> StackObservation:
        """Stop listening and return the observation."""
        nodes = self._node.get_node_names_and_namespaces()
        names = {f'{namespace.rstrip("/")}/{name}' for name, namespace in nodes}
        return StackObservation(
            {name: qos.topic_graph(self._node, name) for name in self._graphs},
            {name: listener.finish() for name, listener in self._listeners.items()},
            tuple(sorted(names - {self._node.get_fully_qualified_name()})),
        )
