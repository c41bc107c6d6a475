"""Quality of service as bags record it, without ROS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

from osmabench_ros.base.limits.documents import parse_yaml
from osmabench_ros.errors import OsmabenchError, SequenceError

INFINITE = {'sec': 9223372036, 'nsec': 854775807}
"""How rosbag2 writes a deadline, lifespan or lease that never ends."""

MAX_TEXT = 2**15
"""Characters of profiles as a bag holds them; those of a publisher take some hundred."""

_Choice = TypeVar('_Choice', bound=Enum)


class History(Enum):
    """History policy; values are rosbag2's names."""

    SYSTEM_DEFAULT = 'system_default'
    KEEP_LAST = 'keep_last'
    KEEP_ALL = 'keep_all'
    UNKNOWN = 'unknown'


class Reliability(Enum):
    """Reliability policy: whether lost messages are sent again."""

    SYSTEM_DEFAULT = 'system_default'
    RELIABLE = 'reliable'
    BEST_EFFORT = 'best_effort'
    UNKNOWN = 'unknown'
    BEST_AVAILABLE = 'best_available'


class Durability(Enum):
    """Durability policy: whether late joiners get earlier messages."""

    SYSTEM_DEFAULT = 'system_default'
    TRANSIENT_LOCAL = 'transient_local'
    VOLATILE = 'volatile'
    UNKNOWN = 'unknown'
    BEST_AVAILABLE = 'best_available'


@dataclass(frozen=True)
class OfferedQos:
    """The profile of a publisher; `depth` is 0 if unknown."""

    reliability: Reliability = Reliability.RELIABLE
    durability: Durability = Durability.VOLATILE
    history: History = History.KEEP_LAST
    depth: int = 10

    @property
    def latched(self) -> bool:
        """Whether late joiners get the last message."""
        return self.durability is Durability.TRANSIENT_LOCAL

    def to_metadata(self) -> dict[str, Any]:
        """Return the entry of `offered_qos_profiles` in metadata.yaml of version 9."""
        return {
            'history': self.history.value,
            'depth': self.depth,
            'reliability': self.reliability.value,
            'durability': self.durability.value,
            'deadline': dict(INFINITE),
            'lifespan': dict(INFINITE),
            'liveliness': 'automatic',
            'liveliness_lease_duration': dict(INFINITE),
            'avoid_ros_namespace_conventions': False,
        }


def parse_offered_qos(entries: Any) -> tuple[OfferedQos, ...]:
    """Read `offered_qos_profiles` (YAML or list, names or rmw's numbers) except odd entries."""
    if isinstance(entries, str):
        return _parsed_text(entries)
    if not isinstance(entries, list):
        return ()
    return tuple(_parsed(item) for item in entries if isinstance(item, Mapping))


@lru_cache(maxsize=256)
def _parsed_text(text: str) -> tuple[OfferedQos, ...]:
    if len(text) > MAX_TEXT:
        return ()
    try:
        entries = parse_yaml(text, 'offered_qos_profiles', SequenceError)
    except OsmabenchError:
        return ()
    return parse_offered_qos(entries) if isinstance(entries, list) else ()


def _parsed(item: Mapping[str, Any]) -> OfferedQos:
    depth = item.get('depth', 0)
    return OfferedQos(
        _choice(Reliability, item.get('reliability')),
        _choice(Durability, item.get('durability')),
        _choice(History, item.get('history')),
        depth if isinstance(depth, int) else 0,
    )


def _choice(kind: type[_Choice], value: Any) -> _Choice:
    """Return a policy by its name, or by its number in rmw."""
    members = list(kind)
    if isinstance(value, int):
        return members[value] if 0 <= value < len(members) else kind['UNKNOWN']
    named = {member.value: member for member in members}
    text = value.lower() if isinstance(value, str) else ''
    return named.get(text, kind['UNKNOWN'])
