"""What a file of a bag gives, of whatever kind it is."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

from osmabench_ros.sequences.bag_qos import OfferedQos


@dataclass(frozen=True)
class BagTopic:
    """A topic with one type; the count includes repeats, what the bag does not say is empty."""

    topic: str
    message_type: str
    message_count: int
    qos: tuple[OfferedQos, ...] = ()
    definition: str = ''

    @property
    def latched(self) -> bool:
        """Whether a publisher kept its last message for those who come late."""
        return any(item.latched for item in self.qos)


@dataclass(frozen=True)
class StoredMessage:
    """A serialized message as a file holds it, possibly compressed."""

    topic: str
    message_type: str
    log_ns: int
    data: bytes


class Storage(Protocol):
    """One file of a bag."""

    @property
    def topics(self) -> tuple[BagTopic, ...]:
        """What is in the file."""

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """First and last log time, None if there is no message."""

    @property
    def cut_off(self) -> str:
        """Why the file could not be read to its end as yet, empty if it could."""

    def messages(
        self, topics: Collection[str] | None, start_ns: int | None, stop_ns: int | None
    ) -> Iterator[StoredMessage]:
        """Yield messages of some topics, or all, at or after one time and before another."""

    def close(self) -> None:
        """Close the file."""
