"""The one reader of ROS 2 bags: SQLite and MCAP, Humble to Lyrical; needs no ROS."""

from __future__ import annotations

import hashlib
import tempfile
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osmabench_ros.base.configuration import extra
from osmabench_ros.errors import needing
from osmabench_ros.sequences.bags import bag_storage
from osmabench_ros.sequences.bags.bag_types import BagTypes

if TYPE_CHECKING:
    from osmabench_ros.sequences.bags.mcap_storage import McapFile

    Storage = bag_storage.SqliteFile | McapFile

# Messages of one topic that a recorder may write again at a split.
MAX_REPEATED = 200


@dataclass(frozen=True)
class BagMessage:
    """A message; `log_ns` is the time of recording, `data` is CDR with its 4-byte header."""

    topic: str
    message_type: str
    log_ns: int
    data: bytes
    _types: BagTypes = field(repr=False, compare=False)

    @property
    def header_stamp_ns(self) -> int | None:
        """Stamp of its header, None if the type has none or is unknown."""
        return self._types.stamp_ns(self.data, self.message_type)

    def deserialise(self) -> Any:
        """Return an object with the message's fields; raises as `BagTypes.deserialise`."""
        return self._types.deserialise(self.data, self.message_type, self.topic)


@dataclass(frozen=True, eq=False)
class Bag(AbstractContextManager['Bag']):
    """An open bag, which `open_bag` makes; a context manager that closes it."""

    path: Path
    types: BagTypes
    _storages: Sequence[Storage]
    _damage: Sequence[str]
    _resources: ExitStack

    @cached_property
    def connections(self) -> tuple[bag_storage.BagTopic, ...]:
        """The topics of all files, merged by name and type."""
        merged: dict[tuple[str, str], bag_storage.BagTopic] = {}
        for item in (topic for storage in self._storages for topic in storage.topics):
            key = (item.topic, item.message_type)
            before = merged.get(key, bag_storage.BagTopic(*key))
            count = item.message_count + before.message_count
            qos, definition = item.qos or before.qos, item.definition or before.definition
            merged[key] = bag_storage.BagTopic(*key, count, qos, definition)
        return tuple(merged.values())

    @property
    def connections_by_topic(self) -> dict[str, bag_storage.BagTopic]:
        """Topics by name; of two types on one topic, that with more messages."""
        ordered = sorted(self.connections, key=lambda item: item.message_count)
        return {item.topic: item for item in ordered}

    @property
    def span_ns(self) -> tuple[int, int]:
        """Log times of the first and the last message; zeros for a bag without any."""
        spans = [item.span_ns for item in self._storages if item.span_ns is not None]
        if not spans:
            return 0, 0
        return min(span[0] for span in spans), max(span[1] for span in spans)

    @property
    def cut_off(self) -> str:
        """Why the bag is incomplete, '' if it is complete; `messages` finds damage as it reads."""
        return '; '.join(filter(None, [*self._damage, *(item.cut_off for item in self._storages)]))

    def messages(
        self,
        topics: Collection[str] | None = None,
        *,
        start_ns: int = 0,
        stop_ns: int = bag_storage.MAX_LOG_NS,
    ) -> Iterator[BagMessage]:
        """Yield messages file by file, within a complete file in the order of log times.

        They are of some topics, by absolute names, or all, from the log time `start_ns` on and
        before `stop_ns`. A latched message that the recorder wrote again at a split comes once.
        Memory is bounded by the largest chunks of the bag. Raises SequenceError for a damaged
        SQLite file or compressed message.
        """
        last: dict[str, deque[bytes]] = {
            item.topic: deque(maxlen=MAX_REPEATED) for item in self.connections if item.latched
        }
        # Topics of which the current file has had only repeated messages.
        at_start: set[str] = set()
        for storage in self._storages:
            for topic, kind, log_ns, stored in storage.messages(topics, start_ns, stop_ns):
                data = bag_storage.unpack_message(stored, topic)
                if topic in last:
                    digest = hashlib.sha256(data).digest()
                    if topic in at_start and digest in last[topic]:
                        continue
                    at_start.discard(topic)
                    last[topic].append(digest)
                yield BagMessage(topic, kind, log_ns, data, self.types)
            at_start = set(last)

    def close(self) -> None:
        """Close all files."""
        self._resources.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def open_bag(path: Path, msg_paths: Sequence[Path] = ()) -> Bag:
    """Open a bag of any distribution from Humble to Lyrical; needs no ROS.

    `path` is the folder of a bag, also without metadata.yaml or with the bag in bag/, or one of
    its files, .mcap or .db3, also packed as .zstd. `msg_paths` are .msg or .idl files, or folders
    of them, for types that the bag does not define, as SQLite bags of Humble. Raises
    SequenceError, which names the file, if there is no bag or nothing of it can be read,
    MissingDependencyError without rosbags or mcap.
    """
    with needing('bags need mcap, rosbags and zstandard', extra('bags')):
        import rosbags.typesys  # noqa: F401
    files, distribution, damage = bag_storage.files_of(path)
    with ExitStack() as resources:
        storages = [_open_file(file, damage, resources) for file in files]
        definitions = {
            item.message_type: item.definition
            for storage in storages
            for item in storage.topics
            if item.definition
        }
        types = BagTypes(definitions, msg_paths, distribution)
        return Bag(path, types, storages, damage, resources.pop_all())


def _open_file(path: Path, damage: list[str], resources: ExitStack) -> Storage:
    """Open a file, or a copy that can be read, and add its damage to the list."""
    if path.suffix == bag_storage.ZSTD_SUFFIX or bag_storage.has_log(path):
        folder = resources.enter_context(tempfile.TemporaryDirectory(prefix='osmabench_bag_'))
        copy = Path(folder, path.name.removesuffix(bag_storage.ZSTD_SUFFIX))
        if path.suffix == bag_storage.ZSTD_SUFFIX:
            damage.append(bag_storage.unpack_file(path, copy))
        else:
            bag_storage.copy_with_log(path, copy)
            damage.append(f'{path.name} was not closed by its recorder')
        path = copy
    if path.suffix == '.db3':
        return bag_storage.SqliteFile(path)
    from osmabench_ros.sequences.bags.mcap_storage import McapFile

    return McapFile(path)
