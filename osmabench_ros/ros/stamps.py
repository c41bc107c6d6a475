"""Stamps as integer nanoseconds; float seconds would lose the low digits."""

from __future__ import annotations

from builtin_interfaces.msg import Duration, Time

SECOND_NS = 1_000_000_000


def stamp_to_message(stamp_ns: int) -> Time:
    """Return a Time message."""
    seconds, nanoseconds = divmod(stamp_ns, SECOND_NS)
    return Time(sec=seconds, nanosec=nanoseconds)


def stamp_from_message(message: Time) -> int:
    """Return nanoseconds."""
    return int(message.sec) * SECOND_NS + int(message.nanosec)


def duration_to_message(duration_s: float) -> Duration:
    """Return a Duration message of a length in seconds."""
    seconds, nanoseconds = divmod(round(duration_s * SECOND_NS), SECOND_NS)
    return Duration(sec=seconds, nanosec=nanoseconds)


def duration_from_message(message: Duration) -> float:
    """Return seconds."""
    return float(message.sec) + float(message.nanosec) / SECOND_NS
