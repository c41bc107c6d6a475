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
from osmabench_ros.ros.topic_record import TopicListener, TopicRecord

DISCOVERY_S = 2.0
"""How long participants of the network may take to find each other."""

KEPT_IMAGES, KEPT_MESSAGES = 3, 2000

TF, TF_STATIC = '/tf', '/tf_static'
TF_TYPE = 'tf2_msgs/msg/TFMessage'
_Message = TypeVar('_Message')


@dataclass
class StackObservation:
    """What was seen and heard.

    Parameters
    ----------
    graphs : dict of str to TopicGraph
        By name of the contract.
    records : dict of str to TopicRecord
        The same; without topics that nobody publishes, or whose type is not installed.
    own_hashes : dict of str to str
        Hash of the type that is installed here.
    nodes : tuple of str
        Full names of all nodes.
    missing_types : tuple of str
        Types that are not installed here.
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

    Raises
    ------
    ConfigError
        If the name is not of the form ``package/msg/Name``.
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
    """Look at the graph, then listen to every topic of the contract.

    Parameters
    ----------
    seconds : float
        How long to listen.
    namespace : str
        Of the stack's topics.
    remappings : mapping of str to str
        From names of the contract to those of the stack.
    extra_topics : mapping of str to str
        Further topics, with the names of their types.
    progress : callable
        Gets what is going on and the fraction done.
    domain : int, optional
        ROS domain; by default that of the shell.

    Raises
    ------
    ConfigError
        If a name is none that ROS accepts.
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
            told = 'looking for nodes'
            progress(told, 0.0)
            _spin(executor, DISCOVERY_S, lambda fraction: progress(told, fraction / 4))
            return _listen(node, executor, seconds, extra_topics, progress)
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


def _spin(executor: SingleThreadedExecutor, seconds: float, told: Callable[[float], None]) -> None:
    start = time.monotonic()
    while (passed := time.monotonic() - start) < seconds:
        executor.spin_once(timeout_sec=min(0.1, seconds - passed))
        told(passed / seconds)


def _listen(
    node: Node,
    executor: SingleThreadedExecutor,
    seconds: float,
    extra_topics: Mapping[str, str],
    progress: Callable[[str, float], None],
) -> StackObservation:
    seen = StackObservation()
    kinds: dict[str, type[Any] | None] = {item.name: item.message_type for item in CONTRACT}
    kinds |= {name: message_class(type_name) for name, type_name in extra_topics.items()}
    kinds |= dict.fromkeys((TF, TF_STATIC), message_class(TF_TYPE))
    listeners = {}
    missing = {
        name for name, type_name in extra_topics.items() if message_class(type_name) is None
    }
    for name, kind in kinds.items():
        seen.graphs[name] = graph = topic_graph(node, name)
        if kind is not None and graph.publishers:
            kept = KEPT_IMAGES if _is_heavy(name, kind) else KEPT_MESSAGES
            listeners[name] = TopicListener(node, name, kind, graph.publishers, kept)
    _spin(executor, seconds, lambda fraction: progress('listening', 0.25 + fraction * 0.75))
    for name, listener in listeners.items():
        seen.own_hashes[name] = own_type_hash(node, name)
        seen.records[name] = listener.finish()
        # Who came while we listened counts too.
    seen.graphs = {name: topic_graph(node, name) for name in kinds}
    seen.nodes = tuple(sorted(_full_names(node)))
    seen.missing_types = tuple(sorted(extra_topics[name] for name in missing))
    if kinds[TF] is None:
        seen.missing_types += (TF_TYPE,)
    return seen


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
