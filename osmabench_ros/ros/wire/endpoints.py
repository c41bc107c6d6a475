"""Publishers and subscribers of the ROS graph, and whether their QoS is compatible."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import (
    DurabilityPolicy,
    QoSCompatibility,
    QoSProfile,
    ReliabilityPolicy,
    qos_check_compatible,
)
from rclpy.topic_endpoint_info import TopicEndpointInfo

from osmabench_ros.ros.wire.qos import describe

FOREVER_S = 2**31 - 1
"""What the graph says of a time limit that is none; in seconds, and more."""


@dataclass(frozen=True)
class Endpoint:
    """One publisher or subscriber; `type_hash` is empty where the middleware does not give it."""

    node: str
    type_name: str
    type_hash: str
    profile: QoSProfile


@dataclass(frozen=True)
class TopicGraph:
    """Publishers and subscribers of a topic, by full name, save those of the node that looks."""

    name: str
    publishers: tuple[Endpoint, ...] = ()
    subscribers: tuple[Endpoint, ...] = ()


def topic_graph(node: Node, topic: str) -> TopicGraph:
    """Return the publishers and subscribers of a topic."""
    name = str(node.resolve_topic_name(topic))
    own = node.get_fully_qualified_name()

    def others(found: list[TopicEndpointInfo]) -> tuple[Endpoint, ...]:
        endpoints = [_endpoint(item) for item in found]
        return tuple(sorted((e for e in endpoints if e.node != own), key=lambda e: e.node))

    return TopicGraph(
        name,
        others(node.get_publishers_info_by_topic(name)),
        others(node.get_subscriptions_info_by_topic(name)),
    )


def own_type_hash(node: Node, topic: str) -> str:
    """Return the type hash of this node's own subscription to a topic."""
    name, own = str(node.resolve_topic_name(topic)), node.get_fully_qualified_name()
    for item in node.get_subscriptions_info_by_topic(name):
        if _endpoint(item).node == own:
            return _endpoint(item).type_hash
    return ''


def full_name(info: TopicEndpointInfo) -> str:
    """Return the name of the node behind an endpoint, with its namespace."""
    return f'{info.node_namespace.rstrip("/")}/{info.node_name}'


def _endpoint(info: TopicEndpointInfo) -> Endpoint:
    type_hash = str(info.topic_type_hash or '')
    return Endpoint(full_name(info), info.topic_type, type_hash, info.qos_profile)


def qos_conflict(publisher: Endpoint, subscriber: Endpoint) -> str:
    """Return why the QoS of a publisher and a subscriber do not match; empty if they do."""
    compatibility, reason = qos_check_compatible(
        _comparable(publisher.profile), _comparable(subscriber.profile)
    )
    if compatibility != QoSCompatibility.ERROR:
        return ''
    return (
        f'{publisher.node} publishes {describe(publisher.profile)}, {subscriber.node} subscribes '
        f'{describe(subscriber.profile)}: {reason.strip().rstrip(";")}'
    )


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
    """Return a profile that hears all publishers and holds up none, reliable if latched."""
    latched = bool(publishers) and all(
        item.profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
        and item.profile.reliability == ReliabilityPolicy.RELIABLE
        for item in publishers
    )
    return QoSProfile(
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if latched else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )
