"""Bag files whose writing was cut off, read as far as they go."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from osmabench_ros.errors import MissingDependencyError, SequenceError
from osmabench_ros.sequences.bag_qos import parse_offered_qos
from osmabench_ros.sequences.bag_storage import BagTopic, StoredMessage, reason

MAX_RECORD_BYTES = 2**30
"""Of a record in an MCAP file; a longer one is damage."""


class StreamedMcap:
    """An MCAP file without index, in the order it was written.

    Parameters
    ----------
    path : Path
        File; looked through once for its topics.

    Raises
    ------
    SequenceError
        If it is empty or no MCAP file.
    MissingDependencyError
        If mcap is not installed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mcap = _mcap()
        self.cut_off = ''
        self._recognised = False
        channels: dict[int, tuple[Any, Any]] = {}
        counts: Counter[int] = Counter()
        self.span_ns: tuple[int, int] | None = None
        for schema, channel, message in self._records():
            channels[channel.id] = (schema, channel)
            counts[channel.id] += 1
            self.span_ns = _extended(self.span_ns, message.log_time)
        if not self._recognised:
            raise SequenceError(f'{path} is empty or no MCAP file ({self.cut_off})')
        self.topics = tuple(
            _streamed_topic(schema, channel, counts[number])
            for number, (schema, channel) in channels.items()
        )

    def messages(
        self, topics: Collection[str] | None, start_ns: int | None, stop_ns: int | None
    ) -> Iterator[StoredMessage]:
        """Yield messages up to the cut."""
        for schema, channel, message in self._records():
            if topics is not None and channel.topic not in topics:
                continue
            if start_ns is not None and message.log_time < start_ns:
                continue
            if stop_ns is not None and message.log_time >= stop_ns:
                continue
            yield StoredMessage(channel.topic, schema.name, message.log_time, message.data)

    def close(self) -> None:
        """Do nothing; the file is open only while it is read."""

    def _records(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield schema, channel and message."""
        records = self._mcap.records
        schemas: dict[int, Any] = {}
        channels: dict[int, Any] = {}
        with self._path.open('rb') as stream:
            reader = self._mcap.stream_reader.StreamReader(
                stream, record_size_limit=MAX_RECORD_BYTES
            )
            iterator = reader.records
            while True:
                # Over a cut or a broken chunk stumbles the reader, struct or a decompressor,
                # each with errors of its own; what came before is good in any case.
                try:
                    record = next(iterator)
                except StopIteration:
                    return
                except Exception as error:
                    self.cut_off = f'{self._path.name}: {reason(error)}'
                    return
                self._recognised = True
                if isinstance(record, records.Schema):
                    schemas[record.id] = record
                elif isinstance(record, records.Channel):
                    channels[record.id] = record
                elif isinstance(record, records.Message):
                    channel = channels.get(record.channel_id)
                    schema = schemas.get(channel.schema_id) if channel is not None else None
                    if schema is not None:
                        yield schema, channel, record


def _extended(span_ns: tuple[int, int] | None, log_ns: int) -> tuple[int, int]:
    first_ns, last_ns = span_ns or (log_ns, log_ns)
    return min(first_ns, log_ns), max(last_ns, log_ns)


def _streamed_topic(schema: Any, channel: Any, count: int) -> BagTopic:
    return BagTopic(
        channel.topic,
        schema.name,
        count,
        parse_offered_qos(channel.metadata.get('offered_qos_profiles', '')),
        schema.data.decode(errors='replace'),
    )


def _mcap() -> Any:
    try:
        import mcap
        import mcap.records
        import mcap.stream_reader
    except ImportError as error:
        raise MissingDependencyError(
            f'bags need mcap ({error}); pip install osmabench_ros[bags]'
        ) from error
    return mcap


class RecoveredSqlite:
    """A database that was cut off, or whose last pages are still in its write-ahead log.

    Parameters
    ----------
    path : Path
        The .db3 file; a -wal file beside it is taken into account, and neither is changed.

    Raises
    ------
    SequenceError
        If not even the list of topics can be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.cut_off = f'{path.name} was not closed by its recorder'
        self.span_ns: tuple[int, int] | None = None
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        file, immutable = path, True
        if write_ahead_log(path):
            # SQLite puts the log into the database when it reads it; that is done to a copy.
            self._copy = tempfile.TemporaryDirectory(prefix='osmabench_bag_')
            file, immutable = Path(self._copy.name) / path.name, False
            shutil.copyfile(path, file)
            shutil.copyfile(_log_of(path), _log_of(file))
        self._uri = f'{file.absolute().as_uri()}?{"immutable=1" if immutable else "mode=rw"}'
        try:
            self._names = self._read_topics()
            self.topics = self._counted()
        except sqlite3.Error as error:
            self.close()
            raise SequenceError(
                f'{path} holds no list of topics that can be read: {error}; it was cut off too '
                'early, or is no bag'
            ) from error

    def messages(
        self, topics: Collection[str] | None, start_ns: int | None, stop_ns: int | None
    ) -> Iterator[StoredMessage]:
        """Yield messages in the order they were written, up to the first damaged page."""
        with closing(self._connect()) as database:
            try:
                # The index on time may be what is damaged.
                rows = database.execute(
                    'SELECT topic_id, timestamp, data FROM messages NOT INDEXED ORDER BY id'
                )
                for number, log_ns, data in rows:
                    topic = self._names.get(number)
                    if topic is None or (topics is not None and topic.topic not in topics):
                        continue
                    early = start_ns is not None and log_ns < start_ns
                    late = stop_ns is not None and log_ns >= stop_ns
                    if not early and not late:
                        yield StoredMessage(
                            topic.topic, topic.message_type, log_ns, bytes(data or b'')
                        )
            except sqlite3.Error as error:
                self.cut_off = f'{self._path.name}: {error}'

    def close(self) -> None:
        """Remove the copy, if there is one."""
        if self._copy is not None:
            self._copy.cleanup()

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._uri, uri=True)
        # Otherwise SQLite refuses a file that is shorter than its header says.
        database.execute('PRAGMA writable_schema=ON')
        return database

    def _read_topics(self) -> dict[int, BagTopic]:
        with closing(self._connect()) as database:
            columns = [row[1] for row in database.execute('PRAGMA table_info(topics)')]
            qos = 'offered_qos_profiles' if 'offered_qos_profiles' in columns else "''"
            rows = list(database.execute(f'SELECT id, name, type, {qos} FROM topics'))  # noqa: S608 - one of two constants
            definitions = dict(_definitions(database))
        return {
            number: BagTopic(name, kind, 0, parse_offered_qos(text), definitions.get(kind, ''))
            for number, name, kind, text in rows
        }

    def _counted(self) -> tuple[BagTopic, ...]:
        counts = Counter(
            (item.topic, item.message_type) for item in self.messages(None, None, None)
        )
        return tuple(
            BagTopic(
                item.topic,
                item.message_type,
                counts[item.topic, item.message_type],
                item.qos,
                item.definition,
            )
            for item in self._names.values()
        )


def write_ahead_log(path: Path) -> bool:
    """Tell whether a database has content that is not in its own file yet."""
    log = _log_of(path)
    return log.exists() and log.stat().st_size > 0


def _log_of(path: Path) -> Path:
    return path.with_name(f'{path.name}-wal')


def _definitions(database: sqlite3.Connection) -> list[tuple[str, str]]:
    try:
        return list(
            database.execute(
                'SELECT topic_type, encoded_message_definition FROM message_definitions'
            )
        )
    except sqlite3.Error:
        return []  # before Iron there is no such table
