"""The quality-of-service profiles of the topic contract."""

from __future__ import annotations

from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    QoSCompatibility,
    QoSProfile,
    ReliabilityPolicy,
    qos_check_compatible,
)

from osmabench_ros.errors import ContractError


def frame_profile(*, lockstep: bool) -> QoSProfile:
    """Return the profile of the topics of a frame: lockstep keeps all, realtime the last 10."""
    return _reliable(depth=None if lockstep else 10)


def latched_profile() -> QoSProfile:
    """Return the latched profile of run information, labels, maps and reports."""
    return _reliable(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def lossless_profile() -> QoSProfile:
    """Return the profile of acknowledgements and map chunks, of which none may be lost."""
    return _reliable(depth=None)


def observer_profile() -> QoSProfile:
    """Return the profile of an observer: it matches any publisher, and slows none down."""
    return QoSProfile(
        reliability=ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.VOLATILE,
        history=HistoryPolicy.KEEP_LAST,
        depth=10,
    )


def clock_profile() -> QoSProfile:
    """Return the profile of /clock."""
    return _reliable(depth=1)


def diagnostics_profile() -> QoSProfile:
    """Return the profile of /diagnostics, as aggregators subscribe to it."""
    return _reliable(depth=10)


def tf_profile(*, static: bool) -> QoSProfile:
    """Return the profile of /tf and /tf_static, as listeners of tf2 have it."""
    if static:
        return _reliable(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    return _reliable(depth=100)


def _reliable(
    *, depth: int | None, durability: DurabilityPolicy = DurabilityPolicy.VOLATILE
) -> QoSProfile:
    """Return a reliable profile that keeps the last `depth` messages, or all."""
    return QoSProfile(
        reliability=ReliabilityPolicy.RELIABLE,
        durability=durability,
        history=HistoryPolicy.KEEP_ALL if depth is None else HistoryPolicy.KEEP_LAST,
        depth=depth or 1,
    )


def describe(profile: QoSProfile) -> str:
    """Return the policies that decide compatibility, e.g. 'reliable, transient local'."""
    names = (profile.reliability.name, profile.durability.name)
    return ', '.join(name.lower().replace('_', ' ') for name in names)


def require_compatible(
    topic: str,
    publisher: tuple[str, QoSProfile],
    subscriber: tuple[str, QoSProfile],
) -> None:
    """Raise ContractError, which names both, if a subscriber would receive nothing."""
    compatibility, reason = qos_check_compatible(_essence(publisher[1]), _essence(subscriber[1]))
    if compatibility == QoSCompatibility.ERROR:
        raise ContractError(
            f'topic "{topic}": QoS of publisher {publisher[0]} ({describe(publisher[1])}) and '
            f'subscriber {subscriber[0]} ({describe(subscriber[1])}) do not match: '
            f'{reason.strip()} Use the profile of the topic contract on both sides.'
        )


def _essence(profile: QoSProfile) -> QoSProfile:
    """Return the policies that the contract fixes; the graph gives durations in another form."""
    return QoSProfile(reliability=profile.reliability, durability=profile.durability, depth=1)
