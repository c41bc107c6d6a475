"""The interface of bag files, their compression, and quality of service as they record it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.documents import parse_yaml
from osmabench_ros.base.fence import limit_error, memory_limit
from osmabench_ros.errors import OsmabenchError, SequenceError, errors_as, needing

INFINITE = {'sec': 9223372036, 'nsec': 854775807}
"""How rosbag2 writes a deadline, lifespan or lease that never ends."""

MAX_LOG_NS = 2**63 - 1
MAX_TEXT, MAX_TEXTS = 2**15, 2**22
"""Characters of the profiles of a topic, and of a file; a publisher takes some hundred."""

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


def parse_profiles(path: Path, texts: Sequence[Any]) -> list[tuple[OfferedQos, ...]]:
    """Read the profiles of the topics of a file; LimitError if they are too long."""
    if sum(len(text) for text in set(texts) if isinstance(text, str)) > MAX_TEXTS:
        raise limit_error(path, 'describes the quality of service of its topics at great length')
    return [parse_offered_qos(text) for text in texts]


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


ZSTD_SUFFIX = '.zstd'
MAGIC = b'\x28\xb5\x2f\xfd'
BLOCK_BYTES = 2**20


def unpack_message(data: bytes, topic: str) -> bytes:
    """Return a message as published; SequenceError if it is damaged, LimitError if too large."""
    if data[:4] != MAGIC:
        return data
    zstandard = _zstandard()
    limit = memory_limit(len(data))
    with errors_as(
        SequenceError, f'topic "{topic}": a compressed message is damaged', zstandard.ZstdError
    ):
        size = zstandard.frame_content_size(data)
        if size > limit:
            raise limit_error(f'topic "{topic}"', f'has a compressed message of {size} bytes')
        unknown = limit if size < 0 else 0
        return bytes(zstandard.ZstdDecompressor().decompress(data, max_output_size=unknown))


def unpack_file(source: Path, target: Path) -> str:
    """Unpack a file as far as possible; return why it ended early, empty if it did not."""
    zstandard = _zstandard()
    left = memory_limit(source.stat().st_size)
    remedy = 'free disk space, or set TMPDIR to another disk'
    with source.open('rb') as packed, target.open('wb') as plain:
        reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        try:
            while block := reader.read(BLOCK_BYTES):
                left -= len(block)
                if left < 0:
                    raise limit_error(source, 'unpacks to far more than its size')
                with errors_as(SequenceError, f'{source} cannot be unpacked to {target.parent}',
                               OSError, remedy=remedy):  # fmt: skip
                    plain.write(block)
        except zstandard.ZstdError as error:
            return f'{source.name}: {error}'
    return ''


def _zstandard() -> Any:
    with needing('compressed bags need zstandard', extra('bags')):
        import zstandard
    return zstandard


@dataclass(frozen=True)
class BagTopic:
    """A topic with one type; the count includes repetitions, unknown texts are empty."""

    topic: str
    message_type: str
    message_count: int
    qos: tuple[OfferedQos, ...] = ()
    definition: str = ''

    @property
    def latched(self) -> bool:
        """Whether a publisher kept its last message for late joiners."""
        return any(item.latched for item in self.qos)


@dataclass(frozen=True)
class StoredMessage:
    """A serialized message in a file, possibly compressed."""

    topic: str
    message_type: str
    log_ns: int
    data: bytes


class Storage(Protocol):
    """One file of a bag."""

    @property
    def topics(self) -> tuple[BagTopic, ...]:
        """Topics in the file."""

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """First and last log time, None if there is no message."""

    @property
    def cut_off(self) -> str:
        """Why the file could not be read to its end so far, empty if it could."""

    def messages(
        self, topics: Collection[str] | None, start_ns: int, stop_ns: int
    ) -> Iterator[StoredMessage]:
        """Yield messages of some topics, or all, at or after one time and before another."""
