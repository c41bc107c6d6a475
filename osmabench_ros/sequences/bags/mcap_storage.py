"""MCAP files of a bag: by their index, or without one up to where the data end."""

from __future__ import annotations

import heapq
import io
import struct
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import lz4.frame
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, ChunkIndex, Footer, Message, Schema, Statistics
from mcap.stream_reader import StreamReader

from osmabench_ros.base.fence import limit_error, memory_limit
from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.bags.bag_storage import (
    BagTopic,
    StoredMessage,
    parse_profiles,
)

MAGIC = b'\x89MCAP0\r\n'
_ERRORS = (McapError, ValueError, OverflowError, MemoryError, struct.error, OSError)
"""What mcap raises for damaged files."""
_DEFINITIONS = ('ros2msg', 'ros2idl', 'omgidl')
_MAX_NAMED = 3
"""Damaged chunks that are named one by one."""
_RECORD, _MESSAGE = struct.Struct('<BQ'), struct.Struct('<HIQQ')
_FOOTER_BYTES = _RECORD.size + 20 + len(MAGIC)
_PARSERS: dict[int, Any] = {Opcode.SCHEMA: Schema, Opcode.CHANNEL: Channel}
_MESSAGE_OBJECT_BYTES = 200
"""About what a message takes in memory in addition to its data."""
_UNPACKED_RATIO = 8
"""Size of all unpacked chunks of a file by the memory that it may take at once."""

RawMessage = tuple[int, int, bytes]
"""Channel, log time and data."""


class McapFile:
    """An MCAP file, in the order of log times if it has an index, else as it was written."""

    def __init__(self, path: Path) -> None:
        with path.open('rb') as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise SequenceError(f'{path} is empty or not an MCAP file')
        self._path, self._size_bytes = path, path.stat().st_size
        self._schemas: dict[int, Any] = {}
        self._channels: dict[int, Any] = {}
        self._chunks: list[Any] = []
        self._damage: dict[int, str] = {}
        self.span_ns: tuple[int, int] | None = None
        try:
            counts = self._read_index()
        except _ERRORS:
            counts = self._scan()
        self.topics = self._make_topics(counts)

    @property
    def cut_off(self) -> str:
        """What could not be read so far, empty if nothing."""
        found = [text for _, text in sorted(self._damage.items())]
        more = [f'and {len(found) - _MAX_NAMED} more'] if len(found) > _MAX_NAMED else []
        named = ', '.join([*found[:_MAX_NAMED], *more])
        return f'{self._path.name} is damaged: {named}' if named else ''

    def messages(
        self, topics: Collection[str] | None, start_ns: int, stop_ns: int
    ) -> Iterator[StoredMessage]:
        """Yield messages; damaged chunks are left out, and `cut_off` says so."""
        names = {
            number: (channel.topic, self._schemas[channel.schema_id].name)
            for number, channel in self._channels.items()
            if topics is None or channel.topic in topics
        }
        raw = self._in_order(names, start_ns, stop_ns) if self._chunks else self._as_written()
        for channel, log_ns, data in raw:
            if channel in names and start_ns <= log_ns < stop_ns:
                yield StoredMessage(*names[channel], log_ns, data)

    def _records(self, stream: Any, *, skip_magic: bool = True) -> Iterator[Any]:
        limit = self._size_bytes
        yield from StreamReader(stream, skip_magic, True, record_size_limit=limit).records

    def _read_index(self) -> Mapping[int, int]:
        """Take topics and chunks from the index, and return counts; an error without one."""
        statistics, chunks, channels = None, {}, 0
        # Not by mcap's reader: it would unpack chunks where the footer says that the summary is.
        with self._path.open('rb') as stream:
            stream.seek(-_FOOTER_BYTES, io.SEEK_END)
            (footer,) = self._records(stream)
            stream.seek(footer.summary_start or self._size_bytes)
            for record in self._records(stream):
                self._take(record)
                if isinstance(record, Statistics):
                    statistics = record
                elif isinstance(record, ChunkIndex):
                    chunks[record.chunk_start_offset] = record
                channels += isinstance(record, Channel)
        if statistics is None:
            raise ValueError('it has no statistics')
        if statistics.channel_count > channels or (statistics.message_count and not chunks):
            raise ValueError('its summary does not name all topics and chunks')
        self._chunks = sorted(chunks.values(), key=lambda item: item.message_start_time)
        if statistics.message_count:
            self.span_ns = statistics.message_start_time, statistics.message_end_time
        counts: dict[int, int] = statistics.channel_message_counts
        return counts

    def _scan(self) -> Mapping[int, int]:
        """Take topics and counts from the messages themselves."""
        counts: Counter[int] = Counter()
        for channel, log_ns, _ in self._as_written():
            if channel in self._channels:
                counts[channel] += 1
                first_ns, last_ns = self.span_ns or (log_ns, log_ns)
                self.span_ns = min(first_ns, log_ns), max(last_ns, log_ns)
        return counts

    def _take(self, record: Any) -> None:
        """Remember a schema, or a channel that has one."""
        if isinstance(record, Schema):
            self._schemas.setdefault(record.id, record)
        elif isinstance(record, Channel) and record.schema_id in self._schemas:
            self._channels.setdefault(record.id, record)

    def _make_topics(self, counts: Mapping[int, int]) -> tuple[BagTopic, ...]:
        channels = self._channels.values()
        texts = [item.metadata.get('offered_qos_profiles', '') for item in channels]
        topics = []
        for channel, qos in zip(channels, parse_profiles(self._path, texts), strict=True):
            schema = self._schemas[channel.schema_id]
            text = schema.data.decode(errors='replace') if schema.encoding in _DEFINITIONS else ''
            count = counts.get(channel.id, 0)
            topics.append(BagTopic(channel.topic, schema.name, count, qos, text))
        return tuple(topics)

    def _as_written(self) -> Iterator[RawMessage]:
        """Yield the messages of all topics up to the end of the data."""
        place, limits = 0, _Limits(self._path, self._size_bytes)
        with self._path.open('rb') as stream:
            try:
                for record in self._records(stream, skip_magic=False):
                    self._take(record)
                    if isinstance(record, Message):
                        yield record.channel_id, record.log_time, record.data
                    elif isinstance(record, Chunk):
                        try:
                            yield from self._in_chunk(limits.unpack(record))
                        except _ERRORS as error:
                            self._damage[place] = f'the chunk at byte {place} ({error})'
                    elif isinstance(record, Footer):
                        return
                    place = stream.tell()
            except _ERRORS as error:
                reason = str(error) or 'the rest is missing'
                self._damage[place] = f'it is cut off at byte {place} ({reason})'

    def _in_chunk(self, content: bytes) -> Iterator[RawMessage]:
        for kind, start, end in _records_of(content):
            if kind == Opcode.MESSAGE:
                channel, _, log_ns, _ = _MESSAGE.unpack_from(content, start)
                yield channel, log_ns, content[start + _MESSAGE.size : end]
                continue
            self._take(_PARSERS[kind].read(ReadDataStream(io.BytesIO(content[start:end]))))

    def _in_order(
        self, channels: Collection[int], start_ns: int, stop_ns: int
    ) -> Iterator[RawMessage]:
        """Yield messages of some channels by log time."""
        chunks = [
            chunk
            for chunk in self._chunks
            if chunk.message_start_time < stop_ns
            and chunk.message_end_time >= start_ns
            and not (
                chunk.message_index_offsets
                and chunk.message_index_offsets.keys().isdisjoint(channels)
            )
        ]
        limits = _Limits(self._path, self._size_bytes)
        with self._path.open('rb') as stream:
            parts = (self._sorted(stream, chunk, channels, limits) for chunk in chunks)
            for log_ns, _, start, end, channel, content in heapq.merge(*parts):
                if end:
                    yield channel, log_ns, content[start:end]

    def _sorted(
        self, stream: Any, index: Any, channels: Collection[int], limits: _Limits
    ) -> Iterator[tuple[int, int, int, int, int, bytes]]:
        """Yield a mark, after which the chunk is read, and its messages by log time."""
        place = index.chunk_start_offset
        yield index.message_start_time, place, 0, 0, 0, b''
        found: list[tuple[int, int, int, int, int]] = []
        try:
            stream.seek(place)
            content = limits.unpack(next(self._records(stream)))
            for kind, start, end in _records_of(content):
                if kind == Opcode.MESSAGE:
                    channel, _, log_ns, _ = _MESSAGE.unpack_from(content, start)
                    if channel in channels:
                        found.append((log_ns, place, start + _MESSAGE.size, end, channel))
                        limits.check(len(content), len(found))
        except (*_ERRORS, AttributeError) as error:  # the last if it is not a chunk
            self._damage[place] = f'the chunk at byte {place} ({error})'
            return
        taken = limits.check(len(content), len(found))
        limits.left_bytes -= taken
        for message in sorted(found):
            yield *message, content
        limits.left_bytes += taken


class _Limits:
    """What one pass through a file may still unpack, at once and in total."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self.left_bytes = memory_limit(size_bytes)
        self._total_bytes = _UNPACKED_RATIO * self.left_bytes

    def unpack(self, chunk: Any) -> bytes:
        """Return the content of a chunk; LimitError if it claims to be too large."""
        size = chunk.uncompressed_size
        self._total_bytes -= size
        if size > self.left_bytes or self._total_bytes < 0:
            raise limit_error(self._path, f'has a chunk that claims {size} bytes')
        if chunk.compression not in _UNPACKERS:
            raise ValueError(f'compression "{chunk.compression}" is unknown')
        content: bytes = _UNPACKERS[chunk.compression](chunk.data, size)
        if len(content) != size:
            raise ValueError(f'it does not unpack to the {size} bytes that it claims')
        if chunk.uncompressed_crc not in (0, zlib.crc32(content)):
            raise ValueError('its checksum is wrong')
        return content

    def check(self, content_bytes: int, count: int) -> int:
        """Return the memory of a chunk and messages of it; LimitError if it is too much."""
        taken = content_bytes + _MESSAGE_OBJECT_BYTES * count
        if taken > self.left_bytes:
            raise limit_error(self._path, 'fills the memory with messages of one time')
        return taken


def _records_of(content: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield kind, start and end of the records of a chunk; mcap would not check their lengths."""
    end = 0
    while end < len(content):
        kind, length = _RECORD.unpack_from(content, end)
        start, end = end + _RECORD.size, end + _RECORD.size + length
        least = _MESSAGE.size if kind == Opcode.MESSAGE else 0
        if end > len(content) or kind not in (*_PARSERS, Opcode.MESSAGE) or length < least:
            raise ValueError(f'a record of kind {kind} has {length} bytes')
        yield kind, start, end


def _unpack_zstd(data: bytes, size: int) -> bytes:
    try:
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            return bytes(reader.read(size + 1))
    except zstandard.ZstdError as error:
        raise ValueError(error) from error


def _unpack_lz4(data: bytes, size: int) -> bytes:
    try:
        return bytes(lz4.frame.LZ4FrameDecompressor().decompress(data, size + 1))
    except (RuntimeError, EOFError) as error:
        raise ValueError(error) from error


_UNPACKERS = {'': lambda data, _: data, 'zstd': _unpack_zstd, 'lz4': _unpack_lz4}
