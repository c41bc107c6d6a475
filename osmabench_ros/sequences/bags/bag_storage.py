"""The interface of bag files, and their compression."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.base.limits.meter import Stopwatch
from osmabench_ros.errors import SequenceError, errors_as, needing
from osmabench_ros.sequences.bags.bag_qos import OfferedQos

ZSTD_SUFFIX = '.zstd'
MAGIC = b'\x28\xb5\x2f\xfd'
BLOCK_BYTES = 2**20


def unpacked(data: bytes, topic: str) -> bytes:
    """Return a message as published; SequenceError if it is damaged, LimitError if too large."""
    if data[:4] != MAGIC:
        return data
    zstandard = _zstandard()
    with errors_as(
        SequenceError, f'topic "{topic}": a compressed message is damaged', zstandard.ZstdError
    ):
        limit = allowance().memory_bytes(len(data))
        size = zstandard.frame_content_size(data)
        if size > limit:
            raise exceeded(
                f'topic "{topic}"', f'a compressed message claims {size} bytes', 'memory_ratio'
            )
        unknown = limit if size < 0 else 0
        return bytes(zstandard.ZstdDecompressor().decompress(data, max_output_size=unknown))


def unpack_file(source: Path, target: Path) -> str:
    """Unpack a file as far as possible; return why it ended early, empty if it did not."""
    zstandard = _zstandard()
    size_bytes = source.stat().st_size
    limit = allowance().memory_bytes(size_bytes)
    watch = Stopwatch(source, size_bytes)
    with source.open('rb') as packed, target.open('wb') as plain:
        reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        while True:
            try:
                with watch.running():
                    block = reader.read(BLOCK_BYTES)
            except zstandard.ZstdError as error:
                return f'{source.name}: {error}'
            if not block:
                return ''
            limit -= len(block)
            if limit < 0:
                raise exceeded(source, 'it unpacks to far more than its size', 'memory_ratio')
            try:
                plain.write(block)
            except OSError as error:
                raise SequenceError(
                    f'{source} cannot be unpacked to {target.parent}: {error.strerror}; free '
                    'disk space, or set TMPDIR to another disk'
                ) from error


def _zstandard() -> Any:
    with needing('compressed bags need zstandard', 'pip install osmabench_ros[bags]'):
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
        self, topics: Collection[str] | None, start_ns: int | None, stop_ns: int | None
    ) -> Iterator[StoredMessage]:
        """Yield messages of some topics, or all, at or after one time and before another."""

    def close(self) -> None:
        """Close the file."""
