"""Conversion of QoS between the graph, rclpy and bags."""

from __future__ import annotations

from collections.abc import Sequence

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from osmabench_ros.sequences.bags.bag_storage import Durability, History, OfferedQos, Reliability

DEPTH = 200
"""Messages that a recorder's subscription keeps while it is busy."""
PLAYED_DEPTH = 100
"""Bags are played faster than robots publish, in bursts."""
MAX_REPEATED = 100


def offered_from_profile(profile: QoSProfile) -> OfferedQos:
    """Return the QoS of a publisher in the form of bags."""
    return OfferedQos(
        Reliability[profile.reliability.name],
        Durability[profile.durability.name],
        History[profile.history.name],
        profile.depth,
    )


def profile_for_recording(publishers: Sequence[QoSProfile]) -> QoSProfile:
    """Return the strongest profile that matches all publishers (one or more) of a topic."""
    reliable = all(item.reliability == ReliabilityPolicy.RELIABLE for item in publishers)
    latched = all(item.durability == DurabilityPolicy.TRANSIENT_LOCAL for item in publishers)
    return _profile(reliable=reliable, latched=latched, depth=DEPTH)


def profile_for_playing(topic: str, offered: Sequence[OfferedQos]) -> QoSProfile:
    """Return the profile to publish a recorded topic with; /tf_static is always latched."""
    reliable = all(item.reliability is not Reliability.BEST_EFFORT for item in offered)
    latched = topic.rsplit('/', 1)[-1] == 'tf_static' or (
        bool(offered) and all(item.latched for item in offered)
    )
    depth = max((item.depth for item in offered), default=0)
    least = 1 if latched else PLAYED_DEPTH
    return _profile(reliable=reliable, latched=latched, depth=min(max(depth, least), 1000))


def repeated_messages(offered: Sequence[OfferedQos]) -> int:
    """Return how many last messages of a topic a late joiner would get, 0 if it is not latched."""
    latched = [item for item in offered if item.latched]
    return min(sum(max(1, item.depth) for item in latched), MAX_REPEATED)


def _profile(*, reliable: bool, latched: bool, depth: int) -> QoSProfile:
    return QoSProfile(
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=(DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE),
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
    )
