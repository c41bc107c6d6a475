"""MCAP files of a bag, read by their index, or sequentially without one."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.base.limits.meter import Stopwatch
from osmabench_ros.errors import LimitError, SequenceError
from osmabench_ros.sequences.bags.bag_storage import BagTopic, StoredMessage, parse_offered_qos
from osmabench_ros.sequences.bags.mcap_records import (
    CHANNEL,
    CHUNK,
    CHUNK_INDEX,
    MAX_LOG_NS,
    MESSAGE,
    SCHEMA,
    STATISTICS,
    McapRecords,
    Message,
    memory_of,
    message_of,
)

_DEFINITIONS = ('ros2msg', 'ros2idl', 'omgidl')
MOST_NAMED = 3
"""Damaged places that are named one by one."""
_Span = tuple[int | None, int | None]


class _Topics:
    """The schemas and channels of a file."""

    def __init__(self) -> None:
        self._schemas: dict[int, Any] = {}
        self.channels: dict[int, Any] = {}
        self.seen: set[int] = set()

    def take(self, kind: int, record: Any) -> None:
        """Remember a schema or a channel."""
        if kind == SCHEMA:
            self._schemas[record.id] = record
        elif kind == CHANNEL:
            self.seen.add(record.id)
            if record.schema_id in self._schemas:
                self.channels[record.id] = record

    def message(self, channel: int, log_ns: int, data: bytes) -> StoredMessage:
        """Return a message of a channel."""
        found = self.channels[channel]
        name = self._schemas[found.schema_id].name
        return StoredMessage(found.topic, name, log_ns, data)

    def counted(
        self, path: Path, size_bytes: int, counts: Mapping[int, int]
    ) -> tuple[BagTopic, ...]:
        """Return the topics of all channels, within the time limit of the file."""
        watch, found = Stopwatch(path, size_bytes), []
        for channel in self.channels:
            with watch.running():
                found.append(self._topic(channel, counts.get(channel, 0)))
        return tuple(found)

    def _topic(self, channel: int, count: int) -> BagTopic:
        found = self.channels[channel]
        schema = self._schemas[found.schema_id]
        text = schema.data.decode(errors='replace') if schema.encoding in _DEFINITIONS else ''
        qos = parse_offered_qos(found.metadata.get('offered_qos_profiles', ''))
        return BagTopic(found.topic, schema.name, count, qos, text)


class _Damage:
    """The places of a file that could not be read, each once."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._places: dict[int, str] = {}

    def note(self, place: int, reason: Exception, when: str = '') -> None:
        """Remember the chunk at a byte."""
        self._places[place] = f'the chunk at byte {place}{when} ({reason})'

    @property
    def text(self) -> str:
        """Description of the damage, empty if there is none."""
        found = [text for _, text in sorted(self._places.items())]
        more = f' and {len(found) - MOST_NAMED} more' if len(found) > MOST_NAMED else ''
        named = ', '.join(found[:MOST_NAMED])
        return f'{self._name} is damaged: {named}{more}' if found else ''


class IndexedMcap:
    """A complete file in the order of log times; ValueError without a plausible index."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._damage = _Damage(path)
        self._topics = _Topics()
        self._records = McapRecords(path)
        try:
            self._chunks, statistics = self._summary()
        except BaseException:
            self._records.close()
            raise
        counts = statistics.channel_message_counts
        self.topics = self._topics.counted(path, self._records.size_bytes, counts)
        self.span_ns: tuple[int, int] | None = None
        if statistics.message_count:
            self.span_ns = (statistics.message_start_time, statistics.message_end_time)

    @property
    def cut_off(self) -> str:
        """What could not be read so far, empty if nothing."""
        return self._damage.text

    def _summary(self) -> tuple[list[Any], Any]:
        chunks, statistics = [], None
        for kind, record in self._records.read(self._records.summary_start()):
            self._topics.take(kind, record)
            if kind == CHUNK_INDEX:
                chunks.append(record)
            elif kind == STATISTICS:
                statistics = record
        if statistics is None or statistics.message_end_time > MAX_LOG_NS:
            raise ValueError('it has no statistics')
        if statistics.channel_count > len(self._topics.seen) or (
            statistics.message_count and not chunks
        ):
            raise ValueError('its summary does not name all topics and chunks')
        end = 0
        for chunk in sorted(chunks, key=lambda item: item.chunk_start_offset):
            # Otherwise one chunk could be unpacked any number of times.
            if chunk.chunk_start_offset < end or not chunk.chunk_length:
                raise ValueError('chunks overlap')
            end = chunk.chunk_start_offset + chunk.chunk_length
        return chunks, statistics

    def messages(
        self, topics: Collection[str] | None, start_ns: int | None, stop_ns: int | None
    ) -> Iterator[StoredMessage]:
        """Yield messages; damaged chunks are left out, and `cut_off` says so."""
        channels = {
            number
            for number, channel in self._topics.channels.items()
            if topics is None or channel.topic in topics
        }
        chunks = [
            chunk
            for chunk in sorted(self._chunks, key=lambda item: item.message_start_time)
            if not (
                chunk.message_index_offsets and channels.isdisjoint(chunk.message_index_offsets)
            )
            and (stop_ns is None or chunk.message_start_time < stop_ns)
            and (start_ns is None or chunk.message_end_time >= start_ns)
        ]
        reading = _ChunkReading(self._records, channels, (start_ns, stop_ns), self._note)
        for log_ns, _, place, end, channel, content in heapq.merge(*map(reading.of, chunks)):
            if content is not None:
                yield self._topics.message(channel, log_ns, bytes(content[place:end]))

    def _note(self, chunk: Any, reason: Exception) -> None:
        first_ns = (self.span_ns or (0, 0))[0]
        start_s, end_s = (
            (time_ns - first_ns) / 1e9
            for time_ns in (chunk.message_start_time, chunk.message_end_time)
        )
        when = f', {start_s:.2f} to {end_s:.2f} s after its first message'
        self._damage.note(chunk.chunk_start_offset, reason, when)

    def close(self) -> None:
        """Close the file."""
        self._records.close()


class _ChunkReading:
    """One pass through the chunks of a file, with bounded memory and time."""

    def __init__(
        self,
        records: McapRecords,
        channels: set[int],
        span: _Span,
        on_damage: Callable[[Any, Exception], None],
    ) -> None:
        self._records, self._channels, self._on_damage = records, channels, on_damage
        self._start_ns, self._stop_ns = span
        self._watch = Stopwatch(records.path, records.size_bytes)
        self._left = allowance().memory_bytes(records.size_bytes)

    def of(
        self, index: Any
    ) -> Iterator[tuple[int, int, int, int, int, bytes | memoryview | None]]:
        """Yield the messages of a chunk by time, after a mark before the chunk is read."""
        start = index.chunk_start_offset
        yield index.message_start_time, start, -1, 0, 0, None
        try:
            with self._watch.running():
                content = self._records.unpacked(self._records.chunk_at(start))
                messages = self._messages(content)
        except (ValueError, OSError) as error:
            self._on_damage(index, error)
            return
        taken = memory_of(content, messages)
        self._left -= taken
        for log_ns, place, channel, end in messages:
            yield log_ns, start, place, end, channel, content
        self._left += taken

    def _messages(self, content: bytes | memoryview) -> list[Message]:
        found: list[Message] = []
        self._check(content, found)
        for kind, message in self._records.records_of(content):
            if kind == MESSAGE and message[2] in self._channels:
                late = self._stop_ns is not None and message[0] >= self._stop_ns
                early = self._start_ns is not None and message[0] < self._start_ns
                if not early and not late:
                    found.append(message)
                    self._check(content, found)
        return sorted(found)

    def _check(self, content: bytes | memoryview, messages: list[Message]) -> None:
        if memory_of(content, messages) > self._left:
            raise exceeded(
                self._records.path,
                'the messages of its chunks of one time fill the memory',
                'memory_ratio',
            )


class StreamedMcap:
    """A file without index, in the order of writing; SequenceError if it is no MCAP file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._damage = _Damage(path)
        self._cut = ''
        self._topics = _Topics()
        self._recognised = False
        counts: Counter[int] = Counter()
        self.span_ns: tuple[int, int] | None = None
        for channel, log_ns, _ in self._messages():
            counts[channel] += 1
            first_ns, last_ns = self.span_ns or (log_ns, log_ns)
            self.span_ns = min(first_ns, log_ns), max(last_ns, log_ns)
        if not self._recognised:
            raise SequenceError(f'{path} is empty or no MCAP file ({self.cut_off})')
        self.topics = self._topics.counted(path, path.stat().st_size, counts)

    @property
    def cut_off(self) -> str:
        """What could not be read, empty if nothing."""
        return '; '.join(filter(None, (self._damage.text, self._cut)))

    def messages(
        self, topics: Collection[str] | None, start_ns: int | None, stop_ns: int | None
    ) -> Iterator[StoredMessage]:
        """Yield messages up to the end of the data; damaged chunks are left out."""
        for channel, log_ns, data in self._messages():
            if topics is not None and self._topics.channels[channel].topic not in topics:
                continue
            early = start_ns is not None and log_ns < start_ns
            late = stop_ns is not None and log_ns >= stop_ns
            if not early and not late:
                yield self._topics.message(channel, log_ns, data)

    def close(self) -> None:
        """Do nothing; the file is open only while it is read."""

    def _messages(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield channel, log time and data up to the end of the data."""
        try:
            records = McapRecords(self._path)
        except (ValueError, OSError) as error:
            self._cut = f'{self._path.name}: {error}'
            return
        watch = Stopwatch(self._path, records.size_bytes)
        try:
            for kind, record in records.read():
                self._recognised = True
                self._topics.take(kind, record)
                if kind == MESSAGE:
                    channel, log_ns, data = message_of(record)
                    if channel in self._topics.channels:
                        yield channel, log_ns, data
                elif kind == CHUNK:
                    try:
                        with watch.running():
                            content = records.unpacked(record)
                        yield from self._in_chunk(records, content)
                    except ValueError as error:
                        self._damage.note(records.place, error)
        except (ValueError, OSError) as error:
            self._cut = f'{self._path.name}: {error}'
        finally:
            records.close()

    def _in_chunk(
        self, records: McapRecords, content: bytes | memoryview
    ) -> Iterator[tuple[int, int, bytes]]:
        for kind, record in records.records_of(content):
            self._topics.take(kind, record)
            if kind == MESSAGE and record[2] in self._topics.channels:
                log_ns, place, channel, end = record
                yield channel, log_ns, bytes(content[place:end])


def open_mcap(path: Path) -> IndexedMcap | StreamedMcap:
    """Open a file by its index, or without if it has no usable one."""
    try:
        return IndexedMcap(path)
    except LimitError:
        raise
    except (ValueError, OSError):
        return StreamedMcap(path)
