"""Whether everybody at a topic speaks of the same and can hear each other."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, ReliabilityPolicy

from osmabench_ros.bringup.finding import Finding, Level
from osmabench_ros.ros.contract import ContractTopic, Delivery
from osmabench_ros.ros.endpoints import Endpoint, TopicGraph, qos_conflict
from osmabench_ros.ros.message_definitions import type_name


def check_endpoints(topic: ContractTopic, graph: TopicGraph, own_hash: str) -> list[Finding]:
    """Compare who is at a topic with the contract and with each other.

    `own_hash` is that of the type installed here, '' if unknown.
    """
    if not graph.publishers:
        return [_nobody(topic, graph)]
    faults = _wrong_types(topic, graph, own_hash) + _conflicts(topic, graph)
    if faults:
        return faults
    names = ', '.join(item.node for item in graph.publishers)
    heard = ', '.join(item.node for item in graph.subscribers) or 'nobody yet'
    detail = f'from {names}; heard by {heard}'
    return [Finding(topic.name, Level.OK, detail), *_hints(topic, graph)]


def _nobody(topic: ContractTopic, graph: TopicGraph) -> Finding:
    level = Level.FAILED if topic.required else Level.ABSENT
    waiting = ', '.join(item.node for item in graph.subscribers)
    detail = f'nobody publishes {graph.name} ({topic.purpose})'
    if waiting:
        detail += f'; {waiting} waits for it'
    remedy = f'start its publisher, or name its topic: --remap {topic.name}:=/your/topic'
    return Finding(topic.name, level, detail, remedy if topic.required or waiting else '')


def _wrong_types(topic: ContractTopic, graph: TopicGraph, own_hash: str) -> list[Finding]:
    expected = type_name(topic.message_type)
    faults = []
    for role, endpoints in (
        ('publishes', graph.publishers),
        ('subscribes to', graph.subscribers),
    ):
        for item in endpoints:
            if item.type_name != expected:
                detail = f'{item.node} {role} {item.type_name}, not {expected}'
                remedy = f'publish {expected}, or remap {item.node} to another topic'
            elif own_hash and item.type_hash and item.type_hash != own_hash:
                detail = f'{item.node} {role} another version of {expected} ({item.type_hash})'
                remedy = 'build both sides with the same version of the message package'
            else:
                continue
            faults.append(Finding(topic.name, Level.FAILED, detail, remedy))
    return faults


def _conflicts(topic: ContractTopic, graph: TopicGraph) -> list[Finding]:
    pairs = [(p, s) for p in graph.publishers for s in graph.subscribers]
    told = [
        (subscriber, publisher, qos_conflict(publisher, subscriber))
        for publisher, subscriber in pairs
    ]
    return [
        Finding(
            topic.name, Level.FAILED, f'QoS: {conflict}', _qos_remedy(topic, publisher, subscriber)
        )
        for subscriber, publisher, conflict in told
        if conflict
    ]


def _qos_remedy(topic: ContractTopic, publisher: Endpoint, subscriber: Endpoint) -> str:
    latched = topic.delivery is Delivery.LATCHED
    durability = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
    wanted = 'reliable, transient local' if latched else 'reliable, volatile'
    wrong = [
        item.node
        for item in (publisher, subscriber)
        if item.profile.durability != durability
        or item.profile.reliability != ReliabilityPolicy.RELIABLE
    ]
    return f'the contract says {wanted}; change {" and ".join(wrong) or "the time limits"}'


def _hints(topic: ContractTopic, graph: TopicGraph) -> list[Finding]:
    hints = []
    if topic.delivery is Delivery.LATCHED:
        for item in graph.publishers:
            if item.profile.durability != DurabilityPolicy.TRANSIENT_LOCAL:
                hints.append(
                    Finding(
                        topic.name,
                        Level.WARN,
                        f'{item.node} publishes volatile: who comes later hears nothing',
                        'publish transient local, keep last 1',
                    )
                )
    several = {item.node for item in graph.publishers}
    if topic.delivery in (Delivery.FRAME, Delivery.CLOCK) and len(several) > 1:
        names = ' and '.join(sorted(several))
        detail = f'{names} publish at the same time'
        hints.append(Finding(topic.name, Level.FAILED, detail, 'stop one of them, or remap it'))
    return hints
