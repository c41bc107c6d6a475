"""MCAP files of a bag: by their index, or without one up to where the data end."""

from __future__ import annotations

import io
import struct
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import zstandard
from lz4.frame import LZ4FrameDecompressor
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, ChunkIndex, Footer, Message, Schema, Statistics
from mcap.stream_reader import StreamReader

from osmabench_ros.base.fence import limit_error, memory_limit
from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.bags.bag_storage import BagTopic, StoredMessage, parse_profiles

MAGIC = b'\x89MCAP0\r\n'
# Errors that the libraries raise for damaged files.
_ERRORS = (
    McapError, zstandard.ZstdError, ValueError, ArithmeticError, MemoryError, RuntimeError,
    struct.error, OSError, EOFError, AttributeError,
)  # fmt: skip
_DEFINITIONS = ('ros2msg', 'ros2idl', 'omgidl')
_RECORD = struct.Struct('<BQ')
_MESSAGE = struct.Struct('<HIQQ')
_FOOTER_BYTES = _RECORD.size + 20 + len(MAGIC)
_PARSERS: dict[int, Any] = {Opcode.SCHEMA: Schema, Opcode.CHANNEL: Channel}
# Approximate memory of a message in addition to its data.
_MESSAGE_OBJECT_BYTES = 200
# Size of all unpacked chunks of a file by the memory that it may take at once.
_UNPACKED_RATIO = 8
# Unpack up to a number of bytes; the library would believe a size in the packed data.
_UNPACKERS: dict[str, Any] = {
    '': lambda data, _: data,
    'zstd': lambda data, size: (
        zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read(size)
    ),
    'lz4': lambda data, size: LZ4FrameDecompressor().decompress(data, size),
}


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
        """The first damage that was found so far, empty if there is none."""
        if not self._damage:
            return ''
        more = len(self._damage) - 1
        first = self._damage[min(self._damage)]
        return f'{self._path.name} is damaged: {first}' + (f', and {more} more' if more else '')

    def messages(
        self, topics: Collection[str] | None, start_ns: int, stop_ns: int
    ) -> Iterator[StoredMessage]:
        """Yield messages; damaged chunks are left out, and `cut_off` says so."""
        names = {
            number: (channel.topic, self._schemas[channel.schema_id].name)
            for number, channel in self._channels.items()
            if topics is None or channel.topic in topics
        }
        found = self._in_order(names, start_ns, stop_ns) if self._chunks else self._as_written()
        for item in found:
            if item.channel_id in names and start_ns <= item.log_time < stop_ns:
                yield *names[item.channel_id], item.log_time, item.data

    def _records(self, stream: Any, place: int = 0) -> Iterator[Any]:
        """Yield the records from a place on, chunks as they are."""
        stream.seek(place)
        limit = self._size_bytes
        yield from StreamReader(stream, place > 0, True, record_size_limit=limit).records

    def _read_index(self) -> Mapping[int, int]:
        """Take topics and chunks from the index, and return counts; an error without one."""
        statistics = None
        chunks = {}
        channels = 0
        # Not by mcap's reader: it would unpack chunks where the footer says that the summary is.
        with self._path.open('rb') as stream:
            (footer,) = self._records(stream, self._size_bytes - _FOOTER_BYTES)
            for record in self._records(stream, footer.summary_start or self._size_bytes):
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
        return dict(statistics.channel_message_counts)

    def _scan(self) -> Mapping[int, int]:
        """Take topics and counts from the messages themselves."""
        counts: Counter[int] = Counter()
        for item in self._as_written():
            if item.channel_id in self._channels:
                counts[item.channel_id] += 1
                first_ns, last_ns = self.span_ns or (item.log_time, item.log_time)
                self.span_ns = min(first_ns, item.log_time), max(last_ns, item.log_time)
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

    def _as_written(self) -> Iterator[Any]:
        """Yield the messages of all topics up to the end of the data."""
        place, unpacker = 0, _Unpacker(self._path, self._size_bytes)
        with self._path.open('rb') as stream:
            try:
                for record in self._records(stream):
                    parts = iter([record])
                    if isinstance(record, Chunk):
                        parts = self._open_chunk(parts, place, unpacker)
                    for part in parts:
                        self._take(part)
                        if isinstance(part, Message):
                            yield part
                    if isinstance(record, Footer):
                        return
                    place = stream.tell()
            except _ERRORS as error:
                reason = str(error) or 'the rest is missing'
                self._damage[place] = f'it is cut off at byte {place} ({reason})'

    def _in_order(self, channels: Collection[int], start_ns: int, stop_ns: int) -> Iterator[Any]:
        """Yield messages of some channels by log time; a chunk is read when its time comes."""
        unpacker = _Unpacker(self._path, self._size_bytes)
        waiting = list[Any]()
        with self._path.open('rb') as stream:
            for chunk in self._chunks:
                holds_none = chunk.message_index_offsets and (
                    chunk.message_index_offsets.keys().isdisjoint(channels)
                )
                in_time = chunk.message_start_time < stop_ns and chunk.message_end_time >= start_ns
                if holds_none or not in_time:
                    continue
                while waiting and waiting[0][0] < chunk.message_start_time:
                    yield unpacker.release(heappop(waiting)[-1])
                place = chunk.chunk_start_offset
                parts = self._open_chunk(self._records(stream, place), place, unpacker)
                held = [
                    (part.log_time, place, number, unpacker.hold(part))
                    for number, part in enumerate(parts)
                    if part.channel_id in channels
                ]
                for item in held:
                    if place in self._damage:
                        unpacker.release(item[-1])
                    else:
                        heappush(waiting, item)
            while waiting:
                yield heappop(waiting)[-1]

    def _open_chunk(self, chunk: Iterator[Any], place: int, unpacker: _Unpacker) -> Iterator[Any]:
        """Yield the records in a chunk, the first of some records, up to the first damage."""
        try:
            yield from _split(unpacker.unpack(next(chunk)), with_topics=not self._chunks)
        except _ERRORS as error:
            self._damage[place] = f'the chunk at byte {place} ({error})'


def _split(content: bytes, *, with_topics: bool) -> Iterator[Any]:
    """Yield the records in the content of a chunk; mcap would pass over wrong lengths."""
    end = 0
    while end < len(content):
        kind, length = _RECORD.unpack_from(content, end)
        start = end + _RECORD.size
        end = end + _RECORD.size + length
        min_bytes = _MESSAGE.size if kind == Opcode.MESSAGE else 0
        if end > len(content) or length < min_bytes:
            raise ValueError(f'a record of kind {kind} has {length} bytes')
        if kind == Opcode.MESSAGE:
            channel, number, log_ns, publish_ns = _MESSAGE.unpack_from(content, start)
            data = content[start + _MESSAGE.size : end]
            yield Message(channel, log_ns, data, publish_ns, number)
        elif kind not in _PARSERS:
            raise ValueError(f'a record of kind {kind} is in it')
        elif with_topics:
            yield _PARSERS[kind].read(ReadDataStream(io.BytesIO(content[start:end])))


class _Unpacker:
    """Unpacks chunks within the memory that one pass through a file may take."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self._left_bytes = memory_limit(size_bytes)
        self._total_bytes = _UNPACKED_RATIO * self._left_bytes

    def unpack(self, chunk: Any) -> bytes:
        """Return the content of a chunk; LimitError if it claims to be too large."""
        size = chunk.uncompressed_size
        self._total_bytes -= size
        if size > min(self._left_bytes, self._total_bytes):
            raise limit_error(self._path, f'has a chunk that claims {size} bytes')
        if chunk.compression not in _UNPACKERS:
            raise ValueError(f'compression "{chunk.compression}" is unknown')
        content: bytes = _UNPACKERS[chunk.compression](chunk.data, size + 1)
        if len(content) != size:
            raise ValueError(f'it does not unpack to the {size} bytes that it claims')
        if chunk.uncompressed_crc not in (0, zlib.crc32(content)):
            raise ValueError('its checksum is wrong')
        return content

    def hold(self, message: Any) -> Any:
        """Count a message that waits for its time; LimitError if the memory is full."""
        self._left_bytes -= len(message.data) + _MESSAGE_OBJECT_BYTES
        if self._left_bytes < 0:
            raise limit_error(self._path, 'fills the memory with messages of one time')
        return message

    def release(self, message: Any) -> Any:
        """Return a message that waits no longer."""
        self._left_bytes += len(message.data) + _MESSAGE_OBJECT_BYTES
        return message
