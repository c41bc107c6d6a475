"""Listens to a stack that is already running, without disturbing it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from osmabench_ros.errors import ConfigError
from osmabench_ros.ros.contract import CONTRACT, ContractTopic, Delivery
from osmabench_ros.ros.endpoints import TopicGraph, own_type_hash, topic_graph
from osmabench_ros.ros.interfaces import interface_class, is_interface_name
from osmabench_ros.ros.message_definitions import type_name
from osmabench_ros.ros.topic_record import TopicListener, TopicRecord

DISCOVERY_S = 2.0
"""How long participants of the network usually take to find each other."""

PATIENCE_S = 10.0
"""How long what every stack has is waited for: a lost announcement is repeated after 3 s."""

LONGEST = 4
"""How many times as long as asked is listened to a stack whose publishers go on coming."""

LOOK_S = 0.2
KEPT_IMAGES, KEPT_MESSAGES = 3, 2000

TF, TF_STATIC = '/tf', '/tf_static'
TF_TYPE = 'tf2_msgs/msg/TFMessage'
_Message = TypeVar('_Message')


@dataclass
class StackObservation:
    """What was seen and heard, by name of the contract.

    Records lack topics that have no publisher, or whose type is not installed; `own_hashes` are of
    the types that are installed here, `missing_types` are not; `nodes` are full names.
    """

    graphs: dict[str, TopicGraph] = field(default_factory=dict)
    records: dict[str, TopicRecord] = field(default_factory=dict)
    own_hashes: dict[str, str] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    missing_types: tuple[str, ...] = ()

    def newest(self, name: str, kind: type[_Message]) -> _Message | None:
        """Return the newest message of a topic, None if none of that type was heard."""
        record = self.records.get(name)
        if record is None or not record.messages or not isinstance(record.messages[-1], kind):
            return None
        return record.messages[-1]


def message_class(type_name: str) -> type[Any] | None:
    """Return a message class by its ROS name, None if it is not installed.

    Raises ConfigError if the name is not of the form ``package/msg/Name``.
    """
    if not is_interface_name(type_name):
        raise ConfigError(f'message type "{type_name}" is not of the form package/msg/Name')
    return interface_class(type_name)


def observe(
    seconds: float,
    *,
    namespace: str = '',
    remappings: Mapping[str, str],
    extra_topics: Mapping[str, str],
    progress: Callable[[str, float], None],
    domain: int | None = None,
) -> StackObservation:
    """Listen to every topic of the contract, also to what comes while we listen.

    `seconds` count anew from every publisher that comes. `remappings` lead from names of the
    contract to those of the stack, `extra_topics` to names of types; `progress` gets what is going
    on and the fraction done. Raises ConfigError if a name is none that ROS accepts.
    """
    context = rclpy.Context()
    rclpy.init(
        context=context,
        args=_arguments(namespace, remappings),
        domain_id=domain,
        signal_handler_options=SignalHandlerOptions.NO,
    )
    try:
        node = Node('osmabench_doctor', context=context, start_parameter_services=False)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        try:
            listeners = _Listeners(node, extra_topics)
            _listen(listeners, executor, seconds, progress)
            return listeners.observation()
        finally:
            # Otherwise others see it until Python collects its garbage.
            executor.shutdown()
            node.destroy_node()
    finally:
        context.try_shutdown()


def _arguments(namespace: str, remappings: Mapping[str, str]) -> list[str]:
    pairs = {**remappings, **({'__ns': f'/{namespace.strip("/")}'} if namespace else {})}
    if not pairs:
        return []
    rules = [item for name, value in pairs.items() for item in ('-r', f'{name}:={value}')]
    return ['--ros-args', *rules]


def _listen(
    listeners: _Listeners,
    executor: SingleThreadedExecutor,
    seconds: float,
    progress: Callable[[str, float], None],
) -> None:
    start = next_look = time.monotonic()
    end, latest = start + DISCOVERY_S + seconds, start + DISCOVERY_S + LONGEST * seconds
    while True:
        now = time.monotonic()
        if now >= min(next_look, end):
            next_look = now + LOOK_S
            if listeners.look():
                end = max(end, min(now + seconds, latest))
            if not listeners.complete():
                end = max(end, min(now + LOOK_S, start + PATIENCE_S))
        if now >= end:
            return
        told = 'listening' if now > start + DISCOVERY_S else 'looking for nodes'
        progress(told, (now - start) / (end - start))
        executor.spin_once(timeout_sec=min(0.1, end - now))


class _Listeners:
    """Listeners to all topics that have a publisher by now."""

    def __init__(self, node: Node, extra_topics: Mapping[str, str]) -> None:
        self._node = node
        self._kinds: dict[str, type[Any] | None] = {
            item.name: item.message_type for item in CONTRACT
        }
        self._kinds |= {name: message_class(text) for name, text in extra_topics.items()}
        self._kinds |= dict.fromkeys((TF, TF_STATIC), message_class(TF_TYPE))
        self._type_names = {TF: TF_TYPE, **extra_topics}
        self._listeners: dict[str, TopicListener] = {}
        self._graphs: dict[str, TopicGraph] = {}

    def look(self) -> bool:
        """Listen to the publishers that came since the last look; return whether any did."""
        came = False
        for name, kind in self._kinds.items():
            self._graphs[name] = graph = topic_graph(self._node, name)
            if kind is None:
                continue
            publishers = [item for item in graph.publishers if item.type_name == type_name(kind)]
            if publishers and name not in self._listeners:
                kept = KEPT_IMAGES if _is_heavy(name, kind) else KEPT_MESSAGES
                self._listeners[name] = TopicListener(self._node, name, kind, kept)
            if name in self._listeners:
                came |= self._listeners[name].listen(tuple(publishers))
        return came

    def complete(self) -> bool:
        """Return whether every topic that a stack must have has a publisher."""
        return all(self._graphs[item.name].publishers for item in CONTRACT if item.required)

    def observation(self) -> StackObservation:
        """Return what was seen and heard; listening is over."""
        missing = {self._type_names[name] for name in self._type_names if not self._kinds[name]}
        return StackObservation(
            self._graphs,
            {name: listener.finish() for name, listener in self._listeners.items()},
            {name: own_type_hash(self._node, name) for name in self._listeners},
            tuple(sorted(_full_names(self._node))),
            tuple(sorted(missing)),
        )


def _is_heavy(name: str, kind: type[Any]) -> bool:
    fields = kind.get_fields_and_field_types()
    return 'data' in fields or _contract(name) is Delivery.LOSSLESS


def _contract(name: str) -> Delivery | None:
    found: list[ContractTopic] = [item for item in CONTRACT if item.name == name]
    return found[0].delivery if found else None


def _full_names(node: Node) -> Sequence[str]:
    own = node.get_fully_qualified_name()
    names = [f'{ns.rstrip("/")}/{name}' for name, ns in node.get_node_names_and_namespaces()]
    return [name for name in names if name != own]
