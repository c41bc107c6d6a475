"""The files of a bag, each read with its index by rosbags, or as far as it goes without."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from osmabench_ros.errors import MissingDependencyError
from osmabench_ros.sequences.bag_qos import Durability, History, OfferedQos, Reliability


@dataclass(frozen=True)
class BagTopic:
    """A topic of a bag with one type.

    Parameters
    ----------
    topic : str
        Absolute name.
    message_type : str
        Such as ``sensor_msgs/msg/Image``.
    message_count : int
        In all files, those included that repeat a latched message.
    qos : tuple of OfferedQos
        Of its publishers; empty if the bag does not say.
    definition : str
        Embedded text (ros2msg or ros2idl), empty if there is none.
    """

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


class IndexedStorage:
    """A complete file, read in the order of log times.

    Parameters
    ----------
    path : Path
        An .mcap or .db3 file.

    Raises
    ------
    MissingDependencyError
        If rosbags is not installed.
    Exception
        Of any kind, if the file is not complete.
    """

    def __init__(self, path: Path) -> None:
        try:
            from rosbags.rosbag2 import Reader
        except ImportError as error:
            raise MissingDependencyError(
                f'bags need rosbags ({error}); pip install osmabench_ros[bags]'
            ) from error
        self._path = path
        self._reader = Reader(path)
        self._reader.open()
        self.cut_off = ''
        self.topics = tuple(_bag_topic(item) for item in self._reader.connections)
        self.span_ns: tuple[int, int] | None = None
        if self._reader.message_count:
            # rosbags' end lies behind the last message.
            self.span_ns = (self._reader.start_time, self._reader.end_time - 1)

    def messages(
        self, topics: Collection[str] | None, start_ns: int | None, stop_ns: int | None
    ) -> Iterator[StoredMessage]:
        """Yield messages; a damaged place ends them, and `cut_off` says so."""
        chosen = [
            item for item in self._reader.connections if topics is None or item.topic in topics
        ]
        if not chosen:
            return
        iterator = self._reader.messages(chosen, start_ns, stop_ns)
        while True:
            # Over damage stumble rosbags, SQLite, struct or a decompressor, each with errors of
            # its own; what came before is good in any case.
            try:
                connection, log_ns, data = next(iterator)
            except StopIteration:
                return
            except Exception as error:
                self.cut_off = f'{self._path.name}: {reason(error)}'
                return
            yield StoredMessage(connection.topic, connection.msgtype, log_ns, data)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()


def reason(error: Exception) -> str:
    """Return what an error says, or its kind if it says nothing."""
    return str(error) or type(error).__name__


def _bag_topic(connection: Any) -> BagTopic:
    return BagTopic(
        connection.topic,
        connection.msgtype,
        connection.msgcount,
        tuple(_offered(item) for item in connection.ext.offered_qos_profiles),
        connection.msgdef.data,
    )


def _offered(profile: Any) -> OfferedQos:
    return OfferedQos(
        Reliability[profile.reliability.name],
        Durability[profile.durability.name],
        History[profile.history.name],
        profile.depth,
    )
